//! Small spaces, programs that read their choices adaptively, and a scheduler that hands tasks out
//! and back in random order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use untorn_explore::{Decision, Explorer, Limits, Mode, Order, Path, Task};

/// All choices of a small space, as ids with arities.
pub(crate) type Arities = Vec<(u64, u32)>;

/// A pick for each choice of a space.
pub(crate) type State = BTreeMap<u64, u32>;

/// Spaces of at most 5 choices, arity 2 to 4, with ids that are neither dense nor small.
pub(crate) fn spaces() -> impl Strategy<Value = Arities> {
    prop::collection::btree_map(any::<u64>(), 2_u32..=4, 0..=5)
        .prop_map(|arities| arities.into_iter().collect())
}

/// Orders and budgets under which a search still finishes.
pub(crate) fn finishing_limits() -> impl Strategy<Value = Limits> {
    let order = prop::sample::select(vec![Order::Auto, Order::DepthFirst, Order::BreadthFirst]);
    // No space above has more than 4^5 states, so no search makes more runs than this.
    let runs_max = prop::sample::select(vec![None, Some(1 << 10)]);
    (order, runs_max, 0_u32..=100, any::<u64>()).prop_map(|(order, runs_max, percent, seed)| {
        // One percent of the budget is 10 runs: small percentages do reach the sampler.
        Limits {
            runs_max,
            order,
            ordered_percent: percent / 20,
            sample_seed: seed,
        }
    })
}

/// A deterministic stream for programs and schedules.
#[derive(Clone)]
pub(crate) struct Stream(pub(crate) u64);

impl Stream {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = mix(self.0);
        usize::try_from(self.0 % bound as u64).expect("below a usize")
    }
}

pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 31))
        .wrapping_mul(0x7fb5_d329_728e_a185)
        .wrapping_add(11);
    let value = (value ^ (value >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    value ^ (value >> 33)
}

/// A deterministic program: which choices it reads next depends on what it has read so far.
///
/// It reads in rounds. The set of a round depends on all picks before it, and `shuffle` decides
/// nothing but the order inside the round.
pub(crate) fn run_program(
    seed: u64,
    arities: &[(u64, u32)],
    shuffle: &mut Stream,
    mut pick: impl FnMut(u64, u32) -> u32,
) -> State {
    let mut read = State::new();
    loop {
        let past = read.iter().fold(seed, |hash, (&id, &made)| {
            mix(mix(hash ^ id) ^ u64::from(made))
        });
        let unread = arities.iter().filter(|(id, _)| !read.contains_key(id));
        let mut round: Vec<_> = unread
            .filter(|(id, _)| mix(past ^ id).is_multiple_of(3))
            .collect();
        if round.is_empty() {
            return read;
        }
        while !round.is_empty() {
            let &(id, arity) = round.swap_remove(shuffle.below(round.len()));
            read.insert(id, pick(id, arity));
        }
    }
}

/// Runs a program for a task and returns what it read and what it decided beyond the path.
pub(crate) fn run_task(
    seed: u64,
    arities: &[(u64, u32)],
    shuffle: &mut Stream,
    task: &Task,
) -> (State, Vec<Decision>) {
    let mut made = Vec::new();
    let read = run_program(seed, arities, shuffle, |id, arity| {
        let pick = task.pick(id, arity);
        if task.path().get(id).is_none() {
            made.push(Decision { id, arity, pick });
        }
        pick
    });
    (read, made)
}

/// Every state of a space.
pub(crate) fn all_states(arities: &[(u64, u32)]) -> Vec<State> {
    arities
        .iter()
        .fold(vec![State::new()], |states, &(id, arity)| {
            let extend = |state: State| {
                (0..arity).map(move |pick| {
                    let mut state = state.clone();
                    state.insert(id, pick);
                    state
                })
            };
            states.into_iter().flat_map(extend).collect()
        })
}

/// Whether a state agrees with a path.
pub(crate) fn agrees(state: &State, path: &Path) -> bool {
    path.iter().all(|(id, pick)| state[&id] == pick)
}

/// Departures of a state from the nearer anchor.
pub(crate) fn departures(state: &State, arities: &[(u64, u32)]) -> usize {
    let from_first = arities.iter().filter(|(id, _)| state[id] != 0).count();
    let from_last = arities
        .iter()
        .filter(|(id, arity)| state[id] != arity - 1)
        .count();
    from_first.min(from_last)
}

/// Drives a search to its end with several tasks outstanding, completed in random order, some of
/// them abandoned. `run` returns a run's decisions; `each` sees the explorer and all cells visited
/// so far after every completed run.
pub(crate) fn drive(
    explorer: &mut Explorer,
    workers: usize,
    schedule: &mut Stream,
    mut run: impl FnMut(&Task) -> Vec<Decision>,
    mut each: impl FnMut(&Explorer, &[Path]),
) -> Vec<Path> {
    let mut held: Vec<Task> = Vec::new();
    let mut visited = Vec::new();
    loop {
        while held.len() < workers {
            let Some(task) = explorer.next() else { break };
            held.push(task);
        }
        assert_eq!(explorer.outstanding(), held.len() as u64);
        if held.is_empty() {
            assert!(
                explorer.is_finished(),
                "nothing to hand out and nothing outstanding"
            );
            return visited;
        }
        assert!(!explorer.is_finished());
        let task = held.swap_remove(schedule.below(held.len()));
        if schedule.below(8) == 0 {
            explorer.abandon(task);
            continue;
        }
        let made = run(&task);
        visited.push(task.path().extended(&made));
        explorer.complete(task, &made).expect("the report is right");
        each(explorer, &visited);
    }
}

/// Asserts that a search said it covered everything, by every way there is of saying it.
pub(crate) fn assert_exhausted(explorer: &Explorer) {
    let coverage = explorer.coverage();
    assert_eq!(coverage.covered(), coverage.total());
    assert!(coverage.is_complete());
    assert!(coverage.fraction().to_bits() == 1.0_f64.to_bits());
    assert_eq!(explorer.mode(), Mode::Exhausted);
    assert_eq!(explorer.waiting(), 0);
}

/// The set of leaf classes a program has: what it reads, over every state.
pub(crate) fn leaves_by_brute_force(seed: u64, arities: &[(u64, u32)]) -> BTreeSet<State> {
    let run = |state: State| run_program(seed, arities, &mut Stream(0), |id, _| state[&id]);
    all_states(arities).into_iter().map(run).collect()
}
