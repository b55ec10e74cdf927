//! What the tracer tells of programs that nobody here wrote.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use std::os::fd::AsFd;

use common::trace::{Ground, Trace, has, trace};
use common::{is_root, mounted_elsewhere};
use untorn_process::{
    CommandSpec, Interrupt, StartError, TraceError, TraceEvent, TraceWarning, TracedCommand,
};

fn lines(trace: &Trace) -> String {
    trace.lines().join("\n")
}

#[test]
fn a_shell_script_is_told_call_by_call() {
    let ground = Ground::new();
    let trace = ground.shell(
        "echo hello > a; cp --reflink=never a b; mv b c; mkdir d; ln -s a l; ln a h; rm h; rmdir d
         chmod 600 a; echo x >> a; truncate -s 3 a; mkdir no/such; sync a; echo out > /dev/null",
    );
    let wanted = "\
openat#1 CREAT|TRUNC 0666 a
write#1 6 bytes a
openat#2 CREAT|EXCL 0644 b
write#2 6 bytes b
renameat2#1 NOREPLACE b c
mkdirat#1 0777 d
symlinkat#1 a l
linkat#1 a h
unlinkat#1 h
unlinkat#2 REMOVEDIR d
fchmod#1 0600 a
openat#3 CREAT|APPEND 0666 a
write#3 2 bytes a
openat#4 CREAT 0666 a
ftruncate#1 3 bytes a
mkdirat#2 0777 no/such = 2
fsync#1 a";
    assert_eq!(lines(&trace), wanted);
    assert_eq!(trace.warnings, []);
}

#[test]
fn sed_replaces_its_file_without_a_sync() {
    let ground = Ground::new();
    ground.write("a", "hello\n");
    let trace = ground.trace(&["sed", "-i", "s/hello/bye/", "a"]);
    let lines: Vec<String> = trace
        .lines()
        .into_iter()
        // Whether it copies owner and attributes depends on how it was built.
        .filter(|line| !line.starts_with("fchown") && !line.starts_with("fsetxattr"))
        .map(|line| match line.find("sed") {
            Some(at) => format!("{}{}", &line[..at + 3], &line[at + 9..]),
            None => line,
        })
        .collect();
    let wanted = "openat#1 CREAT|EXCL 0600 sed\nwrite#1 4 bytes sed\nrenameat2#1 REPLACE sed a";
    assert_eq!(lines.join("\n"), wanted);
    assert_eq!(ground.read("a"), "bye\n");
}

#[test]
fn python_is_told_call_by_call() {
    if !has("python_is_told_call_by_call", "python3") {
        return;
    }
    let ground = Ground::new();
    let trace = ground.python(
        r#"
import mmap, os
f = os.open("p", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
os.writev(f, [b"abc", b"defg"])
os.pwrite(f, b"zz", 2)
os.pwritev(f, [b"z", b"z"], 4)
os.fsync(f)
os.fdatasync(f)
m = mmap.mmap(f, 4)
m[0:1] = b"q"
m.flush()
os.replace("p", "r")
d = os.open(".", os.O_DIRECTORY)
os.fsync(d)
os.setxattr("r", "user.x", b"12")
os.removexattr("r", "user.x")
os.utime("r")
os.unlink("r", dir_fd=d)
os.write(f, b"deleted")
os.sync()
"#,
    );
    let wanted = "\
openat#1 CREAT|TRUNC 0640 p
write#1 7 bytes p
pwrite#1 2 bytes at 2 p
pwrite#2 2 bytes at 4 p
fsync#1 p
fdatasync#1 p
msync#1 SYNC p
renameat2#1 REPLACE p r
fsync#2 .
fsetxattr#1 user.x 2 bytes r
fremovexattr#1 user.x r
utimensat#1 r
unlinkat#1 r
write#2 7 bytes r (deleted)
sync#1 .";
    assert_eq!(lines(&trace), wanted);
    let mapped = TraceWarning::SharedMapping("p".to_owned());
    assert_eq!(trace.warnings, [mapped]);
}

#[test]
fn a_call_is_counted_by_what_it_does_and_not_by_its_number() {
    if !has("a_call_is_counted", "python3") {
        return;
    }
    let ground = Ground::new();
    let trace = ground.python(
        r#"
import ctypes, os
call = ctypes.CDLL(None, use_errno=True).syscall
def must(*words):
    if call(*words) < 0: raise OSError(ctypes.get_errno(), words)
HERE = -100
must(85, b"a", 0o644)                 # creat
must(82, b"a", b"b")                  # rename
must(264, HERE, b"b", HERE, b"c")     # renameat
must(316, HERE, b"c", HERE, b"d", 1)  # renameat2, no-replace
must(90, b"d", 0o600)                 # chmod
must(268, HERE, b"d", 0o640)          # fchmodat
must(92, b"d", -1, os.getgid())       # chown
must(260, HERE, b"d", os.getuid(), -1, 0)  # fchownat
must(76, b"d", 5)                     # truncate
must(83, b"e", 0o755)                 # mkdir
must(84, b"e")                        # rmdir
must(87, b"d")                        # unlink
must(88, b"t", b"s")                  # symlink
must(263, HERE, b"s", 0)              # unlinkat
must(133, b"pipe", 0o010644, 0)       # mknod
"#,
    );
    let user = rustix::process::getuid();
    let group = rustix::process::getgid();
    let wanted = format!(
        "\
openat#1 CREAT|TRUNC 0644 a
renameat2#1 REPLACE a b
renameat2#2 REPLACE b c
renameat2#3 NOREPLACE c d
fchmod#1 0600 d
fchmod#2 0640 d
fchown#1 :{group} d
fchown#2 {user}: d
ftruncate#1 5 bytes d
mkdirat#1 0755 e
unlinkat#1 REMOVEDIR e
unlinkat#2 d
symlinkat#1 t s
unlinkat#3 s
mknodat#1 0644 pipe"
    );
    assert_eq!(lines(&trace), wanted);
}

#[test]
fn copies_inside_the_kernel_are_writes_to_files_only() {
    if !has("copies_inside_the_kernel", "python3") {
        return;
    }
    let ground = Ground::new();
    ground.write("a", "hello\n");
    let trace = ground.python(
        r#"
import os
a, b = os.open("a", os.O_RDONLY), os.open("b", os.O_WRONLY | os.O_CREAT)
os.copy_file_range(a, b, 2, 0, 0)
os.sendfile(b, a, 2, 2)
r, w = os.pipe()
os.sendfile(w, a, 0, 2)
os.splice(r, b, 2)
os.posix_fallocate(b, 0, 10)
os.mkfifo("fifo")
f = os.open("fifo", os.O_RDWR)
os.write(f, b"in no file")
"#,
    );
    let lines = lines(&trace);
    let (before, pipe) = lines.split_once("splice#1").unwrap();
    let wanted = "\
openat#1 CREAT 0777 b
copy_file_range#1 up to 2 bytes from a to b
sendfile#1 up to 2 bytes from a to b
";
    assert_eq!(before, wanted);
    assert!(pipe.starts_with(" up to 2 bytes from pipe:["), "{pipe}");
    let wanted = "\nfallocate#1 mode 0 10 bytes at 0 b\nmknodat#1 0666 fifo";
    assert!(pipe.ends_with(wanted), "{pipe}");
}

#[test]
fn only_what_lies_below_the_root_counts_however_it_is_named() {
    let ground = Ground::new();
    std::fs::create_dir_all(ground.path("top/in")).unwrap();
    std::os::unix::fs::symlink("top/in", ground.path("link")).unwrap();
    std::os::unix::fs::symlink("../out", ground.path("top/leaves")).unwrap();
    let words = [
        "sh",
        "-c",
        "echo 1 > a; echo 2 > link/b; cd link; echo 3 > c; echo 4 > ../../d; echo 5 > ../leaves
         mv ../../d e; mv e ../../f; rm ../leaves",
    ];
    let mut spec = CommandSpec::new(words[0], &words[1..]);
    spec.cwd = Some(ground.root.clone());
    let interrupt = Interrupt::detached().unwrap();
    // The root may be named by way of a link too.
    let command = TracedCommand::spawn(&spec, &ground.path("link/.."), &interrupt).unwrap();
    let root = ground.root.display();
    let wanted = format!(
        "\
openat#1 CREAT|TRUNC 0666 in/b
write#1 2 bytes in/b
openat#2 CREAT|TRUNC 0666 in/c
write#2 2 bytes in/c
renameat2#1 NOREPLACE {root}/d in/e
renameat2#2 NOREPLACE in/e {root}/f
unlinkat#1 leaves"
    );
    assert_eq!(lines(&trace(command)), wanted);
    assert_eq!(ground.read("out"), "5\n");
}

#[test]
fn a_file_without_a_name_gets_one() {
    if !has("a_file_without_a_name_gets_one", "python3") {
        return;
    }
    let ground = Ground::new();
    let trace = ground.python(
        r#"
import os
f = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(f, b"x")
os.link(f"/proc/self/fd/{f}", "named", follow_symlinks=True, src_dir_fd=0)
"#,
    );
    let lines = trace.lines();
    assert_eq!(lines[0], "openat#1 TMPFILE 0600 .");
    assert!(lines[1].starts_with("write#1 1 bytes #"), "{lines:?}");
    assert!(lines[2].ends_with(" (deleted) named"), "{lines:?}");
}

#[test]
fn what_makes_no_calls_is_told_as_unseen() {
    if !has("what_makes_no_calls", "python3") {
        return;
    }
    let ground = Ground::new();
    let trace = ground.python(
        r"
import ctypes
call = ctypes.CDLL(None).syscall
for _ in range(2):
    call(425, 8, 0)  # io_uring_setup
    call(206, 0, 0)  # io_setup
",
    );
    assert_eq!(trace.lines(), [""; 0]);
    assert_eq!(trace.warnings, [TraceWarning::IoUring, TraceWarning::Aio]);
}

#[test]
fn a_mount_namespace_is_looked_into() {
    if !is_root("a_mount_namespace_is_looked_into") {
        return;
    }
    let ground = Ground::new();
    let namespace = mounted_elsewhere(&ground.root);
    let mut spec = ground.command(&[
        "sh",
        "-c",
        "mkdir d; ln -s d l; echo 1 > l/x; ln -s $PWD/d m; : > m/y; : > /dev/null",
    ]);
    spec.mount_namespace = Some(namespace.as_fd());
    let interrupt = Interrupt::detached().unwrap();
    let command = TracedCommand::spawn(&spec, &ground.root, &interrupt).unwrap();
    let wanted = format!(
        "\
mkdirat#1 0777 d
symlinkat#1 d l
openat#1 CREAT|TRUNC 0666 d/x
write#1 2 bytes d/x
symlinkat#2 {}/d m
openat#2 CREAT|TRUNC 0666 d/y",
        ground.root.display()
    );
    assert_eq!(lines(&trace(command)), wanted);
    assert_eq!(std::fs::read_dir(&ground.root).unwrap().count(), 0);
}

#[test]
fn output_and_status_are_those_of_the_command() {
    let ground = Ground::new();
    let trace = ground.shell("echo out; echo err >&2; head -c 300000 /dev/zero; exit 3");
    assert_eq!(trace.exit.status.code(), Some(3));
    assert_eq!(trace.exit.stderr.to_string(), "err");
    assert_eq!(trace.exit.stdout.omitted_bytes(), 300_004 - 65_536);
}

#[test]
fn what_cannot_be_started_says_why() {
    let ground = Ground::new();
    let interrupt = Interrupt::detached().unwrap();
    let start =
        |spec: &CommandSpec<'_>| TracedCommand::spawn(spec, &ground.root, &interrupt).unwrap_err();
    let error = start(&CommandSpec::new("untorn-no-such-program", [""; 0]));
    let not_found = matches!(error, TraceError::Start(StartError::NotFound { .. }));
    assert!(not_found, "{error}");

    ground.write("plain", "no program");
    let error = start(&CommandSpec::new(ground.path("plain"), [""; 0]));
    let refused = matches!(error, TraceError::Start(StartError::NotExecutable { .. }));
    assert!(refused, "{error}");

    let mut nowhere = ground.command(&["true"]);
    nowhere.cwd = Some("/no/such/directory".into());
    let error = start(&nowhere);
    let set_up = matches!(error, TraceError::Start(StartError::Setup { .. }));
    assert!(set_up, "{error}");
}

#[test]
fn a_held_call_is_done_and_nothing_comes_after_it() {
    let ground = Ground::new();
    let mut command = ground.spawn(&["sh", "-c", "echo 1 > a; rm a"]);
    let mut seen = Vec::new();
    while let TraceEvent::Returned(call) = command.next().unwrap() {
        std::thread::sleep(std::time::Duration::from_millis(30));
        let content = std::fs::read_to_string(ground.path("a")).ok();
        seen.push((call.name, content));
        command.go();
    }
    let wanted = [
        ("openat#1", Some("")),
        ("write#1", Some("1\n")),
        ("unlinkat#1", None),
    ];
    let wanted = wanted.map(|(name, content)| (name.to_owned(), content.map(str::to_owned)));
    assert_eq!(seen, wanted);
    let error = command.next().unwrap_err();
    assert!(matches!(error, TraceError::Ended { .. }), "{error}");
}
