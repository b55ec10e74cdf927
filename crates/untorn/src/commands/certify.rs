//! `untorn certify` and `untorn run`: scenarios on profiles.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use untorn_runner::plan;
use untorn_spec::{Exit, Profile, Scenario, profiles_from_list};

use super::matrix::certify_kernels;
use crate::cli::{CertifyArgs, RunArgs, RunOptions};
use crate::session::{Tell, Usage, certificate_json, run_plan, shown, writer_command};

/// Runs a suite and writes a certificate.
///
/// # Errors
/// Bad input, or nothing could be run.
pub fn certify(args: &CertifyArgs) -> Result<Exit> {
    let suite = untorn_spec::suite(&args.suite).ok_or_else(|| {
        let known: Vec<&str> = untorn_spec::suites()
            .iter()
            .map(|suite| suite.name.as_str())
            .collect();
        Usage(format!(
            "there is no suite `{}`; there are {}",
            args.suite,
            known.join(", ")
        ))
    })?;
    let profiles = profiles(&args.options, &suite.profiles.join(","))?;
    let scenarios: Vec<(Scenario, Option<String>)> = suite
        .scenarios
        .iter()
        .filter_map(|name| untorn_spec::scenario(name))
        .map(|scenario| (scenario.clone(), None))
        .collect();
    let plan = plan(&scenarios, &profiles, &writer_command()?);
    if !args.kernel.is_empty() {
        return certify_kernels(args, &suite.name, &plan);
    }
    let (exit, certificate) = run_plan(&suite.name, &plan, &args.options, Tell::Unexpected)?;
    let path = args.options.out.join("certificate.json");
    fs::write(&path, certificate_json(&certificate)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if !args.options.json {
        let mut out = io::stdout();
        writeln!(out, "verdict      {}", certificate.verdict)?;
        writeln!(out, "certificate  {}", shown(&path))?;
        writeln!(
            out,
            "run folder   {}",
            shown(&args.options.out.join(&certificate.run_id))
        )?;
    }
    Ok(exit)
}

/// Runs scenarios.
///
/// # Errors
/// Bad input, or nothing could be run.
pub fn run_scenarios(args: &RunArgs) -> Result<Exit> {
    let scenarios = args
        .scenarios
        .iter()
        .map(|name| load(name))
        .collect::<Result<Vec<_>>>()?;
    let profiles = profiles(&args.options, "ext4,xfs,btrfs")?;
    let plan = plan(&scenarios, &profiles, &writer_command()?);
    let nothing: Vec<&str> = plan
        .iter()
        .filter(|profile| profile.cases.is_empty())
        .map(|profile| profile.profile.name)
        .collect();
    if !nothing.is_empty() {
        let names = nothing.join(", ");
        return Err(Usage(format!("none of these scenarios is for {names}")).into());
    }
    let name = args.scenarios.join(" ");
    Ok(run_plan(&name, &plan, &args.options, Tell::All)?.0)
}

/// The profiles that were asked for.
pub(crate) fn profiles(options: &RunOptions, default: &str) -> Result<Vec<&'static Profile>> {
    let list = options.fs.as_deref().unwrap_or(default);
    profiles_from_list(list).map_err(|error| Usage(format!("--fs: {error}")).into())
}

/// A built-in scenario, or one in a file.
fn load(name: &str) -> Result<(Scenario, Option<String>)> {
    if let Some(scenario) = untorn_spec::scenario(name) {
        return Ok((scenario.clone(), None));
    }
    let path = Path::new(name);
    let is_path = path.extension().is_some() || name.contains('/') || path.exists();
    if !is_path {
        let known = untorn_spec::scenarios()
            .iter()
            .map(|scenario| scenario.name.as_str());
        let near = untorn_spec::nearest(name, known)
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let message =
            format!("there is no scenario `{name}`{near} See `untorn list`, or name a file.");
        return Err(Usage(message).into());
    }
    let text = fs::read_to_string(path)
        .map_err(|error| Usage(format!("cannot read the scenario {name}: {error}")))?;
    let scenario = Scenario::parse(name, &text).map_err(|error| Usage(error.to_string()))?;
    Ok((scenario, Some(text)))
}
