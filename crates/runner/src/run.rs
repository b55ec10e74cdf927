//! A run: every case of every profile, one after the other, into a run folder.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use untorn_device::{DeviceError, mkfs_command};
use untorn_process::Interrupt;
use untorn_spec::{CaseId, CaseResult, ProfileInfo, RunEvent, RunInfo, Verdict};

use crate::case::{CasePlan, Settings, Workers, run_case};
use crate::error_text::error_text;
use crate::plan::ProfilePlan;
use crate::recording::CommandFailed;
use crate::{Bundle, Observer, RunFolder};

/// Shows a run while it goes on.
pub trait Display: Sync {
    /// Something happened.
    fn event(&self, event: &RunEvent);

    /// A recovery was made.
    fn tick(&self, case: &CaseId, recoveries: u64, coverage: f64);
}

/// Runs a plan. Events go to the run folder and to `display`.
///
/// # Errors
/// When it was interrupted, or the run folder cannot be written. A case that fails makes its
/// verdict `inconclusive`, and the run goes on.
pub fn run(
    info: &RunInfo,
    plan: &[ProfilePlan],
    settings: &Settings,
    folder: &RunFolder,
    scratch: &Path,
    display: &dyn Display,
    interrupt: &Interrupt,
) -> Result<()> {
    let start = Instant::now();
    let teller = Teller {
        folder,
        display,
        failed: Mutex::new(None),
    };
    folder.write_manifest(info)?;
    teller.event(&RunEvent::RunStarted(info.clone()));
    for ProfilePlan { profile, cases } in plan {
        interrupt.check()?;
        teller.event(&RunEvent::ProfileStarted(ProfileInfo {
            profile: profile.name.to_owned(),
            mkfs: mkfs_command(profile),
            mount_options: profile.mount_options.to_owned(),
            unit: profile.unit,
            expected: profile.expected,
        }));
        let workers = match start_workers(profile, settings, scratch) {
            Ok(workers) => workers,
            Err(error) => {
                teller.event(&RunEvent::ProfileUnsupported {
                    profile: profile.name.to_owned(),
                    reason: error_text(&error),
                });
                continue;
            }
        };
        for case in cases {
            match run_case(case, &workers, settings, &teller, interrupt) {
                Ok(result) => teller.event(&RunEvent::CaseFinished(result)),
                Err(error) => {
                    interrupt.check()?;
                    // What the subject did wrong ends the run: every case would fail alike.
                    if error.is::<CommandFailed>() || error.is::<untorn_process::CommandError>() {
                        return Err(error);
                    }
                    teller.event(&RunEvent::CaseFinished(failed(case, &error)));
                }
            }
            teller.check()?;
        }
    }
    teller.event(&RunEvent::RunFinished {
        seconds: start.elapsed().as_secs_f64(),
    });
    teller.check()
}

/// Also tries whether the profile's file system can be made and mounted at all.
fn start_workers(
    profile: &'static untorn_spec::Profile,
    settings: &Settings,
    scratch: &Path,
) -> Result<Workers> {
    untorn_device::requirements(profile)?;
    let workers = Workers::start(profile, settings, scratch)?;
    workers.try_mount()?;
    Ok(workers)
}

fn failed(case: &CasePlan, error: &anyhow::Error) -> CaseResult {
    let missing = error.downcast_ref::<DeviceError>().is_some_and(|error| {
        matches!(
            error,
            DeviceError::NoMkfs { .. } | DeviceError::NoLoopDevice(_)
        )
    });
    let verdict = if missing {
        Verdict::Unsupported
    } else {
        Verdict::Inconclusive
    };
    CaseResult::without_recoveries(
        case.id.clone(),
        case.expected,
        case.control
            .as_ref()
            .map(|control| (control.kinds.clone(), control.must_be_caught)),
        verdict,
        error_text(error),
    )
}

/// Passes events on to the run folder and the display.
struct Teller<'a> {
    folder: &'a RunFolder,
    display: &'a dyn Display,
    failed: Mutex<Option<anyhow::Error>>,
}

impl Teller<'_> {
    fn check(&self) -> Result<()> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map_or(Ok(()), Err)
    }
}

impl Observer for Teller<'_> {
    fn event(&self, event: &RunEvent) {
        if let Err(error) = self.folder.append(event) {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert(error);
        }
        self.display.event(event);
    }

    fn tick(&self, case: &CaseId, recoveries: u64, coverage: f64) {
        self.display.tick(case, recoveries, coverage);
    }

    fn keep(&self, bundle: &mut Bundle) -> Result<()> {
        self.folder.keep(bundle)
    }
}
