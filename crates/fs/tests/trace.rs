//! Every mutating call, and nothing else, passes the hook once.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use untorn_fs::{
    Completed, FileKind, FlockOperation, Fs, Hook, OFlags, OpKind, OsFs, RemoveKind, RenameMode,
    TraceFs, TracedFd,
};

#[derive(Default)]
struct Recorder(RefCell<Vec<Completed>>);

impl Hook for &Recorder {
    fn after(&self, call: &Completed) -> io::Result<()> {
        self.0.borrow_mut().push(call.clone());
        Ok(())
    }
}

impl Recorder {
    fn lines(&self) -> Vec<String> {
        self.0.borrow().iter().map(ToString::to_string).collect()
    }
}

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn traced<H: Hook>(dir: &Path, hook: H) -> (TraceFs<OsFs, H>, TracedFd<OwnedFd>) {
    let fs = TraceFs::new(OsFs, hook);
    let root = fs.root(OsFs.open_dir(dir).unwrap());
    (fs, root)
}

/// Makes every call of the trait at least once, and says how many of each kind were mutating.
fn make_every_call<F: Fs>(fs: &F, root: &F::Fd) -> BTreeMap<OpKind, usize> {
    let create = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
    fs.mkdirat(root, name("d"), 0o700).unwrap();
    let dir = fs
        .openat(root, name("d"), OFlags::RDONLY | OFlags::DIRECTORY, 0)
        .unwrap();
    let file = fs.openat(&dir, name("f"), create, 0o600).unwrap();
    assert_eq!(fs.write(&file, b"hello").unwrap(), 5);
    assert_eq!(fs.pwrite(&file, b"J", 0).unwrap(), 1);
    fs.ftruncate(&file, 4).unwrap();
    fs.fchmod(&file, 0o640).unwrap();
    fs.fchown(&file, None, None).unwrap();
    let xattr = fs.fsetxattr(&file, name("user.untorn"), b"x");
    assert!(xattr.is_ok() || xattr.unwrap_err().kind() == io::ErrorKind::Unsupported);
    fs.sync_file_range(&file).unwrap();
    fs.fdatasync(&file).unwrap();
    fs.fsync(&file).unwrap();
    fs.fsync(&dir).unwrap();
    fs.symlinkat(name("f"), &dir, name("s")).unwrap();
    fs.linkat(&dir, name("f"), root, name("g")).unwrap();
    fs.renameat2(root, name("g"), &dir, name("f"), RenameMode::Exchange)
        .unwrap();
    assert!(
        fs.renameat2(root, name("g"), &dir, name("f"), RenameMode::NoReplace)
            .is_err()
    );
    fs.syncfs(root).unwrap();

    let reader = fs.openat(&dir, name("f"), OFlags::RDONLY, 0).unwrap();
    let mut buffer = [0; 8];
    assert_eq!(fs.read(&reader, &mut buffer).unwrap(), 4);
    assert_eq!(&buffer[..4], b"Jell");
    let stat = fs.fstat(&reader).unwrap();
    assert_eq!(
        (stat.kind, stat.mode, stat.size),
        (FileKind::Regular, 0o640, 4)
    );
    assert_eq!(
        fs.fstatat(root, name("g")).unwrap().identity(),
        stat.identity()
    );
    assert_eq!(fs.readlinkat(&dir, name("s")).unwrap(), "f");
    let mut listing = fs.read_dir(&dir).unwrap();
    listing.sort_by(|a, b| a.name.cmp(&b.name));
    let listing: Vec<_> = listing
        .iter()
        .map(|e| (e.name.to_str().unwrap(), e.kind))
        .collect();
    assert_eq!(
        listing,
        [("f", FileKind::Regular), ("s", FileKind::Symlink)]
    );
    fs.flock(&dir, FlockOperation::NonBlockingLockExclusive)
        .unwrap();

    let truncated = fs
        .openat(&dir, name("f"), OFlags::WRONLY | OFlags::TRUNC, 0)
        .unwrap();
    assert_eq!(fs.fstat(&truncated).unwrap().size, 0);
    for file in ["f", "s"] {
        fs.unlinkat(&dir, name(file), RemoveKind::File).unwrap();
    }
    fs.unlinkat(root, name("g"), RemoveKind::File).unwrap();
    fs.unlinkat(root, name("d"), RemoveKind::Directory).unwrap();

    OpKind::ALL
        .into_iter()
        .map(|kind| {
            let made = match kind {
                OpKind::Openat | OpKind::Fsync | OpKind::Renameat2 => 2,
                OpKind::Unlinkat => 4,
                OpKind::Mkdirat
                | OpKind::Write
                | OpKind::Pwrite
                | OpKind::Ftruncate
                | OpKind::Fchmod
                | OpKind::Fchown
                | OpKind::Fsetxattr
                | OpKind::Symlinkat
                | OpKind::Linkat
                | OpKind::SyncFileRange
                | OpKind::Fdatasync
                | OpKind::Syncfs => 1,
            };
            (kind, made)
        })
        .collect()
}

#[test]
fn the_hook_sees_every_mutating_call_once() {
    let scratch = tempfile::tempdir().unwrap();
    let recorder = Recorder::default();
    let (fs, root) = traced(scratch.path(), &recorder);
    let made = make_every_call(&fs, &root);

    let calls = recorder.0.borrow();
    let mut seen = BTreeMap::<OpKind, usize>::new();
    for (index, call) in calls.iter().enumerate() {
        let count = seen.entry(call.op.kind).or_default();
        *count += 1;
        assert_eq!(call.op.index as usize, index);
        assert_eq!(call.op.ordinal as usize, *count, "{call}");
    }
    assert_eq!(seen, made);
}

#[test]
fn calls_are_told_with_their_paths_and_details() {
    let scratch = tempfile::tempdir().unwrap();
    let recorder = Recorder::default();
    let (fs, root) = traced(scratch.path(), &recorder);
    make_every_call(&fs, &root);
    let lines = recorder.lines();
    for expected in [
        "mkdirat#1 0700 d",
        "openat#1 CREAT|EXCL 0600 d/f",
        "write#1 5 bytes d/f",
        "pwrite#1 1 bytes at 0 d/f",
        "fsync#2 d",
        "symlinkat#1 f d/s",
        "linkat#1 d/f g",
        "renameat2#1 EXCHANGE g d/f",
        "renameat2#2 NOREPLACE g d/f = File exists (os error 17)",
        "syncfs#1 .",
        "openat#2 TRUNC d/f",
        "unlinkat#4 REMOVEDIR d",
    ] {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected} is not in {lines:#?}"
        );
    }
}

#[test]
fn a_hook_can_make_a_call_fail_that_was_made() {
    let scratch = tempfile::tempdir().unwrap();
    let (fs, root) = traced(scratch.path(), |_: &Completed| {
        Err(io::Error::from_raw_os_error(5))
    });
    let error = fs.mkdirat(&root, name("d"), 0o700).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    assert_eq!(
        fs.fstatat(&root, name("d")).unwrap().kind,
        FileKind::Directory
    );
}
