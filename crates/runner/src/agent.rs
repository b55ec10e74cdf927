//! The disk agent: the child process that mounts the disk under test and looks at it.
//!
//! Only this process ever touches the device. It lives in a mount namespace of its own and holds
//! the loop device open, so that when it ends, however it ends, the kernel unmounts the file system
//! and clears the loop device. The harness serves the disk and must not wait for it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use untorn_device::{
    NEIGHBOR, cached_pages, drop_cache, forget, mount_profile, neighbor_commit, unmount,
};
use untorn_oracle::{CaptureOptions, TreeDigest, TreeSnapshot};
use untorn_spec::{FsKind, Profile, TreeContent, TreeSpec};

use crate::channel;

/// First message to the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The block device.
    pub(crate) device: PathBuf,
    /// Where to mount it.
    pub(crate) mount_point: PathBuf,
    /// Name of the profile.
    pub(crate) profile: String,
}

/// What the agent is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Mount the disk.
    Mount,
    /// Make the initial tree under that name, and the directory for neighbours.
    Populate { target: String, initial: Initial },
    /// Write everything back and flush.
    Sync,
    /// Commit the journal (crash model, section 4).
    NeighborCommit,
    /// Look at the target and at what stands beside it.
    Look { target: String },
    /// Mount, then look.
    Recover { target: String },
    /// The whole tree that the last look saw.
    Tree,
    /// Create, replace and delete.
    ProbeUsable { target: String },
    /// Mount, look and unmount, so many times, without a word in between.
    Repeat { target: String, times: u32 },
    /// Unmount.
    Unmount,
}

/// The tree that is there at first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Initial {
    /// Generation 0 of this specification.
    Generated(TreeSpec),
    /// A copy of a directory.
    CopyOf(PathBuf),
}

/// What the agent answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done,
    /// A call failed.
    Failed {
        what: String,
        errno: Option<i32>,
    },
    /// The harness could not do its part, so nothing is known.
    Broken(String),
    /// What a look saw.
    Seen(Seen),
    Tree(TreeSnapshot),
}

/// What a look saw.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Digest of the tree under the target.
    pub(crate) digest: TreeDigest,
    /// Names beside the target that are not the harness's own.
    pub(crate) siblings: Vec<String>,
}

/// Runs the agent: the socket is standard input, the loop device standard output.
///
/// # Errors
/// When the harness is gone, or the first message is not understood.
pub fn agent_main() -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    let none: Option<&str> = None;
    let private = nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE;
    nix::mount::mount(none, "/", none, private, none)?;

    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let device = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let setup: Setup = channel::receive(&socket)?;
    let profile = untorn_spec::profile(&setup.profile)
        .ok_or_else(|| io::Error::other(format!("unknown profile {}", setup.profile)))?;
    let mut agent = Agent {
        setup,
        profile,
        device,
        mounted: false,
        seen: None,
    };
    loop {
        let request = match channel::receive(&socket) {
            Ok(request) => request,
            // The harness is done with us.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };
        let reply = agent.answer(request);
        channel::send(&socket, &reply)?;
    }
    if agent.mounted {
        agent
            .unmount()
            .map_err(|(what, error)| io::Error::new(error.kind(), format!("{what}: {error}")))?;
    }
    Ok(())
}

struct Agent {
    setup: Setup,
    profile: &'static Profile,
    device: File,
    mounted: bool,
    seen: Option<TreeSnapshot>,
}

type Failure = (&'static str, io::Error);

trait Named<T> {
    fn named(self, what: &'static str) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Named<T> for Result<T, E> {
    fn named(self, what: &'static str) -> Result<T, Failure> {
        self.map_err(|error| (what, error.into()))
    }
}

impl Agent {
    fn answer(&mut self, request: Request) -> Reply {
        let answer = match request {
            Request::Mount => self
                .drop_cache()
                .and_then(|()| self.mount())
                .map(|()| Reply::Done),
            Request::Populate { target, initial } => self
                .populate(&target, &initial)
                .named("populate")
                .map(|()| Reply::Done),
            Request::Sync => self.sync().named("syncfs").map(|()| Reply::Done),
            Request::NeighborCommit => neighbor_commit(&self.setup.mount_point, self.profile.fs)
                .named("neighbour commit")
                .map(|()| Reply::Done),
            Request::Look { target } => self.look(&target).named("look").map(Reply::Seen),
            Request::Recover { target } => match self.drop_cache() {
                Ok(()) => self
                    .mount()
                    .and_then(|()| self.look(&target).named("look").map(Reply::Seen)),
                // That is not the file system under test failing to recover.
                Err((what, error)) => Ok(Reply::Broken(format!("{what}: {error}"))),
            },
            Request::Tree => match self.seen.clone() {
                Some(tree) => Ok(Reply::Tree(tree)),
                None => Err(("tree", io::ErrorKind::NotFound.into())),
            },
            Request::ProbeUsable { target } => self.probe(&target).map(|()| Reply::Done),
            Request::Repeat { target, times } => self.repeat(&target, times).map(|()| Reply::Done),
            Request::Unmount => self.unmount().map(|()| Reply::Done),
        };
        answer.unwrap_or_else(|(what, error)| {
            let errno = error.raw_os_error();
            Reply::Failed {
                what: format!("{what}: {error}"),
                errno,
            }
        })
    }

    /// Makes sure that a mount sees the disk, and nothing that was cached of its last state.
    fn drop_cache(&self) -> Result<(), Failure> {
        const WHAT: &str = "drop the cache of the device";
        drop_cache(&self.device).named(WHAT)?;
        match cached_pages(&self.device) {
            None | Some(0) => Ok(()),
            Some(pages) => {
                let fs = self.profile.fs;
                let what = format!("the kernel's {fs} holds {pages} pages of it after unmounting");
                Err((WHAT, io::Error::other(what)))
            }
        }
    }

    fn mount(&mut self) -> Result<(), Failure> {
        mount_profile(&self.setup.device, &self.setup.mount_point, self.profile).named("mount")?;
        self.mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), Failure> {
        if self.mounted {
            unmount(&self.setup.mount_point).named("unmount")?;
            self.mounted = false;
            if self.profile.fs == FsKind::Btrfs {
                forget(&self.setup.device).named("forget the btrfs device")?;
            }
        }
        // A mount that failed leaves blocks in the cache that it has changed. Dropping them writes
        // them first: into this state of the disk, not into the next one.
        drop_cache(&self.device).named("drop the cache of the device")
    }

    fn repeat(&mut self, target: &str, times: u32) -> Result<(), Failure> {
        for _ in 0..times {
            mount_profile(&self.setup.device, &self.setup.mount_point, self.profile)
                .named("mount")?;
            self.mounted = true;
            self.look(target).named("look")?;
            unmount(&self.setup.mount_point).named("unmount")?;
            self.mounted = false;
        }
        Ok(())
    }

    fn top(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(
            &self.setup.mount_point,
            flags,
            Mode::empty(),
        )?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.top()?)?)
    }

    fn populate(&self, target: &str, initial: &Initial) -> io::Result<()> {
        let top = &self.setup.mount_point;
        fs::DirBuilder::new()
            .mode(0o755)
            .create(top.join(NEIGHBOR))?;
        let target = top.join(target);
        match initial {
            Initial::Generated(spec) => match spec.generation(0) {
                Some(tree) => make_tree(&target, &tree),
                None => Ok(()),
            },
            Initial::CopyOf(from) => copy_tree(from, &target),
        }
    }

    fn look(&mut self, target: &str) -> io::Result<Seen> {
        let top = self.top()?;
        let tree = TreeSnapshot::capture_at(&top, target, &CaptureOptions::default())?;
        let mut siblings = Vec::new();
        for entry in rustix::fs::Dir::read_from(&top)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let own = [".", "..", "lost+found", NEIGHBOR, target];
            if !own.contains(&name.as_str()) {
                siblings.push(name);
            }
        }
        siblings.sort();
        let digest = tree.digest();
        self.seen = Some(tree);
        Ok(Seen { digest, siblings })
    }

    /// After reading, writing works: create, replace, read back and delete in the target, or beside
    /// it where it is no directory.
    fn probe(&self, target: &str) -> Result<(), Failure> {
        let target = self.setup.mount_point.join(target);
        let place = if target.is_dir() {
            target.as_path()
        } else {
            &self.setup.mount_point
        };
        let (first, second) = (place.join(".untorn-probe-1"), place.join(".untorn-probe-2"));
        fs::write(&first, [1; 5000]).named("create a file")?;
        fs::write(&second, [2; 5000]).named("create a second file")?;
        fs::rename(&second, &first).named("rename it over the first")?;
        self.sync().named("write everything back")?;
        let read = fs::read(&first).named("read it back")?;
        if read != [2; 5000] {
            return Err(("read it back", io::Error::other("other bytes than written")));
        }
        fs::remove_file(&first).named("remove it")
    }
}

fn make_tree(target: &Path, tree: &TreeContent) -> io::Result<()> {
    fs::create_dir(target)?;
    for directory in &tree.directories {
        if !directory.path.is_empty() {
            fs::create_dir(target.join(&directory.path))?;
        }
    }
    for file in &tree.files {
        let path = target.join(&file.path);
        File::create(&path)?.write_all(&file.bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
    }
    for directory in &tree.directories {
        let path = target.join(&directory.path);
        fs::set_permissions(path, fs::Permissions::from_mode(directory.mode))?;
    }
    Ok(())
}

/// Copies files, directories and symbolic links with their modes.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let wrap = |error: io::Error| {
        io::Error::new(error.kind(), format!("copy {}: {error}", from.display()))
    };
    let metadata = fs::symlink_metadata(from).map_err(wrap)?;
    if metadata.is_symlink() {
        return symlink(fs::read_link(from).map_err(wrap)?, to).map_err(wrap);
    }
    if !metadata.is_dir() {
        if !metadata.is_file() {
            let what = "neither a file nor a directory nor a symbolic link";
            return Err(wrap(io::Error::new(io::ErrorKind::Unsupported, what)));
        }
        fs::copy(from, to).map_err(wrap)?;
        return fs::set_permissions(to, metadata.permissions()).map_err(wrap);
    }
    fs::create_dir(to).map_err(wrap)?;
    for entry in fs::read_dir(from).map_err(wrap)? {
        let entry = entry.map_err(wrap)?;
        copy_tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    fs::set_permissions(to, metadata.permissions()).map_err(wrap)
}
