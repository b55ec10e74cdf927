//! `certificate.json`, format 1.0. Other programs rely on these fields: they are added to, never
//! renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Expected, Verdict, ViolationKind};

/// What a run found out about this kernel and its file systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Name and version of the format.
    pub format: Format,
    /// Verdict of the whole.
    pub verdict: Verdict,
    /// The kernel.
    pub kernel: Kernel,
    /// This program.
    pub tool: Tool,
    /// Seed that everything random derives from.
    pub seed: u64,
    /// Suite that was run.
    pub suite: String,
    /// Name of the run folder.
    pub run_id: String,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// One entry per profile.
    pub filesystems: Vec<FilesystemEntry>,
}

/// Name and version of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Always `untorn-certificate`.
    pub name: String,
    /// Changes when a reader of the format must change.
    pub major: u32,
    /// Changes when fields are added.
    pub minor: u32,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            name: "untorn-certificate".to_owned(),
            major: 1,
            minor: 0,
        }
    }
}

/// The kernel, in the words of uname(2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
    /// What ran it, where it was a guest, such as `QEMU 7.2.22, emulation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
}

/// This program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Version.
    pub version: String,
    /// Commit, or `unknown`.
    pub commit: String,
}

/// One profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesystemEntry {
    /// Name of the profile.
    pub profile: String,
    /// Command line of mkfs, without the image.
    pub mkfs: Vec<String>,
    /// Data of mount(2).
    pub mount_options: String,
    /// Bytes that the disk writes all or nothing.
    pub unit: u32,
    /// What a correct writer may expect of it.
    pub expected: Expected,
    /// Verdict.
    pub verdict: Verdict,
    /// Why it is `unsupported`, or `harness-broken`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Correct writers.
    pub scenarios: Vec<ScenarioEntry>,
    /// Writers known to be wrong.
    pub controls: Vec<ScenarioEntry>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioEntry {
    /// Name of the scenario.
    pub name: String,
    /// Writer, or command.
    pub writer: String,
    /// What is done to the subject, such as `power-cut`.
    pub kind: String,
    /// What it should come to.
    pub expected: Expected,
    /// What it came to.
    pub verdict: Verdict,
    /// Why it came to neither `holds` nor `violated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For controls: whether one of the kinds it must show was found, where that is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caught: Option<bool>,
    /// Every crash state was judged.
    pub exhaustive: bool,
    /// Share of the crash states judged.
    pub coverage: f64,
    /// See [`crate::CaseResult::departures_completed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departures_completed: Option<u32>,
    /// Binary logarithm of the number of crash states.
    pub crash_states_log2: f64,
    /// Recordings made.
    pub recordings: u32,
    /// Recoveries made.
    pub recoveries: u64,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Recoveries by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Violations, one per kind.
    pub violations: Vec<ViolationEntry>,
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationEntry {
    /// What is wrong.
    pub kind: ViolationKind,
    /// The crash state as text.
    pub token: String,
    /// The last syscall that had returned.
    pub after_syscall: Option<String>,
    /// What was lost.
    pub lost: Vec<String>,
    /// Folder of the bundle, relative to the run folder.
    pub bundle: String,
}
