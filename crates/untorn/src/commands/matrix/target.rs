//! One kernel of a matrix: what is still to be run under it, and what is known of it so far.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use anyhow::{Context, Result};
use untorn_report::{Fold, GuestTimes, MatrixPart};
use untorn_runner::{ProfilePlan, RunFolder};
use untorn_spec::{Profile, RunEvent};
use untorn_vm::Kernel;

use super::lock;
use crate::session::{certificate_json, write_reports};

/// One kernel.
pub(super) struct Target {
    pub(super) kernel: Kernel,
    /// What is typed to run something under it.
    pub(super) typed: String,
    pub(super) initramfs: PathBuf,
    /// Folder of its runs.
    pub(super) runs: PathBuf,
    pub(super) folder: RunFolder,
    pub(super) state: Mutex<State>,
}

/// What is known of a kernel so far.
pub(super) struct State {
    pub(super) waiting: Vec<Unit>,
    pub(super) guests: u32,
    pub(super) guests_now: u32,
    /// Numbers the commands that were run in guests.
    pub(super) commands: u32,
    pub(super) started: bool,
    pub(super) profiles_started: BTreeSet<String>,
    pub(super) fold: Fold,
    pub(super) recovery_seconds: Vec<(String, f64)>,
    pub(super) begun: Option<Instant>,
    pub(super) times: GuestTimes,
}

/// One file system's cases that are still to be run.
#[derive(Clone)]
pub(super) struct Unit {
    pub(super) profile: &'static Profile,
    pub(super) scenarios: Vec<String>,
    pub(super) fruitless: u32,
}

impl State {
    pub(super) fn new(plan: &[ProfilePlan]) -> Self {
        let units = plan.iter().filter(|profile| !profile.cases.is_empty());
        let waiting = units.map(|profile| Unit {
            profile: profile.profile,
            scenarios: profile
                .cases
                .iter()
                .map(|case| case.id.scenario.clone())
                .collect(),
            fruitless: 0,
        });
        Self {
            waiting: waiting.collect(),
            guests: 0,
            guests_now: 0,
            commands: 0,
            started: false,
            profiles_started: BTreeSet::new(),
            fold: Fold::new(),
            recovery_seconds: Vec::new(),
            begun: None,
            times: GuestTimes::default(),
        }
    }

    fn seconds(&self) -> f64 {
        self.begun
            .map_or(0.0, |begun| begun.elapsed().as_secs_f64())
    }
}

impl Target {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn note(&self, event: &RunEvent) -> Result<()> {
        let mut state = self.state();
        self.folder.append(event)?;
        state.fold.add(event);
        let seconds = state.seconds();
        match event {
            RunEvent::CaseStarted { .. } if state.times.first_case_seconds == 0.0 => {
                state.times.first_case_seconds = seconds;
            }
            RunEvent::CaseFinished(result) => {
                state.times.seconds = seconds;
                let name = &result.case.profile;
                let spent = result.recovery_seconds;
                match state
                    .recovery_seconds
                    .iter_mut()
                    .find(|(known, _)| known == name)
                {
                    Some((_, sum)) => *sum += spent,
                    None => state.recovery_seconds.push((name.clone(), spent)),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the kernel's run and writes its reports.
    pub(super) fn finish(&self, run_id: &str) -> Result<MatrixPart> {
        let whole = self.state().waiting.is_empty();
        if whole {
            let seconds = self.state().times.seconds;
            self.note(&RunEvent::RunFinished { seconds })?;
        }
        let state = self.state();
        let certificate = state.fold.certificate();
        write_reports(&self.folder, &certificate, state.fold.violations())?;
        let path = self.runs.join("certificate.json");
        fs::write(&path, certificate_json(&certificate)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        debug_assert!(
            self.folder.path().ends_with(run_id),
            "reports are linked by it"
        );
        Ok(MatrixPart {
            name: self.kernel.given.clone(),
            folder: self.kernel.name.clone(),
            certificate,
            times: GuestTimes {
                guests: state.guests,
                ..state.times
            },
            recovery_seconds: state.recovery_seconds.clone(),
        })
    }
}
