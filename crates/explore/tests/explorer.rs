//! Single properties of the explorer, by example.

use untorn_explore::{
    Decision, DefaultPick, ExploreError, Explorer, Limits, Mode, Order, Path, Task,
};

/// A run that reads every choice of a space in ascending order.
fn read_all(arities: &[(u64, u32)], task: &Task) -> Vec<Decision> {
    let open = arities
        .iter()
        .filter(|(id, _)| task.path().get(*id).is_none());
    open.map(|&(id, arity)| Decision {
        id,
        arity,
        pick: task.pick(id, arity),
    })
    .collect()
}

fn binary(choices: u64) -> Vec<(u64, u32)> {
    (0..choices).map(|id| (id, 2)).collect()
}

fn breadth_first() -> Limits {
    Limits {
        order: Order::BreadthFirst,
        ..Limits::unlimited()
    }
}

#[test]
fn a_space_without_choices_takes_one_run() {
    let mut explorer = Explorer::new([], Limits::unlimited()).unwrap();
    assert!(!explorer.is_finished());
    let task = explorer.next().unwrap();
    assert!(task.path().is_empty());
    assert!(explorer.next().is_none());
    assert!(!explorer.is_finished());
    explorer.complete(task, &[]).unwrap();
    assert!(explorer.is_finished());
    assert_eq!(explorer.mode(), Mode::Exhausted);
}

#[test]
fn both_anchors_come_first_then_one_departure_from_either() {
    let arities = [(1, 2), (2, 3), (3, 4)];
    let mut explorer = Explorer::new(arities, breadth_first()).unwrap();
    let mut seen = Vec::new();
    let mut claims = Vec::new();
    for _ in 0..4 {
        let task = explorer.next().unwrap();
        let made = read_all(&arities, &task);
        seen.push((task.default_pick(), task.path().extended(&made).to_string()));
        explorer.complete(task, &made).unwrap();
        claims.push(explorer.departures_completed());
    }
    assert_eq!(seen[0], (DefaultPick::First, "1=0,2=0,3=0".into()));
    assert_eq!(seen[1], (DefaultPick::Last, "1=1,2=2,3=3".into()));
    assert_eq!(claims, [None, Some(0), Some(0), Some(0)]);
}

#[test]
fn one_departure_from_600_choices_takes_1202_runs() {
    let arities = binary(600);
    let mut explorer = Explorer::new(arities.clone(), breadth_first()).unwrap();
    let mut runs = 0;
    while explorer.departures_completed() < Some(1) {
        let task = explorer.next().unwrap();
        let made = read_all(&arities, &task);
        explorer.complete(task, &made).unwrap();
        runs += 1;
    }
    // The two anchors, and 600 states at one departure from each: not one run too many.
    assert_eq!(runs, 2 + 2 * 600);
    assert!(explorer.coverage().fraction() > 0.0);
}

#[test]
fn the_sampler_takes_over_after_its_share() {
    let arities = binary(40);
    let mut explorer = Explorer::new(arities.clone(), Limits::runs(100, 5)).unwrap();
    let mut sampled = Vec::new();
    while let Some(task) = explorer.next() {
        sampled.push(task.is_sampled());
        assert_eq!(
            matches!(task.default_pick(), DefaultPick::Seeded(_)),
            task.is_sampled()
        );
        let made = read_all(&arities, &task);
        explorer.complete(task, &made).unwrap();
    }
    assert!(explorer.is_finished());
    assert_eq!(sampled, [[false; 75].as_slice(), &[true; 25]].concat());
    assert!(matches!(
        explorer.mode(),
        Mode::Bounded {
            sampled_runs: 25,
            ..
        }
    ));
}

#[test]
fn a_caller_with_a_clock_samples_and_stops_when_it_likes() {
    let arities = binary(20);
    let mut explorer = Explorer::new(arities.clone(), breadth_first()).unwrap();
    let first = explorer.next().unwrap();
    let made = read_all(&arities, &first);
    explorer.complete(first, &made).unwrap();
    explorer.start_sampling();
    let second = explorer.next().unwrap();
    assert!(second.is_sampled());
    explorer.stop();
    assert!(explorer.next().is_none());
    assert!(!explorer.is_finished(), "a task is outstanding");
    explorer.abandon(second);
    assert!(explorer.is_finished());
    assert!(!explorer.coverage().is_complete());
}

#[test]
fn a_space_no_larger_than_its_budget_goes_depth_first_and_finishes() {
    let arities = binary(4);
    let mut explorer = Explorer::new(arities.clone(), Limits::runs(16, 0)).unwrap();
    let mut order = Vec::new();
    while let Some(task) = explorer.next() {
        assert_eq!(task.default_pick(), DefaultPick::First);
        let made = read_all(&arities, &task);
        order.push(task.path().extended(&made));
        explorer.complete(task, &made).unwrap();
    }
    assert_eq!(explorer.mode(), Mode::Exhausted);
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(order, sorted, "depth-first counts upwards");
}

#[test]
fn wrong_reports_are_refused_and_lose_nothing() {
    let decision = |id, arity, pick| Decision { id, arity, pick };
    let cases = [
        (vec![decision(9, 2, 0)], ExploreError::Unknown { id: 9 }),
        (
            vec![decision(1, 3, 0)],
            ExploreError::Arity {
                id: 1,
                declared: 2,
                reported: 3,
            },
        ),
        (
            vec![decision(1, 2, 2)],
            ExploreError::PickOutOfRange {
                id: 1,
                arity: 2,
                pick: 2,
            },
        ),
        (vec![decision(0, 2, 1)], ExploreError::Constrained { id: 0 }),
        (
            vec![decision(1, 2, 1), decision(1, 2, 1)],
            ExploreError::DecidedTwice { id: 1 },
        ),
    ];
    let mut explorer = Explorer::new(binary(2), Limits::unlimited()).unwrap();
    let root = explorer.next().unwrap();
    explorer.complete(root, &[decision(0, 2, 0)]).unwrap();
    let covered = explorer.coverage();
    for (made, error) in cases {
        let task = explorer.next().unwrap();
        assert_eq!(task.path(), &Path::from_iter([(0, 1)]));
        assert_eq!(explorer.complete(task, &made), Err(error));
        assert_eq!(explorer.coverage(), covered);
        assert_eq!((explorer.waiting(), explorer.outstanding()), (1, 0));
    }
}

#[test]
fn wrong_spaces_are_refused() {
    let new = |arities: &[(u64, u32)]| {
        Explorer::new(arities.iter().copied(), Limits::unlimited()).map(|_| ())
    };
    assert_eq!(
        new(&[(4, 1)]),
        Err(ExploreError::NoChoice { id: 4, arity: 1 })
    );
    assert_eq!(
        new(&[(4, 2), (4, 3)]),
        Err(ExploreError::DeclaredTwice { id: 4 })
    );
}

/// 131,072 runs in either order: more than a second or two would mean that a call looks at the
/// whole frontier.
#[test]
fn a_hundred_thousand_runs() {
    let arities = binary(17);
    for order in [Order::DepthFirst, Order::BreadthFirst] {
        let limits = Limits {
            order,
            runs_max: Some(1 << 17),
            ..Limits::unlimited()
        };
        let mut explorer = Explorer::new(arities.clone(), limits).unwrap();
        while let Some(task) = explorer.next() {
            let made = read_all(&arities, &task);
            explorer.complete(task, &made).unwrap();
        }
        assert_eq!(explorer.runs_completed(), 1 << 17);
        assert_eq!(explorer.mode(), Mode::Exhausted);
    }
}

/// Each run hangs off the one before it: dropping the chain must not recurse.
#[test]
fn a_chain_of_runs_as_long_as_the_search() {
    let links = 3000;
    let mut explorer = Explorer::new(binary(links), Limits::unlimited()).unwrap();
    for id in 0..links {
        let task = explorer.next().unwrap();
        explorer
            .complete(
                task,
                &[Decision {
                    id,
                    arity: 2,
                    pick: 0,
                }],
            )
            .unwrap();
    }
    let small_stack = std::thread::Builder::new().stack_size(64 * 1024);
    small_stack
        .spawn(move || drop(explorer))
        .unwrap()
        .join()
        .unwrap();
}
