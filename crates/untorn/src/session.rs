//! What every subcommand that runs something shares: scratch space, the run folder, progress,
//! reports and the exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use anyhow::{Context, Result};
use untorn_process::Interrupt;
use untorn_report::{Bars, Fold, Progress, TableOptions, story, table, write_html, write_junit};
use untorn_runner::{
    AgentCommand, Display, ProfilePlan, RunFolder, Settings, WriterCommand, error_text, run,
    shell_word,
};
use untorn_spec::{CaseId, Certificate, Exit, RunEvent, RunInfo, ViolationRecord};

use crate::cli::{Color, RunOptions};

/// Bad input; the message says what would help.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Which violations are told on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// All.
    All,
    /// Those that nobody expected.
    Unexpected,
}

/// How the harness starts itself as a disk agent.
///
/// # Errors
/// When the path of this program is unknown.
pub fn agent_command() -> Result<AgentCommand> {
    Ok(AgentCommand {
        program: own_program()?,
        args: vec!["internal".into(), "agent".into()],
    })
}

/// How the harness starts itself as a built-in writer.
///
/// # Errors
/// When the path of this program is unknown.
pub fn writer_command() -> Result<WriterCommand> {
    let args = ["internal", "subject"].map(OsString::from);
    Ok(WriterCommand {
        program: own_program()?,
        args: args.into(),
    })
}

fn own_program() -> Result<PathBuf> {
    std::env::current_exe().context("the path of this program is unknown")
}

/// Variable that tells a run in a guest what runs the guest.
pub const GUEST_VARIABLE: &str = "UNTORN_GUEST";
/// Variable that tells a run in a guest what was typed to start the guest.
pub const TYPED_VARIABLE: &str = "UNTORN_TYPED";

/// What was typed to start this program, for replay commands that can be pasted.
pub(crate) fn typed_program() -> String {
    let own = || {
        std::env::args()
            .next()
            .unwrap_or_else(|| "untorn".to_owned())
    };
    variable(TYPED_VARIABLE).unwrap_or_else(|| shell_word(&own()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Settings of a run. A seed is drawn when none was given.
///
/// # Errors
/// When the path of this program is unknown.
pub fn settings(options: &RunOptions) -> Result<Settings> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Settings {
        agent: agent_command()?,
        workers: options.workers.map_or(processors, usize::from),
        seed: options.seed.unwrap_or_else(rand::random),
        deferred_replies: true,
    })
}

/// Runs a plan, writes every report into the run folder, and prints the table and the stories.
///
/// # Errors
/// When nothing can be run, or the run was interrupted. Nothing stays mounted.
pub fn run_plan(
    suite: &str,
    plan: &[ProfilePlan],
    options: &RunOptions,
    tell: Tell,
) -> Result<(Exit, Certificate)> {
    let interrupt = Interrupt::install().context("cannot handle signals")?;
    let settings = settings(options)?;
    let info = run_info(suite, &settings)?;
    let folder = RunFolder::create(&options.out, &info.run_id, &typed_program())
        .map_err(|error| Usage(format!("--out: {}", error_text(&error))))?;
    let scratch =
        untorn_device::leftovers::scratch_dir().context("cannot make a scratch directory")?;
    let mut err = io::stderr();
    writeln!(
        err,
        "seed {}, run folder {}",
        info.seed,
        folder.path().display()
    )?;

    let display = Screen {
        bars: Bars::stderr(),
        fold: Mutex::new(Fold::new()),
    };
    let outcome = run(
        &info,
        plan,
        &settings,
        &folder,
        scratch.path(),
        &display,
        &interrupt,
    );
    display.bars.finish();
    let fold = display
        .fold
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let certificate = fold.certificate();
    write_reports(&folder, &certificate, fold.violations()).map_err(|error| {
        let io = error.chain().find_map(|cause| cause.downcast_ref());
        match io.map(io::Error::kind) {
            Some(io::ErrorKind::StorageFull) => error.context("--out must have more space"),
            _ => error,
        }
    })?;
    outcome.with_context(|| {
        format!(
            "the run ended early; what was found is in {}",
            folder.path().display()
        )
    })?;

    let mut out = io::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &certificate)?;
        writeln!(out)?;
    } else {
        writeln!(
            out,
            "{}",
            table(
                &certificate,
                TableOptions {
                    color: color(options.color),
                    ..TableOptions::default()
                }
            )
        )?;
        let told: Vec<&ViolationRecord> = match tell {
            Tell::All => fold.violations().iter().collect(),
            Tell::Unexpected => fold.unexpected_violations().collect(),
        };
        for violation in told {
            writeln!(out, "{}", story(violation))?;
        }
    }
    Ok((certificate.verdict.into(), certificate))
}

fn color(when: Color) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            io::stdout().is_terminal() && !unwanted
        }
    }
}

/// A name for a run that no other has; later runs come later in order.
pub(crate) fn new_run_id() -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let time: String = time.chars().filter(char::is_ascii_alphanumeric).collect();
    let unique: u16 = rand::random();
    format!("{time}-{unique:04x}")
}

fn run_info(suite: &str, settings: &Settings) -> Result<RunInfo> {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Ok(RunInfo {
        run_id: new_run_id(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tool_commit: env!("UNTORN_COMMIT").to_owned(),
        kernel_release: text(uname.release()),
        kernel_version: text(uname.version()),
        machine: text(uname.machine()),
        guest: variable(GUEST_VARIABLE),
        seed: settings.seed,
        suite: suite.to_owned(),
        workers: u32::try_from(settings.workers)?,
    })
}

/// Writes certificate, `JUnit` and HTML into the run folder.
pub(crate) fn write_reports(
    folder: &RunFolder,
    certificate: &Certificate,
    violations: &[ViolationRecord],
) -> Result<()> {
    folder.write("certificate.json", &certificate_json(certificate)?)?;
    let mut junit = Vec::new();
    write_junit(&mut junit, certificate, violations)?;
    folder.write("junit.xml", &junit)?;
    let mut html = Vec::new();
    write_html(&mut html, certificate, violations)?;
    folder.write("report.html", &html)
}

/// `certificate.json`.
///
/// # Errors
/// None in practice.
pub fn certificate_json(certificate: &Certificate) -> Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(certificate)?;
    json.push(b'\n');
    Ok(json)
}

/// Shows progress on stderr and folds the events.
struct Screen {
    bars: Bars,
    fold: Mutex<Fold>,
}

impl Display for Screen {
    fn event(&self, event: &RunEvent) {
        if let Ok(mut fold) = self.fold.lock() {
            fold.add(event);
        }
        self.bars.event(event);
    }

    fn tick(&self, case: &CaseId, recoveries: u64, coverage: f64) {
        self.bars.tick(case, recoveries, coverage);
    }
}

/// The place of a path for a reader.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
