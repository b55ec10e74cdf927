//! An astronomical number of crash states, covered completely.
#![allow(clippy::print_stderr, reason = "a test says that it was not run")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod common;

use common::{Place, cannot_run, events, only_run};

#[test]
fn sixty_files_with_one_syncfs_are_covered_by_few_recoveries() {
    if cannot_run("sixty_files_with_one_syncfs_are_covered_by_few_recoveries") {
        return;
    }
    let place = Place::new();
    let ran = place.run(&["run", "sixty-files-syncfs", "--fs", "ext4"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    place.assert_nothing_left();

    let events = events(&only_run(&place.path("runs")));
    let finished: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "case-finished")
        .collect();
    assert_eq!(finished.len(), 1);
    let result = finished[0];
    assert_eq!(result["verdict"], "holds");
    assert_eq!(result["exhaustive"], true);
    assert_eq!(result["coverage"].as_f64(), Some(1.0));
    // States add up over a few spaces, so that one of them alone has more than 2^100.
    assert!(result["spaces"].as_u64() < Some(1 << 10), "{result:#}");
    assert!(
        result["crash_states_log2"].as_f64() > Some(110.0),
        "{result:#}"
    );
    assert!(result["recoveries"].as_u64() <= Some(400), "{result:#}");
}
