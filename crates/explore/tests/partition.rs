//! The runs of a search partition its space: exactly, in every order, with any number of workers.

mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use support::{
    Stream, agrees, all_states, assert_exhausted, departures, drive, finishing_limits,
    leaves_by_brute_force, run_task, spaces,
};
use untorn_explore::{Decision, Explorer, Limits, Mode, Order};

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// A deterministic program: each leaf is visited exactly once, the same leaves as by brute
    /// force, whatever the order of the search.
    #[test]
    fn every_leaf_exactly_once(
        arities in spaces(),
        limits in finishing_limits(),
        program in any::<u64>(),
        schedule in any::<u64>(),
        workers in 1_usize..6,
    ) {
        let mut explorer = Explorer::new(arities.clone(), limits).unwrap();
        let mut leaves = Vec::new();
        let run = |task: &_| {
            let (read, made) = run_task(program, &arities, &mut Stream(program), task);
            leaves.push(read);
            made
        };
        drive(&mut explorer, workers, &mut Stream(schedule), run, |_, _| {});
        assert_exhausted(&explorer);
        let distinct: BTreeSet<_> = leaves.iter().cloned().collect();
        prop_assert_eq!(distinct.len(), leaves.len());
        prop_assert_eq!(distinct, leaves_by_brute_force(program, &arities));
    }

    /// A program that asks in another order each time: no state is lost or judged twice, and the
    /// outcomes are those of all states.
    #[test]
    fn another_order_of_reading_loses_nothing(
        arities in spaces(),
        limits in finishing_limits(),
        program in any::<u64>(),
        schedule in any::<u64>(),
        workers in 1_usize..6,
    ) {
        let mut explorer = Explorer::new(arities.clone(), limits).unwrap();
        let mut shuffle = Stream(schedule ^ 1);
        let mut leaves = BTreeSet::new();
        let run = |task: &_| {
            let (read, made) = run_task(program, &arities, &mut shuffle, task);
            leaves.insert(read);
            made
        };
        let cells = drive(&mut explorer, workers, &mut Stream(schedule), run, |_, _| {});
        assert_exhausted(&explorer);
        prop_assert_eq!(leaves, leaves_by_brute_force(program, &arities));
        for state in all_states(&arities) {
            prop_assert_eq!(cells.iter().filter(|cell| agrees(&state, cell)).count(), 1);
        }
    }

    /// Runs that decide whatever they like, with picks that follow no default: still a partition,
    /// and the claim about departures is true at every moment.
    #[test]
    fn claims_are_true_at_every_moment(
        arities in spaces(),
        limits in finishing_limits(),
        chaos in any::<u64>(),
        schedule in any::<u64>(),
        workers in 1_usize..6,
    ) {
        let mut explorer = Explorer::new(arities.clone(), limits).unwrap();
        let states = all_states(&arities);
        let mut chaos = Stream(chaos);
        let run = |task: &untorn_explore::Task| {
            let mut open: Vec<_> =
                arities.iter().filter(|(id, _)| task.path().get(*id).is_none()).collect();
            let decide = chaos.below(open.len() + 1);
            let mut made = Vec::new();
            for _ in 0..decide {
                let &(id, arity) = open.swap_remove(chaos.below(open.len()));
                let free = u32::try_from(chaos.below(arity as usize)).unwrap();
                let pick = if chaos.below(2) == 0 { free } else { task.pick(id, arity) };
                made.push(Decision { id, arity, pick });
            }
            made
        };
        let check = |explorer: &Explorer, cells: &[untorn_explore::Path]| {
            let covered = |state: &_| cells.iter().filter(|cell| agrees(state, cell)).count();
            let Mode::Bounded { departures_completed: Some(completed), .. } = explorer.mode() else {
                return;
            };
            let near = |state: &&_| departures(state, &arities) <= completed as usize;
            for state in states.iter().filter(near) {
                assert_eq!(covered(state), 1);
            }
        };
        let cells = drive(&mut explorer, workers, &mut Stream(schedule), run, check);
        assert_exhausted(&explorer);
        for state in &states {
            prop_assert_eq!(cells.iter().filter(|cell| agrees(state, cell)).count(), 1);
        }
    }

    /// A budget that ends the search early: no run too many, and exact coverage of what was seen.
    #[test]
    fn a_small_budget_is_kept_and_counted_exactly(
        arities in spaces(),
        runs_max in 0_u64..20,
        seed in any::<u64>(),
        program in any::<u64>(),
        workers in 1_usize..6,
    ) {
        let mut explorer = Explorer::new(arities.clone(), Limits::runs(runs_max, seed)).unwrap();
        let run = |task: &_| run_task(program, &arities, &mut Stream(0), task).1;
        let cells = drive(&mut explorer, workers, &mut Stream(seed), run, |_, _| {});
        prop_assert!(cells.len() as u64 <= runs_max);
        let states = all_states(&arities);
        let seen = |state: &&_| cells.iter().any(|cell| agrees(state, cell));
        let covered = states.iter().filter(seen).count();
        let coverage = explorer.coverage();
        prop_assert_eq!(coverage.covered(), &covered.into());
        prop_assert_eq!(coverage.is_complete(), covered == states.len());
        prop_assert_eq!(explorer.mode() == Mode::Exhausted, covered == states.len());
    }

    /// The same calls visit the same cells: nothing random is left.
    #[test]
    fn a_search_repeats_itself(
        arities in spaces(),
        runs_max in 0_u64..40,
        seed in any::<u64>(),
        program in any::<u64>(),
    ) {
        let search = || {
            let limits = Limits { order: Order::BreadthFirst, ..Limits::runs(runs_max, seed) };
            let mut explorer = Explorer::new(arities.clone(), limits).unwrap();
            let run = |task: &_| run_task(program, &arities, &mut Stream(0), task).1;
            drive(&mut explorer, 2, &mut Stream(seed), run, |_, _| {})
        };
        prop_assert_eq!(search(), search());
    }

    /// A path and its text are the same thing.
    #[test]
    fn a_path_round_trips(picks in prop::collection::btree_map(any::<u64>(), any::<u32>(), 0..9)) {
        let path: untorn_explore::Path = picks.into_iter().collect();
        prop_assert_eq!(path.to_string().parse(), Ok(path));
    }

    /// Text that is accepted is the text that would have been printed.
    #[test]
    fn accepted_text_is_canonical(text in "[0-9=,+-]{0,12}") {
        if let Ok(path) = text.parse::<untorn_explore::Path>() {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}
