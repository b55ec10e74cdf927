//! One worker: a recorded disk and the agent that mounts it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use untorn_block::{CrashDisk, CrashSpace, Image};
use untorn_device::{RecordedDisk, Sealed};
use untorn_explore::{DefaultPick, Path as ChoicePath};
use untorn_oracle::TreeSnapshot;
use untorn_spec::Profile;

use crate::agent::{Reply, Request, Seen, Setup};
use crate::channel;

/// No request to an agent takes longer on a slow guest; an agent that does is stuck.
const REPLY_LIMIT: Duration = Duration::from_mins(2);

/// How the agent's process is started: this program with these arguments.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, which make it call [`crate::agent_main`].
    pub args: Vec<String>,
}

/// What one recovery came to.
#[derive(Debug)]
pub(crate) enum Recovered {
    /// It was mounted and looked at.
    Seen(Seen),
    /// It could not be mounted, or not even be looked at.
    Unmountable(String),
}

/// The child that mounts a device, and the socket to it.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    socket: Option<UnixStream>,
    profile: &'static Profile,
    mount_point: PathBuf,
}

impl Agent {
    /// Starts an agent on the calling thread, with whom it ends. It takes over the device.
    pub(crate) fn start(
        command: &AgentCommand,
        profile: &'static Profile,
        scratch: &Path,
        path: &Path,
        device: File,
    ) -> Result<Self> {
        let mount_point = scratch.join("mnt");
        fs::create_dir_all(&mount_point)
            .with_context(|| format!("cannot create {}", mount_point.display()))?;
        let (socket, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        socket
            .set_read_timeout(Some(REPLY_LIMIT))
            .context("socket time limit")?;
        let child = Command::new(&command.program)
            .args(&command.args)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(device))
            // Ctrl-C on the terminal is the harness's to handle.
            .process_group(0)
            .spawn()
            .with_context(|| {
                format!("cannot start the disk agent {}", command.program.display())
            })?;
        let agent = Self {
            child,
            socket: Some(socket),
            profile,
            mount_point,
        };
        let setup = Setup {
            device: path.to_owned(),
            mount_point: agent.mount_point.clone(),
            profile: profile.name.to_owned(),
        };
        channel::send(agent.socket()?, &setup).context("cannot talk to the disk agent")?;
        Ok(agent)
    }

    fn socket(&self) -> Result<&UnixStream> {
        self.socket.as_ref().context("the disk agent is gone")
    }

    pub(crate) fn ask(&self, request: &Request) -> Result<Reply> {
        let socket = self.socket()?;
        channel::send(socket, request).context("cannot talk to the disk agent")?;
        match channel::receive(socket) {
            Ok(reply) => Ok(reply),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => bail!(
                "the disk agent did not answer {request:?} within {} s: the kernel is stuck in {}",
                REPLY_LIMIT.as_secs(),
                self.profile.fs
            ),
            Err(error) => Err(error).context("the disk agent ended unexpectedly"),
        }
    }

    /// Asks for something that must succeed.
    pub(crate) fn must(&self, request: &Request) -> Result<()> {
        match self.ask(request)? {
            Reply::Done => Ok(()),
            Reply::Failed { what, .. } | Reply::Broken(what) => {
                bail!("{}: {what}", self.profile.name)
            }
            Reply::Seen(_) | Reply::Tree(_) => bail!("unexpected answer to {request:?}"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The agent ends when its socket closes; it unmounts, and the loop device goes with it.
        self.socket = None;
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A disk that this process serves, and the agent that mounts it.
#[derive(Debug)]
pub(crate) struct Worker {
    // The agent holds the device: it goes first.
    agent: Agent,
    pub(crate) disk: RecordedDisk,
    pub(crate) profile: &'static Profile,
}

impl Worker {
    /// Makes a disk of `bytes` and starts the agent on the calling thread; the agent ends with it.
    pub(crate) fn start(
        profile: &'static Profile,
        bytes: u64,
        scratch: &Path,
        command: &AgentCommand,
    ) -> Result<Self> {
        fs::create_dir_all(scratch)
            .with_context(|| format!("cannot create {}", scratch.display()))?;
        let mut disk = RecordedDisk::new(bytes, profile.unit, profile.request_kib, scratch)?;
        let device = disk
            .take_device()
            .context("the loop device was taken already")?;
        let agent = Agent::start(command, profile, scratch, disk.path(), device)?;
        disk.watch(agent.child.id())
            .context("cannot watch the disk agent")?;
        Ok(Self {
            agent,
            disk,
            profile,
        })
    }

    /// Where the agent mounts the disk.
    pub(crate) fn mount_point(&self) -> &Path {
        &self.agent.mount_point
    }

    fn ask(&self, request: &Request) -> Result<Reply> {
        self.agent.ask(request)
    }

    /// Asks for something that must succeed.
    pub(crate) fn must(&self, request: &Request) -> Result<()> {
        self.agent.must(request)
    }

    /// Looks at the mounted target.
    pub(crate) fn look(&self, target: &str) -> Result<Seen> {
        match self.ask(&Request::Look {
            target: target.to_owned(),
        })? {
            Reply::Seen(seen) => Ok(seen),
            other => bail!("looking at the target failed: {other:?}"),
        }
    }

    /// The whole tree of the last look.
    pub(crate) fn tree(&self) -> Result<TreeSnapshot> {
        match self.ask(&Request::Tree)? {
            Reply::Tree(tree) => Ok(tree),
            other => bail!("the tree could not be read: {other:?}"),
        }
    }

    /// The mount namespace in which the file system is seen.
    pub(crate) fn namespace(&self) -> Result<File> {
        let path = format!("/proc/{}/ns/mnt", self.agent.child.id());
        File::open(&path).with_context(|| format!("cannot open {path}"))
    }

    /// The agent's process.
    pub(crate) fn agent_id(&self) -> u32 {
        self.agent.child.id()
    }

    /// Recovers one state of a crash space; the file system stays mounted. The second part is what
    /// was decided beyond `path`. Units that were decided to no use before come last.
    pub(crate) fn recover(
        &self,
        space: &Arc<CrashSpace>,
        path: &ChoicePath,
        default: DefaultPick,
        target: &str,
        useless_before: Arc<HashMap<u64, u32>>,
    ) -> Result<(Recovered, Sealed)> {
        let default = Box::new(move |unit, versions| default.pick(unit, versions));
        let crash = CrashDisk::new(space.clone(), path.iter(), default);
        self.disk.start_crash(crash, useless_before);
        let reply = self.ask(&Request::Recover {
            target: target.to_owned(),
        });
        let sealed = self.disk.seal();
        let recovered = match reply? {
            Reply::Seen(seen) => Recovered::Seen(seen),
            Reply::Failed { what, .. } => Recovered::Unmountable(what),
            Reply::Broken(what) => bail!("{}: {what}", self.profile.name),
            other => bail!("unexpected answer to a recovery: {other:?}"),
        };
        Ok((recovered, sealed))
    }

    /// Recovers an image that is decided altogether.
    pub(crate) fn recover_image(&self, image: Image, target: &str) -> Result<Recovered> {
        self.disk.load(image);
        match self.ask(&Request::Recover {
            target: target.to_owned(),
        })? {
            Reply::Seen(seen) => Ok(Recovered::Seen(seen)),
            Reply::Failed { what, .. } => Ok(Recovered::Unmountable(what)),
            Reply::Broken(what) => bail!("{}: {what}", self.profile.name),
            other => bail!("unexpected answer to a recovery: {other:?}"),
        }
    }

    /// Writes to the recovered file system; the error says what failed.
    pub(crate) fn probe_usable(&self, target: &str) -> Result<std::result::Result<(), String>> {
        match self.ask(&Request::ProbeUsable {
            target: target.to_owned(),
        })? {
            Reply::Done => Ok(Ok(())),
            Reply::Failed { what, .. } => Ok(Err(what)),
            other => bail!("unexpected answer to a probe: {other:?}"),
        }
    }

    /// Unmounts.
    pub(crate) fn unmount(&self) -> Result<()> {
        self.must(&Request::Unmount)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // What still waits for a decision gets one, so that the agent can unmount.
        self.disk.seal();
    }
}
