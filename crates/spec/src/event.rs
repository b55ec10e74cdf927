//! Run events: the only link between running and reporting. A run folder keeps them in
//! `events.jsonl`, one JSON object a line, and every report is a fold over them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Disturbance, Expected, Verdict, ViolationKind};

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RunEvent {
    /// First event of a run.
    RunStarted(RunInfo),
    /// A file-system profile is ready to be used.
    ProfileStarted(ProfileInfo),
    /// A file-system profile cannot be used here.
    ProfileUnsupported {
        /// Name of the profile.
        profile: String,
        /// What is missing and what would help.
        reason: String,
    },
    /// A case begins.
    CaseStarted {
        /// Which.
        case: CaseId,
        /// Number of recordings that the plan holds, 0 when it is not known yet.
        recordings: u32,
    },
    /// Every crash space of one recording has been judged, or the case was stopped early.
    RecordingExplored(RecordingSummary),
    /// A crash state breaks the promise. Reported once per case and kind.
    ViolationFound(Box<ViolationRecord>),
    /// A case is done.
    CaseFinished(CaseResult),
    /// Last event of a run that came to its end.
    RunFinished {
        /// Wall-clock time in seconds.
        seconds: f64,
    },
}

/// What a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Name of the run and of its folder.
    pub run_id: String,
    /// Version of this program.
    pub tool_version: String,
    /// Commit it was built from, or `unknown`.
    pub tool_commit: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// `uname -m`.
    pub machine: String,
    /// What ran the kernel, where it was a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// Seed that everything random derives from.
    pub seed: u64,
    /// Suite, or the command that was given.
    pub suite: String,
    /// Number of workers per file system.
    pub workers: u32,
}

/// A profile, as it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileInfo {
    /// Name.
    pub profile: String,
    /// Command line of mkfs, without the image.
    pub mkfs: Vec<String>,
    /// Data of mount(2).
    pub mount_options: String,
    /// Bytes per unit.
    pub unit: u32,
    /// What a correct writer may expect of it.
    pub expected: Expected,
}

/// Names a case of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CaseId {
    /// File-system profile.
    pub profile: String,
    /// Scenario.
    pub scenario: String,
    /// Built-in writer, or the command line under test.
    pub writer: String,
}

/// What one recording held, and what exploring it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingSummary {
    /// The case.
    pub case: CaseId,
    /// How it was disturbed.
    pub disturbance: Disturbance,
    /// Mutating syscalls of the subject.
    pub syscalls: u32,
    /// Writes and flushes that the disk received.
    pub writes: u64,
    /// Flushes that completed.
    pub flushes: u64,
    /// Crash spaces explored.
    pub spaces: u32,
    /// Recoveries made.
    pub recoveries: u64,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The case.
    pub case: CaseId,
    /// What is done to the subject; so far always `power-cut`.
    pub kind: String,
    /// What it should come to.
    pub expected: Expected,
    /// True for a writer known to be wrong.
    pub control: bool,
    /// The control must be caught on this profile.
    pub must_be_caught: bool,
    /// Kinds, one of which must be found for the control to count as caught.
    pub control_kinds: Vec<ViolationKind>,
    /// What it came to: for a control, `violated` is what is wanted.
    pub verdict: Verdict,
    /// Why the verdict is neither `holds` nor `violated`.
    pub reason: Option<String>,
    /// Every crash state of every recording was judged.
    pub exhaustive: bool,
    /// Share of the crash states judged, from 0 to 1: the least of all spaces.
    pub coverage: f64,
    /// For bounded exploration: every state with at most so many departures from an anchor
    /// (nothing persisted, everything persisted) was judged.
    pub departures_completed: Option<u32>,
    /// Recordings made.
    pub recordings: u32,
    /// Crash spaces explored.
    pub spaces: u64,
    /// Crash spaces met again and not explored twice.
    pub spaces_known: u64,
    /// Binary logarithm of the number of crash states.
    pub crash_states_log2: f64,
    /// Recoveries: mount, check, unmount.
    pub recoveries: u64,
    /// Recoveries done twice to see whether the result is the same.
    pub repeated: u64,
    /// Recovered file systems that were written to afterwards, to see whether they are usable.
    pub usable_probes: u64,
    /// Seconds that workers spent on recoveries, all together; the rest went into recordings.
    pub recovery_seconds: f64,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Recoveries by outcome: `old`, `new`, or a violation kind.
    pub outcomes: BTreeMap<String, u64>,
    /// Violations found, one per kind.
    pub violations: Vec<ViolationRecord>,
}

impl CaseResult {
    /// The result of a case that came to no recovery, with the reason. `control` holds the kinds
    /// that a control must show, and whether it must on this profile.
    pub fn without_recoveries(
        case: CaseId,
        expected: Expected,
        control: Option<(Vec<ViolationKind>, bool)>,
        verdict: Verdict,
        reason: String,
    ) -> Self {
        let is_control = control.is_some();
        let (control_kinds, must_be_caught) = control.unwrap_or_default();
        Self {
            case,
            kind: "power-cut".to_owned(),
            expected,
            control: is_control,
            must_be_caught,
            control_kinds,
            verdict,
            reason: Some(reason),
            exhaustive: false,
            coverage: 0.0,
            departures_completed: None,
            recordings: 0,
            spaces: 0,
            spaces_known: 0,
            crash_states_log2: 0.0,
            recoveries: 0,
            repeated: 0,
            usable_probes: 0,
            recovery_seconds: 0.0,
            seconds: 0.0,
            outcomes: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// A control that had to be caught here and was, or was not; `None` when the case is no such
    /// control.
    pub fn caught(&self) -> Option<bool> {
        let due = self.control && self.must_be_caught;
        due.then(|| {
            self.violations
                .iter()
                .any(|found| self.control_kinds.contains(&found.kind))
        })
    }
}

/// One violation, with all that its story needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// The case.
    pub case: CaseId,
    /// What is wrong.
    pub kind: ViolationKind,
    /// The crash state as text.
    pub token: String,
    /// How the recording was disturbed.
    pub disturbance: Disturbance,
    /// What that means in words, such as `neighbour commit after renameat2#1`.
    pub disturbance_text: String,
    /// Epoch in the recording, from 0.
    pub epoch: u32,
    /// Binary logarithm of the number of crash states in the epoch.
    pub crash_states_log2: f64,
    /// The last syscall that had returned at the earliest cut at which the state is possible.
    pub after_syscall: Option<String>,
    /// The syscall that was under way at that cut.
    pub during_syscall: Option<String>,
    /// The subject had acknowledged the new tree by then.
    pub acknowledged: bool,
    /// Trees that were allowed: `old`, `new`.
    pub allowed: Vec<String>,
    /// What was seen instead, a line per path.
    pub seen: Vec<String>,
    /// What the disk had received and the cut lost, a line per file or kind of metadata.
    pub lost: Vec<String>,
    /// What had never been sent to the disk at all, a line per file.
    pub never_written: Vec<String>,
    /// Digest of the recovered tree.
    pub tree_digest: String,
    /// Folder of the bundle, relative to the run folder.
    pub bundle: String,
    /// The command that shows it again.
    pub replay: String,
}
