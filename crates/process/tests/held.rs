//! Held subjects, with real children: this test program itself, started again.
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{eventually, processes_with, unique_sleep};
use untorn_process::{
    ControlClient, ControlError, HeldSubject, Interrupt, InterruptSignal, Limits, StartError,
    SubjectCommand, SubjectError,
};
use untorn_spec::{FromSubject, Syscall, TreeSpec, WriterOrder};

/// The child. The writer's name says what it does in the parent directory of its order.
#[test]
#[ignore = "the child of the other tests"]
fn child() {
    let (client, order) = match ControlClient::connect() {
        Ok(connected) => connected,
        Err(ControlError::NoHarness) => return,
        Err(error) => panic!("{error}"),
    };
    let parent = PathBuf::from(&order.parent);
    client.started().unwrap();
    match order.writer.as_str() {
        "three-files" => {
            for index in 0..3 {
                fs::write(parent.join(index.to_string()), "").unwrap();
                client.returned(&call(index)).unwrap();
            }
            client.acknowledged().unwrap();
            client.finished(None).unwrap();
        }
        "fails" => client.finished(Some("no space".to_owned())).unwrap(),
        "panics" => {
            eprintln!("something to say");
            std::process::exit(7);
        }
        "sleeps" => {
            // Its own child, of the same group.
            let mut sleep = Command::new("sleep").arg(order.target).spawn().unwrap();
            sleep.wait().unwrap();
        }
        "connects-again" => {
            let error = ControlClient::connect().unwrap_err();
            client.finished(Some(error.to_string())).unwrap();
        }
        other => panic!("unknown writer {other}"),
    }
    std::process::exit(0);
}

fn call(index: u32) -> Syscall {
    Syscall {
        index,
        name: format!("openat#{}", index + 1),
        text: format!("openat#{} {index}", index + 1),
        errno: None,
    }
}

fn subject(writer: &str, parent: &Path) -> SubjectCommand<'static> {
    let args = ["--exact", "child", "--ignored", "--nocapture"];
    SubjectCommand {
        program: "/proc/self/exe".into(),
        args: args.into_iter().map(OsString::from).collect(),
        order: WriterOrder {
            writer: writer.to_owned(),
            parent: parent.display().to_string(),
            target: unique_sleep(),
            tree: TreeSpec {
                target: "live".to_owned(),
                count: 0,
                file: Vec::new(),
                absent_at_first: false,
            },
            seed: 0,
        },
        mount_namespace: None,
        limits: Limits::default(),
    }
}

fn spawn(subject: &SubjectCommand<'_>) -> HeldSubject {
    HeldSubject::spawn(subject, &Interrupt::detached().unwrap()).unwrap()
}

#[test]
fn nothing_happens_before_go() {
    let directory = tempfile::tempdir().unwrap();
    let count = || fs::read_dir(directory.path()).unwrap().count();
    let long_enough = Duration::from_millis(100);

    let mut held = spawn(&subject("three-files", directory.path()));
    assert_eq!(held.next().unwrap(), FromSubject::Started);
    std::thread::sleep(long_enough);
    assert_eq!(count(), 0);
    for index in 0..3 {
        held.go().unwrap();
        assert_eq!(held.next().unwrap(), FromSubject::Returned(call(index)));
        std::thread::sleep(long_enough);
        assert_eq!(count(), index as usize + 1);
    }
    held.go().unwrap();
    assert_eq!(held.next().unwrap(), FromSubject::Acknowledged);
    held.go().unwrap();
    let finished = FromSubject::Finished { error: None };
    assert_eq!(held.next().unwrap(), finished);
    assert!(held.wait().unwrap().status.success());
}

#[test]
fn an_error_of_the_writer_comes_with_its_end() {
    let mut held = spawn(&subject("fails", Path::new("/")));
    held.next().unwrap();
    held.go().unwrap();
    let error = Some("no space".to_owned());
    assert_eq!(held.next().unwrap(), FromSubject::Finished { error });
}

#[test]
fn a_subject_that_dies_says_how_and_what_it_printed() {
    let mut held = spawn(&subject("panics", Path::new("/")));
    held.next().unwrap();
    held.go().unwrap();
    let error = held.next().unwrap_err();
    let SubjectError::Died { status, stderr } = error else {
        panic!("{error}");
    };
    assert_eq!(status.code(), Some(7));
    assert_eq!(stderr.to_string(), "something to say");
}

#[test]
fn a_held_subject_can_be_killed() {
    use std::os::unix::process::ExitStatusExt;
    let directory = tempfile::tempdir().unwrap();
    let mut held = spawn(&subject("three-files", directory.path()));
    held.next().unwrap();
    held.go().unwrap();
    held.next().unwrap();
    let exit = held.kill().unwrap();
    assert_eq!(exit.status.signal(), Some(9));
    assert_eq!(held.kill().unwrap(), exit, "once more changes nothing");
    assert!(matches!(held.go(), Err(SubjectError::Died { .. })));
    assert!(matches!(held.next(), Err(SubjectError::Died { .. })));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn only_the_time_in_which_it_runs_counts() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = subject("three-files", directory.path());
    command.limits.wall = Duration::from_secs(3);
    let mut held = spawn(&command);
    held.next().unwrap();
    std::thread::sleep(Duration::from_millis(3500));
    held.go().unwrap();
    held.next().unwrap();
}

#[test]
fn a_time_out_kills_the_group() {
    let mut command = subject("sleeps", Path::new("/"));
    let sleep = command.order.target.clone();
    command.limits.wall = Duration::from_secs(3);
    let mut held = spawn(&command);
    held.next().unwrap();
    held.go().unwrap();
    let error = held.next().unwrap_err();
    assert!(matches!(error, SubjectError::TimedOut { .. }), "{error}");
    eventually("the end", || processes_with(&sleep).is_empty());
}

#[test]
fn an_interruption_kills_the_subject() {
    let interrupt = Interrupt::detached().unwrap();
    let command = subject("sleeps", Path::new("/"));
    let sleep = command.order.target.clone();
    let mut held = HeldSubject::spawn(&command, &interrupt).unwrap();
    held.next().unwrap();
    held.go().unwrap();
    eventually("the start", || !processes_with(&sleep).is_empty());
    interrupt.trigger(InterruptSignal::Terminate);
    let error = held.next().unwrap_err();
    assert!(matches!(error, SubjectError::Interrupted(_)), "{error}");
    eventually("the end", || processes_with(&sleep).is_empty());
}

#[test]
fn a_drop_kills_the_group() {
    let command = subject("sleeps", Path::new("/"));
    let sleep = command.order.target.clone();
    let mut held = spawn(&command);
    let id = held.id();
    held.next().unwrap();
    held.go().unwrap();
    eventually("the start", || !processes_with(&sleep).is_empty());
    drop(held);
    eventually("the end", || processes_with(&sleep).is_empty());
    assert!(!Path::new(&format!("/proc/{id}")).exists(), "it is reaped");
}

#[test]
fn the_socket_can_be_taken_once() {
    let mut held = spawn(&subject("connects-again", Path::new("/")));
    held.next().unwrap();
    held.go().unwrap();
    let error = Some("the control socket is already in use in this process".to_owned());
    assert_eq!(held.next().unwrap(), FromSubject::Finished { error });
}

#[test]
fn a_missing_program_is_told() {
    let mut command = subject("fails", Path::new("/"));
    command.program = "/no/such/program".into();
    let interrupt = Interrupt::detached().unwrap();
    let error = HeldSubject::spawn(&command, &interrupt).unwrap_err();
    assert!(
        matches!(error, SubjectError::Start(StartError::NotFound { .. })),
        "{error}"
    );
}
