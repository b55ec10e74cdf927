//! A violation, told so that a reader sees what happened.

use std::fmt::Write;
use std::slice::from_ref;

use untorn_spec::ViolationRecord;

use crate::words::states;

/// Columns before the text of a line.
const MARGIN: usize = 15;

/// The story of a violation: what was allowed, what was seen, where the cut was, what was lost.
/// Its last line is the command that shows it again, and nothing else.
pub fn story(violation: &ViolationRecord) -> String {
    let case = &violation.case;
    let mut story = format!("violation: {} on {}\n", violation.kind, case.profile);
    let mut tell = |head: &str, lines: &[String]| {
        for (number, line) in lines.iter().enumerate() {
            let head = if number == 0 { head } else { "" };
            // Writing to a String cannot fail.
            writeln!(story, "{}", format!("  {head:<MARGIN$}{line}").trim_end()).ok();
        }
    };
    tell("scenario", from_ref(&case.scenario));
    tell("writer", from_ref(&case.writer));
    tell("allowed", &[allowed(violation)]);
    tell("seen", &violation.seen);
    tell("cut", &[cut(violation)]);
    tell("recording", &[recording(violation)]);
    tell("lost", &lost(violation));
    tell("never written", &violation.never_written);
    story.push('\n');
    story.push_str(&violation.replay);
    story.push('\n');
    story
}

fn allowed(violation: &ViolationRecord) -> String {
    let trees: Vec<String> = violation
        .allowed
        .iter()
        .map(|name| format!("the {name} tree"))
        .collect();
    let trees = trees.join(" or ");
    if violation.acknowledged {
        format!("{trees}, whole: the writer had reported success")
    } else {
        format!("{trees}, whole: the writer had not yet reported success")
    }
}

fn cut(violation: &ViolationRecord) -> String {
    match (&violation.after_syscall, &violation.during_syscall) {
        (Some(after), Some(during)) => format!("after {after}, during {during}"),
        (Some(after), None) => format!("after {after}"),
        (None, Some(during)) => format!("during {during}, before any call had returned"),
        (None, None) => "before the writer's first call".to_owned(),
    }
}

fn recording(violation: &ViolationRecord) -> String {
    let which = if violation.crash_states_log2 > 0.0 {
        format!(
            "one of {} crash states",
            states(violation.crash_states_log2)
        )
    } else {
        "which has one crash state".to_owned()
    };
    format!(
        "{}; epoch {}, {which}",
        violation.disturbance_text, violation.epoch
    )
}

fn lost(violation: &ViolationRecord) -> Vec<String> {
    if violation.lost.is_empty() {
        vec!["nothing that the disk had received".to_owned()]
    } else {
        violation.lost.clone()
    }
}
