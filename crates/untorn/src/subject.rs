//! The entry point of the child that is a built-in writer under test.
//!
//! The harness starts its own program again as a [`HeldSubject`](untorn_process::HeldSubject); the
//! child takes its order from the control socket, and stops after each mutating syscall until it
//! is told to go on.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use untorn_fs::{Completed, OsFs, TraceFs};
use untorn_process::{ControlClient, ControlError};
use untorn_spec::{Syscall, WriterOrder};

use crate::writers::{BuiltinWriter, Job, WriteError, tree_from};

/// The generation that a subject publishes.
const GENERATION: u32 = 1;

/// Why the subject did not do what it was ordered.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("there is no writer named `{0}`")]
    UnknownWriter(String),
    #[error("the tree of generation {GENERATION} is none")]
    NoTree,
    #[error("the parent directory {path} cannot be opened: {source}")]
    Parent { path: String, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("published, but {0}")]
    Complaints(String),
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Runs the subject: its order, its control socket and everything else come from the harness.
///
/// It ends with success when the writer has published. Errors go to the harness over the socket,
/// or to stderr when there is no socket.
pub fn main() -> ExitCode {
    let told = ControlClient::connect().and_then(|(client, order)| {
        let error = carry_out(&client, &order).err();
        let code = if error.is_none() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
        client.finished(error.map(|error| error.to_string()))?;
        Ok(code)
    });
    told.unwrap_or_else(|error| {
        // Nobody is left to be told that stderr is closed.
        writeln!(io::stderr(), "untorn subject: {error}").ok();
        ExitCode::FAILURE
    })
}

fn carry_out(client: &ControlClient, order: &WriterOrder) -> Result<(), Failure> {
    let writer = BuiltinWriter::named(&order.writer)
        .ok_or_else(|| Failure::UnknownWriter(order.writer.clone()))?;
    let content = order.tree.generation(GENERATION).ok_or(Failure::NoTree)?;
    let tree = tree_from(&content);
    let parent = OsFs
        .open_dir(Path::new(&order.parent))
        .map_err(|source| Failure::Parent {
            path: order.parent.clone(),
            source,
        })?;

    let hold = |call: &Completed| client.returned(&syscall(call)).map_err(io::Error::other);
    let fs = TraceFs::new(OsFs, hold);
    let parent = fs.root(parent);
    client.started()?;
    let published = writer.publish(&Job {
        fs: &fs,
        parent: &parent,
        target: OsStr::new(&order.target),
        tree: &tree,
        seed: order.seed,
    })?;
    client.acknowledged()?;
    if published.complaints.is_empty() {
        Ok(())
    } else {
        Err(Failure::Complaints(published.complaints.join("; ")))
    }
}

/// A call in the words of the control protocol.
fn syscall(call: &Completed) -> Syscall {
    let op = &call.op;
    Syscall {
        index: op.index,
        name: format!("{}#{}", op.kind, op.ordinal),
        text: op.to_string(),
        errno: call.errno,
    }
}
