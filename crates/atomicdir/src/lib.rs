//! Publish a directory atomically and durably.
//!
//! [`publish`] replaces a whole directory by one `renameat2(RENAME_EXCHANGE)`: a reader, a crash
//! or a power cut finds all of the old tree or all of the new one. When it returns `Ok`, the new
//! one is durable.
//!
//! ```no_run
//! use std::ffi::OsStr;
//! use std::path::Path;
//! use untorn_fs::OsFs;
//!
//! let parent = OsFs.open_dir(Path::new("/etc/kubernetes"))?;
//! let mut tree = atomicdir::Tree::new(0o755);
//! tree.file("tls.crt", 0o644, "certificate").file("tls.key", 0o600, "key");
//! let options = atomicdir::Options::default();
//! atomicdir::publish(&OsFs, &parent, OsStr::new("serving"), &tree, &options)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What happens, in order
//! 1. Names, modes and the target's type are checked. Nothing has been touched.
//! 2. Leftovers of dead writers are removed ([`sweep`]).
//! 3. A fresh, exclusive staging directory is made beside the target and filled; modes are set
//!    exactly, whatever the umask.
//! 4. Everything staged is made durable ([`Durability`] says how).
//! 5. Staging and target are exchanged, or staging is renamed to the missing target without
//!    replacing anything. This is the only step a reader can see.
//! 6. The parent is fsynced.
//! 7. The old tree, which now has the staging name, is removed.
//!
//! Step 4 before step 5, because no file system here writes data back at an exchange: without it
//! a power cut leaves empty files. Step 6 before step 7, because until the exchange is durable
//! the old tree is what a power cut returns to.
//!
//! # Who may remove a staging directory
//! A living writer holds a **shared** flock on its staging directory, and on the live directory
//! from before the exchange until it is done with it. A sweeper needs the **exclusive** lock and
//! does not wait for it, so it passes by what is in use; the kernel drops the locks of the dead.
//! The writers' locks are shared, so that writers never wait for one another: the live directory
//! is often the staging directory of a writer that is still finishing, and an exclusive lock
//! would queue them.
//!
//! Two races are left and both are harmless:
//! * Between `mkdirat` and the lock a sweeper can take a new staging directory. The writer then
//!   fails to lock it, or finds after locking that the name is another file's, and takes a fresh
//!   name.
//! * Between a writer's last look at the target and its exchange another writer can exchange, so
//!   that what is swapped out is not what was locked. A sweeper may then take it at once. It
//!   loses nothing, because a sweeper fsyncs the parent before it removes anything: whatever had
//!   a staging name then has it durably, and is durably not the target.
//!
//! # What is to come, and where it fits
//! * Doing nothing when the target is equal already: [`Tree`] compares names, contents and modes,
//!   and [`Tree::load`] reads the live one.
//! * Owner, xattrs, label: fields of [`Entry`] and [`Tree`], set in `write` before the mode.
//! * Removing a target, replacing a single file or symlink: the same staging names, with another
//!   step 5.
//! * A grace period for readers between steps 6 and 7, a lock between writers, a fallback for
//!   file systems without exchange: fields of [`Options`].
//! * A reader that never takes a mixed pair: `load` on a descriptor, with retries.
//!
//! The crate calls the system only through [`untorn_fs::Fs`], so that the harness can put every
//! call under test. It knows nothing of the harness, and logs nothing.

mod call;
mod error;
mod exchange;
mod load;
mod name;
mod options;
mod publish;
mod remove;
mod staging;
mod sweep;
mod tree;
mod write;

pub use call::CallError;
pub use error::{CleanupError, PublishError, Reason, SweepError, TargetError};
pub use load::LoadError;
pub use name::{NAME_BYTES_MAX, NameError, TARGET_NAME_BYTES_MAX, is_staging_name};
pub use options::{Durability, Options};
pub use publish::{Published, publish};
pub use sweep::{Swept, sweep};
pub use tree::{Entry, Tree, TreeError, TreeProblem};
