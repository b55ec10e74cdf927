//! Suites: scenarios that are run together.

use serde::{Deserialize, Serialize};

use crate::builtin::scenarios;
use crate::document::{Document, Step};
use crate::profile_list::names_help;
use crate::validate::Check;
use crate::{Profile, ScenarioError, profile};

/// Scenarios that are run together, as a file in `scenarios/suites/` holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Lower-case words with hyphens; the same as the file's name.
    pub name: String,
    /// One sentence for `untorn list`.
    pub about: String,
    /// Profiles to run on when the command line names none.
    pub profiles: Vec<String>,
    /// Names of built-in scenarios, in the order in which they are run.
    pub scenarios: Vec<String>,
}

impl Suite {
    /// The suite that a TOML text holds.
    ///
    /// # Errors
    /// As [`crate::Scenario::parse`]; every scenario named must be a built-in one.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, ScenarioError> {
        let document = Document::new(file_name, text);
        let suite: Self = document.parse()?;
        let check = Check { document };
        check.name(&suite.name)?;
        check.about(&suite.about)?;
        check.ensure(
            !suite.profiles.is_empty(),
            &[Step::Key("profiles")],
            "no profile is named",
            "name at least one, such as `ext4`",
        )?;
        check.profiles(&[Step::Key("profiles")], &suite.profiles)?;
        check.ensure(
            !suite.scenarios.is_empty(),
            &[Step::Key("scenarios")],
            "no scenario is named",
            "name at least one, such as `two-files`",
        )?;
        let known: Vec<&str> = scenarios()
            .iter()
            .map(|known| known.name.as_str())
            .collect();
        for (index, name) in suite.scenarios.iter().enumerate() {
            let at = [Step::Key("scenarios"), Step::Index(index)];
            check.ensure(
                known.contains(&name.as_str()),
                &at,
                &format!("unknown scenario `{name}`"),
                &names_help(name, &known),
            )?;
            check.ensure(
                !suite.scenarios[..index].contains(name),
                &at,
                &format!("scenario `{name}` is named twice"),
                "remove one of them",
            )?;
        }
        Ok(suite)
    }

    /// The profiles to run on when the command line names none.
    pub fn default_profiles(&self) -> Vec<&'static Profile> {
        self.profiles
            .iter()
            .filter_map(|name| profile(name))
            .collect()
    }

    /// The scenarios, in the order in which they are run.
    pub fn scenarios(&self) -> Vec<&'static crate::Scenario> {
        self.scenarios
            .iter()
            .filter_map(|name| crate::scenario(name))
            .collect()
    }
}
