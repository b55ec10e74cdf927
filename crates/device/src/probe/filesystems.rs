//! File systems: whether the kernel has one, and whether its images can be made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use untorn_spec::{FsKind, PROFILES};

use super::Status;
use crate::mkfs::given_image;

/// Whether the kernel can mount it, at once or after it has loaded a module.
pub(super) fn in_kernel(kind: FsKind) -> Status {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if is_listed(&known, kind.name()) {
        // btrfs is told to forget a device through this node.
        let control = Path::new("/dev/btrfs-control");
        return if kind == FsKind::Btrfs && !control.exists() {
            Status::missing(
                format!("{} is missing", control.display()),
                format!("`mknod {} c 10 234`", control.display()),
            )
        } else {
            Status::Present("in this kernel".to_owned())
        };
    }
    if module_is_installed(kind.name()) {
        return Status::Present("a module, loaded when it is needed".to_owned());
    }
    Status::missing(
        format!("this kernel has no {kind}"),
        format!(
            "`modprobe {kind}` where the kernel's modules are (the host of a container), or another \
             kernel: `untorn vm`"
        ),
    )
}

/// Whether a line of /proc/filesystems names it, with or without `nodev`.
fn is_listed(known: &str, name: &str) -> bool {
    known
        .lines()
        .any(|line| line.split_whitespace().next_back() == Some(name))
}

/// True when the running kernel could load a module of that name, or has it built in.
pub(super) fn module_is_installed(name: &str) -> bool {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let top = PathBuf::from("/lib/modules").join(release);
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let list = fs::read_to_string(top.join(list)).unwrap_or_default();
        list.lines().any(|line| module_in_line(line) == Some(name))
    })
}

/// Name of the module that a line such as `kernel/fs/xfs/xfs.ko.zst: other.ko` is about.
fn module_in_line(line: &str) -> Option<&str> {
    let path = line.split(':').next()?;
    path.rsplit('/').next()?.split(".ko").next()
}

/// Whether the program that makes it is there; its version. It is not needed where images are
/// given.
pub(super) fn mkfs(kind: FsKind) -> Status {
    let mut profiles = PROFILES.iter().filter(|profile| profile.fs == kind);
    if profiles.any(|profile| given_image(profile).is_some()) {
        return Status::Present("its images are given".to_owned());
    }
    let help = format!(
        "`scripts/setup`, or `apt-get install {}`; {} must be in PATH",
        kind.package(),
        kind.mkfs()
    );
    match Command::new(kind.mkfs()).arg("-V").output() {
        // mke2fs says its version on stderr, the others on stdout.
        Ok(output) => match version_in(&output.stdout).or_else(|| version_in(&output.stderr)) {
            Some(version) => Status::Present(version),
            None => Status::missing(format!("{} tells no version", kind.mkfs()), help),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Status::missing(format!("{} is not installed", kind.mkfs()), help)
        }
        Err(error) => Status::missing(format!("cannot run {}: {error}", kind.mkfs()), help),
    }
}

/// The first word with a digit and a dot in it, without a leading `v`.
fn version_in(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let version = text
        .split_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| {
            word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.')
        })?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_the_programs_print() {
        let version = |text: &str| version_in(text.as_bytes());
        assert_eq!(
            version("mkfs.xfs version 6.1.0\n").as_deref(),
            Some("6.1.0")
        );
        assert_eq!(
            version("mkfs.btrfs, part of btrfs-progs v6.2\n").as_deref(),
            Some("6.2")
        );
        assert_eq!(
            version("mke2fs 1.47.0 (5-Feb-2023)\n\tUsing EXT2FS\n").as_deref(),
            Some("1.47.0")
        );
        assert_eq!(version("mkfs.xfs"), None);
    }

    #[test]
    fn kernel_lists_are_read() {
        let known = "nodev\tsysfs\n\text4\nnodev\tfuse\n";
        assert!(is_listed(known, "ext4") && is_listed(known, "fuse"));
        assert!(!is_listed(known, "ext") && !is_listed(known, "nodev"));
        for line in [
            "kernel/fs/xfs/xfs.ko.zst: kernel/lib/x.ko",
            "kernel/fs/xfs/xfs.ko",
        ] {
            assert_eq!(module_in_line(line), Some("xfs"));
        }
    }
}
