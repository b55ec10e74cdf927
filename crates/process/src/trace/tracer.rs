//! The life of a tracer's thread: it alone waits for tracees and lets them go on.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::arch::AUDIT_ARCH;
use super::call::Call;
use super::describe::describe;
use super::event::TraceWarning;
use super::fault::Decide;
use super::filter::{FOREIGN, call_of};
use super::in_flight::{CallId, InFlight, Outcome};
use super::launch::Launched;
use super::path::{Root, View};
use super::report::{Abandoned, Counter, Reporter};
use super::sys::{self, CALL_STOP, CallInfo, EVENT_STOP, Resume, Wait};

/// Follows a command and all that it starts.
pub(crate) struct Tracer<'a> {
    launched: &'a Launched,
    root: Root,
    decide: Option<Decide>,
    reporter: &'a mut Reporter,
    counter: Counter,
    threads: BTreeMap<Pid, Thread>,
    /// How the command ended; from then on everything is being killed.
    ending: bool,
    status: Option<i32>,
}

/// What is remembered of a thread between its stops.
#[derive(Debug, Default)]
struct Thread {
    /// The call that it is in.
    in_flight: Option<InFlight>,
    /// A call that a signal broke into, and which the kernel may begin again.
    interrupted: Option<Box<InFlight>>,
}

impl<'a> Tracer<'a> {
    /// The command is stopped after its exec, in its mount namespace: now its root can be looked
    /// up.
    pub(crate) fn new(
        launched: &'a Launched,
        root: &Path,
        decide: Option<Decide>,
        reporter: &'a mut Reporter,
    ) -> Self {
        let view = View {
            thread: launched.leader,
        };
        Self {
            launched,
            root: Root::new(view, root),
            decide,
            reporter,
            counter: Counter::default(),
            threads: BTreeMap::from([(launched.leader, Thread::default())]),
            ending: false,
            status: None,
        }
    }

    /// Traces to the end: that of the command, after which the rest is killed. When this returns,
    /// every tracee has been reaped.
    pub(crate) fn trace(&mut self) -> io::Result<ExitStatus> {
        let mut failed = sys::resume(self.launched.leader, Resume::Continue, 0).err();
        loop {
            if failed.is_some() && !self.ending {
                self.kill_all();
            }
            let handled = match sys::wait_any()? {
                None => break,
                Some((thread, Wait::Ended(status))) => {
                    self.ended(thread, status);
                    Ok(())
                }
                Some((thread, Wait::Stopped { .. })) if self.ending => {
                    // It was started when the others were killed.
                    kill(thread, Signal::SIGKILL).ok();
                    Ok(())
                }
                Some((thread, Wait::Stopped { signal, event })) => {
                    self.stopped(thread, signal, event)
                }
            };
            match handled {
                // Killed while it was stopped; its end is still to come.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => failed = Some(error),
                Ok(()) => {}
            }
        }
        match (failed, self.status) {
            (Some(error), _) => Err(error),
            (None, Some(status)) => Ok(ExitStatus::from_raw(status)),
            (None, None) => Err(rustix::io::Errno::CHILD.into()),
        }
    }

    /// Kills everything, as far as it is known; the rest is killed when it is seen first.
    pub(crate) fn kill_all(&mut self) {
        self.ending = true;
        match self.launched.descendants.as_ref() {
            Some(descendants) => descendants.kill(),
            None => {
                for thread in self.threads.keys() {
                    // Not reaped yet, so the number is its own.
                    kill(*thread, Signal::SIGKILL).ok();
                }
            }
        }
        // It is in the namespace, but not a child of the one whose end is that of the namespace.
        if self.status.is_none() {
            kill(self.launched.leader, Signal::SIGKILL).ok();
        }
    }

    fn ended(&mut self, thread: Pid, status: i32) {
        let state = self.threads.remove(&thread);
        if thread == self.launched.leader {
            self.status = Some(status);
        }
        if self.ending {
            return;
        }
        if thread == self.launched.leader {
            self.kill_all();
        } else if let Some(call) = state.and_then(|state| state.interrupted) {
            self.report(call.broken_off());
        }
    }

    fn stopped(&mut self, thread: Pid, signal: i32, event: i32) -> io::Result<()> {
        self.threads.entry(thread).or_default();
        match event {
            0 if signal == CALL_STOP => {
                self.call_ended(thread)?;
                sys::resume(thread, Resume::Continue, 0)
            }
            // A signal is on its way to the thread; it is passed on.
            0 => sys::resume(thread, Resume::Continue, signal),
            libc::PTRACE_EVENT_SECCOMP => {
                let how = self.call_begins(thread)?;
                sys::resume(thread, how, 0)
            }
            libc::PTRACE_EVENT_EXEC => {
                // A thread that execs takes over the number of its process.
                let former = i32::try_from(sys::event_message(thread)?).map(Pid::from_raw);
                if let Ok(former) = former
                    && former != thread
                {
                    self.threads.remove(&former);
                }
                self.threads.insert(thread, Thread::default());
                sys::resume(thread, Resume::Continue, 0)
            }
            EVENT_STOP if is_stop_signal(signal) => sys::resume(thread, Resume::Listen, 0),
            // A new tracee, or one that has made a new one.
            _ => sys::resume(thread, Resume::Continue, 0),
        }
    }

    /// The filter stopped the thread at a call, which is not made yet.
    fn call_begins(&mut self, thread: Pid) -> io::Result<Resume> {
        let CallInfo::Begun {
            architecture,
            instruction,
            number,
            arguments,
            data,
        } = sys::call_info(thread)?
        else {
            return Ok(Resume::Continue);
        };
        if architecture != AUDIT_ARCH || data == FOREIGN {
            self.reporter.warn(TraceWarning::ForeignProgram);
            return Ok(Resume::Continue);
        }
        let Some(call) = call_of(number) else {
            return Ok(Resume::Continue);
        };
        let id = CallId {
            instruction,
            number,
            arguments,
        };
        let call = match self.state(thread).interrupted.take() {
            Some(interrupted) if interrupted.id == id => Some(*interrupted),
            Some(interrupted) => {
                self.report(interrupted.broken_off());
                self.new_call(thread, call, id)
            }
            None => self.new_call(thread, call, id),
        };
        let Some(mut call) = call else {
            return Ok(Resume::Continue);
        };
        if call.begin(thread)? == super::in_flight::Begun::NotDropped {
            let name = call.syscall.name.clone();
            self.reporter.warn(TraceWarning::NotDropped(name));
        }
        self.state(thread).in_flight = Some(call);
        Ok(Resume::ToCallEnd)
    }

    /// The call, if it is one that counts.
    fn new_call(&mut self, thread: Pid, call: Call, id: CallId) -> Option<InFlight> {
        match call {
            Call::IoUringSetup => self.reporter.warn(TraceWarning::IoUring),
            Call::IoSetup => self.reporter.warn(TraceWarning::Aio),
            _ => {}
        }
        let described = describe(call, id.arguments, View { thread }, &self.root)?;
        if call == Call::Mmap {
            self.reporter
                .warn(TraceWarning::SharedMapping(described.path));
            return None;
        }
        let syscall = self.counter.number(call.word(), &described);
        let decision = match &mut self.decide {
            Some(decide) => decide(&syscall),
            None => super::fault::Decision::default(),
        };
        Some(InFlight::new(
            call,
            id,
            syscall,
            decision,
            described.success,
        ))
    }

    /// A call that counts is over; its thread is held until the owner lets it go on.
    fn call_ended(&mut self, thread: Pid) -> io::Result<()> {
        let CallInfo::Ended { result } = sys::call_info(thread)? else {
            return Ok(());
        };
        let Some(call) = self.state(thread).in_flight.take() else {
            return Ok(());
        };
        match call.end(thread, result)? {
            Outcome::Interrupted(call) => self.state(thread).interrupted = Some(call),
            Outcome::Returned(syscall) => self.report(syscall),
        }
        Ok(())
    }

    fn report(&mut self, syscall: untorn_spec::Syscall) {
        if self.reporter.hold(syscall) == Err(Abandoned) {
            self.kill_all();
        }
    }

    fn state(&mut self, thread: Pid) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }
}

fn is_stop_signal(signal: i32) -> bool {
    [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
}
