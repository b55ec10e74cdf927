//! What can go wrong with devices, images and mounts.

use std::io;
use std::path::{Path, PathBuf};

/// Why a device could not be made or used. Nothing stays mounted or attached after any of them.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
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
    /// A private mount namespace was refused.
    #[error(
        "cannot make a private mount namespace: {0}; run as root, or in a container with CAP_SYS_ADMIN"
    )]
    Namespace(io::Error),
    /// There is no free loop device, and the kernel makes no more.
    #[error(
        "no loop device is free: {0}; see `losetup -a`, and `untorn doctor --clean` for those that a killed run left"
    )]
    NoLoopDevice(io::Error),
    /// A program that makes file systems is not installed.
    #[error("{program} is not installed; `scripts/setup` or `apt-get install {package}` brings it")]
    NoMkfs {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Making a file system failed.
    #[error("{command} failed ({status}): {stderr}")]
    Mkfs {
        /// The command line.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The end of what it printed on stderr.
        stderr: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl DeviceError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
