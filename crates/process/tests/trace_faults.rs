//! Faults made to programs that nobody here wrote.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use common::trace::{Ground, has};
use untorn_process::{After, Before, Decision, TraceWarning};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn before(before: Before) -> Decision {
    Decision {
        before,
        ..Decision::default()
    }
}

fn after(errno: i32) -> Decision {
    Decision {
        after: After::Errno(errno),
        ..Decision::default()
    }
}

/// fsync of a pipe is EINVAL, so that its success shows that the kernel was not asked.
const SYNCS_A_PIPE: [&str; 3] = [
    "python3",
    "-c",
    "import os
os.mkfifo('pipe')
f = os.open('pipe', os.O_RDWR)
for _ in range(2):
    try: print('synced', os.fsync(f))
    except OSError as error: print(error.errno)",
];

#[test]
fn a_dropped_sync_reports_success_and_is_not_made() {
    if !has("a_dropped_sync", "python3") {
        return;
    }
    let trace = Ground::new().with_fault(&SYNCS_A_PIPE, "fsync#1", before(Before::Drop));
    assert_eq!(trace.exit.stdout.to_string(), "synced None\n22");
    let wanted = "mknodat#1 0666 pipe\nfsync#1 pipe\nfsync#2 pipe = 22";
    assert_eq!(trace.lines().join("\n"), wanted);
}

#[test]
fn a_dropped_write_reports_all_its_bytes_and_writes_none() {
    let ground = Ground::new();
    let words = ["sh", "-c", "echo one > a; echo two >> a; echo done"];
    let trace = ground.with_fault(&words, "write#1", before(Before::Drop));
    assert_eq!(trace.exit.stdout.to_string(), "done");
    assert_eq!(ground.read("a"), "two\n");
    assert_eq!(trace.count("write"), 2);
}

#[test]
fn an_error_before_is_told_and_nothing_is_done() {
    let ground = Ground::new();
    ground.write("a", "one\n");
    let words = ["cp", "a", "b"];
    let fault = before(Before::Errno(EIO));
    let trace = ground.with_fault(&words, "openat#1", fault);
    assert_eq!(trace.exit.status.code(), Some(1));
    let said = trace.exit.stderr.to_string();
    assert!(said.ends_with("Input/output error"), "{said}");
    assert!(!ground.path("b").exists());
    assert_eq!(trace.calls.last().unwrap().errno, Some(EIO));
}

#[test]
fn an_error_after_is_told_although_it_was_done() {
    let ground = Ground::new();
    ground.write("a", "one\n");
    let trace = ground.with_fault(&["mv", "a", "b"], "renameat2#1", after(EIO));
    assert_eq!(trace.exit.status.code(), Some(1), "{trace:?}");
    assert_eq!(ground.read("b"), "one\n");
    assert_eq!(trace.calls[0].errno, Some(EIO));
}

#[test]
fn a_short_write_is_gone_on_with() {
    let ground = Ground::new();
    let words = ["sh", "-c", "head -c 100 /dev/zero > a"];
    let fault = before(Before::ShortWrite(30));
    let trace = ground.with_fault(&words, "write#1", fault);
    let wanted = "openat#1 CREAT|TRUNC 0666 a\nwrite#1 100 bytes a\nwrite#2 70 bytes a";
    assert_eq!(trace.lines().join("\n"), wanted);
    assert_eq!(ground.read("a").len(), 100);
}

#[test]
fn every_kind_of_write_can_be_short() {
    if !has("every_kind_of_write", "python3") {
        return;
    }
    let calls = [
        ("os.write(f, b'abcdef')", "write#1"),
        ("os.writev(f, [b'', b'abcdef', b'gh'])", "write#1"),
        ("os.pwrite(f, b'abcdef', 0)", "pwrite#1"),
        ("os.pwritev(f, [b'abcdef', b'gh'], 0)", "pwrite#1"),
        ("os.sendfile(f, s, 0, 6)", "sendfile#1"),
        ("os.copy_file_range(s, f, 6)", "copy_file_range#1"),
    ];
    for (call, name) in calls {
        let ground = Ground::new();
        ground.write("s", "abcdef");
        let script = format!(
            "import os
s = os.open('s', os.O_RDONLY)
f = os.open('f', os.O_WRONLY | os.O_CREAT)
print({call})"
        );
        let words = ["python3", "-c", &script];
        let trace = ground.with_fault(&words, name, before(Before::ShortWrite(4)));
        assert_eq!(trace.exit.stdout.to_string(), "4", "{call}: {trace:?}");
        assert_eq!(ground.read("f"), "abcd", "{call}");
    }
}

#[test]
fn a_call_that_gives_something_cannot_be_dropped() {
    let ground = Ground::new();
    let trace = ground.with_fault(&["touch", "a"], "openat#1", before(Before::Drop));
    assert!(ground.path("a").exists());
    let warning = TraceWarning::NotDropped("openat#1".to_owned());
    assert_eq!(trace.warnings, [warning]);
}

#[test]
fn the_program_finds_its_registers_as_they_were() {
    if !has("the_program_finds_its_registers", "python3") {
        return;
    }
    // Its loops over errors and rests rely on them.
    let script = "import os
f = os.open('f', os.O_WRONLY | os.O_CREAT)
text, done, errors = b'0123456789' * 10, 0, 0
while done < len(text):
    try: done += os.writev(f, [text[done:done + 7], text[done + 7:]])
    except OSError: errors += 1
print(errors)";
    for fault in [
        before(Before::ShortWrite(3)),
        before(Before::Errno(ENOSPC)),
        before(Before::Drop),
        after(ENOSPC),
    ] {
        let ground = Ground::new();
        let trace = ground.with_fault(&["python3", "-c", script], "write#1", fault);
        assert!(trace.exit.status.success(), "{fault:?}: {trace:?}");
        let errors = u32::from(fault.before == Before::Errno(ENOSPC) || fault == after(ENOSPC));
        assert_eq!(
            trace.exit.stdout.to_string(),
            errors.to_string(),
            "{fault:?}"
        );
    }
}
