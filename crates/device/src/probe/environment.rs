//! Rights, memory, disk space, and the programs of later commands.

use std::fs::{self, File};
use std::path::PathBuf;

use super::Status;

/// Most memory that the workers' images and the explorer have been seen to take, and some more.
const MEMORY_MIB_MIN: u64 = 1024;
/// Room for the largest image while mkfs makes it: xfs writes a log of 64 MiB.
const TEMPORARY_MIB_MIN: u64 = 256;

/// The right to mount, in the machine's own user namespace.
pub(super) fn privilege() -> Status {
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has_capability =
        effective_capabilities(&status).is_some_and(|set| set & CAP_SYS_ADMIN != 0);
    let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let user = rustix::process::geteuid();
    let in_user_namespace = !uid_map.split_whitespace().eq(["0", "0", "4294967295"]);
    if !has_capability {
        Status::missing(
            format!("user {user} may not mount (no CAP_SYS_ADMIN)"),
            "run as root, for example with sudo; in a container, start it with `--privileged`",
        )
    } else if in_user_namespace && !uid_map.is_empty() {
        Status::missing(
            "this is root of a user namespace, which may not mount block devices",
            "run as the machine's own root, or in a container that is not rootless",
        )
    } else {
        Status::Present(format!("user {user} with CAP_SYS_ADMIN"))
    }
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Memory that can be had without swapping.
pub(super) fn memory() -> Status {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available_mib(&meminfo) {
        Some(mib) if mib < MEMORY_MIB_MIN => Status::missing(
            format!("{mib} MiB of memory are available, {MEMORY_MIB_MIN} are needed"),
            "end other programs, or use a larger machine",
        ),
        Some(mib) => Status::Present(format!("{mib} MiB available")),
        None => Status::Present("size unknown".to_owned()),
    }
}

fn available_mib(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib / 1024)
}

/// Room in the directory for temporary files.
pub(super) fn temporary_space() -> Status {
    let directory = std::env::temp_dir();
    let help = "free some space, or set TMPDIR to a directory with more";
    match rustix::fs::statvfs(&directory) {
        Err(error) => Status::missing(
            format!("cannot look at {}: {error}", directory.display()),
            help,
        ),
        Ok(space) => {
            let mib = space.f_bavail.saturating_mul(space.f_frsize) >> 20;
            let text = format!("{mib} MiB free in {}", directory.display());
            if mib < TEMPORARY_MIB_MIN {
                Status::missing(format!("{text}, {TEMPORARY_MIB_MIN} are needed"), help)
            } else {
                Status::Present(text)
            }
        }
    }
}

/// Whether guests may be run by the processor. That the device opens does not mean that a guest
/// runs, which only a guest can show.
pub(super) fn kvm() -> Status {
    match File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => Status::Present("/dev/kvm can be opened; whether guests run is not known".into()),
        Err(error) => Status::missing(
            format!("cannot open /dev/kvm: {error}"),
            "guests are emulated without it, which is slower",
        ),
    }
}

/// Whether the emulator for this machine's kind is installed.
pub(super) fn qemu() -> Status {
    let program = format!("qemu-system-{}", std::env::consts::ARCH);
    match in_path(&program) {
        Some(path) => Status::Present(path.display().to_string()),
        None => Status::missing(
            format!("{program} is not installed"),
            "`scripts/setup --vm`, or `apt-get install qemu-system-x86`",
        ),
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read() {
        let status = "Name:\tuntorn\nCapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\n";
        assert_eq!(effective_capabilities(status), Some(0x1ff_ffff_ffff));
        let meminfo = "MemTotal:       24684084 kB\nMemAvailable:    2097152 kB\n";
        assert_eq!(available_mib(meminfo), Some(2048));
        assert_eq!(available_mib(""), None);
    }
}
