//! The kernel's side: a FUSE-served disk under a loop device, mkfs, mount, capability probe.
//!
//! * [`RecordedDisk`]: a block device that notes what it receives, or makes up its mind lazily.
//! * [`make_image`]: an empty file system of a profile.
//! * [`probe`] and [`requirements`]: what this machine can run, and what helps where it cannot.
//! * [`leftovers`]: what a killed harness left behind.
//! * [`mount_profile`], [`neighbor_commit`] and the like: calls on a mounted file system.
//!
//! This crate never judges what it sees.

mod disk;
mod error;
mod filesystem;
pub mod leftovers;
mod mkfs;
mod namespace;
mod pace;
mod plain_disk;
mod probe;
mod recorded_disk;
mod releaser;
mod server;
mod sys;

pub use disk::Sealed;
pub use error::DeviceError;
pub use filesystem::{
    NEIGHBOR, cached_pages, drop_cache, forget, mount_profile, neighbor_commit, unmount,
};
pub use mkfs::{IMAGES_VARIABLE, cache_dir, make_image, mkfs_command};
pub use plain_disk::PlainDisk;
pub use probe::{Capability, Need, Status, Unsupported, probe, requirements, requirements_among};
pub use recorded_disk::RecordedDisk;
