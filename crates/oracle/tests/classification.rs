//! What the oracle says about trees, case by case.

use untorn_oracle::{Node, Oracle, OracleOptions, Outcome, TreeSnapshot};
use untorn_spec::ViolationKind;

/// A tree of files, given as name and content.
fn tree(files: &[(&str, &str)]) -> TreeSnapshot {
    tree_of(
        files
            .iter()
            .map(|&(name, content)| (name, Node::file(0o644, content))),
    )
}

fn tree_of<'a>(entries: impl IntoIterator<Item = (&'a str, Node)>) -> TreeSnapshot {
    TreeSnapshot::new(Node::directory(0o755, entries))
}

fn old() -> TreeSnapshot {
    tree(&[
        ("cert", "cert of the old"),
        ("key", "key of the old one"),
        ("same", "unchanged"),
    ])
}

fn new() -> TreeSnapshot {
    tree(&[
        ("cert", "CERT of the new one"),
        ("key", "KEY of the new"),
        ("same", "unchanged"),
    ])
}

fn judge(
    generations: Vec<TreeSnapshot>,
    allowed: &[usize],
    seen: &TreeSnapshot,
) -> Result<usize, (ViolationKind, Vec<String>)> {
    let oracle = Oracle::new(generations, OracleOptions::default()).expect("readable trees");
    let judgement = oracle.judge(seen, allowed);
    match (judgement.outcome, judgement.violation) {
        (Outcome::Generation(generation), None) => Ok(generation),
        (Outcome::Violation, Some(violation)) => Err((violation.kind, violation.detail())),
        other => panic!("outcome and violation contradict each other: {other:?}"),
    }
}

/// Judges against old and new, both allowed.
#[track_caller]
fn check(seen: &TreeSnapshot, kind: ViolationKind, detail: &[&str]) {
    let (found, lines) = judge(vec![old(), new()], &[0, 1], seen).expect_err("a wrong tree");
    assert_eq!(
        (found, lines),
        (kind, detail.iter().map(ToString::to_string).collect())
    );
}

#[test]
fn old_and_new_are_right() {
    assert_eq!(judge(vec![old(), new()], &[0, 1], &old()), Ok(0));
    assert_eq!(judge(vec![old(), new()], &[0, 1], &new()), Ok(1));
    assert_eq!(judge(vec![old(), new(), old()], &[0, 1], &old()), Ok(0));
    assert_eq!(
        judge(vec![old(), new(), old()], &[0, 2], &old()),
        Ok(2),
        "the newest of equals"
    );
}

#[test]
fn new_cert_beside_old_key_is_mixed() {
    check(
        &tree(&[
            ("cert", "CERT of the new one"),
            ("key", "key of the old one"),
            ("same", "unchanged"),
        ]),
        ViolationKind::Mixed,
        &["cert: new (generation 1)", "key: old (generation 0)"],
    );
}

#[test]
fn exchange_without_fsync_is_empty() {
    check(
        &tree(&[("cert", ""), ("key", ""), ("same", "")]),
        ViolationKind::Empty,
        &["cert: empty", "key: empty", "same: empty"],
    );
}

#[test]
fn an_empty_file_beats_a_missing_one() {
    check(
        &tree(&[("cert", ""), ("same", "unchanged")]),
        ViolationKind::Empty,
        &["cert: empty", "key: missing"],
    );
}

#[test]
fn two_plain_renames_are_missing() {
    check(
        &TreeSnapshot::missing(),
        ViolationKind::Missing,
        &[".: missing"],
    );
}

#[test]
fn a_directory_that_lost_everything_is_empty() {
    check(
        &tree(&[]),
        ViolationKind::Empty,
        &[".: directory without entries"],
    );
}

#[test]
fn a_lost_entry_is_missing() {
    check(
        &tree(&[("cert", "CERT of the new one"), ("same", "unchanged")]),
        ViolationKind::Missing,
        &["cert: new (generation 1)", "key: missing"],
    );
}

#[test]
fn lost_ends_are_truncated() {
    check(
        &tree(&[
            ("cert", "CERT of"),
            ("key", "KEY of\0\0\0\0\0\0\0\0"),
            ("same", "\0\0\0\0\0\0\0\0\0"),
        ]),
        ViolationKind::Truncated,
        &[
            "cert: first 7 of 19 bytes of new (generation 1)",
            "key: zeros after 6 of 14 bytes of new (generation 1)",
            "same: 9 zero bytes for 9 bytes of new (generation 1)",
        ],
    );
}

#[test]
fn content_from_nowhere_is_corrupt() {
    check(
        &tree(&[
            ("cert", "CERT of the new one"),
            ("key", "KEY of tHe new"),
            ("same", "unchanged"),
        ]),
        ViolationKind::Corrupt,
        &["cert: new (generation 1)", "key: content of no generation"],
    );
}

#[test]
fn what_cannot_be_read_is_corrupt() {
    let entries = [
        ("cert", Node::Unreadable { errno: 5 }),
        ("key", Node::directory::<&str>(0o755, [])),
        ("same", Node::symlink("unchanged")),
    ];
    check(
        &tree_of(entries),
        ViolationKind::Corrupt,
        &[
            "cert: unreadable: Input/output error (os error 5)",
            "key: a directory, as in no generation",
            "same: a symbolic link, as in no generation",
        ],
    );
}

#[test]
fn blocks_of_two_generations_in_one_file_are_corrupt() {
    let blocks = |text: &str| {
        text.chars()
            .map(|c| c.to_string().repeat(512))
            .collect::<String>()
    };
    let file = |text: &str| tree(&[("data", &blocks(text))]);
    let judged = judge(vec![file("abc"), file("ABC")], &[0, 1], &file("aBc"));
    let detail = vec!["data: blocks of generations 0, 1".to_owned()];
    assert_eq!(judged, Err((ViolationKind::Corrupt, detail)));
    let judged = judge(vec![file("abc"), file("ABC")], &[0, 1], &file("A\0C"));
    let detail = vec!["data: blocks of new (generation 1) and zeros".to_owned()];
    assert_eq!(judged, Err((ViolationKind::Corrupt, detail)));
}

#[test]
fn a_temporary_file_in_a_whole_tree_is_a_leftover() {
    let entries = [
        ("cert", Node::file(0o644, "CERT of the new one")),
        ("key", Node::file(0o644, "KEY of the new")),
        ("same", Node::file(0o644, "unchanged")),
        (
            ".tmp",
            Node::directory(0o700, [("key", Node::file(0o644, ""))]),
        ),
    ];
    check(
        &tree_of(entries),
        ViolationKind::Leftover,
        &[
            ".tmp: extra",
            "cert: new (generation 1)",
            "key: new (generation 1)",
        ],
    );
}

#[test]
fn a_wrong_mode_alone_is_mode() {
    let entries = [
        ("cert", Node::file(0o644, "CERT of the new one")),
        ("key", Node::file(0o4600, "KEY of the new")),
        ("same", Node::file(0o644, "unchanged")),
    ];
    check(
        &tree_of(entries),
        ViolationKind::Mode,
        &[
            "cert: new (generation 1)",
            "key: new (generation 1), but mode 0644 became 4600",
        ],
    );
}

#[test]
fn modes_of_two_generations_are_mixed() {
    let pair = |a, b| tree_of([("a", Node::file(a, "same")), ("b", Node::file(b, "same"))]);
    let generations = vec![pair(0o600, 0o600), pair(0o644, 0o644)];
    let (kind, _) = judge(generations, &[0, 1], &pair(0o600, 0o644)).unwrap_err();
    assert_eq!(kind, ViolationKind::Mixed);
}

#[test]
fn what_was_superseded_and_came_back_is_lost_acknowledged() {
    let judged = judge(vec![old(), new()], &[1], &old());
    let lost = |detail: &[&str]| {
        Err((
            ViolationKind::LostAcknowledged,
            detail.iter().map(ToString::to_string).collect(),
        ))
    };
    assert_eq!(
        judged,
        lost(&["cert: old (generation 0)", "key: old (generation 0)"])
    );

    // A missing target, too, when that is what there was at first.
    let judged = judge(
        vec![TreeSnapshot::missing(), new()],
        &[1],
        &TreeSnapshot::missing(),
    );
    assert_eq!(judged, lost(&[".: missing"]));

    // And the old tree with something beside it is still the old tree.
    let seen = tree(&[
        ("cert", "cert of the old"),
        ("key", "key of the old one"),
        ("same", "unchanged"),
        ("temp", "x"),
    ]);
    let (kind, _) = judge(vec![old(), new()], &[1], &seen).unwrap_err();
    assert_eq!(kind, ViolationKind::LostAcknowledged);
}

#[test]
fn entries_of_only_one_generation_mix_too() {
    let generations = vec![tree(&[("a", "1")]), tree(&[("a", "2"), ("b", "2")])];
    let judged = judge(generations.clone(), &[0, 1], &tree(&[("a", "2")]));
    let detail = vec![
        "a: new (generation 1)".into(),
        "b: absent, as in old (generation 0)".into(),
    ];
    assert_eq!(judged, Err((ViolationKind::Mixed, detail)));
    let (kind, _) = judge(generations, &[0, 1], &tree(&[("a", "1"), ("b", "2")])).unwrap_err();
    assert_eq!(kind, ViolationKind::Mixed);
}

#[test]
fn half_of_a_first_tree_is_missing_entries() {
    let generations = vec![TreeSnapshot::missing(), new()];
    assert_eq!(
        judge(generations.clone(), &[0, 1], &TreeSnapshot::missing()),
        Ok(0)
    );
    let seen = tree(&[("cert", "CERT of the new one"), ("same", "unchanged")]);
    let (kind, _) = judge(generations.clone(), &[0, 1], &seen).unwrap_err();
    assert_eq!(kind, ViolationKind::Missing);
    let (kind, _) = judge(generations, &[0, 1], &tree(&[])).unwrap_err();
    assert_eq!(kind, ViolationKind::Empty);
}

#[test]
fn what_is_empty_in_a_generation_may_be_empty() {
    let generations = vec![
        tree(&[("a", ""), ("b", "1")]),
        tree(&[("a", "2"), ("b", "2")]),
    ];
    let (kind, _) = judge(generations, &[0, 1], &tree(&[("a", ""), ("b", "2")])).unwrap_err();
    assert_eq!(kind, ViolationKind::Mixed);
    assert_eq!(judge(vec![tree(&[]), new()], &[0, 1], &tree(&[])), Ok(0));
}
