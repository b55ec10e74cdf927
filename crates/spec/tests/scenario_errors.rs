//! A wrong scenario is answered with its place in the file and with help.

use proptest::prelude::*;
use untorn_spec::{Scenario, Suite};

const RIGHT: &str = r#"name = "pair"
about = "a pair"
writer = "atomicdir"
profiles = ["ext4", "xfs"]

[control]
kinds = ["empty"]
caught_on = ["ext4"]

[tree]
target = "live"
count = 1

[[tree.file]]
path = "tls.key"
bytes = [1700, 1704]
modes = ["0600", "0600"]

[recordings]
neighbor_commit = "each"
"#;

/// The text of the error for [`RIGHT`] with one part replaced.
fn error(part: &str, replacement: &str) -> String {
    assert_eq!(RIGHT.matches(part).count(), 1, "`{part}` must stand once");
    let text = RIGHT.replace(part, replacement);
    match Scenario::parse("pair.toml", &text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_right_one_is_accepted_and_round_trips() {
    let scenario = Scenario::parse("pair.toml", RIGHT).unwrap();
    let text = toml::to_string(&scenario).unwrap();
    assert_eq!(Scenario::parse("again.toml", &text), Ok(scenario));
}

#[test]
fn unknown_field() {
    assert_eq!(
        error("writer =", "writter ="),
        r#"pair.toml:3:1: unknown field `writter`
  |
3 | writter = "atomicdir"
  | ^^^^^^^
  = field: writter
  = help: did you mean `writer`? known: name, about, writer, tree, control, profiles, recordings, limits"#
    );
}

#[test]
fn unknown_field_in_a_nested_table() {
    assert_eq!(
        error("path = \"tls.key\"", "paths = \"tls.key\""),
        r#"pair.toml:15:1: unknown field `paths`
   |
15 | paths = "tls.key"
   | ^^^^^
   = field: tree.file[0].paths
   = help: did you mean `path`? known: path, bytes, modes"#
    );
}

#[test]
fn unknown_kind() {
    assert_eq!(
        error("kinds = [\"empty\"]", "kinds = [\"emtpy\"]"),
        r#"pair.toml:7:10: unknown name `emtpy`
  |
7 | kinds = ["emtpy"]
  |          ^^^^^^^
  = field: control.kinds[0]
  = help: did you mean `empty`? known: mixed, empty, truncated, corrupt, missing, mode, lost-acknowledged, leftover, unmountable, diverges"#
    );
}

#[test]
fn unknown_profile() {
    assert_eq!(
        error(
            "profiles = [\"ext4\", \"xfs\"]",
            "profiles = [\"ext4\", \"zfs\"]"
        ),
        r#"pair.toml:4:21: unknown file-system profile `zfs`
  |
4 | profiles = ["ext4", "zfs"]
  |                     ^^^^^
  = field: profiles[1]
  = help: did you mean `xfs`? known: ext4, ext4-data-journal, ext4-data-writeback, ext4-fast-commit, ext4-nodelalloc, ext4-noauto-da-alloc, ext4-no-journal, ext4-nobarrier, xfs, xfs-512, btrfs"#
    );
}

#[test]
fn unknown_writer() {
    let text = error("\"atomicdir\"", "\"atomicdri\"");
    assert!(
        text.starts_with("pair.toml:3:10: unknown writer `atomicdri`\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  = help: did you mean `atomicdir`? known: atomicdir, "),
        "{text}"
    );
}

#[test]
fn syntax_wrong_type_and_missing_field_name_their_line() {
    let text = error("count = 1", "count = ");
    assert!(text.starts_with("pair.toml:12:"), "{text}");
    let text = error("count = 1", "count = \"one\"");
    assert!(
        text.starts_with("pair.toml:12:9: invalid type: string \"one\", expected u32"),
        "{text}"
    );
    assert!(text.contains("= field: tree.count"), "{text}");
    let text = error("bytes = [1700, 1704]\n", "");
    assert!(text.starts_with("pair.toml:14:"), "{text}");
    assert!(text.contains("missing field `bytes`"), "{text}");
    assert!(text.contains("help: add `bytes = ...` here"), "{text}");
    let text = error("about = \"a pair\"\n", "");
    assert!(text.contains("missing field `about`"), "{text}");
}

/// Replaced part, replacement, place, message.
const RULES: &[(&str, &str, &str, &str)] = &[
    ("\"pair\"", "\"Pair\"", "1:8", "`Pair` is no name"),
    ("\"pair\"", "\"a--b\"", "1:8", "`a--b` is no name"),
    (
        "\"a pair\"",
        "\" \"",
        "2:9",
        "the description must be one line of text",
    ),
    ("[\"ext4\", \"xfs\"]", "[]", "4:12", "no profile is named"),
    (
        "[\"empty\"]",
        "[]",
        "7:9",
        "a control must say which kinds of violation it shows",
    ),
    (
        "caught_on = [\"ext4\"]",
        "caught_on = [\"ext3\"]",
        "8:14",
        "unknown file-system profile `ext3`",
    ),
    (
        "caught_on = [\"ext4\"]",
        "caught_on = [\"btrfs\"]",
        "8:14",
        "the scenario does not run on `btrfs`",
    ),
    (
        "\"live\"",
        "\"a/b\"",
        "11:10",
        "`a/b` cannot be the target's name",
    ),
    (
        "\"live\"",
        "\".live\"",
        "11:10",
        "`.live` cannot be the target's name",
    ),
    (
        "count = 1",
        "count = 1000",
        "12:9",
        "1001 files are too many",
    ),
    (
        "\"tls.key\"",
        "\"/tls.key\"",
        "15:8",
        "`/tls.key` is no path inside the target",
    ),
    (
        "\"tls.key\"",
        "\"a/../b\"",
        "15:8",
        "`a/../b` is no path inside the target",
    ),
    (
        "\"tls.key\"",
        "\"a//b\"",
        "15:8",
        "`a//b` is no path inside the target",
    ),
    (
        "\"tls.key\"",
        "\"\"",
        "15:8",
        "`` is no path inside the target",
    ),
    (
        "\"tls.key\"",
        "\"file-000\"",
        "15:8",
        "there is another file `file-000`",
    ),
    (
        "\"tls.key\"",
        "\"file-000/a\"",
        "15:8",
        "`file-000` would be a file and a directory",
    ),
    (
        "[1700, 1704]",
        "[1700, 0]",
        "16:16",
        "a file of 0 bytes would hide a loss",
    ),
    (
        "[1700, 1704]",
        "[9000000, 1]",
        "10:1",
        "both trees together hold 9001025 bytes, too many for the smallest image",
    ),
    (
        "[\"0600\", \"0600\"]",
        "[\"0600\", \"0680\"]",
        "17:18",
        "`0680` is no mode",
    ),
    (
        "[\"0600\", \"0600\"]",
        "[\"rw\", \"0600\"]",
        "17:10",
        "`rw` is no mode",
    ),
    (
        "= \"each\"",
        "= \"none\"\nundisturbed = false",
        "19:1",
        "nothing would be recorded",
    ),
    (
        "[recordings]",
        "[limits]\nrecoveries_per_space_max = 0\n[recordings]",
        "20:28",
        "no recovery would be made",
    ),
];

#[test]
fn each_rule_shows_the_place_where_it_is_broken() {
    for (part, replacement, place, message) in RULES {
        let text = error(part, replacement);
        let first = text.lines().next().unwrap();
        assert_eq!(first, format!("pair.toml:{place}: {message}"));
        assert!(text.contains(" = help: "), "{text}");
    }
}

#[test]
fn a_tree_needs_a_file_and_directories_are_no_files() {
    let head = "name = \"a\"\nabout = \"b\"\nwriter = \"atomicdir\"\n";
    let cases = [
        ("[tree]\n", "a.toml:4:1: the tree is empty"),
        (
            "[[tree.file]]\npath = \"a/b\"\nbytes = [1, 1]\n[[tree.file]]\npath = \"a\"\nbytes = [1, 1]\n",
            "a.toml:8:8: `a` would be a file and a directory",
        ),
        (
            "[[tree.file]]\npath = \"a\"\nbytes = [1, 1]\n[[tree.file]]\npath = \"a\"\nbytes = [1, 1]\n",
            "a.toml:8:8: there is another file `a`",
        ),
    ];
    for (tail, expected) in cases {
        let error = Scenario::parse("a.toml", &format!("{head}{tail}")).unwrap_err();
        assert_eq!(error.to_string().lines().next(), Some(expected));
    }
}

#[test]
fn suites_are_read_with_the_same_care() {
    let suite = |text: &str| Suite::parse("s.toml", text).unwrap_err().to_string();
    let text =
        suite("name = \"s\"\nabout = \"b\"\nprofiles = [\"ext4\"]\nscenarios = [\"two-file\"]\n");
    assert!(
        text.starts_with("s.toml:4:14: unknown scenario `two-file`\n"),
        "{text}"
    );
    assert!(text.contains("did you mean `two-files`?"), "{text}");
    let text =
        suite("name = \"s\"\nabout = \"b\"\nprofile = [\"ext4\"]\nscenarios = [\"two-files\"]\n");
    assert!(text.contains("did you mean `profiles`?"), "{text}");
    let text = suite(
        "name = \"s\"\nabout = \"b\"\nprofiles = [\"ext4\"]\nscenarios = [\"nested\", \"nested\"]\n",
    );
    assert!(
        text.starts_with("s.toml:4:24: scenario `nested` is named twice\n"),
        "{text}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_every_error_points_into_the_text(
        at in 0..RIGHT.len(),
        inserted in "[\\[\\]{}=\"\n\taä0.#']{0,3}",
        removed in 0usize..4,
    ) {
        let end = (at + removed).min(RIGHT.len());
        let text = [&RIGHT[..at], &inserted, &RIGHT[end..]].concat();
        if let Err(error) = Scenario::parse("any.toml", &text) {
            let lines = text.lines().count().max(1);
            prop_assert!((1..=lines + 1).contains(&error.line), "{}", error);
            prop_assert!(error.column <= error.source_line.chars().count() + 1, "{}", error);
        }
    }

    #[test]
    fn random_text_is_refused(text in any::<String>()) {
        prop_assert!(Scenario::parse("any.toml", &text).is_err());
        prop_assert!(Suite::parse("any.toml", &text).is_err());
    }
}
