//! A command under the tracer, for its owner.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use untorn_spec::Syscall;

use super::arch;
use super::event::{TraceError, TraceEvent, TracedExit};
use super::fault::{Decide, Decision};
use super::launch::{Launch, Launched};
use super::report::{Inbox, Report, Reporter, reports};
use super::tracer::Tracer;
use crate::command::CommandSpec;
use crate::descendants::Containment;
use crate::group::REAP_SECONDS_MAX;
use crate::interrupt::{Interrupt, Interrupted};
use crate::poll;
use crate::start::StartError;
use crate::tail::TailReader;

/// A command of which each mutating call below a directory is told and held, until
/// [`TracedCommand::go`].
///
/// It ends when the command itself does; what it left running in the background is killed then, as
/// after [`crate::run_command`]. Dropped, all of it is killed and reaped. The kernel kills all of
/// it should the harness itself be killed.
///
/// A thread of its own does the tracing, so this can be used from any.
#[derive(Debug)]
pub struct TracedCommand {
    program: String,
    inbox: Inbox,
    leader: OwnedFd,
    stdout: TailReader,
    stderr: TailReader,
    containment: Containment,
    interrupt: Interrupt,
    wall: Duration,
    /// Time for which the command may still run.
    left: Duration,
    held: bool,
    exit: Option<TracedExit>,
    tracer: Option<JoinHandle<()>>,
}

/// What the owner gets of a command that was started.
struct Started {
    leader: OwnedFd,
    stdout: TailReader,
    stderr: TailReader,
    containment: Containment,
}

impl TracedCommand {
    /// Starts a command. Only calls that touch `root` or what is below it count; it is a path as
    /// seen by the command, in its mount namespace.
    ///
    /// # Errors
    /// When it cannot be started or traced.
    pub fn spawn(
        spec: &CommandSpec<'_>,
        root: &Path,
        interrupt: &Interrupt,
    ) -> Result<Self, TraceError> {
        Self::start(spec, root, None, interrupt)
    }

    /// Starts a command, of which each call that counts is decided upon before it is made.
    /// `decide` is called on the tracer's thread; the call's errno is not known yet.
    ///
    /// # Errors
    /// When it cannot be started or traced.
    pub fn spawn_with(
        spec: &CommandSpec<'_>,
        root: &Path,
        decide: impl FnMut(&Syscall) -> Decision + Send + 'static,
        interrupt: &Interrupt,
    ) -> Result<Self, TraceError> {
        Self::start(spec, root, Some(Box::new(decide)), interrupt)
    }

    fn start(
        spec: &CommandSpec<'_>,
        root: &Path,
        decide: Option<Decide>,
        interrupt: &Interrupt,
    ) -> Result<Self, TraceError> {
        if !arch::SUPPORTED {
            return Err(TraceError::Unsupported);
        }
        interrupt.check()?;
        let no_child = |source| StartError::Spawn {
            program: spec.program.clone(),
            source,
        };
        let launch = Launch::new(spec).map_err(no_child)?;
        let (reporter, inbox) = reports().map_err(no_child)?;
        let (started, outcome) = channel();
        let root = root.to_owned();
        let tracer = std::thread::Builder::new()
            .name("untorn-tracer".to_owned())
            .spawn(move || run(launch, &root, decide, reporter, &started))
            .map_err(no_child)?;
        let started = match outcome.recv() {
            Ok(started) => started?,
            Err(_) => match tracer.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(no_child(io::ErrorKind::BrokenPipe.into()).into()),
            },
        };
        Ok(Self {
            program: spec.program.display().to_string(),
            inbox,
            leader: started.leader,
            stdout: started.stdout,
            stderr: started.stderr,
            containment: started.containment,
            interrupt: interrupt.clone(),
            wall: spec.limits.wall,
            left: spec.limits.wall,
            held: false,
            exit: None,
            tracer: Some(tracer),
        })
    }

    /// Waits for what happens next. A call that is still held goes on first.
    ///
    /// # Errors
    /// When the command runs for longer than its limit in all, somebody asked to stop, or tracing
    /// fails; then all of it has been killed. After the end too.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could neither fail nor hold in between"
    )]
    pub fn next(&mut self) -> Result<TraceEvent, TraceError> {
        if self.exit.is_some() || self.tracer.is_none() {
            return Err(TraceError::Ended {
                program: self.program.clone(),
            });
        }
        self.go();
        let started = Instant::now();
        let waited = self.wait(started + self.left);
        self.left = self.left.saturating_sub(started.elapsed());
        match waited.map_err(|source| self.failed(source))? {
            Waited::Report => match self.inbox.take() {
                Some(Report::Returned(call)) => {
                    self.held = true;
                    Ok(TraceEvent::Returned(call))
                }
                Some(Report::Warning(warning)) => Ok(TraceEvent::Warning(warning)),
                Some(Report::Over(status)) => Ok(TraceEvent::Exited(self.over(status)?)),
                None => Err(self.failed(io::ErrorKind::BrokenPipe.into())),
            },
            Waited::Deadline => {
                let stderr = self.kill_all()?.stderr;
                Err(TraceError::TimedOut {
                    program: self.program.clone(),
                    after: self.wall,
                    stderr,
                })
            }
            Waited::Interrupted(interrupted) => {
                self.kill_all()?;
                Err(interrupted.into())
            }
        }
    }

    /// Lets the held call return to the program. Without one, nothing happens.
    pub fn go(&mut self) {
        if std::mem::take(&mut self.held) {
            self.inbox.go();
        }
    }

    /// Kills the command and all that it started, wherever they are, and reaps them. After the end
    /// it tells how that was.
    ///
    /// # Errors
    /// When a process is stuck in the kernel, or tracing had failed.
    pub fn kill_all(&mut self) -> Result<TracedExit, TraceError> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        // The tracer kills the rest when the command has ended, or nobody lets a call go on.
        self.inbox.abandon();
        self.held = false;
        // It fails when the command has ended.
        pidfd_send_signal(&self.leader, Signal::KILL).ok();
        let deadline = Instant::now() + REAP_SECONDS_MAX;
        loop {
            match poll::ready([Some(self.inbox.descriptor())], deadline) {
                Ok([true]) => {}
                Ok([false]) => break,
                Err(error) => return Err(self.failed(error.into())),
            }
            match self.inbox.take() {
                Some(Report::Over(status)) => return self.over(status),
                Some(Report::Returned(_) | Report::Warning(_)) => {}
                None => break,
            }
        }
        // The thread is left to the kernel, with what is stuck in it.
        self.tracer = None;
        Err(TraceError::Unkillable {
            program: self.program.clone(),
        })
    }

    /// Everything has been reaped.
    fn over(
        &mut self,
        status: io::Result<std::process::ExitStatus>,
    ) -> Result<TracedExit, TraceError> {
        if let Some(tracer) = self.tracer.take()
            && let Err(panic) = tracer.join()
        {
            std::panic::resume_unwind(panic);
        }
        self.stdout.drain();
        self.stderr.drain();
        let exit = TracedExit {
            status: status.map_err(|source| self.failed(source))?,
            stdout: self.stdout.tail().clone(),
            stderr: self.stderr.tail().clone(),
            containment: self.containment,
        };
        self.exit = Some(exit.clone());
        Ok(exit)
    }

    /// Collects what is printed meanwhile, so that a command that prints much is not kept from
    /// going on.
    fn wait(&mut self, deadline: Instant) -> io::Result<Waited> {
        loop {
            let [report, interrupted, stdout, stderr] = poll::ready(
                [
                    Some(self.inbox.descriptor()),
                    Some(self.interrupt.wake()),
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
            if interrupted && let Err(interrupted) = self.interrupt.check() {
                return Ok(Waited::Interrupted(interrupted));
            }
            if report {
                return Ok(Waited::Report);
            }
            if Instant::now() >= deadline {
                return Ok(Waited::Deadline);
            }
        }
    }

    fn failed(&self, source: io::Error) -> TraceError {
        TraceError::Trace {
            program: self.program.clone(),
            source,
        }
    }
}

impl Drop for TracedCommand {
    fn drop(&mut self) {
        if self.tracer.is_some() {
            // A process that is stuck in the kernel is left to it.
            self.kill_all().ok();
        }
    }
}

/// What a wait ended with.
enum Waited {
    Report,
    Deadline,
    Interrupted(Interrupted),
}

/// The life of the tracer's thread.
fn run(
    launch: Launch,
    root: &Path,
    decide: Option<Decide>,
    mut reporter: Reporter,
    started: &Sender<Result<Started, StartError>>,
) {
    let program = launch.command.get_program().to_owned();
    let status = std::thread::scope(|scope| {
        // Closed on every way out: then the pid namespace ends.
        let (_keep, done) = channel();
        let mut launched = match launch.start(scope, done) {
            Ok(launched) => launched,
            Err(error) => {
                started.send(Err(error)).ok();
                return None;
            }
        };
        let taken = hand_over(&mut launched);
        let mut tracer = Tracer::new(&launched, root, decide, &mut reporter);
        if taken.is_err() {
            tracer.kill_all();
        }
        let taken = taken.map_err(|source| StartError::Spawn { program, source });
        started.send(taken).ok();
        Some(tracer.trace())
    });
    if let Some(status) = status {
        reporter.over(status);
    }
}

/// What the owner needs of a command.
fn hand_over(launched: &mut Launched) -> io::Result<Started> {
    let missing = || io::Error::from(rustix::io::Errno::BADF);
    let leader = Pid::from_raw(launched.leader.as_raw()).ok_or_else(missing)?;
    let stdout = launched.child.stdout.take().ok_or_else(missing)?;
    let stderr = launched.child.stderr.take().ok_or_else(missing)?;
    Ok(Started {
        leader: pidfd_open(leader, PidfdFlags::empty())?,
        stdout: TailReader::new(OwnedFd::from(stdout))?,
        stderr: TailReader::new(OwnedFd::from(stderr))?,
        containment: match Arc::as_ref(&launched.descendants) {
            Some(_) => Containment::PidNamespace,
            None => Containment::ProcessGroup,
        },
    })
}
