//! Plans and executes cases, feeds the explorer, emits events, keeps run folders.
//!
//! The way of a case, from top to bottom:
//! [`run_case`] makes the initial tree, then `recording` runs the subject on a recorded disk,
//! `exploration` cuts the block log into crash spaces and recovers their states on the workers'
//! disks, `judge` asks the oracle, `story` explains what was found, and [`Bundle`] keeps it.
//!
//! * A `worker` is a disk that this process serves, and an `agent`: the child that mounts it.
//! * [`RunFolder`] keeps a run; [`replay`] sees one crash state again.
//! * [`compare_with_brute_force`] asks the kernel whether the exploration is right.
//!
//! Nothing here prints.

mod agent;
mod bench;
mod brute_force;
mod bundle;
mod case;
mod channel;
mod error_text;
mod exploration;
mod judge;
mod observer;
mod plan;
mod recording;
mod replay;
mod run;
mod run_folder;
mod story;
mod worker;

pub use agent::agent_main;
pub use bench::{measure_case, measure_limit};
pub use brute_force::{BruteForceLimits, ComparedOutcome, ComparedSpace, compare_with_brute_force};
pub use bundle::{Bundle, BundleFacts};
pub use case::{CasePlan, ControlPlan, InitialTree, Settings, Workers, run_case};
pub use error_text::error_text;
pub use observer::Observer;
pub use plan::{ProfilePlan, RECOVERIES_PER_SPACE_MAX, WriterCommand, plan};
pub use recording::{CommandFailed, Subject};
pub use replay::{LookAround, Replayed, replay};
pub use run::{Display, run};
pub use run_folder::{RunFolder, bundles, find_run, shell_word};
pub use worker::AgentCommand;
