//! Terminal texts, as a reader should see them.

mod common;

use common::{certificate, control, result, violation};
use untorn_report::{TableOptions, story, table};
use untorn_spec::{
    CaseResult, Certificate, Expected, Verdict, ViolationKind, ViolationRecord, scenarios,
};

fn sample() -> Certificate {
    let results = vec![
        result("ext4", "two-files", Expected::Holds, Verdict::Holds),
        CaseResult {
            exhaustive: false,
            coverage: 0.999_999,
            departures_completed: Some(2),
            crash_states_log2: 134.2,
            recoveries: 3000,
            seconds: 50.04,
            outcomes: [("new".to_owned(), 3000)].into(),
            ..result("ext4", "sixty", Expected::Holds, Verdict::Holds)
        },
        control(
            "ext4",
            "control-exchange-without-fsync",
            true,
            &[ViolationKind::Empty],
        ),
        control("ext4", "control-kind", false, &[]),
    ];
    certificate("ext4", Expected::Holds, results)
}

#[test]
fn the_table() {
    let expected = "\
ext4: holds
  scenario   writer     verdict            crash states  recoveries    time  outcomes
  ───────────────────────────────────────────────────────────────────────────────────────────
  two-files  atomicdir  holds             all of 2^12.3         209   1.2 s  old 89, new 120
  sixty      atomicdir  holds, bounded  0.9999 of 2^134        3000  50.0 s  new 3000

  control                         caught by     crash states  recoveries   time
  ──────────────────────────────────────────────────────────────────────────────
  control-exchange-without-fsync  empty        all of 2^12.3         209  1.2 s
  control-kind                    hidden here  all of 2^12.3         209  1.2 s

verdict: holds (suite quick, kernel 6.18.5 x86_64, untorn 0.1.0 abc1234, seed 7, 12.3 s)
";
    let text = table(&sample(), TableOptions::default());
    // The line's length follows the widest row; a reader does not count it.
    let without_lines = |text: &str| text.replace('─', "");
    assert_eq!(without_lines(&text), without_lines(expected), "\n{text}");
}

#[test]
fn what_went_wrong_is_said_below_the_heading() {
    let results = vec![
        CaseResult {
            reason: Some("two recoveries of one state differ".to_owned()),
            ..result("ext4", "two-files", Expected::Holds, Verdict::Inconclusive)
        },
        control("ext4", "control-x", true, &[ViolationKind::Mixed]),
    ];
    let text = table(
        &certificate("ext4", Expected::Holds, results),
        TableOptions::default(),
    );
    assert!(
        text.starts_with("ext4: harness-broken\n  control-x was not caught\n"),
        "{text}"
    );
    assert!(text.contains("NOT CAUGHT: mixed"), "{text}");
    assert!(
        text.contains("\n  two-files: two recoveries of one state differ\n"),
        "{text}"
    );
}

#[test]
fn a_profile_that_promises_nothing_says_so() {
    let results = vec![result(
        "ext4-nobarrier",
        "two-files",
        Expected::Violated,
        Verdict::Violated,
    )];
    let certificate = certificate("ext4-nobarrier", Expected::Violated, results);
    let text = table(&certificate, TableOptions::default());
    assert!(
        text.starts_with(
            "ext4-nobarrier: holds (a correct writer is expected to be violated here)\n"
        ),
        "{text}"
    );
}

/// Every built-in scenario on the profile with the longest name, with large numbers.
fn wide() -> Certificate {
    let results = scenarios().iter().map(|scenario| {
        let base = match scenario.control {
            None => result("ext4", &scenario.name, Expected::Holds, Verdict::Holds),
            Some(_) => control(
                "ext4",
                &scenario.name,
                true,
                &[ViolationKind::Empty, ViolationKind::LostAcknowledged],
            ),
        };
        CaseResult {
            exhaustive: false,
            coverage: 0.123_456,
            recoveries: 1_234_567,
            crash_states_log2: 1234.0,
            seconds: 12_345.6,
            outcomes: [
                ("old".to_owned(), 1_234_567),
                ("lost-acknowledged".to_owned(), 1),
            ]
            .into(),
            ..base
        }
    });
    certificate("ext4", Expected::Holds, results.collect())
}

/// The command of `untorn check` stands where a writer's name does.
fn with_command() -> Certificate {
    let mut result = result("ext4", "check", Expected::Holds, Verdict::Holds);
    result.case.writer =
        "sh -c 'cp /tmp/new/tls.crt /tmp/new/tls.key \"$1\" && sync' -- {dir}".repeat(2);
    certificate("ext4", Expected::Holds, vec![result])
}

#[test]
fn it_fits_into_a_hundred_columns() {
    for certificate in [sample(), wide(), with_command()] {
        let text = table(&certificate, TableOptions::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}\n{text}");
        }
    }
}

#[test]
fn the_built_in_scenarios_take_one_line_each_for_usual_numbers() {
    let results = scenarios().iter().map(|scenario| match scenario.control {
        None => result("ext4", &scenario.name, Expected::Holds, Verdict::Holds),
        Some(_) => CaseResult {
            control_kinds: vec![ViolationKind::LostAcknowledged],
            ..control(
                "ext4",
                &scenario.name,
                true,
                &[ViolationKind::LostAcknowledged],
            )
        },
    });
    let certificate = certificate("ext4", Expected::Holds, results.collect());
    let text = table(&certificate, TableOptions::default());
    assert_eq!(
        text.lines().count(),
        // Heading, two headers with their lines, a blank line after each table, the verdict.
        scenarios().len() + 1 + 4 + 2 + 1,
        "{text}"
    );
    for scenario in scenarios() {
        let lines = text
            .lines()
            .filter(|line| line.trim_start().starts_with(&scenario.name));
        for line in lines.clone() {
            assert!(line.contains("2^12.3"), "{line}\n{text}");
        }
        assert!(lines.count() >= 1, "{}\n{text}", scenario.name);
    }
}

#[test]
fn colours_only_when_asked_for_and_never_in_the_way() {
    let plain = table(&sample(), TableOptions::default());
    assert!(!plain.contains('\x1b'));
    let colored = table(
        &sample(),
        TableOptions {
            color: true,
            ..TableOptions::default()
        },
    );
    assert!(colored.contains("\x1b[1;32mholds\x1b[0m"));
    let mut stripped = String::new();
    let mut parts = colored.split('\x1b');
    stripped.push_str(parts.next().unwrap());
    for part in parts {
        stripped.push_str(part.split_once('m').unwrap().1);
    }
    assert_eq!(stripped, plain);
}

#[test]
fn a_story() {
    let expected = "\
violation: empty on ext4
  scenario       control-exchange-without-fsync
  writer         exchange-without-fsync
  allowed        the old tree or the new tree, whole: the writer had not yet reported success
  seen           tls.crt: 0 bytes, should be 5000 or 6000
                 tls.key: 0 bytes, should be 1700 or 1704
  cut            after renameat2#1 .live.new <-> live, during unlinkat#1 .live.new/tls.crt
  recording      neighbour commit after renameat2#1; epoch 3, one of 2^5.2 crash states
  lost           1 of 3 units of the journal
  never written  tls.crt: 6000 bytes
                 tls.key: 1704 bytes

untorn replay ext4/control-exchange-without-fsync/neighbor-commit@9/e3/1042=1,1050=0
";
    let record = violation(
        "ext4",
        "control-exchange-without-fsync",
        ViolationKind::Empty,
    );
    assert_eq!(story(&record), expected);
}

#[test]
fn a_story_with_little_to_tell() {
    let record = ViolationRecord {
        after_syscall: None,
        during_syscall: None,
        acknowledged: true,
        allowed: vec!["new".to_owned()],
        seen: vec!["the old tree".to_owned()],
        lost: Vec::new(),
        never_written: Vec::new(),
        disturbance_text: "undisturbed".to_owned(),
        crash_states_log2: 0.0,
        ..violation("xfs", "two-files", ViolationKind::LostAcknowledged)
    };
    let expected = "\
violation: lost-acknowledged on xfs
  scenario       two-files
  writer         atomicdir
  allowed        the new tree, whole: the writer had reported success
  seen           the old tree
  cut            before the writer's first call
  recording      undisturbed; epoch 3, which has one crash state
  lost           nothing that the disk had received

untorn replay xfs/two-files/neighbor-commit@9/e3/1042=1,1050=0
";
    assert_eq!(story(&record), expected);
}
