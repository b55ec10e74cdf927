//! What can go wrong with kernels and guests.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use untorn_process::Interrupted;

/// Why a guest could not be started, or did not come to its end. Nothing is left running after any
/// of them.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// A call on a path failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no such kernel.
    #[error("there is no kernel `{name}`: {help}")]
    UnknownKernel {
        /// The name that was given.
        name: String,
        /// What helps.
        help: String,
    },
    /// A file is no kernel that can be booted here.
    #[error("{} cannot be booted: {reason}", path.display())]
    NotAKernel {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// A module is needed and not there.
    #[error("this kernel has no module {module}{needed_by}")]
    NoModule {
        /// Its name.
        module: String,
        /// Empty, or who needs it.
        needed_by: String,
    },
    /// A file is no module, or a damaged one.
    #[error("{} is no kernel module: {reason}", path.display())]
    NotAModule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The emulator is not installed.
    #[error(
        "{program} is not installed; `scripts/setup --vm` or `apt-get install qemu-system-x86` brings it"
    )]
    NoQemu {
        /// The emulator.
        program: String,
    },
    /// This program cannot be a guest's init.
    #[error("{what}; `scripts/build-static` makes one, and --init or UNTORN_STATIC names it")]
    NoStaticBinary {
        /// Why.
        what: String,
    },
    /// The guest ended before its work was done.
    #[error("the guest {death}")]
    Died {
        /// How.
        death: Death,
    },
    /// The guest and this program do not understand each other.
    #[error("the guest sent what cannot be understood: {0}")]
    Protocol(String),
    /// Somebody asked to stop.
    #[error("{0}")]
    Interrupted(#[from] Interrupted),
}

impl VmError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// How a guest died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// What was seen of it.
    pub kind: DeathKind,
    /// What the console told of a panic, or its last lines.
    pub console: String,
}

/// What was seen of a guest's death.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeathKind {
    /// The kernel panicked.
    Panicked,
    /// The emulator ended.
    Ended(String),
    /// Nothing was heard for so long, and it was killed.
    Silent(Duration),
    /// Its init gave up.
    Failed(String),
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            DeathKind::Panicked => f.write_str("panicked")?,
            DeathKind::Ended(how) => write!(f, "ended unexpectedly ({how})")?,
            DeathKind::Silent(limit) => write!(
                f,
                "was killed: nothing was heard of it for {} s",
                limit.as_secs()
            )?,
            DeathKind::Failed(why) => write!(f, "gave up: {why}")?,
        }
        if !self.console.is_empty() {
            write!(f, "; its console:\n{}", self.console)?;
        }
        Ok(())
    }
}
