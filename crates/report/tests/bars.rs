//! Progress bars, drawn on a terminal in memory.

mod common;

use common::{case, result};
use indicatif::{InMemoryTerm, ProgressDrawTarget};
use untorn_report::{Bars, Progress, Silent};
use untorn_spec::{Disturbance, Expected, RecordingSummary, RunEvent, Verdict};

fn bars() -> (Bars, InMemoryTerm) {
    let terminal = InMemoryTerm::new(10, 100);
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(terminal.clone()), 255);
    (Bars::new(target), terminal)
}

fn explored() -> RunEvent {
    RunEvent::RecordingExplored(RecordingSummary {
        case: case("ext4", "two-files"),
        disturbance: Disturbance::Undisturbed,
        syscalls: 12,
        writes: 100,
        flushes: 4,
        spaces: 5,
        recoveries: 34,
    })
}

#[test]
fn a_bar_for_each_running_case_and_nothing_afterwards() {
    let (bars, terminal) = bars();
    for (profile, recordings) in [("ext4", 14), ("xfs", 0)] {
        bars.event(&RunEvent::CaseStarted {
            case: case(profile, "two-files"),
            recordings,
        });
    }
    bars.event(&explored());
    // Drawing is limited to a rate, so the last state may take a moment to be seen.
    std::thread::sleep(std::time::Duration::from_millis(20));
    bars.tick(&case("ext4", "two-files"), 120, 0.5);
    std::thread::sleep(std::time::Duration::from_millis(400));
    let text = terminal.contents();
    let lines: Vec<&str> = text.lines().collect();
    let filled = lines[0].chars().filter(|c| *c == '━').count();
    assert!((8..=9).contains(&filled), "half of 16 steps: {text}");
    assert!(
        lines[0].contains(" ext4 two-files: recording 2/14, 120 recoveries"),
        "{text}"
    );
    assert!(lines[1].ends_with(" xfs two-files: 0 recoveries"), "{text}");

    bars.event(&RunEvent::CaseFinished(result(
        "ext4",
        "two-files",
        Expected::Holds,
        Verdict::Holds,
    )));
    assert!(
        !terminal.contents().contains("ext4"),
        "{}",
        terminal.contents()
    );
    bars.finish();
    assert_eq!(terminal.contents(), "");
}

#[test]
fn what_is_out_of_order_does_no_harm() {
    let (bars, terminal) = bars();
    bars.tick(&case("ext4", "two-files"), 1, f64::NAN);
    bars.event(&explored());
    bars.event(&common::run_finished());
    assert_eq!(terminal.contents(), "");
    Silent.event(&explored());
    Silent.tick(&case("ext4", "two-files"), 1, 2.0);
    Silent.finish();
}
