//! Events become a certificate.

use std::collections::BTreeSet;

use untorn_spec::{
    CaseId, CaseResult, Certificate, Expected, FilesystemEntry, Format, Kernel, ProfileInfo,
    RunEvent, RunInfo, Tool, Verdict, ViolationRecord, profile,
};

use crate::entry::scenario_entry;
use crate::judge::{Judgement, judge};

/// What is known of a run after some of its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fold {
    run: Option<RunInfo>,
    profiles: Vec<ProfileFold>,
    violations: Vec<ViolationRecord>,
    seconds: Option<f64>,
}

/// What is known of one profile.
#[derive(Debug, Clone, PartialEq)]
struct ProfileFold {
    info: ProfileInfo,
    unsupported: Option<String>,
    running: BTreeSet<CaseId>,
    results: Vec<CaseResult>,
}

impl Fold {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunStarted(info) => self.run = Some(info.clone()),
            RunEvent::ProfileStarted(info) => self.profile(&info.profile).info = info.clone(),
            RunEvent::ProfileUnsupported { profile, reason } => {
                self.profile(profile).unsupported = Some(reason.clone());
            }
            RunEvent::CaseStarted { case, .. } => {
                self.profile(&case.profile).running.insert(case.clone());
            }
            RunEvent::RecordingExplored(_) => {}
            RunEvent::ViolationFound(record) => self.add_violation(record),
            RunEvent::CaseFinished(result) => {
                for record in &result.violations {
                    self.add_violation(record);
                }
                let profile = self.profile(&result.case.profile);
                profile.running.remove(&result.case);
                profile.results.push(result.clone());
            }
            RunEvent::RunFinished { seconds } => self.seconds = Some(*seconds),
        }
    }

    /// The verdict of the whole: the worst of its profiles'.
    ///
    /// The verdict of a profile is the worst of these:
    /// * A case of a correct writer: `holds` when it came to what was expected of it, `violated`
    ///   when it was violated against the expectation. Where a file system promises nothing (no
    ///   journal, no flushes), `violated` is what is expected; that one such case holds is fine,
    ///   for a small tree may get away with it.
    /// * All cases of correct writers that were expected to be violated hold: `harness-broken`,
    ///   since a crash disk that loses nothing here cannot be believed elsewhere.
    /// * A control: `harness-broken` when it had to be caught and was not, whatever it came to
    ///   instead; otherwise `holds`. Only `unsupported` passes through, since the control was
    ///   never put to the test.
    /// * `unsupported`, `inconclusive` and `harness-broken` of a correct writer's case pass
    ///   through, and so does a profile that is unsupported as a whole.
    /// * `inconclusive` when a case was begun and not finished, or when no case was run: nothing
    ///   tested is no pass.
    ///
    /// For the same reason a run without profiles is `inconclusive`, and one that did not come to
    /// its end (no [`RunEvent::RunFinished`]) is so at best.
    pub fn verdict(&self) -> Verdict {
        let whole = self.seconds.is_some() && !self.profiles.is_empty();
        let least = if whole {
            Verdict::Holds
        } else {
            Verdict::Inconclusive
        };
        let verdicts = self.profiles.iter().map(|profile| profile.entry().verdict);
        verdicts.fold(least, Verdict::and)
    }

    /// The certificate of what is known so far.
    pub fn certificate(&self) -> Certificate {
        let run = self.run.clone().unwrap_or_else(unknown_run);
        Certificate {
            format: Format::default(),
            verdict: self.verdict(),
            kernel: Kernel {
                release: run.kernel_release,
                version: run.kernel_version,
                machine: run.machine,
                guest: run.guest,
            },
            tool: Tool {
                version: run.tool_version,
                commit: run.tool_commit,
            },
            seed: run.seed,
            suite: run.suite,
            run_id: run.run_id,
            seconds: self.seconds.unwrap_or_else(|| self.seconds_of_cases()),
            filesystems: self.profiles.iter().map(ProfileFold::entry).collect(),
        }
    }

    /// Every violation found, in the order in which they were, those of controls too.
    pub fn violations(&self) -> &[ViolationRecord] {
        &self.violations
    }

    /// Violations where none was expected: those of correct writers on profiles that promise
    /// something.
    pub fn unexpected_violations(&self) -> impl Iterator<Item = &ViolationRecord> {
        let results = || self.profiles.iter().flat_map(|profile| &profile.results);
        self.violations.iter().filter(move |record| {
            results().any(|result| {
                result.case == record.case && !result.control && result.expected == Expected::Holds
            })
        })
    }

    fn add_violation(&mut self, record: &ViolationRecord) {
        // A case reports each of its violations when it is found and once more when it ends.
        let known = |old: &ViolationRecord| {
            old.case == record.case && old.kind == record.kind && old.token == record.token
        };
        if !self.violations.iter().any(known) {
            self.violations.push(record.clone());
        }
    }

    fn profile(&mut self, name: &str) -> &mut ProfileFold {
        let known = self
            .profiles
            .iter()
            .position(|profile| profile.info.profile == name);
        let index = known.unwrap_or_else(|| {
            self.profiles.push(ProfileFold::new(name));
            self.profiles.len() - 1
        });
        &mut self.profiles[index]
    }

    fn seconds_of_cases(&self) -> f64 {
        let results = self.profiles.iter().flat_map(|profile| &profile.results);
        results.map(|result| result.seconds).sum()
    }
}

impl ProfileFold {
    /// A profile of which only the name is known: the rest is as the built-in list has it.
    fn new(name: &str) -> Self {
        let known = profile(name);
        let mkfs = known.map(|known| {
            let program = std::iter::once(known.fs.mkfs());
            let arguments = known.mkfs.iter().copied();
            program.chain(arguments).map(str::to_owned).collect()
        });
        Self {
            info: ProfileInfo {
                profile: name.to_owned(),
                mkfs: mkfs.unwrap_or_default(),
                mount_options: known.map_or("", |known| known.mount_options).to_owned(),
                unit: known.map_or(0, |known| known.unit),
                expected: known.map_or(Expected::Holds, |known| known.expected),
            },
            unsupported: None,
            running: BTreeSet::new(),
            results: Vec::new(),
        }
    }

    fn entry(&self) -> FilesystemEntry {
        let entries = |control: bool| {
            let results = self.results.iter();
            let chosen = results.filter(move |result| result.control == control);
            chosen.map(scenario_entry).collect::<Vec<_>>()
        };
        let (scenarios, controls) = (entries(false), entries(true));
        let judgement = self.judgement(&scenarios, &controls);
        let info = self.info.clone();
        FilesystemEntry {
            profile: info.profile,
            mkfs: info.mkfs,
            mount_options: info.mount_options,
            unit: info.unit,
            expected: info.expected,
            verdict: judgement.verdict,
            reason: judgement.reason,
            scenarios,
            controls,
        }
    }

    fn judgement(
        &self,
        scenarios: &[untorn_spec::ScenarioEntry],
        controls: &[untorn_spec::ScenarioEntry],
    ) -> Judgement {
        let unsupported = self
            .unsupported
            .as_ref()
            .map(|reason| Judgement::new(Verdict::Unsupported, reason));
        let unfinished = self.running.first().map(|case| {
            let reason = format!("the run ended before {} was done", case.scenario);
            Judgement::new(Verdict::Inconclusive, reason)
        });
        let nothing_run = scenarios.is_empty() && controls.is_empty();
        let said = unsupported.into_iter().chain(unfinished);
        let judged = said.chain((!nothing_run).then(|| judge(scenarios, controls)));
        judged
            .reduce(Judgement::and)
            .unwrap_or_else(|| judge(scenarios, controls))
    }
}

/// Stands in where the first event is missing.
fn unknown_run() -> RunInfo {
    let unknown = || "unknown".to_owned();
    RunInfo {
        run_id: unknown(),
        tool_version: unknown(),
        tool_commit: unknown(),
        kernel_release: unknown(),
        kernel_version: unknown(),
        machine: unknown(),
        guest: None,
        seed: 0,
        suite: unknown(),
        workers: 0,
    }
}
