//! One case: a scenario with its writer on one profile.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use num_bigint::BigUint;
use untorn_device::make_image;
use untorn_oracle::TreeSnapshot;
use untorn_process::Interrupt;
use untorn_spec::{
    Boundaries, CaseId, CaseResult, Disturbance, Expected, Profile, Recordings, RunEvent, Verdict,
    ViolationKind,
};

use crate::Observer;
use crate::agent::Initial;
use crate::exploration::{self, Exploration, Totals};
use crate::judge::{Judge, snapshot_of};
use crate::recording::{Recording, Stage, Subject, populate, record};
use crate::worker::{AgentCommand, Worker};

/// A case, with nothing left to decide.
#[derive(Debug, Clone)]
pub struct CasePlan {
    /// Its name.
    pub id: CaseId,
    /// The file system.
    pub profile: &'static Profile,
    /// The program under test.
    pub subject: Subject,
    /// Name of the target in the top directory.
    pub target: String,
    /// The tree before.
    pub initial: InitialTree,
    /// What it should come to.
    pub expected: Expected,
    /// For a control: what it must show.
    pub control: Option<ControlPlan>,
    /// Which recordings are made.
    pub recordings: Recordings,
    /// Most recoveries for one crash space.
    pub recoveries_per_space_max: u64,
    /// The scenario as text, for bundles.
    pub scenario_text: Option<String>,
}

/// What a control must show.
#[derive(Debug, Clone)]
pub struct ControlPlan {
    /// One of these kinds must be found.
    pub kinds: Vec<ViolationKind>,
    /// It must be found on this profile.
    pub must_be_caught: bool,
}

/// The tree before the update.
#[derive(Debug, Clone)]
pub enum InitialTree {
    /// Generation 0 of the subject's own [`untorn_spec::TreeSpec`].
    OfSpec(untorn_spec::TreeSpec),
    /// A copy of a directory.
    CopyOf(std::path::PathBuf),
}

/// How cases are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How a disk agent is started.
    pub agent: AgentCommand,
    /// Workers per case.
    pub workers: usize,
    /// Seed that everything random derives from.
    pub seed: u64,
    /// Deferred replies are used; off only to measure what they gain.
    pub deferred_replies: bool,
}

/// The workers of one profile. They are kept from case to case.
#[derive(Debug)]
pub struct Workers {
    pub(crate) workers: Vec<Worker>,
    profile: &'static Profile,
}

impl Workers {
    /// Makes the disks and starts the agents. They end with the calling thread.
    ///
    /// # Errors
    /// When the machine lacks something; the message says what would help.
    pub fn start(profile: &'static Profile, settings: &Settings, scratch: &Path) -> Result<Self> {
        let workers = (0..settings.workers.max(1))
            .map(|number| {
                let scratch = scratch.join(format!("{}-{number}", profile.name));
                let bytes = u64::from(profile.image_mib) << 20;
                Worker::start(profile, bytes, &scratch, &settings.agent)
            })
            .collect::<Result<Vec<_>>>()?;
        for worker in &workers {
            worker.disk.set_deferred(settings.deferred_replies);
        }
        Ok(Self { workers, profile })
    }

    /// Mounts an empty file system once: what a kernel cannot do should be known before a case
    /// begins.
    ///
    /// # Errors
    /// When it cannot be made or mounted.
    pub fn try_mount(&self) -> Result<()> {
        let empty = make_image(self.profile)?;
        for worker in self.workers.iter().take(1) {
            worker.disk.load(empty.clone());
            worker.must(&crate::agent::Request::Mount)?;
            worker.unmount()?;
        }
        Ok(())
    }

    /// The profile they are for.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }
}

/// Runs one case to its end.
///
/// # Errors
/// When the harness or the subject fails; a violation is no error.
pub fn run_case(
    plan: &CasePlan,
    workers: &Workers,
    settings: &Settings,
    observer: &dyn Observer,
    interrupt: &Interrupt,
) -> Result<CaseResult> {
    let start = Instant::now();
    let first = workers.workers.first().context("no worker")?;
    let (initial, expected_new) = trees(plan)?;
    let empty = make_image(plan.profile)?;
    let (populated, old) = populate(first, empty, &plan.target, initial)?;
    let stage = Stage {
        subject: &plan.subject,
        target: &plan.target,
        populated: &populated,
        flush_hold: Duration::from_millis(plan.recordings.flush_hold_ms.into()),
        seed: settings.seed,
        interrupt,
    };
    // Count first: the undisturbed run says how many boundaries there are, and what the new tree is.
    let undisturbed = record(first, &stage, Disturbance::Undisturbed)?;
    let new = match expected_new {
        Some(new) => {
            check_live(plan, &new, &undisturbed)?;
            new
        }
        None => undisturbed.live.clone(),
    };
    if old == new {
        // Every crash state would pass, and nothing would be known.
        return Ok(CaseResult::without_recoveries(
            plan.id.clone(),
            plan.expected,
            plan.control
                .as_ref()
                .map(|control| (control.kinds.clone(), control.must_be_caught)),
            Verdict::Inconclusive,
            "the tree after is the tree before: there is no update to check".to_owned(),
        ));
    }
    let (todo, left_out) = disturbances(plan, undisturbed.syscalls);
    let notes: Vec<String> = undisturbed.unseen.iter().cloned().chain(left_out).collect();
    let recordings =
        u32::try_from(todo.len()).unwrap_or(u32::MAX) + u32::from(plan.recordings.undisturbed);
    observer.event(&RunEvent::CaseStarted {
        case: plan.id.clone(),
        recordings,
    });
    let exploration = Exploration::new(
        plan,
        &stage,
        Judge::new(old, new)?,
        todo,
        observer,
        settings,
    );
    if plan.recordings.undisturbed {
        exploration.add(undisturbed)?;
    }
    let totals = exploration::run(&exploration, &workers.workers)?;
    interrupt.check()?;
    Ok(result(plan, totals, &notes, start.elapsed()))
}

/// The initial tree, and the new one as the scenario asks for it.
fn trees(plan: &CasePlan) -> Result<(Initial, Option<TreeSnapshot>)> {
    match &plan.initial {
        InitialTree::CopyOf(from) => Ok((Initial::CopyOf(from.clone()), None)),
        InitialTree::OfSpec(spec) => {
            let initial = Initial::Generated(spec.clone());
            let new = spec.generation(1).context("a scenario has no new tree")?;
            Ok((initial, Some(snapshot_of(&new))))
        }
    }
}

/// A writer that does not even write the right tree would make every verdict meaningless.
fn check_live(plan: &CasePlan, new: &TreeSnapshot, undisturbed: &Recording) -> Result<()> {
    let differences = new.difference(&undisturbed.live);
    if differences.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    bail!(
        "writer {} left another tree than the scenario asks for:\n{}",
        plan.id.writer,
        lines.join("\n")
    )
}

/// Most boundaries of a command at which a neighbour commits. Nobody here decides how many calls a
/// command makes, and each boundary costs a recording.
const COMMAND_BOUNDARIES_MAX: u32 = 64;

/// The disturbed recordings to make, and what is left out.
fn disturbances(plan: &CasePlan, syscalls: u32) -> (Vec<Disturbance>, Option<String>) {
    let boundaries = match plan.recordings.neighbor_commit {
        Boundaries::None => 0..0,
        Boundaries::Each => 0..syscalls + 1,
        Boundaries::Last => syscalls..syscalls + 1,
    };
    let all = boundaries.end - boundaries.start;
    let most = match plan.subject {
        Subject::Writer { .. } => all,
        Subject::Command { .. } => COMMAND_BOUNDARIES_MAX,
    };
    if all <= most {
        let each = boundaries.map(Disturbance::NeighborCommit);
        return (each.collect(), None);
    }
    let evenly = (0..most).map(|step| Disturbance::NeighborCommit(spread(step, most, all)));
    let note = format!("neighbour commits at {most} of {all} boundaries, spread evenly");
    (evenly.collect(), Some(note))
}

/// The place of one of `most` steps among `all`, the first and the last included.
fn spread(step: u32, most: u32, all: u32) -> u32 {
    let place = u64::from(step) * u64::from(all - 1) / u64::from(most - 1);
    u32::try_from(place).expect("it is less than `all`")
}

fn result(plan: &CasePlan, totals: Totals, notes: &[String], elapsed: Duration) -> CaseResult {
    let (verdict, reason) = verdict(&totals);
    let said: Vec<String> = reason.into_iter().chain(notes.iter().cloned()).collect();
    let reason = (!said.is_empty()).then(|| said.join("; "));
    let control = plan.control.as_ref();
    CaseResult {
        case: plan.id.clone(),
        kind: "power-cut".to_owned(),
        expected: plan.expected,
        control: control.is_some(),
        must_be_caught: control.is_some_and(|control| control.must_be_caught),
        control_kinds: control
            .map(|control| control.kinds.clone())
            .unwrap_or_default(),
        verdict,
        reason,
        exhaustive: totals.exhaustive(),
        coverage: totals.coverage(),
        departures_completed: totals.departures_completed,
        recordings: totals.recordings,
        spaces: totals.spaces,
        spaces_known: totals.spaces_known,
        crash_states_log2: log2(&totals.states),
        recoveries: totals.recoveries,
        repeated: totals.repeated,
        usable_probes: totals.usable_probes,
        recovery_seconds: totals.recovery_seconds,
        seconds: elapsed.as_secs_f64(),
        outcomes: totals.outcomes,
        violations: totals.violations,
    }
}

fn verdict(totals: &Totals) -> (Verdict, Option<String>) {
    let nondeterministic = totals.nondeterministic.first();
    let nondeterministic = nondeterministic.map(|what| format!("nondeterministic: {what}"));
    if !totals.violations.is_empty() {
        return (Verdict::Violated, nondeterministic);
    }
    if nondeterministic.is_some() {
        return (Verdict::Inconclusive, nondeterministic);
    }
    if totals.recoveries == 0 {
        return (
            Verdict::Inconclusive,
            Some("nothing was recovered".to_owned()),
        );
    }
    (Verdict::Holds, None)
}

/// Binary logarithm, right to about 15 digits.
pub(crate) fn log2(number: &BigUint) -> f64 {
    let shift = number.bits().saturating_sub(53);
    let top = u64::try_from(number >> shift).unwrap_or(u64::MAX);
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits fit, and a shift is small"
    )]
    let log2 = (top.max(1) as f64).log2() + shift as f64;
    log2
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn boundaries_are_spread_from_the_first_to_the_last() {
        let chosen: Vec<u32> = (0..4).map(|step| spread(step, 4, 10)).collect();
        assert_eq!(chosen, [0, 3, 6, 9]);
        let chosen: Vec<u32> = (0..64).map(|step| spread(step, 64, 65)).collect();
        assert_eq!((chosen[0], chosen[63]), (0, 64));
        assert!(chosen.is_sorted_by(|a, b| a < b));
    }
}
