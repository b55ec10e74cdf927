//! Checks update code against a file system that can lose power, in any test and without root.
//!
//! The code under test is generic over [`Fs`] and is given a directory. It is run once for each
//! fault at each of its calls, and the power is cut after each of them: every state that the crash
//! may leave is looked at, under three models of what a file system keeps. Each must be the old
//! tree or the new one, as a whole; once success was reported, the new one.
//!
//! ```
//! use std::ffi::OsStr;
//! use std::io;
//! use untorn_harness::{Fs, Node, OFlags, RenameMode, TreeSnapshot, check_model};
//!
//! /// The code under test: replaces a file by a rename.
//! fn update<F: Fs>(fs: &F, dir: &F::Fd, content: &[u8]) -> io::Result<()> {
//!     let (name, temporary) = (OsStr::new("config"), OsStr::new("config.tmp"));
//!     let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY;
//!     let file = fs.openat(dir, temporary, flags, 0o644)?;
//!     let mut rest = content;
//!     while !rest.is_empty() {
//!         match fs.write(&file, rest) {
//!             Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
//!             taken => rest = &rest[taken?..],
//!         }
//!     }
//!     fs.fsync(&file)?; // Without this line the check finds an empty file.
//!     fs.renameat2(dir, temporary, dir, name, RenameMode::Replace)?;
//!     fs.fsync(dir) // Without this one it finds the old file after success was reported.
//! }
//!
//! let old = TreeSnapshot::new(Node::file(0o644, "old"));
//! let new = TreeSnapshot::new(Node::file(0o644, "new content"));
//! let report = check_model("config", &old, &new, |fs, dir| update(fs, dir, b"new content"));
//! report.assert_holds();
//! ```
//!
//! * [`check_model`] is the whole of it; [`Check`] has the options.
//! * [`Claim`] is what the code says of itself when it returns. A `Result` is one already.
//! * [`explore`] goes through all states that one [`CrashImage`] may leave, for checks of another
//!   kind.
//! * [`RulePlan`] makes fault rules, as text, act on a [`FaultFs`].
//!
//! [`CrashImage`]: untorn_fs::CrashImage
//! [`FaultFs`]: untorn_fs::FaultFs

mod check;
mod claim;
mod explore;
mod faults;
mod judge;
mod mutants;
mod record;
mod report;
mod rules;
mod tree;

pub use check::{Check, SubjectFd, SubjectFs, check_model};
pub use claim::Claim;
pub use explore::{Exploration, explore};
pub use faults::FaultFailure;
pub use mutants::Mutant;
pub use report::{CrashReport, Found, Report};
pub use rules::{RulePlan, call_view};
pub use tree::{TreeError, capture, write_tree};
pub use untorn_fs::{
    FileKind, FlockOperation, Fs, ModelFs, OFlags, OsFs, Persistence, RemoveKind, RenameMode,
    SweepAction,
};
pub use untorn_oracle::{Node, TreeSnapshot, Violation};
pub use untorn_spec::ViolationKind;
