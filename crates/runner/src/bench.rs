//! Measures recoveries per second against what mounting alone costs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use untorn_device::{PlainDisk, make_image};
use untorn_process::Interrupt;
use untorn_spec::{CaseId, CaseResult, RunEvent};

use crate::agent::Request;
use crate::case::{CasePlan, InitialTree, Settings, Workers, run_case};
use crate::recording::populate;
use crate::worker::Agent;
use crate::{Bundle, Observer};

/// Runs a case on workers of its own, and keeps nothing of it.
///
/// # Errors
/// Those of [`run_case`].
pub fn measure_case(
    plan: &CasePlan,
    settings: &Settings,
    scratch: &Path,
    interrupt: &Interrupt,
) -> Result<CaseResult> {
    let workers = Workers::start(plan.profile, settings, scratch)?;
    run_case(plan, &workers, settings, &Nobody, interrupt)
}

/// How often per second an image with the case's tree, cleanly unmounted and on a plain loop device
/// in memory, can be mounted, looked at and unmounted: the physical limit of one worker.
///
/// # Errors
/// When the machine lacks something.
pub fn measure_limit(
    plan: &CasePlan,
    settings: &Settings,
    scratch: &Path,
    least: Duration,
) -> Result<f64> {
    let image = {
        let workers = Workers::start(plan.profile, settings, scratch)?;
        let worker = workers.workers.first().context("no worker")?;
        let InitialTree::OfSpec(spec) = &plan.initial else {
            anyhow::bail!("only generated trees are measured");
        };
        let initial = crate::agent::Initial::Generated(spec.clone());
        populate(worker, make_image(plan.profile)?, &plan.target, initial)?.0
    };
    let (path, device) = PlainDisk::new(&image, plan.profile.unit)?.into_device();
    let agent = Agent::start(&settings.agent, plan.profile, scratch, &path, device)?;
    let start = Instant::now();
    let (times, mut done) = (20, 0);
    while start.elapsed() < least {
        agent.must(&Request::Repeat {
            target: plan.target.clone(),
            times,
        })?;
        done += times;
    }
    Ok(f64::from(done) / start.elapsed().as_secs_f64())
}

/// Is told and keeps nothing.
struct Nobody;

impl Observer for Nobody {
    fn event(&self, _event: &RunEvent) {}

    fn tick(&self, _case: &CaseId, _recoveries: u64, _coverage: f64) {}

    fn keep(&self, _bundle: &mut Bundle) -> Result<()> {
        Ok(())
    }
}
