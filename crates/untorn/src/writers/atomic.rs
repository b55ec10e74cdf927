//! The right way: the sync core, `atomicdir`.

use atomicdir::{Durability, Options};
use untorn_fs::Fs;

use super::{Job, Published, WriteError};

/// Publishes by the sync core. The staging name comes from the seed, so that the same run makes
/// the same calls.
pub(super) fn publish<F: Fs>(
    job: &Job<'_, F>,
    durability: Durability,
) -> Result<Published, WriteError> {
    let options = Options {
        durability,
        token: Some(job.seed),
        ..Options::default()
    };
    let published = atomicdir::publish(job.fs, job.parent, job.target, job.tree, &options)?;
    let complaints = published.cleanup_errors.iter().map(ToString::to_string);
    Ok(Published {
        complaints: complaints.collect(),
    })
}
