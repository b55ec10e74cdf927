//! A guest: booted, given commands, and killed when it goes wrong.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;
use untorn_process::Interrupt;

use crate::VmError;
use crate::accelerator::{self, Accelerator, AcceleratorChoice};
use crate::console::Console;
use crate::error::{Death, DeathKind};
use crate::kernel::Kernel;
use crate::protocol::{self, FromGuest, Job, JobExit, ToGuest};
use crate::qemu::Machine;

/// How guests are run.
#[derive(Debug, Clone, Copy)]
pub struct GuestOptions {
    /// Memory of a guest.
    pub memory_mib: u32,
    /// What runs it.
    pub accelerator: AcceleratorChoice,
    /// Longest silence; init says a word every second.
    pub silence_max: Duration,
}

impl Default for GuestOptions {
    fn default() -> Self {
        Self {
            memory_mib: 1536,
            accelerator: AcceleratorChoice::Auto,
            silence_max: Duration::from_mins(1),
        }
    }
}

/// How long a guest that the processor runs may take to its first word. It takes one or two
/// seconds; where KVM does not work it takes for ever.
const KVM_BOOT_LIMIT: Duration = Duration::from_secs(10);

/// Takes what comes out of a guest.
pub trait Sink {
    /// The command printed something.
    ///
    /// # Errors
    /// When it cannot be passed on.
    fn output(&mut self, stderr: bool, bytes: &[u8]) -> io::Result<()>;

    /// A part of a file; `path` is relative to the directory that is collected, and plain.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn file(&mut self, path: &Path, mode: u32, append: bool, bytes: &[u8]) -> io::Result<()>;
}

/// A running guest. Dropped, it is killed.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    channel: Option<UnixStream>,
    received: Vec<u8>,
    console: Console,
    silence_max: Duration,
    /// What runs it.
    pub accelerator: Accelerator,
    /// From its start to init's first word.
    pub boot: Duration,
    /// `uname -r`.
    pub release: String,
    _scratch: TempDir,
}

/// While one guest shows whether KVM works, the others wait for the answer.
static PROBING: Mutex<()> = Mutex::new(());

impl Guest {
    /// Boots a kernel and waits for its init.
    ///
    /// # Errors
    /// When the guest cannot be started, or dies. Nothing is left running.
    pub fn boot(
        kernel: &Kernel,
        initramfs: &Path,
        options: &GuestOptions,
        interrupt: &Interrupt,
    ) -> Result<Self, VmError> {
        let start = |accelerator, limit| {
            Self::start(kernel, initramfs, options, accelerator, limit, interrupt)
        };
        let only = match options.accelerator {
            AcceleratorChoice::Only(only) => Some(only),
            AcceleratorChoice::Auto => None,
        };
        if let Some(accelerator) = only {
            return start(accelerator, options.silence_max);
        }
        let probing = PROBING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accelerator::known() {
            drop(probing);
            return start(known, options.silence_max);
        }
        match start(Accelerator::Kvm, KVM_BOOT_LIMIT) {
            Ok(guest) => {
                accelerator::remember(Accelerator::Kvm);
                Ok(guest)
            }
            Err(VmError::Died { .. }) => {
                let guest = start(Accelerator::Emulation, options.silence_max)?;
                accelerator::remember(Accelerator::Emulation);
                Ok(guest)
            }
            Err(error) => Err(error),
        }
    }

    fn start(
        kernel: &Kernel,
        initramfs: &Path,
        options: &GuestOptions,
        accelerator: Accelerator,
        boot_limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<Self, VmError> {
        let begun = Instant::now();
        let temporary = std::env::temp_dir();
        let failed = |error| VmError::io("listen in", &temporary, error);
        let scratch = untorn_device::leftovers::scratch_dir().map_err(failed)?;
        let socket = scratch.path().join("channel");
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let mut child = Machine {
            kernel,
            initramfs,
            memory_mib: options.memory_mib,
            accelerator,
            channel: &socket,
        }
        .start()?;
        let mut guest = Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            channel: None,
            received: Vec::new(),
            console: Console::default(),
            silence_max: boot_limit,
            accelerator,
            boot: Duration::ZERO,
            release: String::new(),
            _scratch: scratch,
        };
        guest.connect(&listener, interrupt)?;
        match guest.next(interrupt)? {
            (FromGuest::Hello { release, .. }, _) => guest.release = release,
            (other, _) => return Err(VmError::Protocol(format!("{other:?}, not a greeting"))),
        }
        guest.boot = begun.elapsed();
        guest.silence_max = options.silence_max;
        Ok(guest)
    }

    /// Waits for the emulator, which connects before it runs anything.
    fn connect(&mut self, listener: &UnixListener, interrupt: &Interrupt) -> Result<(), VmError> {
        let deadline = Instant::now() + self.silence_max;
        loop {
            match listener.accept() {
                Ok((channel, _)) => {
                    self.channel = Some(channel);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(VmError::Protocol(error.to_string())),
            }
            interrupt.check()?;
            if let Ok(Some(_)) = self.child.try_wait() {
                return Err(self.ended());
            }
            if Instant::now() > deadline {
                return Err(self.died(DeathKind::Silent(self.silence_max)));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Runs a command in the guest. What it prints, and the files it makes, go to `sink`.
    ///
    /// # Errors
    /// When the guest dies, or `sink` fails. The guest is of no use then.
    pub fn run(
        &mut self,
        job: &Job,
        sink: &mut dyn Sink,
        interrupt: &Interrupt,
    ) -> Result<JobExit, VmError> {
        self.tell(&ToGuest::Run(job.clone()))?;
        loop {
            match self.next(interrupt)? {
                (FromGuest::Alive | FromGuest::Hello { .. }, _) => {}
                (FromGuest::Output { stderr }, bytes) => sink
                    .output(stderr, &bytes)
                    .map_err(|error| VmError::io("write", Path::new("the output"), error))?,
                (FromGuest::File { path, mode, append }, bytes) => {
                    let path = plain(&path)?;
                    sink.file(path, mode, append, &bytes)
                        .map_err(|error| VmError::io("write", path, error))?;
                }
                (FromGuest::Done(exit), _) => return Ok(exit),
                (FromGuest::Failed(why), _) => return Err(self.died(DeathKind::Failed(why))),
            }
        }
    }

    /// Has it power off, and waits a little for that.
    pub fn power_off(mut self) {
        if self.tell(&ToGuest::PowerOff).is_ok() {
            let deadline = Instant::now() + Duration::from_secs(2);
            while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn tell(&mut self, message: &ToGuest) -> Result<(), VmError> {
        let Some(channel) = &mut self.channel else {
            return Err(self.ended());
        };
        protocol::send(channel, message, b"").map_err(|_closed| self.ended())
    }

    /// The next message; what the console says meanwhile is kept.
    fn next(&mut self, interrupt: &Interrupt) -> Result<(FromGuest, Vec<u8>), VmError> {
        let mut heard = Instant::now();
        loop {
            let message = protocol::take(&mut self.received)
                .map_err(|error| VmError::Protocol(error.to_string()))?;
            if let Some(message) = message {
                return Ok(message);
            }
            interrupt.check()?;
            let silent = heard.elapsed();
            if silent >= self.silence_max {
                return Err(self.died(DeathKind::Silent(self.silence_max)));
            }
            let before = self.received.len();
            if !self.read_what_comes(interrupt, self.silence_max.saturating_sub(silent))? {
                return Err(self.ended());
            }
            if self.received.len() > before {
                heard = Instant::now();
            }
        }
    }

    /// Waits for the console or the channel and reads; false when the emulator is gone.
    fn read_what_comes(&mut self, interrupt: &Interrupt, limit: Duration) -> Result<bool, VmError> {
        let wake = interrupt.wake();
        let mut fds = vec![PollFd::from_borrowed_fd(wake, PollFlags::IN)];
        let sources = [
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
            self.channel.as_ref().map(AsFd::as_fd),
        ];
        let present = sources.map(|source| source.is_some());
        for source in sources.into_iter().flatten() {
            fds.push(PollFd::from_borrowed_fd(source, PollFlags::IN));
        }
        let limit = Timespec::try_from(limit).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(VmError::Protocol(error.to_string())),
        }
        let mut ready = fds.iter().skip(1).map(|fd| !fd.revents().is_empty());
        let mut is_ready = |present: bool| present && ready.next().unwrap_or(false);
        let [stdout, stderr, channel] = present.map(&mut is_ready);
        drop(fds);
        let mut buffer = vec![0; 64 * 1024];
        if stdout && !read_console(&mut self.stdout, &mut buffer, &mut self.console) {
            self.stdout = None;
        }
        if stderr && !read_console(&mut self.stderr, &mut buffer, &mut self.console) {
            self.stderr = None;
        }
        if channel && let Some(open) = &mut self.channel {
            match open.read(&mut buffer) {
                Ok(length @ 1..) => self.received.extend(&buffer[..length]),
                Ok(0) | Err(_) => self.channel = None,
            }
        }
        Ok(self.stdout.is_some() || self.channel.is_some())
    }

    /// The error of a guest whose emulator is gone, or will be in a moment.
    fn ended(&mut self) -> VmError {
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let how = match self.child.try_wait() {
            Ok(Some(status)) => format!("the emulator's {status}"),
            _ => "it closed its port".to_owned(),
        };
        self.died(DeathKind::Ended(how))
    }

    fn died(&mut self, kind: DeathKind) -> VmError {
        self.child.kill().ok();
        // What it had still to say.
        let mut buffer = vec![0; 64 * 1024];
        while read_console(&mut self.stdout, &mut buffer, &mut self.console) {}
        while read_console(&mut self.stderr, &mut buffer, &mut self.console) {}
        let kind = if self.console.has_panicked() {
            DeathKind::Panicked
        } else {
            kind
        };
        VmError::Died {
            death: Death {
                kind,
                console: self.console.told(),
            },
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It fails when it has ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads a piece of the console; false at its end.
fn read_console(from: &mut Option<impl Read>, buffer: &mut [u8], console: &mut Console) -> bool {
    match from.as_mut().map(|from| from.read(buffer)) {
        Some(Ok(length @ 1..)) => {
            console.push(&buffer[..length]);
            true
        }
        Some(Ok(0) | Err(_)) | None => false,
    }
}

/// A path that leads nowhere else, whatever the guest says.
fn plain(path: &str) -> Result<&Path, VmError> {
    use std::path::Component;
    let plain = Path::new(path);
    let mut components = plain.components();
    if path.is_empty() || !components.all(|part| matches!(part, Component::Normal(_))) {
        return Err(VmError::Protocol(format!("a file at `{path}`")));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_guest_writes_nowhere_but_below_the_directory() {
        assert!(plain("run/violations/1/bundle.json").is_ok());
        for path in ["", "/etc/passwd", "../x", "a/../../x", "./x/.."] {
            assert!(plain(path).is_err(), "{path}");
        }
    }
}
