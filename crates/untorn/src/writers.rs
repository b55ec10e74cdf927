//! The built-in writers, right and wrong ones.
//!
//! A wrong one is a control: it makes a mistake that was found in the wild, and nothing else wrong.
//! All of them loop on short writes, set modes exactly, and end in the new tree with no leftovers
//! when nothing disturbs them. So what a crash state shows is that one mistake.
//!
//! [`BuiltinWriter`] is the table of them, [`Job`] what each is asked to do.

mod atomic;
mod error;
mod exchange_without_fsync;
mod exchange_without_parent_fsync;
mod per_file_fsync;
mod per_file_without_fsync;
mod remove_then_write;
mod steps;
mod tree;
mod two_renames;

#[cfg(test)]
mod tests;

use std::ffi::OsStr;

use atomicdir::Tree;
use untorn_fs::Fs;
use untorn_spec::WriterInfo;

pub use error::WriteError;
pub use tree::tree_from;

/// What a writer is asked to do: to make a tree the directory `target` in `parent`.
#[derive(Debug)]
pub struct Job<'a, F: Fs> {
    /// Through which every call is made.
    pub fs: &'a F,
    /// The directory that holds the target.
    pub parent: &'a F::Fd,
    /// Name of the target in it.
    pub target: &'a OsStr,
    /// The new tree; see [`tree_from`].
    pub tree: &'a Tree,
    /// Seed of all that the writer draws: the random parts of names.
    pub seed: u64,
}

/// The writer says that the new tree is published and durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "cleanup may have failed although the tree is published"]
pub struct Published {
    /// What could not be removed although the tree is published.
    pub complaints: Vec<String>,
}

impl Published {
    /// Nothing was left behind.
    const CLEANLY: Self = Self {
        complaints: Vec::new(),
    };
}

/// A built-in writer. The names are those of [`untorn_spec::WRITERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinWriter {
    /// The sync core.
    Atomicdir,
    /// The sync core with syncfs.
    AtomicdirSyncfs,
    /// Wrong: nothing is synced.
    ExchangeWithoutFsync,
    /// Wrong: the exchange is not synced.
    ExchangeWithoutParentFsync,
    /// Wrong: file by file.
    PerFileFsync,
    /// Wrong: file by file, and nothing is synced.
    PerFileWithoutFsync,
    /// Wrong: the target is missing between two renames.
    TwoRenames,
    /// Wrong: each file is missing for a while.
    RemoveThenWrite,
}

impl BuiltinWriter {
    /// Every writer, right ones first.
    pub const ALL: [Self; 8] = [
        Self::Atomicdir,
        Self::AtomicdirSyncfs,
        Self::ExchangeWithoutFsync,
        Self::ExchangeWithoutParentFsync,
        Self::PerFileFsync,
        Self::PerFileWithoutFsync,
        Self::TwoRenames,
        Self::RemoveThenWrite,
    ];

    /// The name that scenarios use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Atomicdir => "atomicdir",
            Self::AtomicdirSyncfs => "atomicdir-syncfs",
            Self::ExchangeWithoutFsync => "exchange-without-fsync",
            Self::ExchangeWithoutParentFsync => "exchange-without-parent-fsync",
            Self::PerFileFsync => "per-file-fsync",
            Self::PerFileWithoutFsync => "per-file-without-fsync",
            Self::TwoRenames => "two-renames",
            Self::RemoveThenWrite => "remove-then-write",
        }
    }

    /// The writer of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|writer| writer.name() == name)
    }

    /// What the list of writers says of it.
    pub fn info(self) -> Option<&'static WriterInfo> {
        untorn_spec::writer(self.name())
    }

    /// Publishes the tree in this writer's way.
    ///
    /// # Errors
    /// When a call failed, so that the writer does not say that the tree is published and durable.
    /// What is to be seen then is up to the writer.
    pub fn publish<F: Fs>(self, job: &Job<'_, F>) -> Result<Published, WriteError> {
        let published = match self {
            Self::Atomicdir => return atomic::publish(job, atomicdir::Durability::Fsync),
            Self::AtomicdirSyncfs => return atomic::publish(job, atomicdir::Durability::Syncfs),
            Self::ExchangeWithoutFsync => exchange_without_fsync::publish(job),
            Self::ExchangeWithoutParentFsync => exchange_without_parent_fsync::publish(job),
            Self::PerFileFsync => per_file_fsync::publish(job),
            Self::PerFileWithoutFsync => per_file_without_fsync::publish(job),
            Self::TwoRenames => two_renames::publish(job),
            Self::RemoveThenWrite => remove_then_write::publish(job),
        };
        published.map(|()| Published::CLEANLY)
    }
}
