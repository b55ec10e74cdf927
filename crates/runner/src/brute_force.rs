//! The explorer against brute force: every state of small crash spaces is recovered by itself, and
//! must come to what the lazy exploration says of it.
//!
//! [`compare_with_brute_force`] is what the claim of full coverage rests on beyond its proof: the
//! proof takes recovery to be a function of what it reads, and this asks the kernel.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use untorn_block::{CrashSpace, epochs};
use untorn_device::make_image;
use untorn_explore::{Decision, Explorer, Limits, Path as ChoicePath};
use untorn_process::Interrupt;
use untorn_spec::Disturbance;

use crate::agent::Initial;
use crate::case::{CasePlan, InitialTree, Settings, Workers};
use crate::judge::Judge;
use crate::recording::{Recording, Stage, populate, record};
use crate::worker::{Recovered, Worker};

/// Which crash spaces are compared, and how much work may go into it.
#[derive(Debug, Clone)]
pub struct BruteForceLimits {
    /// Most units in flight in one space.
    pub units_max: usize,
    /// Most states of one space.
    pub states_per_space_max: u64,
    /// Most states of all spaces that are compared, together.
    pub states_max: u64,
}

/// What a recovery came to, as far as two recoveries can be told apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparedOutcome {
    /// `old`, `new`, or the kind of the violation.
    pub outcome: String,
    /// Digest of the recovered tree, `-` when it could not be mounted.
    pub tree_digest: String,
    /// Names beside the target.
    pub siblings: Vec<String>,
}

/// One crash space in which the explorer and brute force were compared.
#[derive(Debug, Clone)]
pub struct ComparedSpace {
    /// The recording it is of.
    pub disturbance: Disturbance,
    /// Number of the epoch in the recording, from 0.
    pub epoch: u32,
    /// Units in flight.
    pub units: usize,
    /// Crash states, each of which was recovered by itself.
    pub states: u64,
    /// Recoveries that the explorer needed for the same space.
    pub recoveries: u64,
    /// What the explorer found.
    pub explored: BTreeSet<ComparedOutcome>,
    /// What recovering every state found.
    pub brute_force: BTreeSet<ComparedOutcome>,
    /// States that came to something else than the explorer's run that stands for them, in words.
    pub contradictions: Vec<String>,
}

impl ComparedSpace {
    /// The same outcomes, and each state came to that of the run that stands for it.
    pub fn agrees(&self) -> bool {
        self.explored == self.brute_force && self.contradictions.is_empty()
    }
}

impl fmt::Display for ComparedSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            disturbance,
            epoch,
            units,
            states,
            recoveries,
            explored,
            ..
        } = self;
        write!(
            f,
            "{disturbance} e{epoch}: {units} units, {states} states, {recoveries} recoveries, \
             {} outcomes",
            explored.len()
        )
    }
}

/// Records a case undisturbed and with these disturbances, and compares in every crash space that
/// is small enough what the explorer finds with what recovering each state finds.
///
/// Where the limit on all states does not allow every such space, the choice is always the same
/// for the same spaces: from the smallest up, and with the second half of the limit from the
/// largest down.
///
/// # Errors
/// When the harness or the subject fails. That the two disagree is no error.
pub fn compare_with_brute_force(
    plan: &CasePlan,
    disturbances: &[Disturbance],
    limits: &BruteForceLimits,
    settings: &Settings,
    scratch: &Path,
    interrupt: &Interrupt,
) -> Result<Vec<ComparedSpace>> {
    let settings = Settings {
        workers: 1,
        ..settings.clone()
    };
    let workers = Workers::start(plan.profile, &settings, scratch)?;
    let worker = workers.workers.first().context("no worker")?;
    let initial = match &plan.initial {
        InitialTree::OfSpec(spec) => Initial::Generated(spec.clone()),
        InitialTree::CopyOf(from) => Initial::CopyOf(from.clone()),
    };
    let (populated, old) = populate(worker, make_image(plan.profile)?, &plan.target, initial)?;
    let stage = Stage {
        subject: &plan.subject,
        target: &plan.target,
        populated: &populated,
        flush_hold: Duration::from_millis(plan.recordings.flush_hold_ms.into()),
        seed: settings.seed,
        interrupt,
    };
    let mut recordings = vec![record(worker, &stage, Disturbance::Undisturbed)?];
    for disturbance in disturbances {
        recordings.push(record(worker, &stage, *disturbance)?);
    }
    let new = recordings[0].live.clone();
    let comparison = Comparison {
        worker,
        judge: Judge::new(old, new)?,
        target: &plan.target,
    };
    let mut compared = Vec::new();
    for candidate in chosen(candidates(&recordings, plan.profile.unit, limits), limits) {
        interrupt.check()?;
        compared.push(comparison.compare(&candidate)?);
    }
    Ok(compared)
}

/// A crash space that is small enough.
struct Candidate {
    disturbance: Disturbance,
    epoch: u32,
    space: Arc<CrashSpace>,
    states: u64,
    acknowledged: bool,
}

/// Every space within the limits, each once.
fn candidates(recordings: &[Recording], unit: u32, limits: &BruteForceLimits) -> Vec<Candidate> {
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for recording in recordings {
        for epoch in epochs(&recording.base, &recording.log, unit) {
            let acknowledged = recording.log.acknowledged_before(epoch.end);
            let Ok(states) = u64::try_from(epoch.space.states()) else {
                continue;
            };
            let small = epoch.space.in_flight.len() <= limits.units_max
                && states <= limits.states_per_space_max;
            if small && known.insert((epoch.space.digest, acknowledged)) {
                found.push(Candidate {
                    disturbance: recording.disturbance,
                    epoch: epoch.index,
                    space: epoch.space,
                    states,
                    acknowledged,
                });
            }
        }
    }
    found
}

/// As many as the limit on all states allows.
fn chosen(mut candidates: Vec<Candidate>, limits: &BruteForceLimits) -> Vec<Candidate> {
    candidates.sort_by_key(|candidate| (candidate.states, candidate.epoch));
    let mut left = limits.states_max;
    let mut take = |candidates: &mut Vec<Candidate>, reserve: u64, largest_first: bool| {
        let mut taken = Vec::new();
        let mut passed_over = Vec::new();
        let all = std::mem::take(candidates);
        let ordered: Vec<Candidate> = if largest_first {
            all.into_iter().rev().collect()
        } else {
            all
        };
        for candidate in ordered {
            if candidate.states + reserve <= left {
                left -= candidate.states;
                taken.push(candidate);
            } else {
                passed_over.push(candidate);
            }
        }
        *candidates = passed_over;
        taken
    };
    let mut taken = take(&mut candidates, limits.states_max / 2, false);
    taken.extend(take(&mut candidates, 0, true));
    taken
}

struct Comparison<'a> {
    worker: &'a Worker,
    judge: Judge,
    target: &'a str,
}

impl Comparison<'_> {
    fn compare(&self, candidate: &Candidate) -> Result<ComparedSpace> {
        let runs = self.explore(candidate)?;
        let mut brute_force = BTreeSet::new();
        let mut contradictions = Vec::new();
        for state in all_states(&candidate.space) {
            let image = candidate.space.state(state.iter());
            let recovered = self.worker.recover_image(image, self.target)?;
            let outcome = self.outcome(&recovered, candidate.acknowledged)?;
            // The runs partition the space, so exactly one of them stands for this state.
            let standing: Vec<&(ChoicePath, ComparedOutcome)> = runs
                .iter()
                .filter(|(run, _)| run.iter().all(|(unit, pick)| state.get(unit) == Some(pick)))
                .collect();
            match standing[..] {
                [(_, explored)] if *explored == outcome => {}
                [(run, explored)] => contradictions.push(format!(
                    "state {state} came to {outcome:?}, and the run {run} to {explored:?}"
                )),
                _ => contradictions.push(format!(
                    "{} runs stand for state {state}, not one",
                    standing.len()
                )),
            }
            brute_force.insert(outcome);
        }
        Ok(ComparedSpace {
            disturbance: candidate.disturbance,
            epoch: candidate.epoch,
            units: candidate.space.in_flight.len(),
            states: candidate.states,
            recoveries: runs.len() as u64,
            explored: runs.into_iter().map(|(_, outcome)| outcome).collect(),
            brute_force,
            contradictions,
        })
    }

    /// Every run of the explorer, with what it fixed and decided, and what it came to. It learns as
    /// the exploration of a case does; that it drops no run only makes more of them.
    fn explore(&self, candidate: &Candidate) -> Result<Vec<(ChoicePath, ComparedOutcome)>> {
        let space = &candidate.space;
        let mut explorer = Explorer::new(space.arities(), Limits::unlimited())?;
        let mut useless: Arc<HashMap<u64, u32>> = Arc::default();
        let mut runs = Vec::new();
        while let Some(task) = explorer.next() {
            let path = task.path().clone();
            let (recovered, sealed) = self.worker.recover(
                space,
                &path,
                task.default_pick(),
                self.target,
                useless.clone(),
            )?;
            for unit in sealed.useless {
                *Arc::make_mut(&mut useless).entry(unit).or_default() += 1;
            }
            let made: Vec<Decision> = sealed
                .decisions
                .iter()
                .map(|made| Decision {
                    id: made.unit,
                    arity: made.versions,
                    pick: made.pick,
                })
                .collect();
            let decided = path.extended(&made);
            runs.push((decided, self.outcome(&recovered, candidate.acknowledged)?));
            explorer.complete(task, &made)?;
        }
        Ok(runs)
    }

    /// Judges what is mounted, and unmounts it.
    fn outcome(&self, recovered: &Recovered, acknowledged: bool) -> Result<ComparedOutcome> {
        let judged = self.judge.judge(self.worker, recovered, acknowledged)?;
        let siblings = match recovered {
            Recovered::Seen(seen) => seen.siblings.clone(),
            Recovered::Unmountable(_) => Vec::new(),
        };
        self.worker.unmount()?;
        Ok(ComparedOutcome {
            outcome: judged.outcome.clone(),
            tree_digest: judged.digest.clone(),
            siblings,
        })
    }
}

/// Every choice of a version for every unit in flight.
fn all_states(space: &CrashSpace) -> impl Iterator<Item = ChoicePath> {
    let arities: Vec<(u64, u32)> = space.arities().collect();
    let mut next = Some(vec![0u32; arities.len()]);
    std::iter::from_fn(move || {
        let picks = next.take()?;
        let mut following = picks.clone();
        for (digit, (_, arity)) in following.iter_mut().zip(&arities) {
            *digit += 1;
            if *digit < *arity {
                next = Some(following);
                break;
            }
            *digit = 0;
        }
        let units = arities.iter().map(|(unit, _)| *unit);
        Some(units.zip(picks).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untorn_block::{BlockLog, BlockOp, Image};

    fn writes(contents: &[(u64, u8)]) -> Arc<CrashSpace> {
        let ops = contents
            .iter()
            .map(|(unit, byte)| BlockOp::Write {
                offset: unit * 512,
                data: vec![*byte; 512].into(),
            })
            .collect();
        let found = epochs(&Image::zeroed(8192), &BlockLog { ops }, 512);
        found[0].space.clone()
    }

    #[test]
    fn every_state_is_listed_once() {
        let space = writes(&[(3, 1), (3, 2), (5, 1), (7, 9)]);
        let states: BTreeSet<ChoicePath> = all_states(&space).collect();
        assert_eq!(all_states(&space).count(), 3 * 2 * 2);
        assert_eq!(states.len(), 12);
        assert!(states.iter().all(|state| state.len() == 3));
        assert_eq!(all_states(&writes(&[])).count(), 1);
    }

    #[test]
    fn small_spaces_come_first_and_then_the_largest_that_fit() {
        let candidate = |epoch: u32, states: u64| Candidate {
            disturbance: Disturbance::Undisturbed,
            epoch,
            space: writes(&[]),
            states,
            acknowledged: false,
        };
        let sizes = [64, 2, 512, 8, 128, 256, 32];
        let candidates = (0u32..)
            .zip(sizes)
            .map(|(epoch, states)| candidate(epoch, states));
        let limits = BruteForceLimits {
            units_max: 12,
            states_per_space_max: 4096,
            states_max: 400,
        };
        let taken: Vec<u64> = chosen(candidates.collect(), &limits)
            .iter()
            .map(|candidate| candidate.states)
            .collect();
        assert_eq!(taken, [2, 8, 32, 64, 256]);
    }
}
