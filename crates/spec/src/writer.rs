//! The built-in writers: their names and what each does, call by call.
//!
//! The writers themselves live in the command; this list is what scenarios are checked against.

/// What is known of a built-in writer by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterInfo {
    /// The name used in scenarios.
    pub name: &'static str,
    /// One line for `untorn list`.
    pub about: &'static str,
    /// False for a writer known to be wrong, which serves as a control.
    pub correct: bool,
}

/// Every built-in writer: right ones first, then wrong ones in the order in which their methods
/// appear in the history of the routine that atomicdir replaces.
pub const WRITERS: &[WriterInfo] = &[
    WriterInfo {
        name: "atomicdir",
        about: "stage, fsync each file and directory, exchange, fsync the parent, remove the old tree",
        correct: true,
    },
    WriterInfo {
        name: "atomicdir-syncfs",
        about: "the same with one syncfs in place of an fsync per file and directory",
        correct: true,
    },
    WriterInfo {
        name: "exchange-without-fsync",
        about: "stage, exchange, remove the old tree; nothing is synced",
        correct: false,
    },
    WriterInfo {
        name: "exchange-without-parent-fsync",
        about: "stage, fsync each file and directory, exchange; the parent is not synced",
        correct: false,
    },
    WriterInfo {
        name: "per-file-fsync",
        about: "per file: write a temporary file, fsync it, rename it over the old one, fsync the directory",
        correct: false,
    },
    WriterInfo {
        name: "per-file-without-fsync",
        about: "per file: write a temporary file and rename it over the old one; nothing is synced",
        correct: false,
    },
    WriterInfo {
        name: "two-renames",
        about: "stage and sync, rename the old tree aside, rename the new one into its place",
        correct: false,
    },
    WriterInfo {
        name: "remove-then-write",
        about: "per file: remove the old one, then write the new one under the same name",
        correct: false,
    },
];

/// The built-in writer of that name.
pub fn writer(name: &str) -> Option<&'static WriterInfo> {
    WRITERS.iter().find(|writer| writer.name == name)
}
