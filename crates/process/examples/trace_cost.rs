//! What tracing costs: `git commit` of a few files, traced with every call held, against untraced.
//! `cargo run --release --example trace_cost -- [ROUNDS] [DIRECTORY]`; ends with 1 when it is more
//! than 3 times.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use untorn_process::{CommandSpec, Interrupt, TraceEvent, TracedCommand, run_command};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const RATIO_MAX: f64 = 3.0;

fn main() -> Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let rounds: u32 = words.next().map_or(Ok(21), |word| word.parse())?;
    let parent = words.next().unwrap_or_else(|| "/tmp".to_owned());
    let interrupt = Interrupt::install()?;
    let repository = tempfile::tempdir_in(parent)?;
    let root = repository.path().canonicalize()?;
    untraced(&root, "git init -q .", &interrupt)?;
    let (mut plain, mut traced, mut calls) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        // In turn, so that whatever else this machine does slows down both.
        untraced(&root, &prepare(2 * round), &interrupt)?;
        plain.push(untraced(&root, COMMIT, &interrupt)?);
        untraced(&root, &prepare(2 * round + 1), &interrupt)?;
        let (time, seen) = trace(&root, COMMIT, &interrupt)?;
        traced.push(time);
        calls = seen;
    }
    let (plain, traced) = (median(plain), median(traced));
    let ratio = traced.as_secs_f64() / plain.as_secs_f64();
    println!(
        "git commit, {calls} calls held: {plain:.1?} untraced, {traced:.1?} traced, ratio \
         {ratio:.2} (at most {RATIO_MAX})"
    );
    Ok(ExitCode::from(u8::from(ratio > RATIO_MAX)))
}

const COMMIT: &str = "exec git -c user.name=a -c user.email=b@c -c gc.auto=0 commit -q -m message";

fn prepare(round: u32) -> String {
    format!("for i in 1 2 3 4 5; do echo {round} $i > file-$i; done; git add .")
}

fn shell(root: &Path, script: &str) -> CommandSpec<'static> {
    let mut spec = CommandSpec::new("sh", ["-c", script]);
    spec.cwd = Some(root.to_owned());
    spec
}

fn untraced(root: &Path, script: &str, interrupt: &Interrupt) -> Result<Duration> {
    let start = Instant::now();
    let outcome = run_command(&shell(root, script), interrupt)?;
    if !outcome.status.success() {
        return Err(format!("{script}: {}", outcome.stderr).into());
    }
    Ok(start.elapsed())
}

fn trace(root: &Path, script: &str, interrupt: &Interrupt) -> Result<(Duration, usize)> {
    let start = Instant::now();
    let mut command = TracedCommand::spawn(&shell(root, script), root, interrupt)?;
    let mut calls = 0;
    loop {
        match command.next()? {
            TraceEvent::Returned(_) => calls += 1,
            TraceEvent::Warning(_) => {}
            TraceEvent::Exited(exit) if exit.status.success() => {
                return Ok((start.elapsed(), calls));
            }
            TraceEvent::Exited(exit) => return Err(format!("{script}: {}", exit.stderr).into()),
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
