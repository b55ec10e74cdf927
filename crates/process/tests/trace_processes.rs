//! Trees of processes and threads under the tracer, and their end.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use common::trace::{Ground, Trace, has, trace};
use common::{eventually, processes_with, unique_sleep};
use untorn_process::{Interrupt, InterruptSignal, TraceError, TraceEvent, TracedCommand};

const THREADS: usize = 4;
const ROUNDS: usize = 25;

/// The program of several threads.
#[test]
#[ignore = "the child of another test"]
fn child() {
    if std::env::var_os("UNTORN_TRACED").is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut file = File::create(format!("file-{thread}")).unwrap();
                for _ in 0..ROUNDS {
                    file.write_all(b"x\n").unwrap();
                    file.sync_all().unwrap();
                }
            });
        }
    });
}

#[test]
fn threads_are_followed_and_each_call_is_told_once() {
    let ground = Ground::new();
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let words = [program, "--exact", "child", "--ignored", "--nocapture"];
    let mut spec = ground.command(&words);
    spec.env.push(("UNTORN_TRACED".into(), "1".into()));
    let interrupt = Interrupt::detached().unwrap();
    let trace = trace(TracedCommand::spawn(&spec, &ground.root, &interrupt).unwrap());
    let lines = trace.lines();
    let wanted = (THREADS, THREADS * ROUNDS, THREADS * ROUNDS);
    let counts = (
        trace.count("openat"),
        trace.count("write"),
        trace.count("fsync"),
    );
    assert_eq!(counts, wanted);
    for thread in 0..THREADS {
        let syncs = format!(" file-{thread}");
        let syncs = lines.iter().filter(|line| line.ends_with(&syncs));
        assert_eq!(syncs.count(), 1 + 2 * ROUNDS);
    }
}

#[test]
fn children_of_children_are_followed() {
    let ground = Ground::new();
    let trace = ground.shell(
        "(mkdir a; (mkdir a/b; sh -c 'mkdir a/b/c; exec mkdir a/b/c/d') & wait)
         echo x | tee a/x | cat > a/y; mkdir $(echo e)",
    );
    assert_eq!(trace.count("mkdirat"), 5);
    assert_eq!(trace.count("write"), 2);
    assert_eq!(trace.lines().last().unwrap(), "mkdirat#5 0777 e");
}

#[test]
fn vfork_and_exec_from_a_thread_are_followed() {
    if !has("vfork_and_exec_from_a_thread", "python3") {
        return;
    }
    let ground = Ground::new();
    let trace = ground.python(
        r#"
import os, subprocess, threading, time
subprocess.run(["mkdir", "a"], close_fds=False)  # vfork
subprocess.run(["mkdir", "b"], preexec_fn=lambda: os.mkdir("c"))
os.posix_spawnp("mkdir", ["mkdir", "d"], os.environ)
os.wait()
other = threading.Thread(target=lambda: time.sleep(60), daemon=True)
other.start()
def go(): os.execvp("sh", ["sh", "-c", "mkdir e; mkdir f"])
threading.Thread(target=go).start()
time.sleep(60)
"#,
    );
    let made: Vec<String> = trace
        .lines()
        .iter()
        .map(|line| line[line.len() - 1..].to_owned())
        .collect();
    assert_eq!(made.concat(), "acbdef");
}

#[test]
fn what_is_left_in_the_background_is_traced_and_then_killed() {
    let ground = Ground::new();
    let sleep = unique_sleep();
    let script = format!(
        "setsid sh -c 'mkdir daemon; exec sleep {sleep}' > /dev/null 2>&1 &
         until [ -e daemon ]; do sleep 0.01; done"
    );
    let started = Instant::now();
    let trace = ground.shell(&script);
    assert_eq!(trace.lines(), ["mkdirat#1 0777 daemon"]);
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(processes_with(&sleep), [""; 0]);
}

#[test]
fn signals_arrive_and_no_call_is_told_twice() {
    if !has("signals_arrive", "python3") {
        return;
    }
    let ground = Ground::new();
    // As the runtime of Go does it: a signal every now and then, whatever the program does.
    let trace = ground.python(
        r#"
import os, signal
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGURG, tick)
pid = os.fork()
if pid == 0:
    parent = os.getppid()
    while True: os.kill(parent, signal.SIGURG)
f = os.open("f", os.O_WRONLY | os.O_CREAT)
for _ in range(50):
    os.write(f, b"x")
    os.fsync(f)
os.kill(pid, signal.SIGKILL)
print(ticks > 0)
"#,
    );
    assert_eq!(
        trace.exit.stdout.to_string(),
        "True",
        "{}",
        trace.exit.stderr
    );
    assert_eq!((trace.count("write"), trace.count("fsync")), (50, 50));
    assert_eq!(trace.lines().len(), 101);
}

#[test]
fn a_call_that_a_signal_breaks_into_is_told_once() {
    if !has("a_call_that_a_signal_breaks_into", "python3") {
        return;
    }
    // An open of a pipe waits for the other side; signals break into it.
    let script = |restart: &str| {
        format!(
            r#"
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, {restart})
os.mkfifo("pipe")
if os.fork() == 0:
    import time
    time.sleep(0.2)
    os.open("pipe", os.O_RDONLY)
    os._exit(0)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(libc.open(b"pipe", os.O_WRONLY | os.O_CREAT, 0o600) >= 0)
os.mkdir("end")
"#
        )
    };
    let told = |trace: &Trace| trace.lines().join("\n");
    let trace = Ground::new().python(&script("False"));
    assert_eq!(trace.exit.stdout.to_string(), "True");
    let wanted = "mknodat#1 0666 pipe\nopenat#1 CREAT 0600 pipe\nmkdirat#1 0777 end";
    assert_eq!(told(&trace), wanted);

    let trace = Ground::new().python(&script("True"));
    assert_eq!(trace.exit.stdout.to_string(), "False");
    let wanted = "mknodat#1 0666 pipe\nopenat#1 CREAT 0600 pipe = 4\nmkdirat#1 0777 end";
    assert_eq!(told(&trace), wanted);
}

#[test]
fn a_stopped_process_stays_so_until_it_is_continued() {
    if !has("a_stopped_process", "python3") {
        return;
    }
    let ground = Ground::new();
    let trace = ground.python(
        r#"
import os, signal, time
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os.mkdir("child")
    os._exit(0)
_, status = os.waitpid(pid, os.WUNTRACED)
assert os.WIFSTOPPED(status), status
time.sleep(0.1)
os.mkdir("parent")
os.kill(pid, signal.SIGCONT)
os.waitpid(pid, 0)
"#,
    );
    let wanted = ["mkdirat#1 0777 parent", "mkdirat#2 0777 child"];
    assert_eq!(trace.lines(), wanted);
}

#[test]
fn death_by_signal_is_seen_as_such() {
    use std::os::unix::process::ExitStatusExt;
    let trace = Ground::new().shell("mkdir a; kill -TERM $$; mkdir b");
    assert_eq!(trace.exit.status.signal(), Some(15));
    assert_eq!(trace.count("mkdirat"), 1);
    // Those above 31 have no names.
    let trace = Ground::new().shell("kill -40 $$; mkdir b");
    assert_eq!(trace.exit.status.signal(), Some(40));
}

#[test]
fn a_static_program_is_traced() {
    if !has("a_static_program_is_traced", "cc") {
        return;
    }
    let ground = Ground::new();
    let source = "#include <unistd.h>\n#include <fcntl.h>\nint main(void) {\
                  int f = open(\"a\", O_CREAT | O_WRONLY, 0600); write(f, \"x\", 1); fsync(f);\
                  rename(\"a\", \"b\"); return 0; }";
    ground.write("program.c", source);
    let mut build = Command::new("cc");
    build
        .args(["-static", "-w", "-o"])
        .arg(ground.path("program"));
    assert!(
        build
            .arg(ground.path("program.c"))
            .status()
            .unwrap()
            .success()
    );
    let trace = ground.trace(&["./program"]);
    let wanted = "openat#1 CREAT 0600 a\nwrite#1 1 bytes a\nfsync#1 a\nrenameat2#1 REPLACE a b";
    assert_eq!(trace.lines().join("\n"), wanted);
}

#[test]
fn git_commits_under_the_tracer() {
    if !has("git_commits_under_the_tracer", "git") {
        return;
    }
    let ground = Ground::new();
    let user = "-c user.name=a -c user.email=b@c";
    let trace = ground.shell(&format!(
        "git init -q . && echo x > x && git add x && git {user} commit -q -m x && git fsck"
    ));
    let renames: Vec<String> = trace
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("renameat2"))
        .collect();
    let published = " REPLACE .git/index.lock .git/index";
    assert!(
        renames.iter().any(|line| line.ends_with(published)),
        "{renames:?}"
    );
}

/// A sleeper that leaves the group, and calls of several processes.
const NESTED: &str = "(setsid sleep $SLEEP &) ; echo 1 > a; (echo 2 > b & wait); mv a c; rm b c";

#[test]
fn a_kill_at_each_boundary_leaves_no_process() {
    let ground = Ground::new();
    let script = NESTED.replace("$SLEEP", &unique_sleep());
    let boundaries = ground.shell(&script).lines().len();
    assert_eq!(boundaries, 7);
    for boundary in 0..boundaries {
        let ground = Ground::new();
        let sleep = unique_sleep();
        let script = NESTED.replace("$SLEEP", &sleep);
        let mut command = ground.spawn(&["sh", "-c", &script]);
        for _ in 0..=boundary {
            let event = command.next().unwrap();
            assert!(matches!(event, TraceEvent::Returned(_)), "{event:?}");
        }
        if boundary % 2 == 0 {
            let exit = command.kill_all().unwrap();
            assert_eq!(exit.status.code(), None);
            assert_eq!(command.kill_all().unwrap(), exit);
        }
        drop(command);
        assert_eq!(processes_with(&sleep), [""; 0], "boundary {boundary}");
    }
}

#[test]
fn a_running_command_is_killed_with_all_that_it_started() {
    let ground = Ground::new();
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} & sleep {sleep}");
    let command = ground.spawn(&["sh", "-c", &script]);
    eventually("the start", || processes_with(&sleep).len() == 2);
    drop(command);
    assert_eq!(processes_with(&sleep), [""; 0]);
}

#[test]
fn a_time_out_counts_the_time_in_which_it_runs() {
    let ground = Ground::new();
    let sleep = unique_sleep();
    let script = format!("mkdir a; echo begun >&2; setsid sleep {sleep}");
    let mut spec = ground.command(&["sh", "-c", &script]);
    spec.limits.wall = Duration::from_millis(500);
    let interrupt = Interrupt::detached().unwrap();
    let mut command = TracedCommand::spawn(&spec, &ground.root, &interrupt).unwrap();
    let event = command.next().unwrap();
    assert!(matches!(event, TraceEvent::Returned(_)), "{event:?}");
    std::thread::sleep(Duration::from_millis(700));
    let error = command.next().unwrap_err();
    let wanted = "`sh` was killed after running for 500ms, the limit; it said: begun";
    assert_eq!(error.to_string(), wanted);
    assert_eq!(processes_with(&sleep), [""; 0]);
}

#[test]
fn an_interruption_kills_everything() {
    let ground = Ground::new();
    let sleep = unique_sleep();
    let interrupt = Interrupt::detached().unwrap();
    let spec = ground.command(&["sleep", &sleep]);
    let mut command = TracedCommand::spawn(&spec, &ground.root, &interrupt).unwrap();
    let error = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| command.next().unwrap_err());
        eventually("the start", || !processes_with(&sleep).is_empty());
        interrupt.trigger(InterruptSignal::Terminate);
        waiting.join().unwrap()
    });
    assert!(matches!(error, TraceError::Interrupted(_)), "{error}");
    assert_eq!(processes_with(&sleep), [""; 0]);
}
