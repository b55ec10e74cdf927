//! Directories for temporary files, each with a note of whose it is.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Leftover;
use super::process::{ProcessId, Stat};

/// Beginning of the names of these directories; the number of the process comes next.
pub const SCRATCH_PREFIX: &str = "untorn-run-";
/// Name of the note.
const OWNER: &str = "owner";

/// Makes a directory for the temporary files of this process, which is removed when it is dropped
/// and, should the process be killed, by [`super::remove`].
///
/// # Errors
/// When the temporary directory cannot be written.
pub fn scratch_dir() -> io::Result<TempDir> {
    scratch_dir_in(&std::env::temp_dir())
}

fn scratch_dir_in(parent: &Path) -> io::Result<TempDir> {
    let owner = Owner::this_process()?;
    let directory = tempfile::Builder::new()
        .prefix(&format!("{SCRATCH_PREFIX}{}-", owner.id.pid))
        .tempdir_in(parent)?;
    fs::write(directory.path().join(OWNER), owner.to_text())?;
    Ok(directory)
}

/// The process that made a directory: numbers of processes are used again, after every boot and
/// in every pid namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    id: ProcessId,
    boot: String,
    pid_namespace: String,
}

impl Owner {
    fn this_process() -> io::Result<Self> {
        let pid = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        let stat = Stat::of(pid).ok_or_else(|| io::Error::other("/proc shows no such process"))?;
        Ok(Self {
            id: stat.id,
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?
                .trim()
                .to_owned(),
            pid_namespace: fs::read_link("/proc/self/ns/pid")?
                .to_string_lossy()
                .into_owned(),
        })
    }

    fn to_text(&self) -> String {
        let Self {
            id: ProcessId { pid, started },
            boot,
            pid_namespace,
        } = self;
        format!("{pid} {started} {boot} {pid_namespace}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let owner = Self {
            id: ProcessId {
                pid: words.next()?.parse().ok()?,
                started: words.next()?.parse().ok()?,
            },
            boot: words.next()?.to_owned(),
            pid_namespace: words.next()?.to_owned(),
        };
        words.next().is_none().then_some(owner)
    }

    /// False in doubt: in another pid namespace the number stands for another process.
    fn is_certainly_dead(&self, here: &Self) -> bool {
        if self.boot != here.boot {
            return true;
        }
        if self.pid_namespace != here.pid_namespace {
            return false;
        }
        !Stat::of(self.id.pid).is_some_and(|stat| stat.id == self.id && !stat.is_dead())
    }
}

/// Directories in `parent` whose makers are dead.
pub(super) fn find(parent: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| is_leftover(path).unwrap_or(false))
        .collect();
    found.sort();
    found
        .into_iter()
        .map(|path| Leftover::Scratch { path })
        .collect()
}

fn is_leftover(path: &Path) -> io::Result<bool> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let user = rustix::process::geteuid().as_raw();
    let is_ours = |metadata: &fs::Metadata| metadata.uid() == user;
    if !name.starts_with(SCRATCH_PREFIX) {
        return Ok(false);
    }
    // Where everybody may write, anybody may make a directory of that name.
    let directory = fs::symlink_metadata(path)?;
    let note = fs::symlink_metadata(path.join(OWNER))?;
    if !(directory.is_dir() && is_ours(&directory) && note.is_file() && is_ours(&note)) {
        return Ok(false);
    }
    let text = fs::read_to_string(path.join(OWNER))?;
    let Some(owner) = Owner::parse(&text) else {
        return Ok(false);
    };
    let named = name.starts_with(&format!("{SCRATCH_PREFIX}{}-", owner.id.pid));
    Ok(named && owner.is_certainly_dead(&Owner::this_process()?))
}

/// Removes a directory whose maker is still dead, unless something is mounted in it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match is_leftover(path) {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    // What is mounted is not ours to empty.
    let canonical = path.canonicalize()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    if let Some(mounted) = mount_below(&mounts, &canonical) {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("{mounted} is mounted: `umount {mounted}` first"),
        ));
    }
    fs::remove_dir_all(path)
}

/// A mount point at or below `top`. Blanks in it stay escaped: none of our names has any.
fn mount_below<'a>(mountinfo: &'a str, top: &Path) -> Option<&'a str> {
    mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .find(|mount_point| Path::new(mount_point).starts_with(top))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scratch directory as another process would have made it.
    fn abandoned(parent: &Path, change: impl FnOnce(&mut Owner)) -> PathBuf {
        let mut owner = Owner::this_process().unwrap();
        change(&mut owner);
        let path = parent.join(format!("{SCRATCH_PREFIX}{}-abc", owner.id.pid));
        fs::create_dir_all(path.join("deep/er")).unwrap();
        fs::write(path.join(OWNER), owner.to_text()).unwrap();
        path
    }

    fn found(parent: &Path) -> Vec<PathBuf> {
        let path = |leftover| match leftover {
            Leftover::Scratch { path } => path,
            other => panic!("{other}"),
        };
        find(parent).into_iter().map(path).collect()
    }

    #[test]
    fn a_living_owner_keeps_its_directory() {
        let parent = tempfile::tempdir().unwrap();
        let own = scratch_dir_in(parent.path()).unwrap();
        assert!(found(parent.path()).is_empty());
        remove(own.path()).unwrap();
        assert!(own.path().exists());
    }

    #[test]
    fn a_reused_number_is_not_the_owner() {
        let parent = tempfile::tempdir().unwrap();
        let path = abandoned(parent.path(), |owner| owner.id.started -= 1);
        assert_eq!(found(parent.path()), [path.as_path()]);
        remove(&path).unwrap();
        assert!(!path.exists());
        remove(&path).unwrap();
    }

    #[test]
    fn another_boot_is_over_and_another_namespace_unknown() {
        let parent = tempfile::tempdir().unwrap();
        let path = abandoned(parent.path(), |owner| owner.boot = "earlier".to_owned());
        assert_eq!(found(parent.path()), [path]);

        let parent = tempfile::tempdir().unwrap();
        abandoned(parent.path(), |owner| {
            owner.id.started -= 1;
            owner.pid_namespace = "pid:[1]".to_owned();
        });
        assert!(found(parent.path()).is_empty());
    }

    #[test]
    fn what_is_not_certainly_ours_stays() {
        let parent = tempfile::tempdir().unwrap();
        let target = abandoned(parent.path(), |owner| owner.id.started -= 1);
        let elsewhere = parent.path().join("elsewhere");
        fs::rename(&target, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &target).unwrap();
        fs::create_dir(parent.path().join("untorn-run-1-nonote")).unwrap();
        let garbled = parent.path().join("untorn-run-2-garbled");
        fs::create_dir(&garbled).unwrap();
        fs::write(garbled.join(OWNER), "2 x\n").unwrap();
        assert!(found(parent.path()).is_empty());
    }

    #[test]
    fn mounts_below_a_directory_are_seen() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n40 1 7:0 / /tmp/a/mnt rw - ext4 x rw\n";
        assert_eq!(mount_below(mounts, Path::new("/tmp/a")), Some("/tmp/a/mnt"));
        assert_eq!(mount_below(mounts, Path::new("/tmp/a/m")), None);
    }
}
