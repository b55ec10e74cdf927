//! Advisory locks: [`Locks`].

use std::io;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::node::Ino;

/// The locks that open file descriptions hold.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    ino: Ino,
    description: u64,
    exclusive: bool,
}

impl Locks {
    /// What flock(2) does. Converting a lock drops it first, so that a conversion that fails
    /// leaves none (flock(2), "not guaranteed to be atomic").
    pub(crate) fn apply(
        &mut self,
        ino: Ino,
        description: u64,
        operation: FlockOperation,
    ) -> io::Result<()> {
        self.release(description);
        let (exclusive, waits) = match operation {
            FlockOperation::Unlock | FlockOperation::NonBlockingUnlock => return Ok(()),
            FlockOperation::LockShared => (false, true),
            FlockOperation::LockExclusive => (true, true),
            FlockOperation::NonBlockingLockShared => (false, false),
            FlockOperation::NonBlockingLockExclusive => (true, false),
        };
        let conflicts = |held: &Held| held.ino == ino && (exclusive || held.exclusive);
        if self.held.iter().any(conflicts) {
            let errno = if waits {
                Errno::DEADLK
            } else {
                Errno::WOULDBLOCK
            };
            return Err(errno.into());
        }
        self.held.push(Held {
            ino,
            description,
            exclusive,
        });
        Ok(())
    }

    /// Drops what a description holds.
    pub(crate) fn release(&mut self, description: u64) {
        self.held.retain(|held| held.description != description);
    }
}
