//! How a mutating call is described before it is numbered: [`Request`] and [`Counter`].
//!
//! Every wrapper that speaks of calls uses these, so that a trace and a fault rule can never
//! describe the same call in two ways.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;

use rustix::fs::OFlags;

use crate::op::{Op, OpKind};

/// A mutating call without its place in the trace.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) kind: OpKind,
    pub(crate) path: String,
    pub(crate) second_path: Option<String>,
    pub(crate) detail: String,
}

impl Request {
    /// A call on one path.
    pub(crate) fn new(kind: OpKind, path: &str, detail: impl Into<String>) -> Self {
        let path = if path.is_empty() { "." } else { path };
        Self {
            kind,
            path: path.to_owned(),
            second_path: None,
            detail: detail.into(),
        }
    }

    /// The same call with the new path of a rename or link.
    pub(crate) fn to(self, second_path: String) -> Self {
        Self {
            second_path: Some(second_path),
            ..self
        }
    }
}

/// The path of a name in a directory; the traced root is the empty path.
pub(crate) fn join(dir: &str, name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if dir.is_empty() {
        name.into_owned()
    } else {
        format!("{dir}/{name}")
    }
}

/// Whether an open with these flags is a mutating call.
pub(crate) fn open_mutates(flags: OFlags) -> bool {
    flags.intersects(OFlags::CREATE | OFlags::TRUNC)
}

/// The flags that decide what an open may change, and the mode where one is used.
pub(crate) fn open_detail(flags: OFlags, mode: u32) -> String {
    let names = [
        (OFlags::CREATE, "CREAT"),
        (OFlags::EXCL, "EXCL"),
        (OFlags::TRUNC, "TRUNC"),
        (OFlags::APPEND, "APPEND"),
    ];
    let set: Vec<&str> = names
        .into_iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, name)| name)
        .collect();
    let mut detail = set.join("|");
    if flags.contains(OFlags::CREATE) {
        detail.push(' ');
        detail.push_str(&mode_detail(mode));
    }
    detail
}

pub(crate) fn mode_detail(mode: u32) -> String {
    format!("{mode:04o}")
}

/// Owner and group as chown(1) writes them; a side that stays as it is is left empty.
pub(crate) fn owner_detail(uid: Option<u32>, gid: Option<u32>) -> String {
    let side = |id: Option<u32>| id.map_or_else(String::new, |id| id.to_string());
    format!("{}:{}", side(uid), side(gid))
}

/// Gives calls their index and ordinal.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    all: Cell<u32>,
    by_kind: RefCell<[u32; OpKind::ALL.len()]>,
}

impl Counter {
    /// The call at its place in the trace.
    pub(crate) fn number(&self, request: Request) -> Op {
        let Request {
            kind,
            path,
            second_path,
            detail,
        } = request;
        let index = self.all.get();
        self.all.set(index + 1);
        let mut by_kind = self.by_kind.borrow_mut();
        let ordinal = &mut by_kind[kind.position()];
        *ordinal += 1;
        Op {
            index,
            ordinal: *ordinal,
            kind,
            path,
            second_path,
            detail,
        }
    }
}
