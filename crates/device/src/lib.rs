//! The kernel's side: a FUSE-served disk under a loop device, mkfs, mount, capability probe.
//!
//! * [`RecordedDisk`]: a block device that notes what it receives, or makes up its mind lazily.
//! * [`make_image`]: an empty file system of a profile.
//! * [`mount_profile`], [`neighbor_commit`] and the like: calls on a mounted file system.
//!
//! This crate never judges what it sees.

mod disk;
mod error;
mod filesystem;
mod mkfs;
mod recorded_disk;
mod releaser;
mod server;
mod sys;

pub use error::DeviceError;
pub use filesystem::{
    NEIGHBOR, abandon, drop_cache, forget, mount_profile, neighbor_commit, unmount,
};
pub use mkfs::{cache_dir, make_image, mkfs_command};
pub use recorded_disk::RecordedDisk;
