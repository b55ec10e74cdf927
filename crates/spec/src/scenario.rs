//! Scenarios: what is published, by which writer, how the run is disturbed, what must come out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Profile, ViolationKind};

/// What a case should come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// No crash state breaks the promise.
    Holds,
    /// At least one does: the writer is a control, or the file system promises nothing.
    Violated,
}

/// One scenario, as a file in `scenarios/` holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Lower-case words with hyphens; unique; the same as the file's name.
    pub name: String,
    /// One sentence for `untorn list`.
    pub about: String,
    /// A built-in writer, see `untorn list`.
    pub writer: String,
    /// The trees before and after.
    pub tree: TreeSpec,
    /// Present when the writer is known to be wrong: what must be found, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Profiles that the scenario is for; all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Vec<String>>,
    /// How each recording is disturbed.
    #[serde(default)]
    pub recordings: Recordings,
    /// How far exploration goes.
    #[serde(default)]
    pub limits: ScenarioLimits,
}

impl Scenario {
    /// True when the scenario is for this profile.
    pub fn is_for(&self, profile: &Profile) -> bool {
        let listed = |names: &Vec<String>| names.iter().any(|name| name == profile.name);
        self.profiles.as_ref().is_none_or(listed)
    }

    /// What the scenario should come to on this profile: a control is violated everywhere, a
    /// correct writer fares as the profile promises.
    pub fn expected_on(&self, profile: &Profile) -> Expected {
        match self.control {
            Some(_) => Expected::Violated,
            None => profile.expected,
        }
    }

    /// True when this is a control that the profile must not hide.
    pub fn must_be_caught_on(&self, profile: &Profile) -> bool {
        let listed = |control: &Control| control.caught_on.iter().any(|name| name == profile.name);
        self.control.as_ref().is_some_and(listed)
    }
}

/// The JSON schema of scenario files, as `scenarios/scenario.schema.json` publishes it.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Scenario)
}

/// What a control must show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The control is caught when one of these kinds is found.
    pub kinds: Vec<ViolationKind>,
    /// Profiles on which it must be caught. On others it is run, and either result is fine: a
    /// stronger file system may hide the mistake.
    pub caught_on: Vec<String>,
}

/// The trees before and after the update, generated from a few numbers.
///
/// Every file's content names its generation, its path and its position, and repeats nothing, so
/// that a block found anywhere tells where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// Name of the target inside the file system's top directory.
    #[serde(default = "default_target")]
    pub target: String,
    /// Number of files generated beside the named ones: `file-000` and so on.
    #[serde(default)]
    pub count: u32,
    /// Files with a name, a size and a mode of their own.
    #[serde(default)]
    pub file: Vec<FileSpec>,
    /// True when the target is not there at first.
    #[serde(default)]
    pub absent_at_first: bool,
}

fn default_target() -> String {
    "live".to_owned()
}

/// One file of a [`TreeSpec`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Path relative to the target; parent directories are made as needed.
    pub path: String,
    /// Size in bytes before and after. 0 is not allowed: an empty file would hide a loss.
    pub bytes: [u32; 2],
    /// Permission bits before and after, in octal text such as `"0600"`.
    #[serde(default = "default_modes")]
    pub modes: [String; 2],
}

fn default_modes() -> [String; 2] {
    ["0644".to_owned(), "0644".to_owned()]
}

/// Which recordings are made of one writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recordings {
    /// One run that nothing disturbs.
    #[serde(default = "yes")]
    pub undisturbed: bool,
    /// Neighbour commits (crash model, section 4).
    #[serde(default)]
    pub neighbor_commit: Boundaries,
    /// Milliseconds for which each flush is held back, so that writes can overlap it.
    #[serde(default)]
    pub flush_hold_ms: u32,
}

impl Default for Recordings {
    fn default() -> Self {
        Self {
            undisturbed: true,
            neighbor_commit: Boundaries::default(),
            flush_hold_ms: 0,
        }
    }
}

const fn yes() -> bool {
    true
}

/// At which syscall boundaries a disturbance is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Boundaries {
    /// At none.
    None,
    /// At each in turn, one recording per boundary.
    #[default]
    Each,
    /// After the last one only.
    Last,
}

/// How far exploration goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioLimits {
    /// Most recoveries for one crash space; exhaustive when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoveries_per_space_max: Option<u64>,
}
