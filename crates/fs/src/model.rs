//! A file system in memory that can lose power: [`ModelFs`].
//!
//! Live, it answers as Linux answers root. At a crash it forgets what was not made durable, and
//! every forgetting that a [`Persistence`] permits can be had: [`CrashImage`] says which choices
//! there are, and a [`Chooser`] makes those, and only those, that somebody looks at afterwards.
//! It needs no privileges and no disk, so any test can use it.
//!
//! # What a crash may do
//! Every call leaves *steps* in a history: a change of names, of a file's attributes (mode, owner,
//! extended attributes), of a file's size, of one page of 4096 bytes of it. A write leaves a step
//! for each page and one for the size after each page. A crash keeps some steps and loses others.
//!
//! | [`Persistence`] | names | attributes | sizes and pages |
//! | --- | --- | --- | --- |
//! | `Posix` | any subset, in order on each name | each file's any version | each its own version, independently |
//! | `Ordered` | a prefix of all metadata steps | the same prefix | each its own version, independently |
//! | `Strict` | a prefix of all steps | the same prefix | the same prefix |
//!
//! A *version* is what the thing was when it was last made durable, or became by any later step.
//! A page that never became durable is zeros; zeros also stand beyond a size.
//!
//! # What makes steps durable
//! * `fsync` of a file: its attributes, size and pages (fsync(2), and fsync in POSIX.1-2024). Not
//!   its name: that takes an fsync of the directory as well (fsync(2)).
//! * `fdatasync`: the same without the attributes.
//! * `fsync` of a directory: its own attributes and every change of names in it.
//! * `syncfs`: everything (syncfs(2)).
//! * `sync_file_range`: nothing ("does not write out the file's metadata", `sync_file_range(2)`).
//! * [`neighbor_commit`](ModelFs::neighbor_commit): nothing under `Posix`, all metadata steps under
//!   `Ordered`, everything under `Strict`: somebody else's file is created and fsynced.
//! * Under `Ordered` and `Strict`, also all that comes before a durable step in the order.
//!
//! # What a crash may not do
//! * *Split a change of names.* A rename, plain, without replacing or exchanging, is one step even
//!   where it touches two directories: both names change or neither does. So an `fsync` of either
//!   directory makes the whole step durable. That is what ext4, xfs and btrfs do, where it is one
//!   transaction (`shared/design/kernel-facts.md`, section 3); ext4 without a
//!   journal does not, and is outside of this model.
//! * *Reorder the changes of one name.* A step is kept only if the earlier ones on the same names
//!   are. For one name alone that changes nothing to be seen; for two it follows from steps being
//!   indivisible, since the name's last change tells that the earlier ones were made. So a
//!   directory never has two names, and a file none that was not its own.
//! * *Show a file that was never made.* A name that is kept leads to a file of the type and with
//!   the attributes it was created with, and a symlink to its whole text.
//! * *Invent bytes*, tear a page, or show what another file holds.
//! * *Lose what is durable*, except by a later step that undoes it.
//!
//! These make `Posix` as weak as it can be while no state is one that no kernel could leave:
//! splitting renames, as other models do, accuses correct programs. Each state of `Strict` is one
//! of `Ordered`, and each of `Ordered` one of `Posix`; a test holds that against random histories.
//!
//! What real systems do lies between: ext4 with a journal, xfs and btrfs after a commit keep
//! metadata in order, and delayed allocation leaves new files with size 0 however old their names
//! are, which is why sizes count as data (kernel-facts, 1).
//!
//! `Posix` permits what no journal would: a file moved to another directory and lost because only
//! the removal of the old directory was kept, or two directories moved into each other and lost
//! together. POSIX promises neither.
//!
//! # After an fsync that failed
//! Linux may count the pages as clean, so that the next fsync succeeds with the data not on the
//! disk (fsync(2), "NOTES"; "Can applications recover from fsync failures?", ATC 2020).
//! [`lose_dirty_data`](ModelFs::lose_dirty_data) brings that about: only writing anew helps.
//!
//! # Simplifications
//! * The caller is root: no permission is refused. There is one mount and no quota.
//! * Inode numbers are never used again. Times and link counts are not kept.
//! * A `flock` that would have to wait fails with `EDEADLK`: nobody could wake the caller up.

mod base;
mod calls;
mod image;
mod key;
mod lock;
mod log;
mod names;
mod node;
mod pages;
mod path;
mod rename;
mod settled;
mod state;
mod survivor;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::Path;
use std::rc::Rc;

pub use calls::ModelFd;
pub use image::{ChoiceInfo, CrashImage};
pub use key::ImageKey;
pub use survivor::Chooser;

use node::ROOT;
use state::State;

/// What a crash may keep and lose; see the [module documentation](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Persistence {
    /// Nothing but what fsync promises.
    Posix,
    /// Names and attributes in order; sizes and data whenever they like.
    Ordered,
    /// Everything in order.
    Strict,
}

impl Persistence {
    /// All three, the weakest first.
    pub const ALL: [Self; 3] = [Self::Posix, Self::Ordered, Self::Strict];
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Posix => "posix",
            Self::Ordered => "ordered",
            Self::Strict => "strict",
        })
    }
}

/// A file system in memory that can lose power; see the [module documentation](self).
///
/// Clones are handles of the same file system, for use in one thread.
///
/// ```
/// use std::ffi::OsStr;
/// use untorn_fs::{Fs, ModelFs, OFlags, Persistence};
///
/// let fs = ModelFs::new();
/// let root = fs.root();
/// let file = fs.openat(&root, OsStr::new("f"), OFlags::CREATE | OFlags::WRONLY, 0o644)?;
/// fs.write(&file, b"hello")?;
/// fs.fsync(&root)?;
///
/// // The name is durable. Size and content are not: nobody has fsynced the file.
/// let worst = fs.crash(Persistence::Posix, |_id, _arity| 0);
/// assert_eq!(worst.fstatat(&worst.root(), OsStr::new("f"))?.size, 0);
/// let best = fs.crash(Persistence::Posix, |_id, arity| arity - 1);
/// assert_eq!(best.fstatat(&best.root(), OsStr::new("f"))?.size, 5);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct ModelFs {
    shared: Rc<Shared>,
}

struct Shared {
    state: RefCell<State>,
}

impl fmt::Debug for ModelFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFs").finish_non_exhaustive()
    }
}

impl Default for ModelFs {
    fn default() -> Self {
        Self::new()
    }
}

impl ModelFs {
    /// An empty file system with a umask of 022. Its root directory has mode 0755.
    pub fn new() -> Self {
        Self::of(State::new())
    }

    fn of(state: State) -> Self {
        Self {
            shared: Rc::new(Shared {
                state: RefCell::new(state),
            }),
        }
    }

    /// The root directory, open for reading.
    pub fn root(&self) -> ModelFd {
        self.open_directory(ROOT)
    }

    /// Sets the umask of the process.
    pub fn set_umask(&self, umask: u32) {
        self.shared.state.borrow_mut().umask = umask & 0o777;
    }

    /// Makes everything durable and forgets how it came about, as unmounting does.
    pub fn settle(&self) {
        self.shared.state.borrow_mut().settle();
    }

    /// Lets somebody else create a file on the same file system and fsync it.
    pub fn neighbor_commit(&self) {
        self.shared.state.borrow_mut().neighbor_commit();
    }

    /// Gives up what was written to a file and not yet made durable, as Linux does when writing it
    /// back fails: reads still show it, a later fsync succeeds without it, and a crash may lose it.
    ///
    /// # Errors
    /// `ENOENT` if the path, relative to the root, leads to nothing.
    pub fn lose_dirty_data(&self, path: &Path) -> io::Result<()> {
        let mut state = self.shared.state.borrow_mut();
        let ino = state.find(ROOT, path.as_os_str(), false)?;
        state.log.lose_data(ino);
        Ok(())
    }

    /// The same for every file.
    pub fn lose_all_dirty_data(&self) {
        self.shared.state.borrow_mut().log.lose_all_data();
    }

    /// All that a power cut at this moment may leave. Descriptors and locks are not in it.
    pub fn crash_image(&self, persistence: Persistence) -> CrashImage {
        CrashImage::new(&self.shared.state.borrow(), persistence)
    }

    /// Tells whether an image made now would be one that is known already.
    pub fn image_key(&self, persistence: Persistence) -> ImageKey {
        ImageKey::new(&self.shared.state.borrow(), persistence)
    }

    /// The file system after a power cut at this moment, as the chooser decides. This one goes on
    /// as if nothing had happened.
    #[must_use]
    pub fn crash(&self, persistence: Persistence, chooser: impl Chooser + 'static) -> Self {
        self.crash_image(persistence).recover(Rc::new(chooser))
    }
}
