//! Bundles: a violation with everything that is needed to see it again, on any machine.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use untorn_block::{BlockLog, Image, epochs, read_log, write_log};
use untorn_oracle::TreeSnapshot;
use untorn_spec::{Profile, ViolationRecord};

const FACTS: &str = "bundle.json";
const BASE: &str = "base.image.zst";
const LOG: &str = "block.log";
const SCENARIO: &str = "scenario.toml";

/// A violation and the recording that it was found in.
#[derive(Debug)]
pub struct Bundle {
    /// What is not bulk.
    pub facts: BundleFacts,
    /// Content of the disk when the recording began.
    pub base: Image,
    /// What the disk received, with marks.
    pub log: BlockLog,
    /// The scenario as it was read, if there was one.
    pub scenario: Option<String>,
}

/// `bundle.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BundleFacts {
    /// The violation.
    pub violation: ViolationRecord,
    /// Profile by which the file system is mounted.
    pub profile: String,
    /// Bytes per unit.
    pub unit: u32,
    /// Epoch of the log, from 0.
    pub epoch: u32,
    /// Choices, as the explorer's path prints them; every other unit holds its durable content.
    pub choices: String,
    /// The target's name.
    pub target: String,
    /// The new tree was acknowledged by the end of the epoch.
    pub acknowledged: bool,
    /// The tree before.
    pub old: TreeSnapshot,
    /// The tree after.
    pub new: TreeSnapshot,
}

impl Bundle {
    /// Writes the bundle into a new folder.
    ///
    /// # Errors
    /// Those of the file system; what was written so far stays.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let create = |name: &str| {
            let path = folder.join(name);
            File::create(&path)
                .map(BufWriter::new)
                .with_context(|| format!("cannot create {}", path.display()))
        };
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let mut facts = create(FACTS)?;
        serde_json::to_writer_pretty(&mut facts, &self.facts)?;
        facts.flush()?;
        let mut base = zstd::Encoder::new(create(BASE)?, 1)?;
        self.base.write_to(&mut base)?;
        base.finish()?.flush()?;
        let mut log = create(LOG)?;
        write_log(&self.log, self.facts.unit, &mut log)?;
        log.flush()?;
        if let Some(scenario) = &self.scenario {
            fs::write(folder.join(SCENARIO), scenario)?;
        }
        Ok(())
    }

    /// Reads a bundle.
    ///
    /// # Errors
    /// When a part is missing or broken; the message names it.
    pub fn load(folder: &Path) -> Result<Self> {
        let open = |name: &str| {
            let path = folder.join(name);
            File::open(&path)
                .map(BufReader::new)
                .with_context(|| format!("cannot open {}: is this a bundle?", path.display()))
        };
        let facts = serde_json::from_reader(open(FACTS)?)
            .with_context(|| format!("{}", folder.join(FACTS).display()))?;
        let base = Image::read_from(&mut zstd::Decoder::new(open(BASE)?)?)
            .with_context(|| format!("{}", folder.join(BASE).display()))?;
        let (log, _sector) =
            read_log(&mut open(LOG)?).with_context(|| format!("{}", folder.join(LOG).display()))?;
        let scenario = fs::read_to_string(folder.join(SCENARIO)).ok();
        let bundle = Self {
            facts,
            base,
            log,
            scenario,
        };
        bundle
            .profile()
            .and_then(|_profile| bundle.state())
            .with_context(|| format!("{}", folder.join(FACTS).display()))?;
        Ok(bundle)
    }

    /// The profile that the file system is mounted by.
    ///
    /// # Errors
    /// When this program does not know it.
    pub fn profile(&self) -> Result<&'static Profile> {
        let name = &self.facts.profile;
        untorn_spec::profile(name)
            .with_context(|| format!("this version knows no file-system profile `{name}`"))
    }

    /// The content of the disk after the power cut.
    ///
    /// # Errors
    /// When the bundle contradicts itself.
    pub fn state(&self) -> Result<Image> {
        let BundleFacts {
            unit,
            epoch,
            choices,
            ..
        } = &self.facts;
        if !unit.is_power_of_two() || *unit < 512 {
            bail!("no disk has units of {unit} bytes");
        }
        let choices: untorn_explore::Path = choices
            .parse()
            .with_context(|| format!("choices `{choices}`"))?;
        let all = epochs(&self.base, &self.log, *unit);
        let Some(epoch) = all.get(*epoch as usize) else {
            bail!(
                "the log has {} epochs, so there is no epoch {epoch}",
                all.len()
            );
        };
        for (unit, pick) in choices.iter() {
            let versions = epoch.space.in_flight.get(&unit).map_or(0, Vec::len);
            if pick as usize > versions {
                bail!(
                    "unit {unit} has {versions} versions in flight, so there is no version {pick}"
                );
            }
        }
        Ok(epoch.space.state(choices.iter()))
    }
}
