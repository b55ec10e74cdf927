//! What a child may use at most.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

/// What a child may use at most. Everything but the time is unlimited when it is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time on the wall. For a held subject only the time counts in which it runs, not the time
    /// for which the harness holds it.
    pub wall: Duration,
    /// Processor time in seconds; the kernel kills what goes beyond.
    pub cpu_seconds: Option<u64>,
    /// Address space in bytes.
    pub address_space_bytes: Option<u64>,
    /// Size of the largest file that may be written, in bytes.
    pub file_size_bytes: Option<u64>,
}

impl Default for Limits {
    /// A minute, and nothing else.
    fn default() -> Self {
        Self {
            wall: Duration::from_mins(1),
            cpu_seconds: None,
            address_space_bytes: None,
            file_size_bytes: None,
        }
    }
}

impl Limits {
    /// Sets the limits of the calling process. Async-signal-safe.
    ///
    /// A core file would be written into the directory under test, so there never is one.
    pub(crate) fn apply_to_self(&self) -> rustix::io::Result<()> {
        let limits = [
            (Resource::Core, Some(0)),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::As, self.address_space_bytes),
            (Resource::Fsize, self.file_size_bytes),
        ];
        for (resource, limit) in limits {
            if limit.is_some() {
                let limit = Rlimit {
                    current: limit,
                    maximum: limit,
                };
                setrlimit(resource, limit)?;
            }
        }
        Ok(())
    }
}
