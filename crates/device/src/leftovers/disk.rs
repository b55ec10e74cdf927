//! Disks whose server is dead or dying.
//!
//! The kernel ends a FUSE connection when the last descriptor of its server is closed. A server
//! that was killed while one of its own threads waits for the disk never gets that far: the thread
//! waits for an answer, and the answer for the thread. Only an abort of the connection frees it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::Leftover;
use super::process::{self, Stat, eventually};
use crate::namespace::enter_private_namespace;
use crate::server::{DISK, FILE};
use crate::sys;

/// Where the kernel lists FUSE connections.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// Loop devices over a disk of ours, with no living server.
pub(super) fn find() -> Vec<Leftover> {
    let candidates = bound_loop_devices();
    if candidates.is_empty() {
        return Vec::new();
    }
    let Ok(connections) = with_connections(list) else {
        return Vec::new();
    };
    let servers = Servers::look();
    candidates
        .into_iter()
        .filter_map(|device| {
            let connection = connection_of(&device)?;
            // That the kernel lists it tells it from a file on a file system without a device.
            let dead = connections.contains(&connection) && !servers.may_live(connection);
            dead.then_some(Leftover::Disk { connection, device })
        })
        .collect()
}

/// Loop devices that are bound as ours are: to a file of that name at the top of a file system,
/// with direct I/O, to be cleared by the kernel.
fn bound_loop_devices() -> Vec<PathBuf> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| is_bound_as_ours(&entry.path().join("loop")))
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .collect();
    found.sort();
    found
}

fn is_bound_as_ours(attributes: &Path) -> bool {
    let is = |name: &str, value: &str| {
        fs::read_to_string(attributes.join(name)).is_ok_and(|text| text.trim_end() == value)
    };
    is("backing_file", &format!("/{FILE}"))
        && is("autoclear", "1")
        && is("dio", "1")
        && is("offset", "0")
        && is("sizelimit", "0")
}

/// Number of the FUSE connection behind a loop device, if its file is the one that we serve.
fn connection_of(device: &Path) -> Option<u32> {
    let (file_system, inode) = sys::loop_backing_file(&File::open(device).ok()?).ok()?;
    // A FUSE file system has no block device: its number is a minor one only, and the
    // connection's too.
    let major = rustix::fs::major(file_system);
    (inode == DISK.0 && major == 0).then(|| rustix::fs::minor(file_system))
}

/// FUSE connections with a process that holds the server's end.
#[derive(Debug, Default)]
struct Servers {
    /// Whether one of the holders lives.
    by_connection: BTreeMap<u32, bool>,
    /// Some living holder's connection is not known: kernels before 6.16 do not tell.
    unknown: bool,
}

impl Servers {
    fn look() -> Self {
        let mut servers = Self::default();
        for pid in process::all() {
            let Some(stat) = Stat::of(pid) else { continue };
            let lives = !stat.is_dying();
            match held_connections(pid) {
                Ok(held) => {
                    for connection in held {
                        servers.note(connection, lives);
                    }
                }
                // It has just ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_unreadable) => servers.unknown |= lives,
            }
        }
        servers
    }

    fn note(&mut self, connection: Option<u32>, lives: bool) {
        match connection {
            Some(connection) => *self.by_connection.entry(connection).or_default() |= lives,
            None => self.unknown |= lives,
        }
    }

    fn may_live(&self, connection: u32) -> bool {
        self.unknown || self.by_connection.get(&connection) == Some(&true)
    }
}

/// The connections that a process serves, as far as the kernel tells their numbers.
fn held_connections(pid: i32) -> io::Result<Vec<Option<u32>>> {
    let mut held = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        if target.file_name() == Some("fuse".as_ref()) {
            let info = Path::new("/proc").join(pid.to_string()).join("fdinfo");
            let info = fs::read_to_string(info.join(entry.file_name())).unwrap_or_default();
            held.push(connection_in(&info));
        }
    }
    Ok(held)
}

fn connection_in(fdinfo: &str) -> Option<u32> {
    let line = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("fuse_connection:"))?;
    line.trim().parse().ok()
}

/// Ends a connection: whoever waits for an answer gets an error. Does nothing when the connection
/// is gone or has a living server.
pub(super) fn abort(connection: u32) -> io::Result<()> {
    if Servers::look().may_live(connection) {
        return Ok(());
    }
    with_connections(|top| {
        let switch = top.join(connection.to_string()).join("abort");
        match fs::write(&switch, "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            written => written,
        }
    })?
}

/// Unbinds a loop device that is still bound to that connection, and waits for its users to go.
pub(super) fn detach(device: &Path, connection: u32) -> io::Result<()> {
    let is_bound = || {
        let name = device.file_name().unwrap_or_default();
        is_bound_as_ours(&Path::new("/sys/block").join(name).join("loop"))
            && connection_of(device) == Some(connection)
    };
    if !is_bound() || Servers::look().may_live(connection) {
        return Ok(());
    }
    match sys::loop_clear(&File::open(device)?) {
        // It went by itself since it was looked at: its last user has closed it.
        Err(error) if error.raw_os_error() == Some(nix::libc::ENXIO) => {}
        cleared => cleared?,
    }
    if eventually(|| !is_bound()) {
        return Ok(());
    }
    let users = users_of(device);
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        format!("{} is still used by {users}", device.display()),
    ))
}

/// Processes that have a device open, or see it mounted.
fn users_of(device: &Path) -> String {
    let uses = |pid: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let mut descriptors = descriptors.into_iter().flatten().flatten();
        // What was opened in a mount namespace that is gone shows without the path to it.
        let mut open = || {
            descriptors.any(|entry| {
                fs::read_link(entry.path()).is_ok_and(|to| to.file_name() == device.file_name())
            })
        };
        let mounts = fs::read_to_string(format!("/proc/{pid}/mounts")).unwrap_or_default();
        let start = format!("{} ", device.display());
        mounts.lines().any(|line| line.starts_with(&start)) || open()
    };
    let users: Vec<String> = process::all()
        .filter(uses)
        .map(|pid| pid.to_string())
        .collect();
    if users.is_empty() {
        "something that is no process".to_owned()
    } else {
        format!("processes {}", users.join(", "))
    }
}

fn list(top: &Path) -> Vec<u32> {
    let entries = fs::read_dir(top).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Runs `look` where the connections are listed: in a mount namespace of its own, since nobody may
/// have mounted the list, and nobody needs to see that we do.
fn with_connections<T: Send>(look: impl FnOnce(&Path) -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            enter_private_namespace()?;
            let none: Option<&str> = None;
            let mounted = mount(
                Some("fusectl"),
                CONNECTIONS,
                Some("fusectl"),
                MsFlags::empty(),
                none,
            );
            match mounted {
                // It is mounted there already.
                Ok(()) | Err(nix::errno::Errno::EBUSY) => Ok(look(Path::new(CONNECTIONS))),
                Err(error) => Err(error.into()),
            }
        });
        looking
            .join()
            .unwrap_or_else(|_panic| Err(io::Error::other("the thread that looks panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_of_a_descriptor_is_read() {
        assert_eq!(
            connection_in("pos:\t0\nino:\t90\nfuse_connection:\t39\n"),
            Some(39)
        );
        assert_eq!(connection_in("pos:\t0\nino:\t90\n"), None);
    }

    #[test]
    fn a_connection_is_dead_only_if_every_server_is_known_and_dying() {
        let mut servers = Servers::default();
        assert!(!servers.may_live(1));
        servers.note(Some(1), false);
        assert!(!servers.may_live(1));
        servers.note(Some(1), true);
        assert!(servers.may_live(1) && !servers.may_live(2));
        servers.note(None, false);
        assert!(!servers.may_live(2));
        servers.note(None, true);
        assert!(servers.may_live(2));
    }
}
