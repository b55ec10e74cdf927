//! Recordings: one run of the subject on a recorded disk.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use untorn_block::{BlockLog, Image, Mark};
use untorn_oracle::TreeSnapshot;
use untorn_process::{
    CommandError, CommandSpec, HeldSubject, Interrupt, Limits, SubjectCommand, TraceError,
    TraceEvent, TracedCommand,
};
use untorn_spec::{Disturbance, FromSubject, TreeSpec, WriterOrder};

use crate::agent::{Initial, Request};
use crate::worker::Worker;

/// The program under test.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A built-in writer, run as a child that is held at each syscall.
    Writer {
        /// The program that acts as the writer; see [`untorn_process::SubjectCommand`].
        program: PathBuf,
        /// Its arguments.
        args: Vec<OsString>,
        /// Name of the writer.
        writer: String,
        /// The trees before and after.
        tree: TreeSpec,
    },
    /// Any command, held at each syscall below the mount point by a tracer. Its exit status 0 is
    /// the acknowledgement.
    Command {
        /// The program and its arguments; `{dir}` stands for the target.
        argv: Vec<OsString>,
        /// How long it may run.
        wall: Duration,
    },
}

/// One run of the subject: the block log with marks, and the image it began with.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) disturbance: Disturbance,
    /// The disturbance in words.
    pub(crate) disturbance_text: String,
    /// Content of the disk when recording began; durable.
    pub(crate) base: Image,
    pub(crate) log: BlockLog,
    /// Mutating syscalls seen; the exit of a command counts as one.
    pub(crate) syscalls: u32,
    /// What the recording does not see of the subject.
    pub(crate) unseen: Vec<String>,
    /// Position of the disturbance in the log; what lies before is no different from the
    /// undisturbed recording.
    pub(crate) disturbed_at: usize,
    /// The tree that the running system saw under the target at the end.
    pub(crate) live: TreeSnapshot,
}

/// What stays the same for all recordings of a case.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) target: &'a str,
    /// The file system with the initial tree, cleanly unmounted.
    pub(crate) populated: &'a Image,
    pub(crate) flush_hold: Duration,
    pub(crate) seed: u64,
    pub(crate) interrupt: &'a Interrupt,
}

/// Makes the initial tree on an empty file system. Returns the image after a clean unmount, and the
/// tree.
pub(crate) fn populate(
    worker: &Worker,
    empty: Image,
    target: &str,
    initial: Initial,
) -> Result<(Image, TreeSnapshot)> {
    worker.disk.load(empty);
    worker.must(&Request::Mount)?;
    let populated = worker
        .must(&Request::Populate {
            target: target.to_owned(),
            initial,
        })
        .and_then(|()| worker.must(&Request::Sync))
        .and_then(|()| worker.look(target))
        .and_then(|_seen| worker.tree());
    worker.unmount()?;
    Ok((worker.disk.image(), populated?))
}

/// Runs the subject once.
pub(crate) fn record(
    worker: &Worker,
    stage: &Stage<'_>,
    disturbance: Disturbance,
) -> Result<Recording> {
    worker.disk.load(stage.populated.clone());
    worker.must(&Request::Mount)?;
    // What mounting wrote is made durable first, so that the recording begins with the subject.
    let recorded = worker.must(&Request::Sync).and_then(|()| {
        let base = worker.disk.start_recording(stage.flush_hold);
        let run = match stage.subject {
            Subject::Writer { .. } => run_writer(worker, stage, disturbance),
            Subject::Command { argv, wall } => run_program(worker, stage, disturbance, argv, *wall),
        };
        let log = worker.disk.stop_recording();
        let run = run?;
        worker.look(stage.target)?;
        Ok((base, log, run, worker.tree()?))
    });
    let unmounted = worker.unmount();
    let (base, log, run, live) = recorded?;
    unmounted?;
    let disturbed = log
        .ops
        .iter()
        .position(|op| matches!(op, untorn_block::BlockOp::Mark(Mark::Disturbed)));
    Ok(Recording {
        disturbance,
        disturbance_text: run.disturbance_text,
        base,
        disturbed_at: disturbed.unwrap_or(0),
        log,
        syscalls: run.syscalls,
        unseen: run.unseen,
        live,
    })
}

struct Run {
    syscalls: u32,
    unseen: Vec<String>,
    disturbance_text: String,
}

/// The disturbance, if it is due at this boundary.
fn disturb(
    worker: &Worker,
    disturbance: Disturbance,
    boundary: u32,
    last_call: Option<&str>,
    text: &mut String,
) -> Result<()> {
    if disturbance == Disturbance::NeighborCommit(boundary) {
        *text = match last_call {
            Some(call) => format!("neighbour commit after {call}"),
            None => "neighbour commit before the first call".to_owned(),
        };
        worker.disk.mark(Mark::Disturbed);
        worker.must(&Request::NeighborCommit)?;
    }
    Ok(())
}

fn run_writer(worker: &Worker, stage: &Stage<'_>, disturbance: Disturbance) -> Result<Run> {
    let Subject::Writer {
        program,
        args,
        writer,
        tree,
    } = stage.subject
    else {
        bail!("not a built-in writer");
    };
    let namespace = worker.namespace()?;
    let command = SubjectCommand {
        program: program.clone(),
        args: args.clone(),
        order: WriterOrder {
            writer: writer.clone(),
            parent: worker.mount_point().to_string_lossy().into_owned(),
            target: stage.target.to_owned(),
            tree: tree.clone(),
            seed: stage.seed,
        },
        mount_namespace: Some(namespace.as_fd()),
        limits: Limits::default(),
    };
    let mut subject = HeldSubject::spawn(&command, stage.interrupt)?;
    let mut run = Run {
        syscalls: 0,
        unseen: Vec::new(),
        disturbance_text: "undisturbed".to_owned(),
    };
    loop {
        match subject.next()? {
            FromSubject::Started => {
                disturb(worker, disturbance, 0, None, &mut run.disturbance_text)?;
            }
            FromSubject::Returned(call) => {
                worker.disk.mark(Mark::Syscall(call.text.as_str().into()));
                run.syscalls = call.index + 1;
                let text = &mut run.disturbance_text;
                disturb(worker, disturbance, call.index + 1, Some(&call.name), text)?;
            }
            FromSubject::Acknowledged => worker.disk.mark(Mark::Acknowledged),
            FromSubject::Finished { error: Some(error) } => {
                bail!("writer {writer} failed on {}: {error}", worker.profile.name)
            }
            FromSubject::Finished { error: None } => break,
        }
        subject.go()?;
    }
    let exit = subject.wait()?;
    if !exit.status.success() {
        bail!(
            "writer {writer} ended with {}: {}",
            exit.status,
            exit.stderr
        );
    }
    Ok(run)
}

/// What a command did wrong, as opposed to what the harness did.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` failed ({status}) although nothing disturbed it{said}")]
pub struct CommandFailed {
    /// The command line.
    pub command: String,
    /// Its exit status.
    pub status: std::process::ExitStatus,
    /// The end of what it printed.
    pub said: String,
}

fn run_program(
    worker: &Worker,
    stage: &Stage<'_>,
    disturbance: Disturbance,
    argv: &[OsString],
    wall: Duration,
) -> Result<Run> {
    let namespace = worker.namespace()?;
    let target = worker.mount_point().join(stage.target);
    let mut words = argv.iter().map(|word| substitute(word, target.as_os_str()));
    let program = words.next().context("no command was given")?;
    let mut command = CommandSpec::new(program, words);
    command.mount_namespace = Some(namespace.as_fd());
    command.cwd = Some(std::env::current_dir().context("cannot read the working directory")?);
    command.limits.wall = wall;
    let mut run = Run {
        syscalls: 0,
        unseen: Vec::new(),
        disturbance_text: "undisturbed".to_owned(),
    };
    disturb(worker, disturbance, 0, None, &mut run.disturbance_text)?;
    let mut traced = TracedCommand::spawn(&command, worker.mount_point(), stage.interrupt)
        .map_err(failed_to_trace)?;
    let outcome = loop {
        match traced.next().map_err(failed_to_trace)? {
            TraceEvent::Returned(call) => {
                worker.disk.mark(Mark::Syscall(call.text.as_str().into()));
                // With several threads, calls may return in another order than they began in.
                run.syscalls = run.syscalls.max(call.index + 1);
                let text = &mut run.disturbance_text;
                disturb(worker, disturbance, call.index + 1, Some(&call.name), text)?;
                traced.go();
            }
            TraceEvent::Warning(warning) => run.unseen.push(warning.to_string()),
            TraceEvent::Exited(outcome) => break outcome,
        }
    };
    if !outcome.status.success() {
        let command = command.command_line();
        let said = if outcome.stderr.is_empty() {
            String::new()
        } else {
            format!("; it said: {}", outcome.stderr)
        };
        return Err(CommandFailed {
            command,
            status: outcome.status,
            said,
        }
        .into());
    }
    worker.disk.mark(Mark::Syscall("exit#1 0".into()));
    worker.disk.mark(Mark::Acknowledged);
    run.syscalls += 1;
    let text = &mut run.disturbance_text;
    disturb(worker, disturbance, run.syscalls, Some("exit#1"), text)?;
    Ok(run)
}

/// A traced command fails as an untraced one does, where it can.
fn failed_to_trace(error: TraceError) -> anyhow::Error {
    match error {
        TraceError::Start(error) => CommandError::Start(error).into(),
        TraceError::Interrupted(interrupted) => CommandError::Interrupted(interrupted).into(),
        TraceError::TimedOut {
            program,
            after,
            stderr,
        } => CommandError::TimedOut {
            program,
            after,
            stderr,
        }
        .into(),
        error => error.into(),
    }
}

/// Puts the target's path where `{dir}` stands.
fn substitute(word: &std::ffi::OsStr, target: &std::ffi::OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    const PLACE: &[u8] = b"{dir}";
    let bytes = word.as_bytes();
    let mut result = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(PLACE) {
            result.extend_from_slice(target.as_bytes());
            at += PLACE.len();
        } else {
            result.push(bytes[at]);
            at += 1;
        }
    }
    OsString::from_vec(result)
}

#[cfg(test)]
mod tests {
    use super::substitute;

    #[test]
    fn the_target_stands_wherever_dir_did() {
        let put = |word: &str| {
            substitute(word.as_ref(), "/m/live".as_ref())
                .into_string()
                .unwrap()
        };
        assert_eq!(put("{dir}"), "/m/live");
        assert_eq!(
            put("cp a {dir}/x && ls {dir}"),
            "cp a /m/live/x && ls /m/live"
        );
        assert_eq!(put("{di}{dir"), "{di}{dir");
    }
}
