//! The way between the tracer's thread and its owner.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use untorn_spec::Syscall;

use super::describe::Described;
use super::event::TraceWarning;

/// What the tracer says.
#[derive(Debug)]
pub(crate) enum Report {
    Returned(Syscall),
    Warning(TraceWarning),
    /// Everything has ended; nothing is to come. The status is that of the command itself.
    Over(io::Result<ExitStatus>),
}

/// The tracer's side.
#[derive(Debug)]
pub(crate) struct Reporter {
    reports: Sender<Report>,
    go: Receiver<()>,
    ready: Arc<OwnedFd>,
    warned: BTreeSet<TraceWarning>,
}

/// The owner's side. When it is dropped, nothing is held any more.
#[derive(Debug)]
pub(crate) struct Inbox {
    reports: Receiver<Report>,
    /// None once nothing may go on any more.
    go: Option<Sender<()>>,
    ready: Arc<OwnedFd>,
}

/// Somebody who could let a held call go on is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// Both sides.
pub(crate) fn reports() -> io::Result<(Reporter, Inbox)> {
    let ready = Arc::new(eventfd(
        0,
        EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE,
    )?);
    let (reports, received) = channel();
    let (go, gone) = channel();
    let reporter = Reporter {
        reports,
        go: gone,
        ready: Arc::clone(&ready),
        warned: BTreeSet::new(),
    };
    let inbox = Inbox {
        reports: received,
        go: Some(go),
        ready,
    };
    Ok((reporter, inbox))
}

impl Reporter {
    fn send(&self, report: Report) -> Result<(), Abandoned> {
        self.reports.send(report).map_err(|_gone| Abandoned)?;
        // The counter is far from full: at most one report in it is held.
        rustix::io::write(&self.ready, &1_u64.to_ne_bytes()).ok();
        Ok(())
    }

    /// Tells of a call and waits until it may go on.
    pub(crate) fn hold(&self, call: Syscall) -> Result<(), Abandoned> {
        self.send(Report::Returned(call))?;
        self.go.recv().map_err(|_gone| Abandoned)
    }

    /// Tells what is not seen, once.
    pub(crate) fn warn(&mut self, warning: TraceWarning) {
        if self.warned.insert(warning.clone()) {
            // When nobody listens, the next hold finds out.
            self.send(Report::Warning(warning)).ok();
        }
    }

    /// The last word.
    pub(crate) fn over(&self, status: io::Result<ExitStatus>) {
        // The owner may have given up waiting.
        self.send(Report::Over(status)).ok();
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // Whoever waits is woken, also when the tracer's thread has panicked.
        rustix::io::write(&self.ready, &1_u64.to_ne_bytes()).ok();
    }
}

impl Inbox {
    /// Readable when there is a report.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// The next report, when there is one. None after the last.
    pub(crate) fn take(&self) -> Option<Report> {
        let mut count = [0; 8];
        rustix::io::read(&self.ready, &mut count).ok();
        self.reports.recv().ok()
    }

    /// Lets the held call go on.
    pub(crate) fn go(&self) {
        if let Some(go) = &self.go {
            // A tracer that is gone has said so in its last report.
            go.send(()).ok();
        }
    }

    /// Has the tracer kill everything instead of holding anything.
    pub(crate) fn abandon(&mut self) {
        self.go = None;
    }
}

/// Gives calls their index and ordinal.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    all: u32,
    by_word: BTreeMap<&'static str, u32>,
}

impl Counter {
    /// The call at its place in the trace.
    pub(crate) fn number(&mut self, word: &'static str, described: &Described) -> Syscall {
        let index = self.all;
        self.all += 1;
        let ordinal = self.by_word.entry(word).or_insert(0);
        *ordinal += 1;
        let name = format!("{word}#{ordinal}");
        let second = described.second_path.as_deref();
        let text = [name.as_str(), &described.detail, &described.path]
            .into_iter()
            .chain(second)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        Syscall {
            index,
            name,
            text,
            errno: None,
        }
    }
}
