//! Plans: scenarios and profiles in, cases out, with nothing left to decide.

use std::ffi::OsString;
use std::path::PathBuf;

use untorn_spec::{CaseId, Expected, Profile, Scenario};

use crate::case::{CasePlan, ControlPlan, InitialTree};
use crate::recording::Subject;

/// Most recoveries for one crash space where a scenario names no limit of its own. A space that
/// needs more is explored as far as it goes, and the verdict says `bounded`.
pub const RECOVERIES_PER_SPACE_MAX: u64 = 20_000;

/// How a built-in writer is started: this program with these arguments.
#[derive(Debug, Clone)]
pub struct WriterCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, which make it act as the writer that its order names.
    pub args: Vec<OsString>,
}

/// All cases of one profile.
#[derive(Debug, Clone)]
pub struct ProfilePlan {
    /// The profile.
    pub profile: &'static Profile,
    /// Its cases, in order.
    pub cases: Vec<CasePlan>,
}

/// The cases of these scenarios on these profiles. A scenario that is not for a profile is left
/// out there.
pub fn plan(
    scenarios: &[(Scenario, Option<String>)],
    profiles: &[&'static Profile],
    writer: &WriterCommand,
) -> Vec<ProfilePlan> {
    profiles
        .iter()
        .map(|profile| {
            let wanted = |scenario: &Scenario| {
                let listed = scenario.profiles.as_ref();
                listed.is_none_or(|names| names.iter().any(|name| name == profile.name))
            };
            let cases = scenarios
                .iter()
                .filter(|(scenario, _)| wanted(scenario))
                .map(|(scenario, text)| case(scenario, text.clone(), profile, writer))
                .collect();
            ProfilePlan { profile, cases }
        })
        .collect()
}

fn case(
    scenario: &Scenario,
    text: Option<String>,
    profile: &'static Profile,
    writer: &WriterCommand,
) -> CasePlan {
    let control = scenario.control.as_ref().map(|control| ControlPlan {
        kinds: control.kinds.clone(),
        must_be_caught: control.caught_on.iter().any(|name| name == profile.name),
    });
    let expected = if control.is_some() {
        Expected::Violated
    } else {
        profile.expected
    };
    CasePlan {
        id: CaseId {
            profile: profile.name.to_owned(),
            scenario: scenario.name.clone(),
            writer: scenario.writer.clone(),
        },
        profile,
        subject: Subject::Writer {
            program: writer.program.clone(),
            args: writer.args.clone(),
            writer: scenario.writer.clone(),
            tree: scenario.tree.clone(),
        },
        target: scenario.tree.target.clone(),
        initial: InitialTree::OfSpec(scenario.tree.clone()),
        expected,
        control,
        recordings: scenario.recordings.clone(),
        recoveries_per_space_max: scenario
            .limits
            .recoveries_per_space_max
            .unwrap_or(RECOVERIES_PER_SPACE_MAX),
        scenario_text: text,
    }
}
