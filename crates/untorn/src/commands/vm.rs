//! `untorn vm`: a command under another kernel, as if it had run here.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use untorn_process::Interrupt;
use untorn_runner::shell_word;
use untorn_spec::{Exit, PROFILES, profiles_from_list};
use untorn_vm::protocol::{Job, JobExit};
use untorn_vm::{
    AcceleratorChoice, Guest, GuestOptions, Kernel, Sink, VmError, find_static_program,
    qemu_version, write_initramfs, write_part,
};

use crate::cli::{Cli, Command, GuestArgs, VmArgs};
use crate::session::{GUEST_VARIABLE, TYPED_VARIABLE, Usage, typed_program};

/// Runs a command in a guest.
///
/// # Errors
/// Bad input, no such kernel, or the guest died.
pub fn vm(args: &VmArgs) -> Result<Exit> {
    let interrupt = Interrupt::install().context("cannot handle signals")?;
    let inside = Inside::of(&args.args)?;
    let program = find_static_program(args.guest.init.as_deref())?;
    let kernel = Kernel::find(&args.kernel)?;
    let qemu = qemu_version()?;
    let scratch =
        untorn_device::leftovers::scratch_dir().context("cannot make a scratch directory")?;
    let initramfs = scratch.path().join("initramfs");
    write_initramfs(&kernel, &program, &inside.files, &initramfs)?;
    let mut guest = Guest::boot(&kernel, &initramfs, &options(&args.guest), &interrupt)?;
    writeln!(
        io::stderr(),
        "kernel {} booted in {:.1} s ({})",
        guest.release,
        guest.boot.as_secs_f64(),
        guest_text(&qemu, &guest)
    )?;
    let directory = std::env::current_dir().context("the working directory is unknown")?;
    let typed = format!(
        "{} vm --kernel {} --",
        typed_program(),
        shell_word(&args.kernel)
    );
    let job = Job {
        args: args.args.clone(),
        env: environment(guest_text(&qemu, &guest), typed),
        collect: inside.out.as_ref().map(|out| directory.join(out)),
        directory,
        modules: inside.modules,
    };
    let mut here = Here { out: inside.out };
    let exit = guest.run(&job, &mut here, &interrupt)?;
    guest.power_off();
    exit_of(exit)
}

/// How guests are run, by what was said on the command line.
pub(crate) fn options(args: &GuestArgs) -> GuestOptions {
    GuestOptions {
        memory_mib: args.memory,
        accelerator: args.accel.unwrap_or(AcceleratorChoice::Auto),
        silence_max: Duration::from_secs(args.silence),
    }
}

/// What ran a guest, for people and certificates.
pub(crate) fn guest_text(qemu: &str, guest: &Guest) -> String {
    format!("QEMU {qemu}, {}", guest.accelerator)
}

/// What a run in a guest must know of the outside.
pub(crate) fn environment(guest: String, typed: String) -> BTreeMap<String, String> {
    let variables = [(GUEST_VARIABLE, guest), (TYPED_VARIABLE, typed)];
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The exit code of a command in a guest.
fn exit_of(exit: JobExit) -> Result<Exit> {
    const ALL: [Exit; 9] = [
        Exit::Success,
        Exit::Violation,
        Exit::Usage,
        Exit::Unsupported,
        Exit::ControlNotCaught,
        Exit::Inconclusive,
        Exit::Internal,
        Exit::Interrupted,
        Exit::Terminated,
    ];
    match exit {
        JobExit::Code(code) => match ALL.into_iter().find(|exit| i32::from(exit.code()) == code) {
            Some(exit) => Ok(exit),
            None => bail!("the command in the guest ended with exit code {code}"),
        },
        JobExit::Signal(signal) => bail!("the command in the guest was killed by signal {signal}"),
    }
}

/// The exit code of what went wrong with a kernel or a guest.
pub(crate) fn exit_of_error(error: &VmError) -> Exit {
    match error {
        VmError::UnknownKernel { .. } | VmError::NotAKernel { .. } | VmError::NotAModule { .. } => {
            Exit::Usage
        }
        VmError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::Usage,
        VmError::Io { .. } => Exit::Unsupported,
        VmError::NoModule { .. } | VmError::NoQemu { .. } | VmError::NoStaticBinary { .. } => {
            Exit::Unsupported
        }
        VmError::Died { .. } => Exit::Inconclusive,
        // An interruption has an exit code of its own, see `exit_of` in the parent module.
        VmError::Protocol(_) | VmError::Interrupted(_) => Exit::Internal,
    }
}

/// What a command needs inside, and leaves there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Inside {
    /// Modules for the file systems that it names, all where it names none, and for devices that
    /// fail on purpose.
    modules: Vec<String>,
    /// Files and directories that it reads.
    files: Vec<PathBuf>,
    /// Directory that it writes.
    out: Option<PathBuf>,
}

impl Inside {
    /// Reads the command line as the command in the guest will.
    fn of(args: &[String]) -> Result<Self> {
        let words = std::iter::once("untorn".to_owned()).chain(args.iter().cloned());
        let cli = Cli::try_parse_from(words)
            .map_err(|error| Usage(format!("behind `--`: {error}").trim_end().to_owned()))?;
        let (fs, out, files) = match cli.command {
            Command::Run(args) => {
                let files = args.scenarios.into_iter().map(PathBuf::from);
                let files = files.filter(|path| path.is_file()).collect();
                (args.options.fs, Some(args.options.out), files)
            }
            Command::Certify(args) if args.kernel.is_empty() => {
                (args.options.fs, Some(args.options.out), Vec::new())
            }
            Command::Check(args) => (args.options.fs, Some(args.options.out), vec![args.old]),
            Command::Replay(args) => {
                let bundle = PathBuf::from(&args.what);
                let bundle = if bundle.is_dir() { bundle } else { args.runs };
                (None, args.extract, vec![bundle])
            }
            Command::Bench(args) => (Some(args.fs), None, Vec::new()),
            Command::Doctor(_) | Command::List(_) => (None, None, Vec::new()),
            Command::Certify(_) | Command::Report(_) | Command::Vm(_) | Command::Internal(_) => {
                return Err(Usage("this command needs no guest, or starts its own".into()).into());
            }
        };
        let mut modules = modules_for(fs.as_deref());
        modules.extend(["dm-flakey", "dm-log-writes"].map(str::to_owned));
        Ok(Self {
            modules,
            files: files
                .iter()
                .map(|path| {
                    std::path::absolute(path)
                        .with_context(|| format!("cannot find {}", path.display()))
                })
                .collect::<Result<_>>()?,
            out,
        })
    }
}

/// Modules of the file systems of these profiles. A list that is no list is the command's to
/// complain about.
pub(crate) fn modules_for(list: Option<&str>) -> Vec<String> {
    let named = list.and_then(|list| profiles_from_list(list).ok());
    let mut names: Vec<String> = match named {
        Some(profiles) => profiles
            .iter()
            .map(|profile| profile.fs.name().to_owned())
            .collect(),
        None => PROFILES
            .iter()
            .map(|profile| profile.fs.name().to_owned())
            .collect(),
    };
    names.sort();
    names.dedup();
    names
}

/// Hands on what comes out, as if it had run here.
struct Here {
    out: Option<PathBuf>,
}

impl Sink for Here {
    fn output(&mut self, stderr: bool, bytes: &[u8]) -> io::Result<()> {
        if stderr {
            io::stderr().write_all(bytes)
        } else {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
    }

    fn file(&mut self, path: &Path, mode: u32, append: bool, bytes: &[u8]) -> io::Result<()> {
        match &self.out {
            Some(out) => write_part(out, path, mode, append, bytes).map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(line: &str) -> Result<Inside> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Inside::of(&args)
    }

    #[test]
    fn a_command_line_tells_what_it_needs() {
        let run = inside("run two-files --fs ext4-nobarrier,btrfs --out /x").unwrap();
        assert_eq!(run.modules, ["btrfs", "ext4", "dm-flakey", "dm-log-writes"]);
        assert_eq!(run.out, Some("/x".into()));
        assert!(run.files.is_empty());
        let certify = inside("certify").unwrap();
        assert_eq!(certify.modules[..3], ["btrfs", "ext4", "xfs"]);
        let check = inside("check --old src -- /bin/true").unwrap();
        assert_eq!(check.files, [std::env::current_dir().unwrap().join("src")]);
        assert_eq!(inside("doctor").unwrap().out, None);
    }

    #[test]
    fn what_cannot_run_inside_is_refused_before_anything_boots() {
        for line in [
            "run",
            "nonsense",
            "vm --kernel x -- list",
            "certify --kernel x",
        ] {
            let error = inside(line).unwrap_err();
            assert!(error.is::<Usage>(), "{error}");
        }
    }

    #[test]
    fn exit_codes_come_out() {
        assert_eq!(exit_of(JobExit::Code(4)).unwrap(), Exit::ControlNotCaught);
        assert_eq!(exit_of(JobExit::Code(0)).unwrap(), Exit::Success);
        assert!(exit_of(JobExit::Code(42)).is_err());
        assert!(exit_of(JobExit::Signal(9)).is_err());
    }
}
