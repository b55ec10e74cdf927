//! `untorn bench`: recoveries per second beside the physical limit, in one run.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use untorn_process::Interrupt;
use untorn_runner::{Settings, measure_case, measure_limit, plan};
use untorn_spec::{Exit, profiles_from_list, scenario};

use crate::cli::BenchArgs;
use crate::session::{Usage, agent_command, writer_command};

/// Least time for which the limit is measured.
const LIMIT_LEAST: Duration = Duration::from_secs(2);

/// Measures, and prints JSON.
///
/// # Errors
/// Bad input, or the machine lacks something.
pub fn bench(args: &BenchArgs, out: &mut impl Write) -> Result<Exit> {
    let profiles = profiles_from_list(&args.fs).map_err(|error| Usage(format!("--fs: {error}")))?;
    let scenario = scenario(&args.scenario)
        .ok_or_else(|| Usage(format!("there is no scenario `{}`", args.scenario)))?;
    let interrupt = Interrupt::install().context("cannot handle signals")?;
    let plans = plan(&[(scenario.clone(), None)], &profiles, &writer_command()?);
    let mut results = Vec::new();
    for case in plans.iter().flat_map(|profile| &profile.cases) {
        let mut variants: Vec<(u16, bool)> = args
            .workers
            .iter()
            .map(|workers| (*workers, true))
            .collect();
        if args.without_deferred {
            variants.push((1, false));
        }
        for (workers, deferred_replies) in variants {
            interrupt.check()?;
            let settings = Settings {
                agent: agent_command()?,
                workers: usize::from(workers),
                seed: 0,
                deferred_replies,
            };
            let scratch = untorn_device::leftovers::scratch_dir()
                .context("cannot make a scratch directory")?;
            // Measured beside each other, since the machine's speed changes from minute to minute.
            let limit = measure_limit(case, &settings, scratch.path(), LIMIT_LEAST)?;
            let result = measure_case(case, &settings, scratch.path(), &interrupt)?;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let rate = result.recoveries as f64 * f64::from(workers) / result.recovery_seconds;
            results.push(json!({
                "fs": case.profile.name,
                "scenario": case.id.scenario,
                "workers": workers,
                "deferred_replies": deferred_replies,
                "recoveries": result.recoveries,
                "crash_states_log2": round(result.crash_states_log2),
                "coverage": result.coverage,
                "seconds": round(result.seconds),
                "recoveries_per_s": round(rate),
                "limit_per_s": round(limit),
                "ratio": round(rate / limit / f64::from(workers)),
            }));
        }
    }
    let value: Value = json!({ "results": results });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)?;
    Ok(Exit::Success)
}

/// Three digits are more than such a machine repeats.
fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
