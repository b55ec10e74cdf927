//! Processes as /proc shows them, and those that have lost their harness.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Leftover;

/// Name of the program whose children may be removed.
const PROGRAM: &str = "untorn";
/// First argument of every process that only the harness starts.
const INTERNAL: &str = "internal";
/// How long a killed process, or an aborted disk, may take to go.
const GONE_AFTER_MAX: Duration = Duration::from_secs(2);

/// A process, told from a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks after boot (field 22 of `proc_pid_stat(5)`).
    pub started: u64,
}

/// What `proc_pid_stat(5)` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) id: ProcessId,
    name: String,
    state: char,
    parent: i32,
    exiting: bool,
}

impl Stat {
    pub(super) fn of(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &text)
    }

    fn parse(pid: i32, text: &str) -> Option<Self> {
        const PF_EXITING: u32 = 4;
        // The name stands in parentheses, and may hold some itself.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        Some(Self {
            id: ProcessId {
                pid,
                started: fields.get(19)?.parse().ok()?,
            },
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            exiting: fields.get(6)?.parse::<u32>().ok()? & PF_EXITING != 0,
        })
    }

    /// Nothing of it runs any more, though its number is still taken.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// It is dead, or will be when the kernel lets go of it.
    pub(super) fn is_dying(&self) -> bool {
        self.is_dead() || self.exiting || is_killed(self.id.pid)
    }
}

/// Whether SIGKILL is on its way to the process.
fn is_killed(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    pending_signals(&status) & (1 << (nix::libc::SIGKILL - 1)) != 0
}

fn pending_signals(status: &str) -> u64 {
    status
        .lines()
        .filter_map(|line| {
            line.strip_prefix("SigPnd:")
                .or_else(|| line.strip_prefix("ShdPnd:"))
        })
        .filter_map(|set| u64::from_str_radix(set.trim(), 16).ok())
        .fold(0, |all, set| all | set)
}

/// Numbers of all processes.
pub(super) fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Agents and subjects whose harness is dead.
pub(super) fn find() -> Vec<Leftover> {
    all().filter_map(orphan).collect()
}

fn orphan(pid: i32) -> Option<Leftover> {
    let stat = Stat::of(pid)?;
    let command = command_line(pid)?;
    if stat.is_dead() || command.get(1).map(String::as_str) != Some(INTERNAL) || !is_ours(pid) {
        return None;
    }
    is_adopted(&stat).then(|| Leftover::Process {
        id: stat.id,
        command: command.join(" "),
    })
}

fn command_line(pid: i32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line);
    Some(
        line.trim_end_matches('\0')
            .split('\0')
            .map(str::to_owned)
            .collect(),
    )
}

/// True when it runs this program, or one of its name, for this user. That one may have been built
/// anew since.
fn is_ours(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    if fs::metadata(format!("/proc/{pid}"))
        .map(|proc| proc.uid())
        .ok()
        != Some(user)
    {
        return false;
    }
    let Ok(executable) = fs::read_link(format!("/proc/{pid}/exe")) else {
        return false;
    };
    let executable = executable.to_string_lossy();
    let executable = executable.strip_suffix(" (deleted)").unwrap_or(&executable);
    let named = Path::new(executable).file_name() == Some(PROGRAM.as_ref());
    named || fs::read_link("/proc/self/exe").is_ok_and(|own| own == Path::new(executable))
}

/// True when the parent is one that takes in orphans. Any other parent may be a harness, such as
/// a test that starts agents itself, so a process with such a parent is left alone.
fn is_adopted(stat: &Stat) -> bool {
    // A harness may itself be process 1 of a container.
    if is_ours(stat.parent) {
        return false;
    }
    let systemd = || Stat::of(stat.parent).is_some_and(|parent| parent.name == "systemd");
    stat.parent == 1 || systemd()
}

/// Kills a process that is still without its harness.
pub(super) fn kill(id: ProcessId) -> io::Result<()> {
    let Some(process) = open(id)? else {
        return Ok(());
    };
    if orphan(id.pid).is_none() {
        return Ok(());
    }
    pidfd_send_signal(process, Signal::KILL)?;
    Ok(())
}

/// A descriptor of that very process; none when it is gone.
fn open(id: ProcessId) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(id.pid) else {
        return Ok(None);
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // The descriptor holds on to the process, so what is compared now stays true of it.
    let same = Stat::of(id.pid).is_some_and(|stat| stat.id == id);
    Ok(same.then_some(process))
}

/// Waits for the end of a killed process.
pub(super) fn wait_until_gone(id: ProcessId) -> io::Result<()> {
    let gone = || !Stat::of(id.pid).is_some_and(|stat| stat.id == id && !stat.is_dead());
    if eventually(gone) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!(
            "process {} is stuck in the kernel; see /proc/{}/stack",
            id.pid, id.pid
        ),
    ))
}

/// Waits for a condition that what was just done brings about.
pub(super) fn eventually(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + GONE_AFTER_MAX;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let line = "7 (a) b (c) D 1 7 7 0 -1 4194308 101 0 0 0 0 0 0 0 20 0 1 0 174293 313 38 0";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!(stat.name, "a) b (c");
        assert_eq!((stat.state, stat.parent, stat.exiting), ('D', 1, true));
        assert_eq!(stat.id.started, 174_293);
    }

    #[test]
    fn pending_signals_are_read() {
        let status = "SigPnd:\t0000000000000100\nShdPnd:\t0000000000000002\n";
        assert_eq!(pending_signals(status), 0x102);
    }

    #[test]
    fn this_process_lives() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let stat = Stat::of(pid).unwrap();
        assert!(!stat.is_dying());
        assert_eq!(Stat::of(pid).unwrap().id, stat.id);
        assert!(is_ours(pid));
    }
}
