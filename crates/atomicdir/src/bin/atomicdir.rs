//! The command `atomicdir`: publish a directory from a script, and clean up after dead writers.
//!
//! Nothing is printed on stdout. The exit code tells the three outcomes apart: 0 published and
//! durable, 1 not published (the target is untouched), 3 published but durability unknown; 2 is
//! wrong usage.

#![expect(
    clippy::print_stderr,
    reason = "telling its user what happened is the command's task"
)]

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomicdir::{CleanupError, Durability, Options, PublishError, Reason, Tree};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use rustix::io::Errno;
use untorn_fs::OsFs;

const NOT_PUBLISHED: u8 = 1;
const DURABILITY_UNKNOWN: u8 = 3;

/// Replaces a directory atomically and durably.
#[derive(Debug, Parser)]
#[command(name = "atomicdir", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes TARGET a copy of DIR: files, directories, symlinks and modes.
    ///
    /// Exit code 0: published and durable. 1: not published, TARGET is untouched. 3: published,
    /// but a power cut may bring the old tree back.
    Publish {
        /// The directory to copy.
        #[arg(long, value_name = "DIR")]
        from: PathBuf,
        /// The directory to replace or create.
        target: PathBuf,
        /// How the copy is made durable before it replaces the target.
        #[arg(long, value_enum, default_value = "fsync")]
        durability: DurabilityArgument,
    },
    /// Removes what publishers that died left beside TARGET.
    Sweep {
        /// The directory whose leftovers are removed.
        target: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DurabilityArgument {
    /// Sync every file and directory of the copy.
    Fsync,
    /// Sync the whole file system once.
    Syncfs,
}

impl From<DurabilityArgument> for Durability {
    fn from(argument: DurabilityArgument) -> Self {
        match argument {
            DurabilityArgument::Fsync => Self::Fsync,
            DurabilityArgument::Syncfs => Self::Syncfs,
        }
    }
}

/// An exit code other than 0, and what is said on stderr.
struct Failure {
    code: u8,
    error: anyhow::Error,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Publish {
            from,
            target,
            durability,
        } => publish(&from, &target, durability.into()),
        Command::Sweep { target } => sweep(&target),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, error }) => {
            eprintln!("atomicdir: {error}");
            ExitCode::from(code)
        }
    }
}

fn publish(from: &Path, target: &Path, durability: Durability) -> Result<(), Failure> {
    let (parent, name) = open_parent(target)?;
    let source = open(from)?;
    let tree = Tree::load(&OsFs, &source)
        .map_err(|error| not_published(anyhow::anyhow!("{}: {error}", from.display())))?;
    let options = Options {
        durability,
        ..Options::default()
    };
    match atomicdir::publish(&OsFs, &parent, name, &tree, &options) {
        Ok(published) => {
            warn(
                target,
                "published and durable, but ",
                &published.cleanup_errors,
            );
            Ok(())
        }
        Err(error) => {
            let (code, cleanup_errors, number) = match &error {
                PublishError::NotPublished {
                    reason,
                    cleanup_errors,
                } => (NOT_PUBLISHED, cleanup_errors, errno_of(reason)),
                PublishError::DurabilityUnknown {
                    cleanup_errors,
                    source,
                    ..
                } => (DURABILITY_UNKNOWN, cleanup_errors, source.errno()),
            };
            warn(target, "", cleanup_errors);
            let kept = match &error {
                PublishError::DurabilityUnknown {
                    old_kept_at: Some(kept),
                    ..
                } => {
                    format!(
                        "; the old tree is kept in {}",
                        target.with_file_name(kept).display()
                    )
                }
                PublishError::DurabilityUnknown {
                    old_kept_at: None, ..
                }
                | PublishError::NotPublished { .. } => String::new(),
            };
            let message = format!("{}: {error}{}{kept}", target.display(), hint(number));
            Err(Failure {
                code,
                error: anyhow::Error::msg(message),
            })
        }
    }
}

fn sweep(target: &Path) -> Result<(), Failure> {
    let (parent, name) = open_parent(target)?;
    let swept = atomicdir::sweep(&OsFs, &parent, name)
        .map_err(|error| not_published(anyhow::anyhow!("{}: {error}", target.display())))?;
    warn(target, "", &swept.failed);
    if swept.failed.is_empty() {
        Ok(())
    } else {
        Err(not_published(anyhow::anyhow!(
            "{}: leftovers remain",
            target.display()
        )))
    }
}

/// Splits a path into its parent, opened, and the last name in it.
fn open_parent(target: &Path) -> Result<(OwnedFd, &OsStr), Failure> {
    let Some(name) = target.file_name() else {
        let message = format!(
            "{:?} does not end in the name of a directory",
            target.display()
        );
        Arguments::command()
            .error(clap::error::ErrorKind::ValueValidation, message)
            .exit();
    };
    let parent = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    };
    Ok((open(parent)?, name))
}

fn open(dir: &Path) -> Result<OwnedFd, Failure> {
    OsFs.open_dir(dir).map_err(|error| {
        let hint = hint(error.raw_os_error());
        not_published(anyhow::anyhow!("{}: {error}{hint}", dir.display()))
    })
}

fn not_published(error: anyhow::Error) -> Failure {
    Failure {
        code: NOT_PUBLISHED,
        error,
    }
}

/// Tells of what could not be removed, which leaves the outcome said before it as it is.
fn warn(target: &Path, outcome: &str, cleanup_errors: &[CleanupError]) {
    for error in cleanup_errors {
        let hint = hint(error.source.errno());
        eprintln!("atomicdir: {}: {outcome}{error}{hint}", target.display());
    }
}

fn errno_of(reason: &Reason) -> Option<i32> {
    match reason {
        Reason::Call(error) => error.errno(),
        // These say themselves what would help.
        Reason::Name(_)
        | Reason::Tree(_)
        | Reason::Target(_)
        | Reason::Unsupported(_)
        | Reason::CrossDevice(_)
        | Reason::Contended
        | Reason::NoStagingName
        | Reason::Random(_) => None,
    }
}

/// What would help against an error.
fn hint(number: Option<i32>) -> &'static str {
    let Some(number) = number else { return "" };
    match Errno::from_io_error(&io::Error::from_raw_os_error(number)) {
        Some(Errno::NOSPC | Errno::DQUOT) => {
            " (free space is needed for a whole second copy of the tree)"
        }
        Some(Errno::ACCESS) => " (write permission for the target's parent directory is needed)",
        Some(Errno::PERM) => " (is it immutable or append-only? see lsattr)",
        Some(Errno::ROFS) => " (the file system is mounted read-only)",
        Some(Errno::NOENT) => " (does the directory exist?)",
        Some(Errno::IO) => " (see the kernel's log; the disk may be failing)",
        Some(_) | None => "",
    }
}
