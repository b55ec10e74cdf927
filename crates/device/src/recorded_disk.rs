//! The recorded disk: a FUSE-served file under a loop device.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, Session, SessionACL};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use untorn_block::{BlockLog, CrashDisk, Image, Mark};

use crate::DeviceError;
use crate::disk::{Disk, Sealed};
use crate::releaser::{self, Recovering};
use crate::server::{FILE, Server};
use crate::sys;

/// A block device whose content, history and mind are ours.
///
/// The loop device clears itself when the last user closes it. This process gives its own
/// descriptor away with [`RecordedDisk::take_device`] and never touches the device: a process that
/// waits for a disk which it serves itself could not even be killed.
#[derive(Debug)]
pub struct RecordedDisk {
    disk: Arc<Disk>,
    recovering: Arc<Recovering>,
    path: PathBuf,
    device: Option<File>,
    releaser: Option<JoinHandle<()>>,
}

impl RecordedDisk {
    /// Makes a disk of `bytes` zero bytes with sectors of `unit` bytes. Requests hold at most
    /// `request_kib` KiB, so that what is needed and what is read ahead come separately. `scratch`
    /// is a directory of our own; nothing stays in it.
    ///
    /// # Errors
    /// When FUSE or loop devices are missing or not permitted; nothing stays behind.
    pub fn new(
        bytes: u64,
        unit: u32,
        request_kib: u32,
        scratch: &Path,
    ) -> Result<Self, DeviceError> {
        let disk = Arc::new(Disk::new(bytes));
        let mount_point = scratch.join("fuse");
        fs::create_dir_all(&mount_point)
            .map_err(|source| DeviceError::io("create", &mount_point, source))?;

        // The FUSE mount lives in the mount namespace of a thread that ends with this block: no
        // other process ever sees it, and the loop device keeps the file alive.
        let server = Server(disk.clone());
        let bound = std::thread::scope(|scope| {
            scope
                .spawn(|| bind(server, &mount_point, unit))
                .join()
                .unwrap_or_else(|_panic| {
                    Err(DeviceError::Other(
                        "the thread that binds the loop device panicked".into(),
                    ))
                })
        });
        fs::remove_dir(&mount_point)
            .map_err(|source| DeviceError::io("remove", &mount_point, source))?;
        let (device, path) = bound?;
        tune(&path, unit, request_kib)?;
        let recovering = Recovering::new(path.file_name().unwrap_or_default())
            .map_err(|source| DeviceError::io("watch", &path, source))?;
        let recovering = Arc::new(recovering);

        let releaser = std::thread::Builder::new()
            .name("releaser".to_owned())
            .spawn({
                let (disk, recovering) = (disk.clone(), recovering.clone());
                move || releaser::run(&disk, &recovering)
            })
            .map_err(|source| DeviceError::io("start the releaser of", &path, source))?;
        Ok(Self {
            disk,
            recovering,
            path,
            device: Some(device),
            releaser: Some(releaser),
        })
    }

    /// The block device, such as `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open device, to be handed to the process that mounts it. `None` the second time.
    pub fn take_device(&mut self) -> Option<File> {
        self.device.take()
    }

    /// Deferred reads are answered when the main thread of process `pid` is blocked.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn watch(&self, pid: u32) -> io::Result<()> {
        self.recovering.watch(pid)
    }

    /// Deferred replies are on at first; off, every read is answered at once and decides what it
    /// touches, which shows what they gain.
    pub fn set_deferred(&self, deferred: bool) {
        self.disk.set_deferred(deferred);
    }

    /// Makes `image` the content of the disk. What the kernel has cached must be dropped by the
    /// process that mounts.
    pub fn load(&self, image: Image) {
        self.disk.load(image);
    }

    /// The content of the disk.
    pub fn image(&self) -> Image {
        self.disk.image()
    }

    /// Notes everything from now on; returns the content at this moment, which is taken to be
    /// durable. Each flush is held back for `flush_hold`.
    pub fn start_recording(&self, flush_hold: Duration) -> Image {
        self.disk.start_recording(flush_hold)
    }

    /// Puts a mark into the block log, if the disk is recording.
    pub fn mark(&self, mark: Mark) {
        self.disk.mark(mark);
    }

    /// Ends the recording and returns what was noted.
    pub fn stop_recording(&self) -> BlockLog {
        self.disk.stop_recording()
    }

    /// Becomes a disk after a power cut. `useless_before` says how often deciding a unit was found
    /// to be no use: of several reads that wait, those of other units are answered first.
    pub fn start_crash(&self, crash: CrashDisk, useless_before: Arc<HashMap<u64, u32>>) {
        self.disk.start_crash(crash, useless_before);
    }

    /// The verdict is in: returns the choices made so far, and makes no further ones that count.
    pub fn seal(&self) -> Sealed {
        self.disk.seal()
    }
}

impl Drop for RecordedDisk {
    fn drop(&mut self) {
        self.disk.seal();
        self.disk.stop();
        if let Some(releaser) = self.releaser.take()
            && releaser.join().is_err()
        {
            debug_assert!(false, "the releaser panicked");
        }
    }
}

/// Mounts the FUSE file system in a namespace of this thread, and binds its file to a loop device.
fn bind(server: Server, mount_point: &Path, unit: u32) -> Result<(File, PathBuf), DeviceError> {
    let fuse = File::options()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .map_err(|source| DeviceError::io("open", Path::new("/dev/fuse"), source))?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| DeviceError::Namespace(error.into()))?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|error| DeviceError::Namespace(error.into()))?;
    let options = {
        use std::os::fd::AsRawFd;
        format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            fuse.as_raw_fd()
        )
    };
    mount(
        Some("untorn"),
        mount_point,
        Some("fuse.untorn"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(options.as_str()),
    )
    .map_err(|error| DeviceError::io("mount FUSE at", mount_point, error.into()))?;

    // One thread answers requests, since none of them waits: what must wait is handed to the
    // releaser or to a thread of its own. A second one was measured to make recoveries slower.
    let session = Session::from_fd(server, fuse.into(), SessionACL::Owner, Config::default())
        .map_err(|source| DeviceError::io("start FUSE at", mount_point, source))?;
    std::thread::Builder::new()
        .name("disk-server".to_owned())
        .spawn(move || {
            // It ends when the last user of the file is gone; an error then has no reader.
            drop(session.run());
        })
        .map_err(|source| DeviceError::io("serve", mount_point, source))?;

    let file = mount_point.join(FILE);
    let backing = File::options()
        .read(true)
        .write(true)
        .open(&file)
        .map_err(|source| DeviceError::io("open", &file, source))?;
    attach(&backing, unit)
}

/// Binds `backing` to a free loop device with sectors of `unit` bytes.
pub(crate) fn attach(backing: &File, unit: u32) -> Result<(File, PathBuf), DeviceError> {
    const CONTROL: &str = "/dev/loop-control";
    let control = File::options()
        .read(true)
        .write(true)
        .open(CONTROL)
        .map_err(|source| DeviceError::io("open", Path::new(CONTROL), source))?;
    // Between the question and the binding somebody else may take the device.
    for _attempt in 0..64 {
        let number = sys::loop_get_free(&control).map_err(DeviceError::NoLoopDevice)?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|source| DeviceError::io("open", &path, source))?;
        match sys::loop_configure(&device, backing, unit) {
            Ok(()) => return Ok((device, path)),
            Err(error) if error.raw_os_error() == Some(nix::libc::EBUSY) => {}
            Err(source) => return Err(DeviceError::io("bind a file to", &path, source)),
        }
    }
    Err(DeviceError::NoLoopDevice(
        io::ErrorKind::ResourceBusy.into(),
    ))
}

/// Keeps requests small and separate, and read-ahead and discards off.
fn tune(device: &Path, unit: u32, request_kib: u32) -> Result<(), DeviceError> {
    let name = device.file_name().unwrap_or_default();
    let queue = Path::new("/sys/block").join(name).join("queue");
    let request_kib = request_kib.max(unit.div_ceil(1024)).to_string();
    for (file, value) in [
        ("nomerges", "2"),
        ("read_ahead_kb", "0"),
        ("max_sectors_kb", request_kib.as_str()),
        ("discard_max_bytes", "0"),
    ] {
        let path = queue.join(file);
        fs::write(&path, value).map_err(|source| DeviceError::io("set", &path, source))?;
    }
    Ok(())
}
