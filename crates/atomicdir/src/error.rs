//! What can go wrong, sorted by what it means for the target.

use std::ffi::OsString;
use std::io;

use untorn_fs::FileKind;

use crate::call::CallError;
use crate::name::NameError;
use crate::tree::TreeError;

/// Why [`publish`](crate::publish) did not end with a published and durable tree.
///
/// The two variants differ in what readers see, not in how bad the cause is.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The target is untouched: it is what it was, and as durable as it was.
    ///
    /// The staging directory has been removed. If that failed too, `cleanup_errors` says so, and
    /// the next [`sweep`](crate::sweep) removes it. Publishing again is safe, and writes
    /// everything anew.
    #[error("not published, the target is untouched: {reason}")]
    NotPublished {
        /// What stopped it.
        #[source]
        reason: Reason,
        /// What could not be removed, of this writer or of a dead one.
        cleanup_errors: Vec<CleanupError>,
    },
    /// The exchange has been made, or may have been, and it is unknown whether it is durable.
    ///
    /// A power cut now returns the new tree or the old one, each of them complete. The old tree
    /// is kept for that. Publishing again makes the target durable if it succeeds. Its sweep
    /// removes the old tree once an fsync of the parent has succeeded; whoever wants to keep it
    /// beyond that, because a success after a failure proves little, moves it away first.
    ///
    /// An fsync error is final: the kernel reports it once and may then count the pages as clean
    /// (fsync(2), "NOTES"), so this crate never asks a second time.
    #[error("{} {source}", durability_unknown(*.seen_live))]
    DurabilityUnknown {
        /// Whether the new tree is known to have become the target. `false` means that the
        /// exchange reported an error and the look that should settle it failed as well.
        seen_live: bool,
        /// The name beside the target under which the old tree is kept, if there was one.
        old_kept_at: Option<OsString>,
        /// The call that failed.
        source: CallError,
        /// What could not be removed of dead writers.
        cleanup_errors: Vec<CleanupError>,
    },
}

fn durability_unknown(seen_live: bool) -> &'static str {
    if seen_live {
        "published, but whether it is durable is unknown:"
    } else {
        "whether it was published is unknown:"
    }
}

/// What stopped a publication before the target was touched.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The target's name is refused.
    #[error("target name: {0}")]
    Name(#[from] NameError),
    /// The tree has an entry that cannot be published.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The target is something that must not be exchanged.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The file system or the system cannot exchange two names atomically, or cannot rename
    /// without replacing. The names were checked before, so that `EINVAL` can mean nothing else
    /// (renameat2(2)).
    #[error(
        "this file system cannot exchange directories atomically ({0}); ext4, xfs, btrfs, tmpfs \
         and f2fs can"
    )]
    Unsupported(#[source] io::Error),
    /// `EXDEV` although both names are in one directory: a directory of a lower overlayfs layer,
    /// a differing project quota, or a btrfs subvolume.
    #[error(
        "the target cannot be moved within its own directory ({0}): it comes from a lower \
         overlayfs layer, is a subvolume, or has another project quota"
    )]
    CrossDevice(#[source] io::Error),
    /// The target appeared and vanished each time it was looked at.
    #[error("the target kept appearing and vanishing; another program is replacing it unsafely")]
    Contended,
    /// No free staging name was found.
    #[error("no free name for the staging directory was found beside the target")]
    NoStagingName,
    /// No random number for the staging name; [`Options::token`](crate::Options::token) can
    /// give one.
    #[error("no random number to be had: {0}")]
    Random(#[source] io::Error),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Why a target must not be exchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is a symlink, and the exchange would move the link and orphan the directory it names.
    #[error("the target is a symlink; give the directory that it names")]
    Symlink,
    /// It is something else than a directory.
    #[error("the target is a {0}, not a directory")]
    NotADirectory(FileKind),
    /// Something is mounted on it, so it cannot be renamed.
    #[error("the target is a mount point; publish to a directory inside it, or mount its parent")]
    MountPoint,
}

/// Something with a staging name could not be removed. It is in nobody's way, and the next
/// [`sweep`](crate::sweep) tries again.
#[derive(Debug, thiserror::Error)]
#[error("cleanup failed, {name:?} is left beside the target: {source}")]
pub struct CleanupError {
    /// The name beside the target.
    pub name: OsString,
    /// The call that failed.
    pub source: CallError,
}

/// Why [`sweep`](crate::sweep) removed nothing.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The target's name is refused.
    #[error("target name: {0}")]
    Name(#[from] NameError),
    /// A call failed, the fsync of the parent included.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl From<SweepError> for Reason {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Name(error) => Self::Name(error),
            SweepError::Call(error) => Self::Call(error),
        }
    }
}
