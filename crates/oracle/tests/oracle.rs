//! The oracle beside classification: what a scenario permits, convergence, leftovers, its words.

use std::collections::BTreeSet;

use untorn_oracle::{
    Name, Node, Oracle, OracleError, OracleOptions, Outcome, TreeSnapshot, judge_leftovers,
};
use untorn_spec::ViolationKind;

fn tree_of<const N: usize>(entries: [(&str, Node); N]) -> TreeSnapshot {
    TreeSnapshot::new(Node::directory(0o755, entries))
}

fn old() -> TreeSnapshot {
    tree_of(["cert", "key"].map(|name| (name, Node::file(0o644, "old"))))
}

fn new() -> TreeSnapshot {
    tree_of(["cert", "key"].map(|name| (name, Node::file(0o644, "NEW"))))
}

#[test]
fn a_scenario_may_permit_that_the_target_is_absent() {
    let options = OracleOptions {
        may_be_absent: true,
    };
    let oracle = Oracle::new(vec![old(), new()], options).unwrap();
    let judgement = oracle.judge(&TreeSnapshot::missing(), &[1]);
    assert_eq!(
        (judgement.outcome, judgement.violation),
        (Outcome::Absent, None)
    );
    let converged = oracle.judge_converged(&TreeSnapshot::missing(), 1);
    assert_eq!(converged.violation.unwrap().kind, ViolationKind::Diverges);
}

#[test]
fn one_more_run_has_to_end_in_the_new_tree() {
    let oracle = Oracle::new(vec![old(), new()], OracleOptions::default()).unwrap();
    assert_eq!(
        oracle.judge_converged(&new(), 1).outcome,
        Outcome::Generation(1)
    );
    let violation = oracle.judge_converged(&old(), 1).violation.unwrap();
    assert_eq!(
        violation.to_string(),
        "diverges: one more run ends otherwise: lost-acknowledged: generation 0 came back, \
         allowed: 1"
    );
}

#[test]
fn summaries_name_the_first_of_many() {
    let oracle = Oracle::new(vec![old(), new()], OracleOptions::default()).unwrap();
    let seen = tree_of(["cert", "key"].map(|name| (name, Node::file(0o644, ""))));
    let violation = oracle.judge(&seen, &[0, 1]).violation.unwrap();
    assert_eq!(violation.to_string(), "empty: cert: empty (and 1 more)");
}

#[test]
fn nothing_can_be_judged_against_nothing_or_the_unreadable() {
    let new = |generations| Oracle::new(generations, OracleOptions::default()).map(|_| ());
    assert_eq!(new(Vec::new()), Err(OracleError::NoGeneration));
    let unreadable = tree_of([("a", Node::Unreadable { errno: 5 })]);
    let error = new(vec![old(), unreadable]).unwrap_err();
    assert_eq!(error.to_string(), "generation 1 has an unreadable entry: a");
}

#[test]
fn leftovers_beside_the_target_are_bounded() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| Name::from(name))
            .collect::<BTreeSet<_>>()
    };
    let expected = names(&["live", "lost+found"]);
    let judge = |seen: &[&str], bound| judge_leftovers(&names(seen), &expected, bound);
    assert_eq!(judge(&["live"], 0), None);
    assert_eq!(judge(&["live", ".live.stage-1"], 1), None);
    let violation = judge(&["live", ".live.stage-1", ".live.stage-2"], 1).unwrap();
    assert_eq!(violation.kind, ViolationKind::Leftover);
    assert_eq!(
        violation.detail(),
        [".live.stage-1: extra", ".live.stage-2: extra"]
    );
}
