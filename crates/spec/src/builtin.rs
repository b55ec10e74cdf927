//! The scenarios and suites that the command carries with it.

use std::sync::LazyLock;

use crate::{Scenario, Suite};

/// Name and text of the files in a folder, embedded.
macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            concat!($folder, $name, ".toml"),
            include_str!(concat!("../../../", $folder, $name, ".toml")),
        )),+]
    };
}

const SCENARIO_FILES: &[(&str, &str)] = files!("scenarios/":
    "two-files",
    "two-files-syncfs",
    "nested",
    "absent-target",
    "twenty-files",
    "sixty-files-syncfs",
    "control-exchange-without-fsync",
    "control-exchange-without-parent-fsync",
    "control-per-file-fsync",
    "control-per-file-without-fsync",
    "control-two-renames",
    "control-remove-then-write",
);

const SUITE_FILES: &[(&str, &str)] = files!("scenarios/suites/":
    "quick",
    "standard",
    "filesystems",
);

static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let parsed = SCENARIO_FILES.iter();
    parsed
        .map(|(file, text)| Scenario::parse(file, text).unwrap_or_else(|error| broken(&error)))
        .collect()
});

static SUITES: LazyLock<Vec<Suite>> = LazyLock::new(|| {
    let parsed = SUITE_FILES.iter();
    parsed
        .map(|(file, text)| Suite::parse(file, text).unwrap_or_else(|error| broken(&error)))
        .collect()
});

/// The files are part of the program, so a fault in one is a fault of the build; a test reads all.
fn broken(error: &crate::ScenarioError) -> ! {
    panic!("a built-in file is broken:\n{error}")
}

/// Every built-in scenario: correct writers first, then controls.
pub fn scenarios() -> &'static [Scenario] {
    &SCENARIOS
}

/// The built-in scenario of that name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    scenarios().iter().find(|scenario| scenario.name == name)
}

/// Every built-in suite.
pub fn suites() -> &'static [Suite] {
    &SUITES
}

/// The built-in suite of that name.
pub fn suite(name: &str) -> Option<&'static Suite> {
    suites().iter().find(|suite| suite.name == name)
}
