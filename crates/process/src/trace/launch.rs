//! Starting a command under the tracer.

use std::io;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ScopedJoinHandle;

use nix::libc;
use nix::unistd::Pid;

use super::gate::{Gatekeeper, gate};
use super::sys::{self, Resume, Wait};
use crate::child_setup::{ChildSetup, SetupStep};
use crate::command::CommandSpec;
use crate::descendants::Descendants;
use crate::start::{self, StartError, failed_step_pipe};

/// What is needed to start a command, owned, so that another thread can do it.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) command: Command,
    pub(crate) setup: ChildSetup,
    failed_step: std::os::fd::OwnedFd,
    gatekeeper: Gatekeeper,
}

/// A command that is traced, stopped after its exec.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) child: Child,
    /// Its number where /proc shows it.
    pub(crate) leader: Pid,
    /// Its pid namespace, where this machine allows one.
    pub(crate) descendants: Arc<Option<Descendants>>,
}

impl Launch {
    /// Makes everything ready.
    pub(crate) fn new(spec: &CommandSpec<'_>) -> io::Result<Self> {
        let (gate, gatekeeper) = gate()?;
        let (failed_step, failed_step_writer) = failed_step_pipe()?;
        // The tracer's end is the end of all its tracees, so there is no parent to die with.
        let mut setup = crate::command::setup(spec, true, failed_step_writer)?;
        setup.gate = Some(gate);
        Ok(Self {
            command: crate::command::command(spec),
            setup,
            failed_step,
            gatekeeper,
        })
    }

    /// Starts the command on a thread of `scope`, which keeps its pid namespace until `done` is
    /// closed, and becomes its tracer.
    ///
    /// Two threads are needed: that which forks waits for the exec, before which the other has to
    /// become the tracer. ptrace and wait belong to threads: here the forking thread is the
    /// parent, and the calling one the tracer, that alone waits for anything.
    pub(crate) fn start<'scope>(
        self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        done: Receiver<()>,
    ) -> Result<Launched, StartError> {
        let Self {
            command,
            setup,
            failed_step,
            gatekeeper,
        } = self;
        let program = command.get_program().to_owned();
        let no_child = |source| StartError::Spawn {
            program: program.clone(),
            source,
        };
        let (started, outcome) = channel();
        let forking = std::thread::Builder::new()
            .name("untorn-command".to_owned())
            .spawn_scoped(scope, move || {
                fork(command, setup, &failed_step, &started, &done);
            })
            .map_err(no_child)?;
        let leader = attach(&gatekeeper);
        // A child that is not let pass ends.
        drop(gatekeeper);
        let forked = received(&outcome, forking);
        // Without a tracer the child fails for a reason that is none.
        let leader = leader.map_err(|source| StartError::Setup {
            program: program.clone(),
            step: SetupStep::Tracer,
            source,
        })?;
        let (child, descendants) = forked?;
        let leader = leader.ok_or_else(|| no_child(io::ErrorKind::NotFound.into()))?;
        Ok(Launched {
            child,
            leader,
            descendants,
        })
    }
}

type Forked = Result<(Child, Arc<Option<Descendants>>), StartError>;

/// The life of the forking thread.
fn fork(
    command: Command,
    setup: ChildSetup,
    failed_step: &std::os::fd::OwnedFd,
    started: &Sender<Forked>,
    done: &Receiver<()>,
) {
    let program = command.get_program().to_owned();
    let contained = match Descendants::contain() {
        Ok(descendants) => Arc::new(descendants),
        Err(source) => {
            drop(setup);
            started
                .send(Err(StartError::Spawn { program, source }))
                .ok();
            return;
        }
    };
    let child = start::start(command, setup, failed_step);
    let forked = child.map(|child| (child, Arc::clone(&contained)));
    started.send(forked).ok();
    // Nothing is ever sent: it is closed when everything has been reaped, and the namespace ends
    // then.
    done.recv().ok();
    drop(contained);
}

fn received(outcome: &Receiver<Forked>, forking: ScopedJoinHandle<'_, ()>) -> Forked {
    match outcome.recv() {
        Ok(forked) => forked,
        Err(_) => match forking.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the thread sends an outcome before it ends"),
        },
    }
}

/// Becomes the tracer of the child that comes to the gate, and brings it to the stop after its
/// exec. None when it has ended before that.
fn attach(gatekeeper: &Gatekeeper) -> io::Result<Option<Pid>> {
    let Some(child) = gatekeeper.arrival()? else {
        return Ok(None);
    };
    sys::seize(child)?;
    gatekeeper.open()?;
    // An end before the exec is left to the parent, which learns from it what went wrong.
    while sys::stops_before_it_ends(child)? {
        let Some((_, Wait::Stopped { signal, event })) = sys::wait_one(child)? else {
            return Ok(None);
        };
        match event {
            libc::PTRACE_EVENT_EXEC => return Ok(Some(child)),
            0 => sys::resume(child, Resume::Continue, signal)?,
            _ => sys::resume(child, Resume::Continue, 0)?,
        }
    }
    Ok(None)
}
