//! A plain disk in memory under a loop device: the physical limit that benchmarks compare with.

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::MemfdFlags;
use untorn_block::{Image, PAGE};

use crate::DeviceError;
use crate::recorded_disk::attach;

/// A loop device over a file in tmpfs, with nothing of ours in between.
#[derive(Debug)]
pub struct PlainDisk {
    path: PathBuf,
    device: File,
}

impl PlainDisk {
    /// Makes a disk that holds `image`, with sectors of `unit` bytes.
    ///
    /// # Errors
    /// When there is no memory or no loop device; nothing stays behind.
    pub fn new(image: &Image, unit: u32) -> Result<Self, DeviceError> {
        let path = PathBuf::from("a file in memory");
        let failed = |source: std::io::Error| DeviceError::io("make", &path, source);
        let memory = rustix::fs::memfd_create("untorn-plain-disk", MemfdFlags::CLOEXEC)
            .map_err(|error| failed(error.into()))?;
        let file = File::from(memory);
        file.set_len(image.bytes()).map_err(failed)?;
        let mut page = [0; PAGE];
        let mut at = 0;
        while at < image.bytes() {
            image.read(at, &mut page);
            if page != [0; PAGE] {
                std::os::unix::fs::FileExt::write_all_at(&file, &page, at).map_err(failed)?;
            }
            at += PAGE as u64;
        }
        let (device, path) = attach(&file, unit)?;
        Ok(Self { path, device })
    }

    /// The block device, and the open descriptor that keeps it: to be handed to the process that
    /// mounts it.
    pub fn into_device(self) -> (PathBuf, File) {
        (self.path, self.device)
    }
}
