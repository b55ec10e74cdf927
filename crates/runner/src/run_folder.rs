//! Run folders: where a run keeps its events, its certificate and its bundles.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use untorn_spec::{RunEvent, RunInfo};

use crate::bundle::{Bundle, BundleFacts};

/// The folder of a run that is under way.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// What is typed to start the harness, for replay commands.
    program: String,
    events: Mutex<File>,
    violations: Mutex<u32>,
}

impl RunFolder {
    /// Makes `runs/RUN_ID`. `program` is what starts this program in a shell, ready to be pasted,
    /// for replay commands.
    ///
    /// # Errors
    /// When it cannot be made or is there already.
    pub fn create(runs: &Path, run_id: &str, program: &str) -> Result<Self> {
        let path = runs.join(run_id);
        fs::create_dir_all(runs).with_context(|| format!("cannot create {}", runs.display()))?;
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let events = path.join("events.jsonl");
        let file =
            File::create(&events).with_context(|| format!("cannot create {}", events.display()))?;
        Ok(Self {
            path,
            program: program.to_owned(),
            events: Mutex::new(file),
            violations: Mutex::new(0),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When the disk is full, say.
    pub fn append(&self, event: &RunEvent) -> Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events
            .write_all(&line)
            .with_context(|| format!("cannot write to {}/events.jsonl", self.path.display()))
    }

    /// Writes `manifest.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_manifest(&self, info: &RunInfo) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(info)?;
        json.push(b'\n');
        self.write("manifest.json", &json)
    }

    /// Writes a file of the run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Keeps a bundle; its record then says where it is and how to see it again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, bundle: &mut Bundle) -> Result<()> {
        let number = {
            let mut violations = self
                .violations
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *violations += 1;
            *violations
        };
        let place = format!("violations/{number}");
        let folder = self.path.join(&place);
        let BundleFacts { violation, .. } = &mut bundle.facts;
        violation.replay = format!(
            "{} replay {}",
            self.program,
            shell_word(&folder.display().to_string())
        );
        violation.bundle = place;
        bundle.save(&folder)
    }
}

/// A text as one word of a shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The run folder that `name` means: a path, a unique prefix of a run's name, or `latest`.
///
/// # Errors
/// When there is none, or more than one.
pub fn find_run(runs: &Path, name: &str) -> Result<PathBuf> {
    let direct = Path::new(name);
    if direct.join("events.jsonl").is_file() {
        return Ok(direct.to_owned());
    }
    let mut names: Vec<String> = match fs::read_dir(runs) {
        Ok(entries) => entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|entry| runs.join(entry).join("events.jsonl").is_file())
            .collect(),
        Err(error) => bail!(
            "cannot read {}: {error}; run something first",
            runs.display()
        ),
    };
    // Names begin with the time, so the last in order is the latest.
    names.sort();
    if name == "latest" {
        return match names.last() {
            Some(latest) => Ok(runs.join(latest)),
            None => bail!("there is no run in {}", runs.display()),
        };
    }
    let matching: Vec<&String> = names.iter().filter(|run| run.starts_with(name)).collect();
    match matching[..] {
        [only] => Ok(runs.join(only)),
        [] => bail!("no run in {} begins with `{name}`", runs.display()),
        _ => bail!(
            "{} runs in {} begin with `{name}`: give more of it",
            matching.len(),
            runs.display()
        ),
    }
}

/// Bundles of all runs, those of the latest run first.
pub fn bundles(runs: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        paths
    };
    let mut all: Vec<PathBuf> = list(runs);
    all.reverse();
    all.iter()
        .flat_map(|run| list(&run.join("violations")))
        .collect()
}
