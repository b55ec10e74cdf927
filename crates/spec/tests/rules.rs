//! Rules read back as they were written, say where they are wrong, and mean the right calls.

use proptest::prelude::*;
use untorn_spec::{
    CallKind, CallPattern, CallView, FaultAction, FaultErrno, FaultRule, FaultRules, Ordinal,
    PathPattern, Point, RuleCounter, When,
};

#[test]
fn rules_print_as_they_were_written() {
    for text in [
        "kill after renameat2#1",
        "kill before *#7",
        "eio at fsync#2",
        "enospc at write#3 short=4096",
        "short 100 at pwrite#1",
        "errno EINTR after fsync#1",
        "drop fsync#3",
        "neighbor-commit after exchange#1",
        "writeback after write#2",
        "pause after renameat2#1",
        "eio at fsync#* path=*/tls.key",
        "enospc at write#1 short=0 path=\"a b;c\\\"\\\\\\n\"",
        "drop syncfs#* path=\"\"",
    ] {
        let rule: FaultRule = text.parse().expect(text);
        assert_eq!(rule.to_string(), text);
        assert!(rule.is_valid());
    }
}

#[test]
fn other_spellings_are_understood() {
    for (text, canonical) in [
        ("errno EIO at fsync#2", "eio at fsync#2"),
        ("errno eio before fsync#2", "eio at fsync#2"),
        ("EIO at fsync#2", "eio at fsync#2"),
        ("drop at fsync#2", "drop fsync#2"),
        ("  kill \t after  fsync#1 ; ", "kill after fsync#1"),
        (
            "eio at write#1 path=x short=3",
            "eio at write#1 short=3 path=x",
        ),
        ("drop fsync#1 path=\"x\"", "drop fsync#1 path=x"),
    ] {
        let rule: FaultRule = text.parse().expect(text);
        assert_eq!(rule.to_string(), canonical);
    }
}

#[test]
fn errors_say_where_and_what() {
    for (text, message) in [
        (
            "kil after fsync#1",
            "column 1: expected an action: kill, errno, short, drop, neighbor-commit, writeback, \
             pause or an error's name, found `kil`; did you mean `kill`?",
        ),
        (
            "kill aftr fsync#1",
            "column 6: expected `before` or `after`, found `aftr`; did you mean `after`?",
        ),
        (
            "kill at fsync#1",
            "column 6: expected `before` or `after`, found `at`",
        ),
        (
            "drop after fsync#1",
            "column 6: expected `at`, found `after`",
        ),
        (
            "eio at fsnc#1",
            "column 8: expected a call and its number, such as fsync#2, found `fsnc#1`; did you \
             mean `fsync`?",
        ),
        (
            "eio at fsync",
            "column 13: expected `#` and a number, or `#*` for every call, found the end of the \
             rule",
        ),
        (
            "eio at fsync#0",
            "column 14: expected a number from 1 on, or `*`, found `0`",
        ),
        (
            "eio at fsync#1 short=5",
            "column 8: expected `write` or `pwrite`, since only they take bytes, found `fsync#1`",
        ),
        (
            "errno EIOO after fsync#1",
            "column 7: expected an error's name, such as EIO, found `EIOO`; did you mean `EIO`?",
        ),
        (
            "kill after fsync#1 short=5",
            "column 20: expected `path=PATTERN` or the end of the rule, found `short=5`",
        ),
        (
            "drop fsync#1; kill\n eio",
            "column 19: expected `before` or `after`, found the end of the rule",
        ),
        (
            "drop fsync#1 \"\" path=x",
            "column 14: expected `path=PATTERN` or the end of the rule, found",
        ),
        (
            "drop fsync#1\n eio",
            "line 2, column 5: expected `at` or `after`, found the end of the rule",
        ),
        (
            "drop fsync#1 path=\"x",
            "column 19: expected a closing quote on the same line, found the end of the rule",
        ),
    ] {
        let error = text.parse::<FaultRules>().expect_err(text);
        let said = error.to_string();
        assert!(said.starts_with(message), "{text}:\n{said}\n{message}");
    }
    assert!("".parse::<FaultRule>().is_err());
    assert!("drop fsync#1; drop fsync#2".parse::<FaultRule>().is_err());
    assert_eq!("".parse::<FaultRules>(), Ok(FaultRules::default()));
}

#[test]
fn ordinals_count_the_calls_that_match() {
    let rules: FaultRules =
        "drop fsync#2; eio at fsync#1 path=*/key; kill after exchange#1\npause before *#3"
            .parse()
            .expect("rules");
    let mut counter = RuleCounter::new(&rules);
    let mut next = |kind, path, second_path| -> Vec<String> {
        let call = CallView {
            kind,
            path,
            second_path,
        };
        let rules = counter.next(&call);
        rules.iter().map(ToString::to_string).collect()
    };
    assert_eq!(next(CallKind::Fsync, "a/crt", None), [""; 0]);
    assert_eq!(
        next(CallKind::Fsync, "a/key", None),
        ["drop fsync#2", "eio at fsync#1 path=*/key"]
    );
    assert_eq!(
        next(CallKind::Renameat2, "a", Some("b")),
        ["pause before *#3"]
    );
    assert_eq!(
        next(CallKind::Exchange, "a", Some("b")),
        ["kill after exchange#1"]
    );
    assert_eq!(counter.untriggered().count(), 0);
    assert_eq!(RuleCounter::new(&rules).untriggered().count(), 4);
}

#[test]
fn rules_are_text_in_json() {
    let rules: FaultRules = "drop fsync#3; kill after write#1".parse().expect("rules");
    let json = serde_json::to_string(&rules).expect("JSON");
    assert_eq!(json, "\"drop fsync#3; kill after write#1\"");
    assert_eq!(
        serde_json::from_str::<FaultRules>(&json).expect("JSON"),
        rules
    );
}

fn any_rule() -> impl Strategy<Value = FaultRule> {
    let errnos: Vec<_> = FaultErrno::all().collect();
    let errno = prop::sample::select(errnos);
    let action = prop_oneof![
        Just(FaultAction::Kill),
        (errno, prop::option::of(any::<u64>()))
            .prop_map(|(errno, short)| FaultAction::Errno { errno, short }),
        any::<u64>().prop_map(|bytes| FaultAction::Short { bytes }),
        Just(FaultAction::Drop),
        Just(FaultAction::NeighborCommit),
        Just(FaultAction::Writeback),
        Just(FaultAction::Pause),
    ];
    let ordinal = prop_oneof![Just(Ordinal::Every), (1..=u32::MAX).prop_map(Ordinal::Nth)];
    let kind = prop::sample::select(CallKind::ALL.to_vec());
    let path = prop::option::of(any::<String>());
    (action, any::<prop::sample::Index>(), kind, ordinal, path)
        .prop_map(|(action, when, kind, ordinal, path)| {
            let kind = if action.needs_write() {
                CallKind::Write
            } else {
                kind
            };
            let when: When = *when.get(action.moments());
            let path = path.map(PathPattern::new);
            let call = CallPattern {
                kind,
                ordinal,
                path,
            };
            FaultRule {
                action,
                point: Point { when, call },
            }
        })
        .prop_filter("valid", FaultRule::is_valid)
}

proptest! {
    #[test]
    fn text_is_the_inverse_of_reading(rules in prop::collection::vec(any_rule(), 0..5)) {
        for rule in &rules {
            prop_assert_eq!(rule.to_string().parse(), Ok(rule.clone()));
        }
        let rules = FaultRules(rules);
        prop_assert_eq!(rules.to_string().parse(), Ok(rules));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text: String) {
        drop(text.parse::<FaultRules>());
    }

    #[test]
    fn what_is_read_is_valid_and_prints_back(text in "(kill|eio|drop|short 5|errno EIO) (at|before|after)? ?(fsync|write|exchange)#[0-9*] ?(short=[0-9])? ?(path=[a-z*]+)?") {
        if let Ok(rule) = text.parse::<FaultRule>() {
            prop_assert!(rule.is_valid());
            prop_assert_eq!(rule.to_string().parse(), Ok(rule));
        }
    }
}
