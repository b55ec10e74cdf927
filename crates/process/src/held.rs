//! A built-in writer as a child that the harness holds at every boundary.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use untorn_spec::{FromSubject, ToSubject, WriterOrder};

use crate::child_setup::ChildSetup;
use crate::client::CONTROL_FD_VARIABLE;
use crate::command::said;
use crate::control::{self, PacketError, receive_message, send_message};
use crate::group::{ChildGroup, Unkillable};
use crate::interrupt::{Interrupt, Interrupted};
use crate::limits::Limits;
use crate::poll;
use crate::start::{self, StartError, failed_step_pipe};
use crate::tail::{OutputTail, TailReader};

/// How a held subject is started.
#[derive(Debug, Clone)]
pub struct SubjectCommand<'a> {
    /// The program, most often `/proc/self/exe`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What the writer is to do.
    pub order: WriterOrder,
    /// Mount namespace to enter.
    pub mount_namespace: Option<BorrowedFd<'a>>,
    /// What it may use at most.
    pub limits: Limits,
}

/// Why a held subject did not go on.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It ended without having said so, or without reading what was sent to it.
    #[error("the subject died ({status}){}", said(stderr))]
    Died {
        /// Exit status or signal.
        status: ExitStatus,
        /// End of what it printed on stderr.
        stderr: OutputTail,
    },
    /// It ran for too long in all and was killed.
    #[error(
        "the subject was killed after running for {after:?}, the limit{}",
        said(stderr)
    )]
    TimedOut {
        /// The limit.
        after: Duration,
        /// End of what it printed on stderr.
        stderr: OutputTail,
    },
    /// Somebody asked to stop; it was killed.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A message could not be exchanged; it was killed.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// It was killed and does not go: it is stuck in the kernel.
    #[error("the subject (process {pid}) was killed and does not end: it is stuck in the kernel")]
    Unkillable {
        /// Its process.
        pid: u32,
    },
}

/// How a held subject ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectExit {
    /// Exit status or signal.
    pub status: ExitStatus,
    /// End of what it printed on stderr.
    pub stderr: OutputTail,
}

/// A built-in writer as a child that stops after each of its mutating syscalls, until
/// [`HeldSubject::go`].
///
/// Dropped, it is killed with its process group and reaped. The kernel kills it when the thread
/// that started it ends: start it on a thread that stays for as long as the subject does.
#[derive(Debug)]
pub struct HeldSubject {
    group: ChildGroup,
    socket: OwnedFd,
    stderr: TailReader,
    interrupt: Interrupt,
    wall: Duration,
    /// Time for which the subject may still run.
    left: Duration,
}

impl HeldSubject {
    /// Starts the subject and sends its order.
    ///
    /// # Errors
    /// When it cannot be started, or its order does not fit into one packet.
    pub fn spawn(
        subject: &SubjectCommand<'_>,
        interrupt: &Interrupt,
    ) -> Result<Self, SubjectError> {
        interrupt.check()?;
        let no_child = |source| {
            let program = subject.program.clone().into_os_string();
            StartError::Spawn { program, source }
        };
        let (socket, childs_socket) = control::pair().map_err(no_child)?;
        // It waits in the socket. Sent first, an order that is too large costs no child.
        send_message(socket.as_fd(), &subject.order)?;
        let group = start_child(subject, childs_socket, no_child)?;
        let (group, stderr) = watch_stderr(group).map_err(no_child)?;
        Ok(Self {
            group,
            socket,
            stderr,
            interrupt: interrupt.clone(),
            wall: subject.limits.wall,
            left: subject.limits.wall,
        })
    }

    /// Number of its process.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Waits for the next message. Afterwards the subject is held, except after
    /// [`FromSubject::Finished`].
    ///
    /// # Errors
    /// When the subject has died, runs for longer than its limit in all, or somebody asked to
    /// stop; in the last two cases it has been killed.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could neither fail nor be told to go on in between"
    )]
    pub fn next(&mut self) -> Result<FromSubject, SubjectError> {
        let started = Instant::now();
        let waited = self.wait_for(Awaited::Packet, started + self.left);
        self.left = self.left.saturating_sub(started.elapsed());
        match waited.map_err(PacketError::Socket)? {
            Event::Happened => match receive_message(self.socket.as_fd()) {
                Ok(message) => Ok(message),
                Err(PacketError::Closed) => Err(self.died()),
                Err(error) => {
                    self.kill()?;
                    Err(error.into())
                }
            },
            Event::Deadline => {
                let stderr = self.kill()?.stderr;
                let after = self.wall;
                Err(SubjectError::TimedOut { after, stderr })
            }
            Event::Interrupted(interrupted) => {
                self.kill()?;
                Err(interrupted.into())
            }
        }
    }

    /// Lets the subject make its next call.
    ///
    /// # Errors
    /// When it has died.
    pub fn go(&mut self) -> Result<(), SubjectError> {
        match send_message(self.socket.as_fd(), &ToSubject::Go) {
            Err(PacketError::Closed) => Err(self.died()),
            sent => Ok(sent?),
        }
    }

    /// Kills the subject, wherever it is, and its process group, and reaps it.
    ///
    /// # Errors
    /// When it is stuck in the kernel.
    pub fn kill(&mut self) -> Result<SubjectExit, SubjectError> {
        let pid = self.group.id();
        let status = self.group.reap();
        let status = status.map_err(|Unkillable| SubjectError::Unkillable { pid })?;
        self.stderr.drain();
        Ok(SubjectExit {
            status,
            stderr: self.stderr.tail().clone(),
        })
    }

    /// Waits for the subject to end by itself, after [`FromSubject::Finished`].
    ///
    /// # Errors
    /// When it does not end within its limit; then it has been killed.
    pub fn wait(&mut self) -> Result<SubjectExit, SubjectError> {
        let deadline = Instant::now() + self.left;
        let ended = self.wait_for(Awaited::End, deadline);
        let exit = self.kill()?;
        match ended.map_err(PacketError::Socket)? {
            Event::Happened => Ok(exit),
            Event::Deadline => Err(SubjectError::TimedOut {
                after: self.wall,
                stderr: exit.stderr,
            }),
            Event::Interrupted(interrupted) => Err(interrupted.into()),
        }
    }

    /// Collects stderr meanwhile, so that a subject that prints much is not kept from going on.
    fn wait_for(&mut self, awaited: Awaited, deadline: Instant) -> io::Result<Event> {
        loop {
            let descriptor = match awaited {
                // A subject that has died has closed its end of the socket, which counts as well.
                Awaited::Packet => self.socket.as_fd(),
                Awaited::End => self.group.ended(),
            };
            let wake = Some(self.interrupt.wake());
            let [happened, interrupted, stderr] =
                poll::ready([Some(descriptor), wake, self.stderr.descriptor()], deadline)?;
            if stderr {
                self.stderr.drain();
            }
            if interrupted && let Err(interrupted) = self.interrupt.check() {
                return Ok(Event::Interrupted(interrupted));
            }
            if happened {
                return Ok(Event::Happened);
            }
            if Instant::now() >= deadline {
                return Ok(Event::Deadline);
            }
        }
    }

    /// The socket is closed at the other end: the subject is ending, or closed it for no reason.
    fn died(&mut self) -> SubjectError {
        // Its own end is waited for, so that the status says what happened and not SIGKILL.
        let grace = Duration::from_secs(2).min(self.left);
        self.group.has_ended_by(Instant::now() + grace);
        match self.kill() {
            Ok(SubjectExit { status, stderr }) => SubjectError::Died { status, stderr },
            Err(error) => error,
        }
    }
}

/// What is waited for.
#[derive(Clone, Copy)]
enum Awaited {
    Packet,
    End,
}

/// What a wait ended with.
enum Event {
    /// What was waited for.
    Happened,
    Deadline,
    Interrupted(Interrupted),
}

fn start_child(
    subject: &SubjectCommand<'_>,
    childs_socket: OwnedFd,
    no_child: impl Fn(io::Error) -> StartError,
) -> Result<ChildGroup, StartError> {
    let (failed_step, failed_step_writer) = failed_step_pipe().map_err(&no_child)?;
    let namespace = subject.mount_namespace;
    let namespace = namespace.map(|fd| fd.try_clone_to_owned()).transpose();
    let mut command = Command::new(&subject.program);
    command
        .args(&subject.args)
        .env(CONTROL_FD_VARIABLE, childs_socket.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let setup = ChildSetup {
        mount_namespace: namespace.map_err(&no_child)?,
        working_directory: None,
        parent: Some(rustix::process::getpid()),
        keep: Some(childs_socket),
        gate: None,
        limits: subject.limits.clone(),
        failed_step: failed_step_writer,
    };
    // The child's end of the socket goes with the set-up, so that its closing is seen here.
    let child = start::start(command, setup, &failed_step)?;
    ChildGroup::new(child).map_err(no_child)
}

fn watch_stderr(mut group: ChildGroup) -> io::Result<(ChildGroup, TailReader)> {
    let stderr = group.take_stderr().map(OwnedFd::from);
    let stderr = stderr.ok_or(rustix::io::Errno::BADF)?;
    Ok((group, TailReader::new(stderr)?))
}
