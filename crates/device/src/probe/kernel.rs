//! What the kernel must offer beyond file systems.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;
use nix::mount::{MsFlags, mount};

use super::Status;
use super::filesystems::module_is_installed;
use crate::namespace::enter_private_namespace;

const FUSE: &str = "/dev/fuse";
/// What helps where a container holds back devices and rights.
const IN_CONTAINER: &str = "in a container, start it with `--privileged -v /dev:/dev`";

/// What one throw-away FUSE mount shows.
pub(super) struct NamespaceAndFuse {
    pub(super) namespace: Status,
    pub(super) fuse: Status,
    pub(super) async_direct_io: Status,
}

/// Mounts FUSE in a mount namespace of its own and reads the kernel's first request, which lists
/// what its FUSE can do. The namespace ends with the thread, and the mount with both.
pub(super) fn namespace_and_fuse() -> NamespaceAndFuse {
    let namespace = std::thread::spawn(|| enter_private_namespace().map(|()| first_request()));
    let unknown = |why: &str| Status::missing(why, "mend the entries above first");
    match namespace.join() {
        Ok(Ok(request)) => {
            let (fuse, async_direct_io) = match request {
                Ok(init) => judge_init(&init),
                Err((what, error)) => (
                    fuse_missing(what, &error),
                    unknown("FUSE cannot be asked about asynchronous direct I/O"),
                ),
            };
            NamespaceAndFuse {
                namespace: Status::Present("can be made".to_owned()),
                fuse,
                async_direct_io,
            }
        }
        Ok(Err(error)) => NamespaceAndFuse {
            namespace: Status::missing(
                format!("no mount namespace can be made: {error}"),
                format!("run as root; {IN_CONTAINER}"),
            ),
            fuse: match open_fuse() {
                Ok(_) => Status::Present(format!("{FUSE} can be opened, mounting was not tried")),
                Err(error) => fuse_missing("open /dev/fuse", &error),
            },
            async_direct_io: unknown("FUSE cannot be asked about asynchronous direct I/O"),
        },
        Err(_panic) => NamespaceAndFuse {
            namespace: unknown("the thread that tries namespaces panicked"),
            fuse: unknown("not tried"),
            async_direct_io: unknown("not tried"),
        },
    }
}

fn open_fuse() -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(FUSE)
}

fn fuse_missing(what: &str, error: &io::Error) -> Status {
    let help = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            format!("`modprobe fuse`, or a kernel with CONFIG_FUSE_FS; {IN_CONTAINER}")
        }
        _ => format!("run as root; {IN_CONTAINER}"),
    };
    Status::missing(format!("cannot {what}: {error}"), help)
}

/// The beginning of `FUSE_INIT`, as fuse(4) and `include/uapi/linux/fuse.h` lay it out.
#[derive(Debug, PartialEq, Eq)]
struct Init {
    major: u32,
    minor: u32,
    flags: u32,
}

fn first_request() -> Result<Init, (&'static str, io::Error)> {
    let mut device = open_fuse().map_err(|error| ("open /dev/fuse", error))?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0",
        device.as_raw_fd()
    );
    mount(
        Some("untorn-probe"),
        &std::env::temp_dir(),
        Some("fuse.untorn"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(options.as_str()),
    )
    .map_err(|error| ("mount FUSE", error.into()))?;
    // The kernel wants room for its largest request, whatever it sends.
    let mut request = vec![0; 64 << 10];
    let length = device
        .read(&mut request)
        .map_err(|error| ("read the first request of FUSE", error))?;
    parse_init(&request[..length])
        .ok_or_else(|| ("understand FUSE", io::ErrorKind::InvalidData.into()))
}

fn parse_init(request: &[u8]) -> Option<Init> {
    const FUSE_INIT: u32 = 26;
    const HEADER_BYTES: usize = 40;
    let word = |at: usize| {
        let bytes = request.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    if word(4)? != FUSE_INIT {
        return None;
    }
    Some(Init {
        major: word(HEADER_BYTES)?,
        minor: word(HEADER_BYTES + 4)?,
        flags: word(HEADER_BYTES + 12)?,
    })
}

fn judge_init(init: &Init) -> (Status, Status) {
    const FUSE_ASYNC_DIO: u32 = 1 << 15;
    let version = format!("protocol {}.{}", init.major, init.minor);
    let async_direct_io = if init.flags & FUSE_ASYNC_DIO == 0 {
        Status::missing(
            "this kernel's FUSE has no asynchronous direct I/O",
            "use a newer kernel",
        )
    } else {
        Status::Present("offered by the kernel".to_owned())
    };
    (Status::Present(version), async_direct_io)
}

/// Loop devices with `LOOP_CONFIGURE`. None is bound, so what is asked is whether one could be.
pub(super) fn loop_devices() -> Status {
    const CONTROL: &str = "/dev/loop-control";
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    if version_of(&release).is_some_and(|version| version < (5, 8)) {
        return Status::missing(
            format!("Linux {release} cannot bind a loop device in one step (since 5.8)"),
            "use a newer kernel",
        );
    }
    if let Err(error) = File::options().read(true).write(true).open(CONTROL) {
        return Status::missing(
            format!("cannot open {CONTROL}: {error}"),
            format!("`modprobe loop`, run as root; {IN_CONTAINER}"),
        );
    }
    match count_loop_devices() {
        // Where /dev is the kernel's own, it makes the node of a new device itself.
        (_, 0) if !dev_is_kernels() => Status::missing(
            "no loop device in /dev is free",
            format!(
                "see `losetup -a`, and `untorn doctor --clean` for what a killed run left; \
                 {IN_CONTAINER}"
            ),
        ),
        (all, free) => Status::Present(format!("{free} of {all} free")),
    }
}

/// How many loop devices have a node in /dev, and how many of those are not bound.
fn count_loop_devices() -> (usize, usize) {
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    let names = entries.filter(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("loop"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
            && entry.file_type().is_ok_and(|kind| kind.is_block_device())
    });
    names.fold((0, 0), |(all, free), entry| {
        let bound = Path::new("/sys/block").join(entry.file_name()).join("loop");
        (all + 1, free + usize::from(!bound.exists()))
    })
}

/// True when /dev is a devtmpfs.
fn dev_is_kernels() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut fields = line.split(' ');
        fields.nth(1) == Some("/dev") && fields.next() == Some("devtmpfs")
    })
}

/// Device mapper with the two targets that matter to crash tests.
pub(super) fn device_mapper() -> Status {
    let misc = fs::read_to_string("/proc/misc").unwrap_or_default();
    let loaded = misc.lines().any(|line| line.ends_with("device-mapper"));
    let modules = ["dm-flakey", "dm-log-writes"].map(module_is_installed);
    match (loaded, modules) {
        (_, [true, true]) => Status::Present("dm-flakey and dm-log-writes installed".to_owned()),
        (true, _) => Status::Present("present; its targets show when they are used".to_owned()),
        (false, _) => Status::missing(
            "this kernel has no device mapper",
            "a kernel with CONFIG_BLK_DEV_DM, or a guest: `untorn vm`",
        ),
    }
}

/// Major and minor version of a kernel release.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_understood() {
        assert_eq!(version_of("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version_of("5.8.0-rc1"), Some((5, 8)));
        assert_eq!(version_of("7.0"), Some((7, 0)));
        assert_eq!(version_of("next"), None);
    }

    #[test]
    fn asynchronous_direct_io_is_a_flag_of_the_first_request() {
        let mut request = vec![0; 104];
        for (at, value) in [(4, 26_u32), (40, 7), (44, 45), (52, 1 << 15)] {
            request[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let init = parse_init(&request).unwrap();
        assert_eq!((init.major, init.minor), (7, 45));
        assert!(matches!(judge_init(&init).1, Status::Present(_)));
        request[52..56].fill(0);
        let init = parse_init(&request).unwrap();
        assert!(matches!(judge_init(&init).1, Status::Missing { .. }));
        assert_eq!(parse_init(&request[..30]), None);
    }
}
