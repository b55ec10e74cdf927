//! Ctrl-C and SIGTERM.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::signal::Signal;
use rustix::event::{EventfdFlags, eventfd};

use crate::sys;

/// The request to stop, from Ctrl-C or SIGTERM. Clones share one state.
///
/// The handler only notes the signal and makes a descriptor readable, so that everything that
/// waits wakes up and cleans up in its own way. A second signal does not skip the clean-up; it is
/// counted in [`Interrupt::repeats`]. Children are not affected: they start with default signals.
#[derive(Debug, Clone)]
pub struct Interrupt {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// Number of the first signal, 0 before it.
    first: AtomicI32,
    /// Signals after the first.
    repeats: AtomicU32,
    /// Readable for ever from the first signal on.
    wake: OwnedFd,
}

/// The one that the handler tells.
static INSTALLED: OnceLock<Interrupt> = OnceLock::new();

impl Interrupt {
    /// Has Ctrl-C and SIGTERM noted here from now on. Called again, it gives the same one.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn install() -> io::Result<Self> {
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let fresh = Self::detached()?;
        // The state has to be there before the first signal can be.
        let installed = INSTALLED.get_or_init(|| fresh).clone();
        for signal in [InterruptSignal::Interrupt, InterruptSignal::Terminate] {
            sys::install_handler(signal.to_nix())?;
        }
        Ok(installed)
    }

    /// One that no signal reaches, only [`Interrupt::trigger`]: for tests, and for what must run
    /// to its end.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn detached() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            state: Arc::new(State {
                first: AtomicI32::new(0),
                repeats: AtomicU32::new(0),
                wake,
            }),
        })
    }

    /// Does what the arrival of the signal does.
    pub fn trigger(&self, signal: InterruptSignal) {
        self.note(signal.to_nix() as i32);
    }

    /// Fails once a signal has arrived.
    ///
    /// # Errors
    /// With the first signal.
    pub fn check(&self) -> Result<(), Interrupted> {
        match self.signal() {
            Some(signal) => Err(Interrupted { signal }),
            None => Ok(()),
        }
    }

    /// The first signal that arrived.
    pub fn signal(&self) -> Option<InterruptSignal> {
        InterruptSignal::from_number(self.state.first.load(Ordering::SeqCst))
    }

    /// How many more arrived after the first: somebody is impatient.
    pub fn repeats(&self) -> u32 {
        self.state.repeats.load(Ordering::SeqCst)
    }

    /// A descriptor that is readable from the first signal on, for poll(2). It is never read.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.state.wake.as_fd()
    }

    /// Async-signal-safe: atomics and one write(2), by rustix, which does not use errno.
    fn note(&self, number: i32) {
        let first =
            self.state
                .first
                .compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err() {
            self.state.repeats.fetch_add(1, Ordering::SeqCst);
        }
        // It fails only when the counter is full, and then it is readable already.
        rustix::io::write(&self.state.wake, &1_u64.to_ne_bytes()).ok();
    }
}

/// Called by the signal handler.
pub(crate) fn note(number: i32) {
    if let Some(installed) = INSTALLED.get() {
        installed.note(number);
    }
}

/// A signal that asks to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptSignal {
    /// SIGINT, from Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl InterruptSignal {
    /// The number, to which a shell adds 128 for its exit code.
    pub fn number(self) -> i32 {
        self.to_nix() as i32
    }

    fn to_nix(self) -> Signal {
        match self {
            Self::Interrupt => Signal::SIGINT,
            Self::Terminate => Signal::SIGTERM,
        }
    }

    fn from_number(number: i32) -> Option<Self> {
        [Self::Interrupt, Self::Terminate]
            .into_iter()
            .find(|signal| signal.number() == number)
    }
}

impl fmt::Display for InterruptSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_nix().as_str())
    }
}

/// Somebody asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by {signal}")]
pub struct Interrupted {
    /// The first signal that arrived.
    pub signal: InterruptSignal,
}

#[cfg(test)]
mod tests {
    use super::{Interrupt, InterruptSignal};

    #[test]
    fn the_first_signal_stays_and_further_ones_are_counted() {
        let interrupt = Interrupt::detached().unwrap();
        let clone = interrupt.clone();
        assert!(interrupt.check().is_ok());
        interrupt.trigger(InterruptSignal::Terminate);
        interrupt.trigger(InterruptSignal::Interrupt);
        let error = clone.check().unwrap_err();
        assert_eq!(error.to_string(), "interrupted by SIGTERM");
        assert_eq!(clone.repeats(), 1);
    }
}
