//! Any external program, run to its end.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::child_setup::ChildSetup;
use crate::descendants::{Containment, Descendants};
use crate::group::{ChildGroup, Unkillable};
use crate::interrupt::{Interrupt, Interrupted};
use crate::limits::Limits;
use crate::start::{self, StartError};
use crate::tail::{OutputTail, TailReader};
use crate::{poll, start::failed_step_pipe};

/// A program to run. Its input is empty, its environment the harness's with changes.
#[derive(Debug, Clone)]
pub struct CommandSpec<'a> {
    /// The program, looked for in PATH when it has no slash.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Variables that are set on top of the environment of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory, as seen in the mount namespace. Without one, it is that of this process,
    /// or the top directory when a mount namespace is entered.
    pub cwd: Option<PathBuf>,
    /// Mount namespace to enter.
    pub mount_namespace: Option<BorrowedFd<'a>>,
    /// What it may use at most.
    pub limits: Limits,
}

impl CommandSpec<'_> {
    /// A program with its arguments, and defaults for the rest.
    pub fn new(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            mount_namespace: None,
            limits: Limits::default(),
        }
    }

    /// The command line for a reader.
    pub fn command_line(&self) -> String {
        let words: Vec<&OsStr> = std::iter::once(self.program.as_os_str())
            .chain(self.args.iter().map(OsString::as_os_str))
            .collect();
        words.join(OsStr::new(" ")).display().to_string()
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct CommandOutcome {
    /// Exit status or signal.
    pub status: ExitStatus,
    /// End of what it printed on stdout.
    pub stdout: OutputTail,
    /// End of what it printed on stderr.
    pub stderr: OutputTail,
    /// Time on the wall.
    pub duration: Duration,
    /// How far the clean-up after it reached.
    pub containment: Containment,
}

/// Why a command did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It took too long and was killed.
    #[error("`{program}` was killed after {after:?}, the limit{}", said(stderr))]
    TimedOut {
        /// The program.
        program: String,
        /// The limit.
        after: Duration,
        /// End of what it printed on stderr.
        stderr: OutputTail,
    },
    /// Somebody asked to stop; it was killed.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// It was killed and does not go: it is stuck in the kernel.
    #[error("`{program}` (process {pid}) was killed and does not end: it is stuck in the kernel")]
    Unkillable {
        /// The program.
        program: String,
        /// Its process.
        pid: u32,
    },
    /// The harness could not wait for it; it was killed.
    #[error("waiting for `{program}` failed: {source}")]
    Wait {
        /// The program.
        program: String,
        /// What the kernel says.
        source: io::Error,
    },
}

/// The end of stderr as the second part of a message.
pub(crate) fn said(stderr: &OutputTail) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!("; it said: {stderr}")
    }
}

/// Runs a program and waits for its end. When this returns, nothing of it runs any more: the
/// program is killed as a group on time-out and interruption, and its descendants in every case
/// (as far as [`Containment`] says).
///
/// A thread of its own does the work, because a pid namespace stays with the thread that made it.
///
/// # Errors
/// When it cannot be started, takes longer than its limit, or is interrupted. An exit status other
/// than 0 is no error here.
pub fn run_command(
    spec: &CommandSpec<'_>,
    interrupt: &Interrupt,
) -> Result<CommandOutcome, CommandError> {
    interrupt.check()?;
    std::thread::scope(|scope| {
        let run = std::thread::Builder::new()
            .name("untorn-command".to_owned())
            .spawn_scoped(scope, || run_here(spec, interrupt))
            .map_err(|source| no_child(spec, source))?;
        match run.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn run_here(spec: &CommandSpec<'_>, interrupt: &Interrupt) -> Result<CommandOutcome, CommandError> {
    let started = Instant::now();
    // Dropped last: the namespace ends when the command has been reaped.
    let descendants = Descendants::contain().map_err(|source| no_child(spec, source))?;
    let mut running = Running::start(spec, descendants.is_some())?;
    let ended = running.wait(started + spec.limits.wall, interrupt);
    let duration = started.elapsed();
    if let Some(descendants) = &descendants {
        descendants.kill();
    }
    let program = spec.program.display().to_string();
    let status = running
        .group
        .reap()
        .map_err(|Unkillable| CommandError::Unkillable {
            program: program.clone(),
            pid: running.group.id(),
        })?;
    // Everything that could hold the pipes open has to be gone before they are read to the end.
    let containment = match descendants {
        Some(_) => Containment::PidNamespace,
        None => Containment::ProcessGroup,
    };
    drop(descendants);
    let (stdout, stderr) = (running.stdout.into_tail(), running.stderr.into_tail());
    match ended {
        Ok(End::Exited) => Ok(CommandOutcome {
            status,
            stdout,
            stderr,
            duration,
            containment,
        }),
        Ok(End::Deadline) => Err(CommandError::TimedOut {
            program,
            after: spec.limits.wall,
            stderr,
        }),
        Ok(End::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(source) => Err(CommandError::Wait { program, source }),
    }
}

/// Why a wait ended.
enum End {
    Exited,
    Deadline,
    Interrupted(Interrupted),
}

/// A command that was started.
struct Running {
    group: ChildGroup,
    stdout: TailReader,
    stderr: TailReader,
}

impl Running {
    fn start(spec: &CommandSpec<'_>, contained: bool) -> Result<Self, CommandError> {
        let (failed_step, failed_step_writer) =
            failed_step_pipe().map_err(|source| no_child(spec, source))?;
        let setup =
            setup(spec, contained, failed_step_writer).map_err(|source| no_child(spec, source))?;
        let child = start::start(command(spec), setup, &failed_step)?;
        Self::watch(child).map_err(|source| no_child(spec, source))
    }

    fn watch(child: std::process::Child) -> io::Result<Self> {
        let mut group = ChildGroup::new(child)?;
        let stdout = group.take_stdout().map(OwnedFd::from);
        let stderr = group.take_stderr().map(OwnedFd::from);
        let missing = || io::Error::from(rustix::io::Errno::BADF);
        Ok(Self {
            group,
            stdout: TailReader::new(stdout.ok_or_else(missing)?)?,
            stderr: TailReader::new(stderr.ok_or_else(missing)?)?,
        })
    }

    /// Waits for the end of the program itself: a descendant may hold its output open for longer.
    fn wait(&mut self, deadline: Instant, interrupt: &Interrupt) -> io::Result<End> {
        loop {
            let [ended, interrupted, stdout, stderr] = poll::ready(
                [
                    Some(self.group.ended()),
                    Some(interrupt.wake()),
                    self.stdout.descriptor(),
                    self.stderr.descriptor(),
                ],
                deadline,
            )?;
            if stdout {
                self.stdout.drain();
            }
            if stderr {
                self.stderr.drain();
            }
            if ended {
                return Ok(End::Exited);
            }
            if interrupted && let Err(interrupted) = interrupt.check() {
                return Ok(End::Interrupted(interrupted));
            }
            if Instant::now() >= deadline {
                return Ok(End::Deadline);
            }
        }
    }
}

/// The command with nothing to read, what it prints in pipes, and a process group of its own.
pub(crate) fn command(spec: &CommandSpec<'_>) -> Command {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// What the child does before its exec.
pub(crate) fn setup(
    spec: &CommandSpec<'_>,
    contained: bool,
    failed_step: OwnedFd,
) -> io::Result<ChildSetup> {
    let namespace = spec.mount_namespace;
    let cwd = spec.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
    Ok(ChildSetup {
        mount_namespace: namespace.map(|fd| fd.try_clone_to_owned()).transpose()?,
        working_directory: cwd.map(CString::new).transpose()?,
        parent: (!contained).then(rustix::process::getpid),
        keep: None,
        gate: None,
        limits: spec.limits.clone(),
        failed_step,
    })
}

fn no_child(spec: &CommandSpec<'_>, source: io::Error) -> CommandError {
    CommandError::Start(StartError::Spawn {
        program: spec.program.clone(),
        source,
    })
}
