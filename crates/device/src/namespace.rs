//! Mount namespaces of single threads.

use std::io;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Puts the calling thread alone into a mount namespace in which nothing spreads. What it mounts
/// is gone when the thread has ended and nothing else uses it.
pub(crate) fn enter_private_namespace() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    Ok(())
}
