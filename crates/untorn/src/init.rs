//! The first process of a guest: mounts what a system needs, loads modules, and runs commands for
//! the harness outside.

mod collector;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::mount::{MountFlags, mount};
use untorn_vm::protocol::{self, FromGuest, Job, JobExit, PORT, ToGuest};
use untorn_vm::{AT_BOOT, IMAGES, MODULE_ORDER, MODULES, PROGRAM};

use self::collector::Collector;
use crate::session::Usage;

/// How often new events are looked for.
const TICK: Duration = Duration::from_millis(200);
/// A word every second tells that the guest lives.
const ALIVE: Duration = Duration::from_secs(1);
/// How long the port may take to appear once its modules are loaded.
const PORT_LIMIT: Duration = Duration::from_secs(10);

/// Is the first process of a guest. The machine is switched off at the end.
///
/// # Errors
/// When this is no guest of ours, or it cannot be set up; the kernel panics then, which the
/// harness sees on the console.
pub fn init() -> Result<()> {
    if std::process::id() != 1 || !Path::new(MODULES).is_dir() {
        let what = "this is the first process of a guest; `untorn vm` starts one";
        return Err(Usage(what.to_owned()).into());
    }
    set_up()?;
    let mut modules = ModuleLoader::read()?;
    for name in AT_BOOT {
        modules.load(name)?;
    }
    let mut port = open_port()?;
    let to_harness = Mutex::new(port.try_clone().context("the port cannot be shared")?);
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let hello = FromGuest::Hello {
        release,
        uptime_ms: uptime_ms(),
    };
    tell(&to_harness, &hello, b"")?;
    loop {
        match protocol::receive(&mut port)
            .context("the harness is gone")?
            .0
        {
            ToGuest::PowerOff => break,
            ToGuest::Run(job) => {
                let done = match run(&job, &mut modules, &to_harness) {
                    Ok(exit) => FromGuest::Done(exit),
                    Err(error) => FromGuest::Failed(format!("{error:#}")),
                };
                tell(&to_harness, &done, b"")?;
            }
        }
    }
    rustix::fs::sync();
    rustix::system::reboot(rustix::system::RebootCommand::PowerOff)
        .context("the machine does not switch off")
}

/// Milliseconds since the kernel started, see `proc_uptime(5)`.
fn uptime_ms() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let (seconds, rest) = text.split_once('.').unwrap_or_default();
    let hundredths = rest
        .split(' ')
        .next()
        .and_then(|digits| digits.parse::<u64>().ok());
    seconds.parse::<u64>().unwrap_or(0) * 1000 + hundredths.unwrap_or(0) * 10
}

fn set_up() -> Result<()> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        // Not on /tmp: files that came along may be there.
        ("tmpfs", "/run"),
    ] {
        let none: Option<&std::ffi::CStr> = None;
        mount(kind, place, kind, MountFlags::empty(), none)
            .with_context(|| format!("cannot mount {kind}"))?;
    }
    // File systems complain about every crash state, over a slow line. A panic is told in any case.
    fs::write("/proc/sys/kernel/printk", "1").context("the console stays loud")?;
    // Not on every kernel at boot.
    fs::write("/proc/sys/vm/panic_on_oom", "1").context("/proc/sys/vm/panic_on_oom")?;
    Ok(())
}

/// Loads modules, each once.
struct ModuleLoader {
    order: BTreeMap<String, Vec<PathBuf>>,
    loaded: BTreeSet<PathBuf>,
}

impl ModuleLoader {
    fn read() -> Result<Self> {
        let path = Path::new(MODULES).join(MODULE_ORDER);
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        Ok(Self {
            order: serde_json::from_slice(&text)?,
            loaded: BTreeSet::new(),
        })
    }

    /// Loads a module behind those that it needs; what did not come along is built in or absent.
    fn load(&mut self, name: &str) -> Result<()> {
        for path in self.order.get(name).into_iter().flatten() {
            if !self.loaded.insert(path.clone()) {
                continue;
            }
            let file = File::open(path).with_context(|| path.display().to_string())?;
            match rustix::system::finit_module(&file, c"", 0) {
                // It is there already, or it is for another processor.
                Ok(()) | Err(rustix::io::Errno::EXIST | rustix::io::Errno::NODEV) => {}
                Err(error) => bail!("the kernel refuses the module {}: {error}", path.display()),
            }
        }
        Ok(())
    }
}

/// The port on which the harness listens.
fn open_port() -> Result<File> {
    let deadline = Instant::now() + PORT_LIMIT;
    while Instant::now() < deadline {
        let ports = fs::read_dir("/sys/class/virtio-ports");
        for port in ports.into_iter().flatten().flatten() {
            let name = fs::read_to_string(port.path().join("name")).unwrap_or_default();
            if name.trim() == PORT {
                let device = Path::new("/dev").join(port.file_name());
                return File::options()
                    .read(true)
                    .write(true)
                    .open(&device)
                    .with_context(|| device.display().to_string());
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("the port to the harness does not appear")
}

fn tell(to: &Mutex<File>, head: &FromGuest, body: &[u8]) -> io::Result<()> {
    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
    protocol::send(&mut *to, head, body)
}

fn run(job: &Job, modules: &mut ModuleLoader, to_harness: &Mutex<File>) -> Result<JobExit> {
    for name in &job.modules {
        modules.load(name)?;
    }
    let make = |path: &Path| {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
    };
    make(&job.directory)?;
    let mut collector = None;
    if let Some(directory) = &job.collect {
        make(directory)?;
        collector = Some(Collector::new(directory)?);
    }
    let mut child = Command::new(PROGRAM)
        .args(&job.args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", "/run")
        .env("UNTORN_CACHE", "/run/cache")
        .env(untorn_device::IMAGES_VARIABLE, IMAGES)
        .envs(&job.env)
        .current_dir(&job.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("the program cannot be started")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (ended, has_ended) = mpsc::channel::<()>();
    let status = std::thread::scope(|scope| {
        let readers = [
            stdout.map(|from| scope.spawn(move || pass_on(from, false, to_harness))),
            stderr.map(|from| scope.spawn(move || pass_on(from, true, to_harness))),
        ];
        let ticker = {
            let collector = collector.as_mut();
            scope.spawn(move || tick(collector, &has_ended, to_harness))
        };
        let status = child.wait().context("the program cannot be waited for")?;
        drop(ended);
        for reader in readers.into_iter().flatten() {
            reader
                .join()
                .map_err(|_panic| anyhow::anyhow!("a reader panicked"))??;
        }
        let ticked = ticker.join();
        ticked.map_err(|_panic| anyhow::anyhow!("the ticker panicked"))??;
        anyhow::Ok(status)
    })?;
    if let Some(mut collector) = collector {
        collector.sweep(to_harness)?;
    }
    reap();
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => JobExit::Code(code),
        (None, signal) => JobExit::Signal(signal.unwrap_or(0)),
    })
}

/// Reaps what the command has left to the first process.
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn pass_on(mut from: impl Read, stderr: bool, to: &Mutex<File>) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => tell(to, &FromGuest::Output { stderr }, &buffer[..length])?,
        }
    }
}

/// Says that the guest lives, and sends what happened, until the command has ended.
fn tick(
    mut collector: Option<&mut Collector>,
    has_ended: &mpsc::Receiver<()>,
    to: &Mutex<File>,
) -> io::Result<()> {
    let mut told = Instant::now();
    while has_ended.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
        if let Some(collector) = &mut collector
            && collector.has_news()
        {
            collector.sweep(to)?;
        }
        if told.elapsed() >= ALIVE {
            tell(to, &FromGuest::Alive, b"")?;
            told = Instant::now();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_guest_gets_an_init() {
        assert!(init().unwrap_err().to_string().contains("`untorn vm`"));
    }
}
