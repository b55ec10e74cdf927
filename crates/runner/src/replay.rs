//! Sees one crash state again.

use std::path::Path;

use anyhow::{Context, Result};
use untorn_oracle::TreeSnapshot;

use crate::bundle::Bundle;
use crate::case::Settings;
use crate::judge::{Judge, Judged};
use crate::worker::{Recovered, Worker};

/// Called while a recovered file system is mounted, with the place and a process in whose mount
/// namespace it is.
pub type LookAround<'a> = dyn Fn(&Path, u32) -> Result<()> + 'a;

/// What a replay saw.
#[derive(Debug)]
pub struct Replayed {
    /// The outcome: `old`, `new`, or the kind of the violation.
    pub outcome: String,
    /// Digest of the recovered tree.
    pub tree_digest: String,
    /// What is wrong with it, a line per path.
    pub detail: Vec<String>,
    /// It is the same tree, byte for byte, and the same kind of violation.
    pub same: bool,
    /// The recovered tree; `None` when it could not be mounted.
    pub tree: Option<TreeSnapshot>,
}

/// Recovers the crash state of a bundle on a disk of its own.
///
/// # Errors
/// When the bundle is broken or the machine lacks something. Nothing stays mounted.
pub fn replay(
    bundle: &Bundle,
    settings: &Settings,
    scratch: &Path,
    look_around: Option<&LookAround<'_>>,
) -> Result<Replayed> {
    let facts = &bundle.facts;
    // The size is the image's own: the profile may have changed since the bundle was made.
    let bytes = bundle.base.bytes();
    let scratch = scratch.join("replay");
    let worker = Worker::start(bundle.profile()?, bytes, &scratch, &settings.agent)?;
    let recovered = worker.recover_image(bundle.state()?, &facts.target)?;
    let judge = Judge::new(facts.old.clone(), facts.new.clone())?;
    let mut judged = judge.judge(&worker, &recovered, facts.acknowledged)?;
    let tree = match recovered {
        Recovered::Seen(_) => Some(worker.tree()?),
        Recovered::Unmountable(_) => None,
    };
    if tree.is_some() && judged.outcome != facts.violation.kind.name() {
        // What was violated may only show when the file system is written to.
        if let Err(what) = worker.probe_usable(&facts.target)? {
            judged = Judged::unusable(&judged, &what).into();
        }
    }
    if let (Some(look_around), Some(_)) = (look_around, &tree) {
        look_around(worker.mount_point(), worker.agent_id())?;
    }
    worker
        .unmount()
        .context("cannot unmount after the replay")?;
    let same = judged.digest == facts.violation.tree_digest
        && judged.outcome == facts.violation.kind.name();
    Ok(Replayed {
        outcome: judged.outcome.clone(),
        tree_digest: judged.digest.clone(),
        detail: judged
            .violation
            .iter()
            .flat_map(|found| found.detail.clone())
            .collect(),
        same,
        tree,
    })
}
