//! Explores the crash spaces of all recordings of one case, with several workers on one frontier.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Result, anyhow};
use num_bigint::BigUint;
use untorn_block::{CrashSpace, Epoch, UnitDecision, epochs};
use untorn_explore::{Decision, Explorer, Limits, Mode, Path, Task};
use untorn_spec::{
    Disturbance, Expected, RecordingSummary, RunEvent, ViolationKind, ViolationRecord,
};

use crate::Observer;
use crate::case::{CasePlan, Settings};
use crate::judge::{Judge, Judged};
use crate::recording::{Recording, Stage, record};
use crate::story;
use crate::worker::{Recovered, Worker};

/// One recovery in so many is done twice, to see whether the result is the same.
const REPEAT_EVERY: u64 = 64;
/// A run that decided units to no use is dropped and made again at most so often.
const RETRIES_MAX: u32 = 3;

/// What is shared by the workers of a case.
pub(crate) struct Exploration<'a> {
    plan: &'a CasePlan,
    stage: &'a Stage<'a>,
    pub(crate) judge: Judge,
    observer: &'a dyn Observer,
    seed: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Recordings still to be made.
    todo: VecDeque<Disturbance>,
    /// Spaces that are not finished.
    open: Vec<OpenSpace>,
    /// Spaces met before: digest, and whether the new tree was acknowledged.
    known: HashSet<([u8; 32], bool)>,
    totals: Totals,
    /// Recordings and recoveries under way.
    busy: usize,
    /// No more work is handed out.
    stopping: bool,
    error: Option<anyhow::Error>,
}

/// A space that is being explored.
struct OpenSpace {
    recording: Arc<Explored>,
    epoch: Epoch,
    acknowledged: bool,
    explorer: Explorer,
    /// Outcomes after which the file system was written to.
    probed: HashSet<String>,
    /// Units that the kernel read but did not wait for, with how often that was seen.
    useless: Arc<HashMap<u64, u32>>,
}

/// A recording and how far it has been explored.
struct Explored {
    recording: Recording,
    progress: Mutex<Progress>,
}

struct Progress {
    spaces_open: u32,
    summary: RecordingSummary,
}

/// What exploring a case came to.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) recordings: u32,
    pub(crate) spaces: u64,
    pub(crate) spaces_known: u64,
    pub(crate) states: BigUint,
    pub(crate) recoveries: u64,
    pub(crate) repeated: u64,
    /// Runs that were made again because they decided more than they had to.
    pub(crate) dropped: u64,
    pub(crate) usable_probes: u64,
    /// Seconds that workers spent on recoveries, all together.
    pub(crate) recovery_seconds: f64,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) violations: Vec<ViolationRecord>,
    pub(crate) nondeterministic: Vec<String>,
    /// Least departures completed of the spaces that were not exhausted.
    pub(crate) departures_completed: Option<u32>,
    spaces_exhausted: u64,
    coverage_least: Option<f64>,
    stopped_early: bool,
}

impl Totals {
    /// Every state of every space was judged.
    pub(crate) fn exhaustive(&self) -> bool {
        !self.stopped_early && self.spaces > 0 && self.spaces == self.spaces_exhausted
    }

    fn note_coverage(&mut self, fraction: f64) {
        self.coverage_least = Some(
            self.coverage_least
                .map_or(fraction, |least| least.min(fraction)),
        );
    }

    /// The least share covered of any space, exactly 1 only when all are covered.
    pub(crate) fn coverage(&self) -> f64 {
        if self.exhaustive() {
            1.0
        } else {
            self.coverage_least.unwrap_or(0.0).min(1.0 - f64::EPSILON)
        }
    }
}

/// One piece of work for a worker.
enum Job {
    Record(Disturbance),
    Recover {
        slot: SlotId,
        task: Task,
        space: Arc<CrashSpace>,
        acknowledged: bool,
        repeat: bool,
    },
}

/// Names an open space in spite of others being closed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SlotId {
    recording: Disturbance,
    epoch: u32,
}

impl<'a> Exploration<'a> {
    pub(crate) fn new(
        plan: &'a CasePlan,
        stage: &'a Stage<'a>,
        judge: Judge,
        todo: Vec<Disturbance>,
        observer: &'a dyn Observer,
        settings: &Settings,
    ) -> Self {
        Self {
            plan,
            stage,
            judge,
            observer,
            seed: settings.seed,
            state: Mutex::new(State {
                todo: todo.into(),
                open: Vec::new(),
                known: HashSet::new(),
                totals: Totals::default(),
                busy: 0,
                stopping: false,
                error: None,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the crash spaces of a recording into the frontier. Of a disturbed recording only those
    /// from the disturbance on: before it nothing differs from the undisturbed one.
    pub(crate) fn add(&self, recording: Recording) -> Result<()> {
        let differences = self.judge.new_tree().difference(&recording.live);
        if let Some(difference) = differences.first() {
            // Its crash states would be held against a tree that it never makes.
            let what = format!("the subject leaves another tree each time ({difference})");
            self.lock().totals.nondeterministic.push(what);
            return Ok(());
        }
        let all = epochs(&recording.base, &recording.log, self.plan.profile.unit);
        let mut fresh = Vec::new();
        let mut state = self.lock();
        for epoch in all {
            if recording.disturbance != Disturbance::Undisturbed
                && epoch.end <= recording.disturbed_at
            {
                continue;
            }
            let acknowledged = recording.log.acknowledged_before(epoch.end);
            if !state.known.insert((epoch.space.digest, acknowledged)) {
                state.totals.spaces_known += 1;
                continue;
            }
            fresh.push((epoch, acknowledged));
        }
        state.totals.recordings += 1;
        let summary = RecordingSummary {
            case: self.plan.id.clone(),
            disturbance: recording.disturbance,
            syscalls: recording.syscalls,
            writes: recording.log.writes(),
            flushes: recording.log.flushes(),
            spaces: u32::try_from(fresh.len()).unwrap_or(u32::MAX),
            recoveries: 0,
        };
        let spaces_open = summary.spaces;
        let recording = Arc::new(Explored {
            recording,
            progress: Mutex::new(Progress {
                spaces_open,
                summary,
            }),
        });
        for (epoch, acknowledged) in fresh {
            let limits = Limits::runs(self.plan.recoveries_per_space_max, self.seed);
            let explorer = Explorer::new(epoch.space.arities(), limits)?;
            state.totals.spaces += 1;
            state.totals.states += epoch.space.states();
            state.open.push(OpenSpace {
                recording: recording.clone(),
                epoch,
                acknowledged,
                explorer,
                probed: HashSet::new(),
                useless: Arc::default(),
            });
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The next piece of work, waiting for it if others may still bring some.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if self.stage.interrupt.check().is_err() {
                state.stopping = true;
            }
            if state.stopping {
                return None;
            }
            if let Some(job) = state.take_job() {
                state.busy += 1;
                return Some(job);
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, recovery_seconds: f64) {
        let mut state = self.lock();
        state.busy -= 1;
        state.totals.recovery_seconds += recovery_seconds;
        drop(state);
        self.changed.notify_all();
    }

    fn fail(&self, error: anyhow::Error) {
        let mut state = self.lock();
        state.stopping = true;
        state.error.get_or_insert(error);
    }

    fn work(&self, worker: &Worker) {
        while let Some(job) = self.next_job() {
            let start = Instant::now();
            let recovers = matches!(job, Job::Recover { .. });
            let outcome = match job {
                Job::Record(disturbance) => record(worker, self.stage, disturbance)
                    .and_then(|recording| self.add(recording)),
                Job::Recover {
                    slot,
                    task,
                    space,
                    acknowledged,
                    repeat,
                } => self.recover(worker, slot, task, &space, acknowledged, repeat),
            };
            if let Err(error) = outcome {
                self.fail(error);
            }
            self.done(if recovers {
                start.elapsed().as_secs_f64()
            } else {
                0.0
            });
        }
    }

    fn recover(
        &self,
        worker: &Worker,
        slot: SlotId,
        task: Task,
        space: &Arc<CrashSpace>,
        acknowledged: bool,
        repeat: bool,
    ) -> Result<()> {
        let target = self.stage.target;
        let mut retries = 0;
        let (recovered, made) = loop {
            let useless_before = self.useless_before(slot);
            let (recovered, sealed) = worker.recover(
                space,
                task.path(),
                task.default_pick(),
                target,
                useless_before.clone(),
            )?;
            let learned = sealed
                .useless
                .iter()
                .any(|unit| !useless_before.contains_key(unit));
            if learned {
                self.learn(slot, &sealed.useless);
            }
            if !learned || retries == RETRIES_MAX {
                break (recovered, sealed.decisions);
            }
            // Each choice that was no use doubles what there is to explore, so the run is dropped
            // and made again with what it has taught.
            worker.unmount()?;
            retries += 1;
        };
        let made: Vec<Decision> = made.iter().map(decision).collect();
        let picks = task.path().extended(&made);
        let mut judged = self.judge.judge(worker, &recovered, acknowledged)?;
        if self.is_first(slot, &judged.outcome)
            && let Recovered::Seen(_) = recovered
            && let Err(what) = worker.probe_usable(target)?
        {
            judged = Arc::new(Judged::unusable(&judged, &what));
        }
        worker.unmount()?;
        let mut differs = None;
        if repeat || judged.violation.is_some() && self.is_new_kind(&judged) {
            differs = self.repeat(worker, space, &picks, &recovered)?;
        }
        self.complete(slot, task, &made, &picks, &judged, differs, repeat)
    }

    /// Does a recovery again, decided altogether; says how it differs if it does.
    fn repeat(
        &self,
        worker: &Worker,
        space: &CrashSpace,
        picks: &Path,
        first: &Recovered,
    ) -> Result<Option<String>> {
        let again = worker.recover_image(space.state(picks.iter()), self.stage.target)?;
        worker.unmount()?;
        Ok(match (first, &again) {
            (Recovered::Seen(first), Recovered::Seen(again)) if first == again => None,
            (Recovered::Unmountable(_), Recovered::Unmountable(_)) => None,
            _ => Some(format!(
                "first {first:?}, then {again:?}, with choices {picks}"
            )),
        })
    }

    fn useless_before(&self, slot: SlotId) -> Arc<HashMap<u64, u32>> {
        self.lock()
            .space(slot)
            .map(|space| space.useless.clone())
            .unwrap_or_default()
    }

    fn learn(&self, slot: SlotId, useless: &[u64]) {
        let mut state = self.lock();
        state.totals.dropped += 1;
        if let Some(space) = state.space(slot) {
            let known = Arc::make_mut(&mut space.useless);
            for unit in useless {
                *known.entry(*unit).or_default() += 1;
            }
        }
    }

    fn is_first(&self, slot: SlotId, outcome: &str) -> bool {
        let mut state = self.lock();
        let first = state
            .space(slot)
            .is_some_and(|space| space.probed.insert(outcome.to_owned()));
        state.totals.usable_probes += u64::from(first);
        first
    }

    fn is_new_kind(&self, judged: &Judged) -> bool {
        let state = self.lock();
        let known: Vec<ViolationKind> = state
            .totals
            .violations
            .iter()
            .map(|found| found.kind)
            .collect();
        judged
            .violation
            .as_ref()
            .is_some_and(|violation| !known.contains(&violation.kind))
    }

    #[expect(clippy::too_many_arguments, reason = "all that one recovery came to")]
    fn complete(
        &self,
        slot: SlotId,
        task: Task,
        made: &[Decision],
        picks: &Path,
        judged: &Judged,
        differs: Option<String>,
        repeated: bool,
    ) -> Result<()> {
        let mut state = self.lock();
        let State { totals, open, .. } = &mut *state;
        let space = open
            .iter_mut()
            .find(|space| space.slot() == slot)
            .ok_or_else(|| anyhow!("a recovery of a space that is not open"))?;
        space.explorer.complete(task, made)?;
        totals.recoveries += 1;
        totals.repeated += u64::from(repeated);
        *totals.outcomes.entry(judged.outcome.clone()).or_default() += 1;
        {
            let mut progress = space.recording.lock();
            progress.summary.recoveries += 1;
        }
        let mut found = None;
        match (&judged.violation, differs) {
            (_, Some(what)) => totals.nondeterministic.push(what),
            (Some(violation), None)
                if !totals
                    .violations
                    .iter()
                    .any(|known| known.kind == violation.kind) =>
            {
                let context = story::Context {
                    plan: self.plan,
                    recording: &space.recording.recording,
                    epoch: &space.epoch,
                    picks,
                    judge: &self.judge,
                };
                let mut bundle = context.bundle(story::record(&context, violation, judged));
                self.observer.keep(&mut bundle)?;
                let record = bundle.facts.violation;
                totals.violations.push(record.clone());
                found = Some(record);
            }
            (Some(_) | None, None) => {}
        }
        if found.is_some() && self.enough(&totals.violations) {
            totals.stopped_early = true;
            state.stopping = true;
        }
        let coverage = state
            .space(slot)
            .map_or(1.0, |space| space.explorer.coverage().fraction());
        let (recoveries, finished) = (state.totals.recoveries, state.close_finished());
        drop(state);
        self.observer.tick(&self.plan.id, recoveries, coverage);
        if let Some(record) = found {
            self.observer
                .event(&RunEvent::ViolationFound(Box::new(record)));
        }
        for summary in finished {
            self.observer.event(&RunEvent::RecordingExplored(summary));
        }
        Ok(())
    }

    /// A control has shown what it must, or a file system that promises nothing has broken
    /// something: more of the same would only take time.
    fn enough(&self, violations: &[ViolationRecord]) -> bool {
        match &self.plan.control {
            Some(control) => violations
                .iter()
                .any(|found| control.kinds.contains(&found.kind)),
            None => self.plan.expected == Expected::Violated,
        }
    }
}

impl Explored {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSpace {
    fn slot(&self) -> SlotId {
        SlotId {
            recording: self.recording.recording.disturbance,
            epoch: self.epoch.index,
        }
    }
}

impl State {
    fn space(&mut self, slot: SlotId) -> Option<&mut OpenSpace> {
        self.open.iter_mut().find(|space| space.slot() == slot)
    }

    /// A recovery if there is one, else a recording: what is known is explored before more is
    /// taken into memory.
    fn take_job(&mut self) -> Option<Job> {
        let repeat = self.totals.recoveries.is_multiple_of(REPEAT_EVERY);
        for space in &mut self.open {
            if let Some(task) = space.explorer.next() {
                return Some(Job::Recover {
                    slot: space.slot(),
                    task,
                    space: space.epoch.space.clone(),
                    acknowledged: space.acknowledged,
                    repeat,
                });
            }
        }
        self.todo.pop_front().map(Job::Record)
    }

    /// Takes finished spaces out of the frontier and their coverage into the totals. Returns the
    /// recordings that are finished with them.
    fn close_finished(&mut self) -> Vec<RecordingSummary> {
        let mut finished = Vec::new();
        let totals = &mut self.totals;
        self.open.retain(|space| {
            if !space.explorer.is_finished() {
                return true;
            }
            totals.note_coverage(space.explorer.coverage().fraction());
            match space.explorer.mode() {
                Mode::Exhausted => totals.spaces_exhausted += 1,
                Mode::Bounded {
                    departures_completed,
                    ..
                } => {
                    totals.departures_completed =
                        match (totals.departures_completed, departures_completed) {
                            (Some(least), Some(this)) => Some(least.min(this)),
                            (None, this) => this,
                            (Some(_), None) => None,
                        };
                }
            }
            let mut progress = space.recording.lock();
            progress.spaces_open -= 1;
            if progress.spaces_open == 0 {
                finished.push(progress.summary.clone());
            }
            false
        });
        finished
    }
}

fn decision(made: &UnitDecision) -> Decision {
    Decision {
        id: made.unit,
        arity: made.versions,
        pick: made.pick,
    }
}

/// Runs until every space is finished, enough has been found, or something fails.
pub(crate) fn run(exploration: &Exploration<'_>, workers: &[Worker]) -> Result<Totals> {
    std::thread::scope(|scope| {
        for worker in workers {
            scope.spawn(move || exploration.work(worker));
        }
    });
    let mut state = exploration.lock();
    if let Some(error) = state.error.take() {
        return Err(error);
    }
    if state.stopping {
        state.totals.stopped_early = true;
        let open: Vec<f64> = state
            .open
            .iter()
            .map(|space| space.explorer.coverage().fraction())
            .collect();
        for fraction in open {
            state.totals.note_coverage(fraction);
        }
        if !state.todo.is_empty() {
            // Of recordings that were not made, nothing was covered.
            state.totals.note_coverage(0.0);
        }
    }
    Ok(std::mem::take(&mut state.totals))
}
