//! Progress bars on the terminal.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use untorn_spec::{CaseId, RunEvent};

use crate::Progress;

/// Steps of a bar, so that small progress is seen.
const STEPS: u64 = 1000;

/// One bar per running case: recordings done, recoveries and their rate, and how far the current
/// crash space is covered. Bars go away when their case is done.
pub struct Bars {
    all: MultiProgress,
    running: Mutex<BTreeMap<CaseId, Running>>,
}

struct Running {
    bar: ProgressBar,
    recordings: u32,
    recordings_done: u32,
    recoveries: u64,
}

impl Bars {
    /// Bars on stderr; nothing is drawn when it is no terminal.
    pub fn stderr() -> Self {
        Self::new(ProgressDrawTarget::stderr())
    }

    /// Bars drawn somewhere else.
    pub fn new(target: ProgressDrawTarget) -> Self {
        Self {
            all: MultiProgress::with_draw_target(target),
            running: Mutex::default(),
        }
    }

    /// Takes the bars off the screen while `print` writes to the terminal.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.all.suspend(print)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<CaseId, Running>> {
        // A bar half drawn by a thread that panicked is no reason to fail as well.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, case: &CaseId, recordings: u32) {
        let bar = self.all.add(ProgressBar::new(STEPS));
        bar.set_style(style());
        bar.set_prefix(format!("{} {}", case.profile, case.scenario));
        bar.enable_steady_tick(Duration::from_millis(250));
        let running = Running {
            bar,
            recordings,
            recordings_done: 0,
            recoveries: 0,
        };
        running.show();
        if let Some(before) = self.running().insert(case.clone(), running) {
            before.bar.finish_and_clear();
        }
    }
}

/// `━━━━━━━━         ext4 two-files: recording 3/14, 1203 recoveries, 340/s`
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:16} {prefix}: {wide_msg}").map_or_else(
        |_| ProgressStyle::default_bar(),
        |style| style.progress_chars("━━ "),
    )
}

impl Running {
    fn show(&self) {
        let recording = (self.recordings > 0).then(|| {
            // The recording under way is the one after those done.
            let now = (self.recordings_done + 1).min(self.recordings);
            format!("recording {now}/{}", self.recordings)
        });
        let recoveries = format!("{} recoveries", self.recoveries);
        let seconds = self.bar.elapsed().as_secs_f64();
        // Over the first second a rate would only flicker.
        let rate = (seconds >= 1.0).then(|| {
            #[expect(clippy::cast_precision_loss, reason = "a rate for the eye")]
            let rate = self.recoveries as f64 / seconds;
            format!("{rate:.0}/s")
        });
        let parts = recording.into_iter().chain([recoveries]).chain(rate);
        self.bar.set_message(parts.collect::<Vec<_>>().join(", "));
    }
}

impl Progress for Bars {
    fn event(&self, event: &RunEvent) {
        match event {
            RunEvent::CaseStarted { case, recordings } => self.start(case, *recordings),
            RunEvent::RecordingExplored(summary) => {
                if let Some(running) = self.running().get_mut(&summary.case) {
                    running.recordings_done += 1;
                    running.bar.set_position(0);
                    running.show();
                }
            }
            RunEvent::CaseFinished(result) => {
                if let Some(running) = self.running().remove(&result.case) {
                    running.bar.finish_and_clear();
                    self.all.remove(&running.bar);
                }
            }
            RunEvent::RunFinished { .. } => self.finish(),
            RunEvent::RunStarted(_)
            | RunEvent::ProfileStarted(_)
            | RunEvent::ProfileUnsupported { .. }
            | RunEvent::ViolationFound(_) => {}
        }
    }

    fn tick(&self, case: &CaseId, recoveries: u64, coverage: f64) {
        if let Some(running) = self.running().get_mut(case) {
            running.recoveries = recoveries;
            running.bar.set_position(steps(coverage));
            running.show();
        }
    }

    fn finish(&self) {
        for running in std::mem::take(&mut *self.running()).into_values() {
            running.bar.finish_and_clear();
            self.all.remove(&running.bar);
        }
    }
}

fn steps(coverage: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and 1000"
    )]
    let steps = (coverage.clamp(0.0, 1.0) * STEPS as f64) as u64;
    steps
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.finish();
    }
}

impl fmt::Debug for Bars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running: Vec<CaseId> = self.running().keys().cloned().collect();
        f.debug_struct("Bars")
            .field("running", &running)
            .finish_non_exhaustive()
    }
}
