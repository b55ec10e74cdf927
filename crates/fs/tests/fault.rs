//! Faults strike where the plan says, and nowhere else.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

use std::ffi::OsStr;
use std::io;
use std::rc::Rc;

use untorn_fs::{
    After, Before, Completed, FaultFs, FaultPlan, Fs, Killed, Look, LookKind, ModelFs, NoFault,
    OFlags, Op, OpKind, PlanBefore, SweepAction, sweep,
};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

/// Makes a file of two writes and syncs it: five mutating calls.
fn write_file<F: Fs>(fs: &F, root: &F::Fd) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
    let file = fs.openat(root, name("f"), flags, 0o644)?;
    for mut rest in [b"hello".as_slice(), b" world"] {
        while !rest.is_empty() {
            rest = &rest[fs.write(&file, rest)?..];
        }
    }
    fs.fsync(&file)?;
    fs.fsync(root)
}

fn content(fs: &ModelFs) -> Option<Vec<u8>> {
    let file = fs.openat(&fs.root(), name("f"), OFlags::RDONLY, 0).ok()?;
    let mut buffer = vec![0; 100];
    let count = fs.read(&file, &mut buffer).unwrap();
    buffer.truncate(count);
    Some(buffer)
}

fn run(plan: impl FaultPlan) -> (ModelFs, io::Result<()>, bool) {
    let model = ModelFs::new();
    let fs = FaultFs::new(model.clone(), plan);
    let root = fs.root(model.root());
    let result = write_file(&fs, &root);
    (model, result, fs.is_dead())
}

fn at(kind: OpKind, ordinal: u32, fault: Before) -> PlanBefore<impl Fn(&Op) -> Before> {
    PlanBefore(move |op: &Op| {
        if op.kind == kind && op.ordinal == ordinal {
            fault
        } else {
            Before::Proceed
        }
    })
}

#[test]
fn nothing_happens_without_a_fault() {
    let (model, result, dead) = run(NoFault);
    result.unwrap();
    assert!(!dead);
    assert_eq!(content(&model).unwrap(), b"hello world");
}

#[test]
fn an_error_before_a_call_takes_its_place() {
    let (model, result, _) = run(at(OpKind::Write, 2, Before::Fail(ENOSPC)));
    assert_eq!(result.unwrap_err().raw_os_error(), Some(ENOSPC));
    assert_eq!(content(&model).unwrap(), b"hello");
}

#[test]
fn a_short_write_goes_on_where_it_stopped() {
    let short = |then| Before::Short { bytes: 3, then };
    let (model, result, _) = run(at(OpKind::Write, 1, short(None)));
    result.unwrap();
    assert_eq!(content(&model).unwrap(), b"hello world");

    let (model, result, _) = run(at(OpKind::Write, 1, short(Some(ENOSPC))));
    assert_eq!(result.unwrap_err().raw_os_error(), Some(ENOSPC));
    assert_eq!(content(&model).unwrap(), b"hel");
}

#[test]
fn a_dropped_call_reports_success() {
    let (model, result, _) = run(at(OpKind::Write, 1, Before::Drop));
    result.unwrap();
    assert_eq!(content(&model).unwrap(), b" world");
}

#[test]
fn nothing_works_after_a_kill() {
    let (model, result, dead) = run(at(OpKind::Write, 2, Before::Kill));
    let error = result.unwrap_err();
    let killed = error.get_ref().and_then(|inner| inner.downcast_ref());
    assert_eq!(killed, Some(&Killed));
    assert!(dead);
    assert_eq!(content(&model).unwrap(), b"hello");

    let fs = FaultFs::new(model.clone(), at(OpKind::Fsync, 1, Before::Kill));
    let root = fs.root(model.root());
    fs.fsync(&root).unwrap_err();
    fs.fstat(&root).unwrap_err();
    fs.mkdirat(&root, name("d"), 0o755).unwrap_err();
    assert!(model.fstatat(&model.root(), name("d")).is_err());
}

struct AfterAndLooks;

impl FaultPlan for AfterAndLooks {
    fn after(&self, call: &Completed) -> After {
        match call.op.kind {
            OpKind::Mkdirat => After::Fail(EIO),
            OpKind::Unlinkat => After::Kill,
            _ => After::Proceed,
        }
    }

    fn look(&self, look: &Look) -> Option<i32> {
        (look.kind == LookKind::ReadDir && look.path == "d").then_some(EIO)
    }
}

#[test]
fn an_error_after_a_call_leaves_what_it_did_and_looks_can_fail() {
    let model = ModelFs::new();
    let fs = FaultFs::new(model.clone(), AfterAndLooks);
    let root = fs.root(model.root());
    assert_eq!(
        fs.mkdirat(&root, name("d"), 0o755)
            .unwrap_err()
            .raw_os_error(),
        Some(EIO)
    );
    let dir = fs.openat(&root, name("d"), OFlags::RDONLY, 0).unwrap();
    assert_eq!(fs.read_dir(&root).unwrap().len(), 1);
    assert_eq!(fs.read_dir(&dir).unwrap_err().raw_os_error(), Some(EIO));
    let removal = fs.unlinkat(&root, name("d"), untorn_fs::RemoveKind::Directory);
    removal.unwrap_err();
    assert!(fs.is_dead());
    assert!(model.read_dir(&model.root()).unwrap().is_empty());
}

#[test]
fn a_sweep_tries_every_pair_and_says_how_many() {
    let actions = [
        SweepAction::Kill,
        SweepAction::FailAt(EIO),
        SweepAction::FailAfter(EIO),
        SweepAction::Short,
        SweepAction::ShortThenFail(ENOSPC),
        SweepAction::DropSync,
    ];
    let report = sweep(&actions, |plan| {
        let (model, result, dead) = run(Rc::clone(plan));
        let whole = content(&model).is_some_and(|content| content == b"hello world");
        match &plan.pair().map(|pair| pair.action) {
            Some(SweepAction::Kill) => assert!(dead && result.is_err()),
            Some(SweepAction::FailAt(_)) => assert!(result.is_err()),
            Some(SweepAction::DropSync | SweepAction::Short) => assert!(result.is_ok()),
            _ => {}
        }
        if result.is_ok() && !whole {
            return Err("success without the content");
        }
        Ok(())
    })
    .unwrap();
    // Kills at 5 + 1 boundaries; two errors at 5 calls each; two kinds of short writes at two
    // writes; two syncs.
    assert_eq!(report.to_string(), "22 of 22 pairs at 5 calls, 0 failed");
    assert!(report.holds());
}

#[test]
fn a_sweep_notices_a_subject_that_does_something_else_each_time() {
    let mut runs = 0;
    let report = sweep(&[SweepAction::FailAt(EIO)], |plan| {
        runs += 1;
        let model = ModelFs::new();
        let fs = FaultFs::new(model.clone(), Rc::clone(plan));
        let root = fs.root(model.root());
        if runs < 3 {
            drop(fs.fsync(&root));
        }
        drop(fs.fsync(&root));
        Ok::<(), &str>(())
    })
    .unwrap();
    assert_eq!((report.pairs, report.done), (2, 1));
    assert_eq!(report.unreached.len(), 1);
    assert!(!report.holds());
}
