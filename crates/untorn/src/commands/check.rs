//! `untorn check`: any program.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use untorn_process::CommandError;
use untorn_runner::{CasePlan, InitialTree, ProfilePlan, Subject};
use untorn_spec::{CaseId, Exit, Expected, Recordings};

use crate::cli::CheckArgs;
use crate::commands::certify::profiles;
use crate::session::{Tell, Usage, run_plan};

/// Name of the target in the file system under test.
const TARGET: &str = "live";

/// Checks a command.
///
/// # Errors
/// Bad input: an unreadable directory, a command that is not found, fails, or never ends.
pub fn check(args: &CheckArgs) -> Result<Exit> {
    let old = readable_directory(&args.old)?;
    let profiles = profiles(&args.options, "ext4,xfs,btrfs")?;
    let words: Vec<String> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = words.join(" ");
    if !line.contains("{dir}") {
        return Err(Usage(format!(
            "`{line}` does not name the directory that it updates: write {{dir}} in its place"
        ))
        .into());
    }
    let plan: Vec<ProfilePlan> = profiles
        .iter()
        .map(|profile| ProfilePlan {
            profile,
            cases: vec![CasePlan {
                id: CaseId {
                    profile: profile.name.to_owned(),
                    scenario: "check".to_owned(),
                    writer: line.clone(),
                },
                profile,
                subject: Subject::Command {
                    argv: args.command.clone(),
                    wall: Duration::from_secs(args.timeout),
                },
                target: TARGET.to_owned(),
                initial: InitialTree::CopyOf(old.clone()),
                expected: Expected::Holds,
                control: None,
                recordings: Recordings {
                    undisturbed: true,
                    neighbor_commit: args.boundaries.into(),
                    flush_hold_ms: 0,
                },
                recoveries_per_space_max: args.recoveries_max,
                scenario_text: None,
            }],
        })
        .collect();
    let ran = run_plan("check", &plan, &args.options, Tell::All);
    let timed_out = |error: &anyhow::Error| {
        let cause = error.chain().find_map(|cause| cause.downcast_ref());
        matches!(cause, Some(CommandError::TimedOut { .. }))
    };
    match ran {
        Err(error) if timed_out(&error) => {
            let what = format!(
                "--timeout {} is too short, or the command never ends",
                args.timeout
            );
            Err(error.context(what))
        }
        ran => Ok(ran?.0),
    }
}

fn readable_directory(path: &Path) -> Result<std::path::PathBuf> {
    let refuse = |what: String| Usage(format!("--old {}: {what}", path.display()));
    let whole = fs::canonicalize(path).map_err(|error| refuse(error.to_string()))?;
    if !whole.is_dir() {
        return Err(refuse("not a directory".to_owned()).into());
    }
    can_be_copied(&whole).map_err(refuse)?;
    Ok(whole)
}

/// Finds what the copy of the old tree would stumble over.
fn can_be_copied(directory: &Path) -> Result<(), String> {
    let at = |path: &Path, what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    for entry in fs::read_dir(directory).map_err(|error| at(directory, &error))? {
        let entry = entry.map_err(|error| at(directory, &error))?;
        let (path, kind) = (entry.path(), entry.file_type());
        let kind = kind.map_err(|error| at(&path, &error))?;
        if kind.is_dir() {
            can_be_copied(&path)?;
        } else if kind.is_file() {
            fs::File::open(&path).map_err(|error| at(&path, &error))?;
        } else if !kind.is_symlink() {
            let what = "neither a file nor a directory nor a symbolic link; remove it, or copy \
                        the tree without it";
            return Err(at(&path, &what));
        }
    }
    Ok(())
}
