//! What crosses a process or a disk: scenarios, plans, control messages, events, verdicts,
//! certificates, tokens, exit codes.
//!
//! This crate does no I/O: it defines texts and what they mean.

mod builtin;
mod certificate;
mod content;
mod control;
mod document;
mod event;
mod exit;
mod nearest;
mod profile;
mod profile_list;
mod rule;
mod rule_call;
mod rule_count;
mod rule_errno;
mod rule_error;
mod rule_parse;
mod rule_path;
mod rule_words;
mod scenario;
mod scenario_error;
mod suite;
mod token;
mod tree;
mod validate;
mod verdict;
mod writer;

pub use builtin::{scenario, scenarios, suite, suites};
pub use certificate::{
    Certificate, FilesystemEntry, Format, Kernel, ScenarioEntry, Tool, ViolationEntry,
};
pub use control::{FromSubject, Syscall, ToSubject, WriterOrder};
pub use event::{
    CaseId, CaseResult, ProfileInfo, RecordingSummary, RunEvent, RunInfo, ViolationRecord,
};
pub use exit::Exit;
pub use nearest::nearest;
pub use profile::{FsKind, PROFILES, Profile, profile};
pub use profile_list::{ProfileListError, profiles_from_list};
pub use rule::{FaultAction, FaultRule, FaultRules, Point, When};
pub use rule_call::{CallKind, CallPattern, CallView, Ordinal};
pub use rule_count::RuleCounter;
pub use rule_errno::FaultErrno;
pub use rule_error::RuleError;
pub use rule_path::PathPattern;
pub use scenario::{
    Boundaries, Control, Expected, FileSpec, Recordings, Scenario, ScenarioLimits, TreeSpec, schema,
};
pub use scenario_error::{ScenarioError, ScenarioFault};
pub use suite::Suite;
pub use token::{Disturbance, ReplayToken, TokenError};
pub use tree::{BlockLocation, DirectoryContent, FileContent, TreeContent};
pub use verdict::{UnknownName, Verdict, ViolationKind};
pub use writer::{WRITERS, WriterInfo, writer};
