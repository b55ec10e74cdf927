//! Tree snapshots, differences, and the predicates of the crash model.
//!
//! A [`TreeSnapshot`] is what is seen under a path, read without following a link and without
//! writing. The [`Oracle`] knows the trees that a subject publishes, its *generations*, and judges
//! what was seen after a recovery against those that a [`History`] of acknowledgements still
//! allows. What it finds is a [`Violation`]: one kind for the whole tree, and one [`Finding`] for
//! each path that says which generation it belongs to or how it was damaged.
//!
//! Nothing here writes, and nothing here knows how a tree came to be.

mod capture;
mod classify;
mod content;
mod difference;
mod digest;
mod examine;
mod finding;
mod history;
mod leftovers;
mod name;
mod node;
mod oracle;
mod read;
mod snapshot;

pub use capture::{CaptureOptions, names_in};
pub use content::{Content, Summary};
pub use difference::Difference;
pub use digest::{ParseDigestError, TreeDigest};
pub use finding::{FileFinding, Finding};
pub use history::{History, HistoryError, HistoryEvent};
pub use leftovers::judge_leftovers;
pub use name::{Name, ParseNameError, TreePath};
pub use node::{Attributes, Node, OtherKind, Owner};
pub use oracle::{Judgement, Oracle, OracleError, OracleOptions, Outcome, Violation};
pub use snapshot::TreeSnapshot;
