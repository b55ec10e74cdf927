//! External programs, with real children.
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{eventually, is_root, mounted_elsewhere, processes_with, unique_sleep};
use untorn_process::{
    CommandError, CommandOutcome, CommandSpec, Containment, Interrupt, InterruptSignal, Limits,
    SetupStep, StartError, run_command,
};

fn shell(script: &str) -> CommandSpec<'static> {
    CommandSpec::new("sh", ["-c", script])
}

fn run(spec: &CommandSpec<'_>) -> Result<CommandOutcome, CommandError> {
    run_command(spec, &Interrupt::detached().unwrap())
}

fn limited_to(wall: Duration) -> Limits {
    Limits {
        wall,
        ..Limits::default()
    }
}

#[test]
fn status_and_output_are_kept_apart() {
    let outcome = run(&shell("echo out; echo err >&2; exit 3")).unwrap();
    assert_eq!(outcome.status.code(), Some(3));
    assert_eq!(outcome.stdout.to_string(), "out");
    assert_eq!(outcome.stderr.to_string(), "err");
}

#[test]
fn death_by_signal_is_seen_as_such() {
    use std::os::unix::process::ExitStatusExt;
    // It would not die of SIGTERM if it were the init of its pid namespace.
    let outcome = run(&shell("kill -TERM $$; exit 0")).unwrap();
    assert_eq!(outcome.status.signal(), Some(15));
}

#[test]
fn more_output_than_a_pipe_holds_does_not_block_the_program() {
    let outcome = run(&shell("head -c 3000000 /dev/zero | tr '\\0' x; echo end")).unwrap();
    assert!(outcome.status.success());
    assert_eq!(outcome.stdout.bytes().len(), 65_536);
    assert_eq!(outcome.stdout.omitted_bytes(), 3_000_004 - 65_536);
    assert!(outcome.stdout.to_string().ends_with("xxxend"));
}

#[test]
fn environment_and_directory_are_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let mut spec = shell("echo $WORD; pwd; umask");
    spec.env.push(("WORD".into(), "a word".into()));
    spec.cwd = Some(directory.clone());
    let outcome = run(&spec).unwrap();
    let wanted = format!("a word\n{}\n0022", directory.display());
    assert_eq!(outcome.stdout.to_string(), wanted);
}

#[test]
fn what_is_not_found_says_where_it_was_looked_for() {
    let mut spec = CommandSpec::new("untorn-no-such-program", [""; 0]);
    spec.env.push(("PATH".into(), "/bin:/sbin".into()));
    let error = run(&spec).unwrap_err();
    assert!(matches!(
        error,
        CommandError::Start(StartError::NotFound { .. })
    ));
    assert_eq!(
        error.to_string(),
        "`untorn-no-such-program` was not found in PATH (/bin:/sbin)"
    );
}

#[test]
fn what_is_not_executable_is_told_from_what_is_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let error = run(&CommandSpec::new(plain, [""; 0])).unwrap_err();
    assert!(
        matches!(error, CommandError::Start(StartError::NotExecutable { .. })),
        "{error}"
    );
}

#[test]
fn a_missing_directory_is_no_missing_program() {
    let mut spec = shell("true");
    spec.cwd = Some("/no/such/directory".into());
    let error = run(&spec).unwrap_err();
    assert!(
        matches!(
            error,
            CommandError::Start(StartError::Setup {
                step: SetupStep::WorkingDirectory,
                ..
            })
        ),
        "{error}"
    );
}

#[test]
fn a_limit_on_file_size_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut spec = shell("exec head -c 100000 /dev/zero > file");
    spec.cwd = Some(directory.path().to_owned());
    spec.limits.file_size_bytes = Some(4096);
    let outcome = run(&spec).unwrap();
    assert!(!outcome.status.success());
    let size = directory.path().join("file").metadata().unwrap().len();
    assert_eq!(size, 4096);
}

#[test]
fn a_time_out_kills_grandchildren() {
    let sleep = unique_sleep();
    let mut spec = shell(&format!("echo begun >&2; sleep {sleep} & sleep {sleep}"));
    spec.limits = limited_to(Duration::from_millis(300));
    let error = run(&spec).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`sh` was killed after 300ms, the limit; it said: begun"
    );
    assert_eq!(processes_with(&sleep), [""; 0]);
}

#[test]
fn descendants_that_left_the_group_do_not_survive() {
    if !is_root("descendants_that_left_the_group_do_not_survive") {
        return;
    }
    let sleep = unique_sleep();
    let directory = tempfile::tempdir().unwrap();
    let mut spec = shell(&format!(
        "setsid sh -c 'echo there > there; exec sleep {sleep}' &
         until [ -e there ]; do sleep 0.01; done"
    ));
    spec.cwd = Some(directory.path().to_owned());
    let started = Instant::now();
    let outcome = run(&spec).unwrap();
    assert!(outcome.status.success());
    assert_eq!(outcome.containment, Containment::PidNamespace);
    // It held stdout open; nobody waited for that.
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(processes_with(&sleep), [""; 0]);
}

#[test]
fn an_interruption_kills_everything() {
    let interrupt = Interrupt::detached().unwrap();
    let sleep = unique_sleep();
    let spec = shell(&format!("sleep {sleep} & wait"));
    let error = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_command(&spec, &interrupt));
        eventually("the start", || !processes_with(&sleep).is_empty());
        interrupt.trigger(InterruptSignal::Interrupt);
        running.join().unwrap().unwrap_err()
    });
    assert_eq!(error.to_string(), "interrupted by SIGINT");
    assert_eq!(processes_with(&sleep), [""; 0]);

    let error = run_command(&spec, &interrupt).unwrap_err();
    assert!(matches!(error, CommandError::Interrupted(_)), "{error}");
}

#[test]
fn a_command_enters_a_mount_namespace() {
    if !is_root("a_command_enters_a_mount_namespace") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let namespace = mounted_elsewhere(&directory);
    assert!(!directory.join("inside").exists());

    let mut spec = shell("pwd; cat inside");
    spec.cwd = Some(directory.clone());
    spec.mount_namespace = Some(namespace.as_fd());
    let outcome = run(&spec).unwrap();
    let wanted = format!("{}\nyes", directory.display());
    assert_eq!(outcome.stdout.to_string(), wanted, "{}", outcome.stderr);
}
