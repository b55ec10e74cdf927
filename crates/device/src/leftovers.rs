//! What a killed harness left behind.
//!
//! The kernel cleans up after a harness that dies, however it dies: FUSE mounts, loop devices and
//! agents go with the process that holds them. What can stay is a directory for temporary files,
//! and, when a process waits in the kernel for a disk whose server is dead, that process with its
//! disk.
//!
//! * [`scratch_dir`] makes the directory that a harness works in, with a note of whose it is.
//! * [`find`] lists what is certainly ours and certainly nobody's any more; whatever is in doubt
//!   is left out.
//! * [`remove`] looks again before it touches anything.

mod disk;
mod process;
mod scratch;

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use process::ProcessId;
pub use scratch::{SCRATCH_PREFIX, scratch_dir};

/// Something that a killed harness left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// A disk agent or a subject whose harness is dead.
    Process {
        /// Which one.
        id: ProcessId,
        /// Its command line.
        command: String,
    },
    /// A disk whose server is dead or dying.
    Disk {
        /// Number of its FUSE connection.
        connection: u32,
        /// The loop device over it.
        device: PathBuf,
    },
    /// A directory of a harness that is dead.
    Scratch {
        /// The directory.
        path: PathBuf,
    },
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { id, command } => write!(f, "process {} ({command})", id.pid),
            Self::Disk { connection, device } => write!(
                f,
                "loop device {} over FUSE connection {connection}",
                device.display()
            ),
            Self::Scratch { path } => write!(f, "directory {}", path.display()),
        }
    }
}

/// Finds what a killed harness left. Without root, disks are not looked at.
pub fn find() -> Vec<Leftover> {
    let mut found = process::find();
    found.extend(disk::find());
    found.extend(scratch::find(&std::env::temp_dir()));
    found
}

/// Removes them, and tells for each how that went.
///
/// What is no leftover any more, or has gone by itself, is left alone without an error.
pub fn remove(leftovers: &[Leftover]) -> Vec<io::Result<()>> {
    // A process may wait for a disk, and a disk for a process: both are told first, then waited
    // for.
    let told: Vec<io::Result<()>> = leftovers
        .iter()
        .map(|leftover| match leftover {
            Leftover::Process { id, .. } => process::kill(*id),
            Leftover::Disk { connection, .. } => disk::abort(*connection),
            Leftover::Scratch { path } => scratch::remove(path),
        })
        .collect();
    let finished = leftovers.iter().zip(told).map(|(leftover, told)| {
        told?;
        match leftover {
            Leftover::Process { id, .. } => process::wait_until_gone(*id),
            Leftover::Disk { connection, device } => disk::detach(device, *connection),
            Leftover::Scratch { .. } => Ok(()),
        }
    });
    finished.collect()
}
