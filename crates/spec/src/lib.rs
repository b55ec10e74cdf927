//! What crosses a process or a disk: scenarios, plans, control messages, events, verdicts,
//! certificates, tokens, exit codes.
//!
//! This crate does no I/O: it defines texts and what they mean.

mod certificate;
mod control;
mod event;
mod exit;
mod profile;
mod scenario;
mod token;
mod verdict;

pub use certificate::{
    Certificate, FilesystemEntry, Format, Kernel, ScenarioEntry, Tool, ViolationEntry,
};
pub use control::{FromSubject, Syscall, ToSubject, WriterOrder};
pub use event::{
    CaseId, CaseResult, ProfileInfo, RecordingSummary, RunEvent, RunInfo, ViolationRecord,
};
pub use exit::Exit;
pub use profile::{FsKind, PROFILES, Profile, profile};
pub use scenario::{
    Boundaries, Control, Expected, FileSpec, Recordings, Scenario, ScenarioLimits, TreeSpec,
};
pub use token::{Disturbance, ReplayToken, TokenError};
pub use verdict::{UnknownName, Verdict, ViolationKind};
