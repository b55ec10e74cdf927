//! What a scenario must keep to beyond its shape. Each rule is checked where its value stands, so
//! that an error shows the line.

use std::collections::BTreeSet;

use crate::document::{Document, Step};
use crate::profile_list::{names_help, profile_help};
use crate::{Boundaries, Control, FileSpec, Scenario, ScenarioError, TreeSpec, WRITERS};

/// Most files in a tree. More would make recordings that no budget can explore.
const FILES_MAX: usize = 1000;

/// Most bytes of both generations together: with its journal and the old tree, the new one must
/// fit into the smallest image, 16 MiB.
const BYTES_MAX: u64 = 8 << 20;

/// Longest path inside the target: a header line that names it must fit into 512 bytes.
const PATH_BYTES_MAX: usize = 255;

type Rule = Result<(), ScenarioError>;

impl Scenario {
    /// The scenario that a TOML text holds.
    ///
    /// # Errors
    /// When the text is no TOML, has an unknown or missing field, or breaks a rule. The error
    /// names the file as `file_name` and shows the line.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, ScenarioError> {
        let document = Document::new(file_name, text);
        let scenario: Self = document.parse()?;
        let check = Check { document };
        check.scenario(&scenario)?;
        Ok(scenario)
    }
}

/// Rules that scenarios and suites share.
pub(crate) struct Check<'t> {
    pub(crate) document: Document<'t>,
}

impl Check<'_> {
    fn scenario(&self, scenario: &Scenario) -> Rule {
        self.name(&scenario.name)?;
        self.about(&scenario.about)?;
        self.writer(&scenario.writer)?;
        self.tree(&scenario.tree)?;
        if let Some(profiles) = &scenario.profiles {
            self.profiles(&[Step::Key("profiles")], profiles)?;
            self.ensure(
                !profiles.is_empty(),
                &[Step::Key("profiles")],
                "no profile is named",
                "leave `profiles` out to run on all",
            )?;
        }
        if let Some(control) = &scenario.control {
            self.control(control, scenario.profiles.as_deref())?;
        }
        self.ensure(
            scenario.recordings.undisturbed
                || scenario.recordings.neighbor_commit != Boundaries::None,
            &[Step::Key("recordings")],
            "nothing would be recorded",
            "set `undisturbed = true`, or `neighbor_commit` to `each` or `last`",
        )?;
        self.ensure(
            scenario.limits.recoveries_per_space_max != Some(0),
            &[Step::Key("limits"), Step::Key("recoveries_per_space_max")],
            "no recovery would be made",
            "leave it out to explore every crash state",
        )
    }

    pub(crate) fn name(&self, name: &str) -> Rule {
        let word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        self.ensure(
            name.split('-').all(word),
            &[Step::Key("name")],
            &format!("`{name}` is no name"),
            "use lower-case words with hyphens, such as `two-files`",
        )
    }

    pub(crate) fn about(&self, about: &str) -> Rule {
        self.ensure(
            !about.trim().is_empty() && !about.contains('\n'),
            &[Step::Key("about")],
            "the description must be one line of text",
            "say in one sentence what is shown",
        )
    }

    fn writer(&self, name: &str) -> Rule {
        let known: Vec<&str> = WRITERS.iter().map(|writer| writer.name).collect();
        self.ensure(
            known.contains(&name),
            &[Step::Key("writer")],
            &format!("unknown writer `{name}`"),
            &names_help(name, &known),
        )
    }

    pub(crate) fn profiles(&self, path: &[Step<'_>], names: &[String]) -> Rule {
        for (index, name) in names.iter().enumerate() {
            self.ensure(
                crate::profile(name).is_some(),
                &joined(path, &[Step::Index(index)]),
                &format!("unknown file-system profile `{name}`"),
                &profile_help(name),
            )?;
        }
        Ok(())
    }

    fn control(&self, control: &Control, profiles: Option<&[String]>) -> Rule {
        self.ensure(
            !control.kinds.is_empty(),
            &[Step::Key("control"), Step::Key("kinds")],
            "a control must say which kinds of violation it shows",
            "name at least one, such as `kinds = [\"empty\"]`",
        )?;
        let path = [Step::Key("control"), Step::Key("caught_on")];
        self.profiles(&path, &control.caught_on)?;
        let outside = control
            .caught_on
            .iter()
            .position(|name| profiles.is_some_and(|profiles| !profiles.contains(name)));
        if let Some(index) = outside {
            return Err(self.document.error_at(
                &joined(&path, &[Step::Index(index)]),
                format!(
                    "the scenario does not run on `{}`",
                    control.caught_on[index]
                ),
                Some("add it to `profiles`, or remove it here".to_owned()),
            ));
        }
        Ok(())
    }

    fn tree(&self, tree: &TreeSpec) -> Rule {
        let target_path = [Step::Key("tree"), Step::Key("target")];
        self.ensure(
            is_component(&tree.target) && !tree.target.starts_with('.'),
            &target_path,
            &format!("`{}` cannot be the target's name", tree.target),
            "use one name without slashes that does not begin with a dot, such as `live`",
        )?;
        let files = tree.count as usize + tree.file.len();
        self.ensure(
            files > 0,
            &[Step::Key("tree")],
            "the tree is empty",
            "set `count`, or add a `[[tree.file]]`",
        )?;
        self.ensure(
            files <= FILES_MAX,
            &[Step::Key("tree"), Step::Key("count")],
            &format!("{files} files are too many"),
            &format!("at most {FILES_MAX} files, named and generated together"),
        )?;
        for (index, file) in tree.file.iter().enumerate() {
            self.file(index, file)?;
        }
        self.paths(tree)?;
        let bytes: u64 = tree
            .planned()
            .flat_map(|file| file.bytes)
            .map(u64::from)
            .sum();
        self.ensure(
            bytes <= BYTES_MAX,
            &[Step::Key("tree")],
            &format!("both trees together hold {bytes} bytes, too many for the smallest image"),
            &format!("at most {BYTES_MAX} bytes"),
        )
    }

    fn file(&self, index: usize, file: &FileSpec) -> Rule {
        let at = |key| {
            [
                Step::Key("tree"),
                Step::Key("file"),
                Step::Index(index),
                Step::Key(key),
            ]
        };
        let path = &file.path;
        self.ensure(
            path.split('/').all(is_component) && path.len() <= PATH_BYTES_MAX,
            &at("path"),
            &format!("`{path}` is no path inside the target"),
            &format!(
                "use a relative path without `.`, `..` and control characters, of at most \
                 {PATH_BYTES_MAX} bytes"
            ),
        )?;
        for (side, bytes) in file.bytes.iter().enumerate() {
            self.ensure(
                *bytes > 0,
                &joined(&at("bytes"), &[Step::Index(side)]),
                "a file of 0 bytes would hide a loss",
                "give it at least 1 byte",
            )?;
        }
        for (side, mode) in (0u32..).zip(&file.modes) {
            self.ensure(
                file.mode(side).is_some(),
                &joined(&at("modes"), &[Step::Index(side as usize)]),
                &format!("`{mode}` is no mode"),
                "use three or four octal digits, such as \"0644\"",
            )?;
        }
        Ok(())
    }

    /// No path stands twice, and none is a directory of another.
    fn paths(&self, tree: &TreeSpec) -> Rule {
        // Generated files come first, so that the error shows a named one.
        let generated = tree.planned().skip(tree.file.len());
        let mut files: BTreeSet<String> = generated.map(|file| file.path).collect();
        let mut directories: BTreeSet<&str> = BTreeSet::new();
        for (index, file) in tree.file.iter().enumerate() {
            let parents = || {
                file.path
                    .match_indices('/')
                    .map(|(end, _)| &file.path[..end])
            };
            let at = [
                Step::Key("tree"),
                Step::Key("file"),
                Step::Index(index),
                Step::Key("path"),
            ];
            let path = &file.path;
            self.ensure(
                !files.contains(path),
                &at,
                &format!("there is another file `{path}`"),
                "names must differ, from those of generated files (`file-000` and so on) too",
            )?;
            let both = parents()
                .find(|parent| files.contains(*parent))
                .or_else(|| directories.contains(path.as_str()).then_some(path));
            self.ensure(
                both.is_none(),
                &at,
                &format!(
                    "`{}` would be a file and a directory",
                    both.unwrap_or_default()
                ),
                "rename one of them",
            )?;
            directories.extend(parents());
            files.insert(path.clone());
        }
        Ok(())
    }

    pub(crate) fn ensure(&self, kept: bool, path: &[Step<'_>], message: &str, help: &str) -> Rule {
        if kept {
            return Ok(());
        }
        let help = Some(help.to_owned());
        Err(self.document.error_at(path, message.to_owned(), help))
    }
}

fn joined<'k>(path: &[Step<'k>], more: &[Step<'k>]) -> Vec<Step<'k>> {
    [path, more].concat()
}

/// One name of a path, other than `.` and `..`.
fn is_component(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/') && !name.contains(char::is_control)
}
