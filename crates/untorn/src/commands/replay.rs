//! `untorn replay`: one crash state again.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use untorn_process::Interrupt;
use untorn_report::story;
use untorn_runner::{Bundle, Settings, bundles, error_text, replay as replay_bundle};
use untorn_spec::{Exit, ReplayToken};

use crate::cli::ReplayArgs;
use crate::session::{Usage, agent_command};

/// Replays a bundle, or the bundle of a token.
///
/// # Errors
/// When there is no such bundle, or it cannot be replayed here.
pub fn replay(args: &ReplayArgs, out: &mut impl Write) -> Result<Exit> {
    let folder = find(args)?;
    let bundle = Bundle::load(&folder).map_err(|error| Usage(error_text(&error)))?;
    if let Some(extract) = &args.extract {
        let refuse = |what: &str| Usage(format!("--extract {}: {what}", extract.display()));
        if extract.exists() {
            bail!(refuse("it exists"));
        }
        let parent = extract.parent().filter(|parent| *parent != Path::new(""));
        if parent.is_some_and(|parent| !parent.is_dir()) {
            bail!(refuse("the directory that it should be in does not exist"));
        }
    }
    if args.shell && !io::stdin().is_terminal() {
        return Err(Usage("--shell needs a terminal".to_owned()).into());
    }
    // Signals are noted from here on, so that nothing stays mounted.
    let _interrupt = Interrupt::install().context("cannot handle signals")?;
    let settings = Settings {
        agent: agent_command()?,
        workers: 1,
        seed: 0,
        deferred_replies: true,
    };
    let scratch =
        untorn_device::leftovers::scratch_dir().context("cannot make a scratch directory")?;
    let target = bundle.facts.target.clone();
    let look = |mount_point: &Path, agent: u32| look_around(args, mount_point, agent, &target);
    let replayed = replay_bundle(&bundle, &settings, scratch.path(), Some(&look))?;
    let mut told = bundle.facts.violation.clone();
    told.seen.clone_from(&replayed.detail);
    writeln!(out, "{}", story(&told))?;
    writeln!(out, "outcome      {}", replayed.outcome)?;
    writeln!(out, "tree         {}", replayed.tree_digest)?;
    if replayed.same {
        writeln!(out, "reproduced   the same tree, byte for byte")?;
        return Ok(Exit::Violation);
    }
    writeln!(
        out,
        "differs      recorded were {} and tree {}",
        bundle.facts.violation.kind, bundle.facts.violation.tree_digest
    )?;
    Ok(Exit::Inconclusive)
}

fn find(args: &ReplayArgs) -> Result<PathBuf> {
    let direct = Path::new(&args.what);
    if direct.is_dir() {
        return Ok(direct.to_owned());
    }
    let token: ReplayToken = args.what.parse().map_err(|error| {
        Usage(format!(
            "{} is no folder, and no token either: {error}",
            args.what
        ))
    })?;
    let wanted = token.to_string();
    for folder in bundles(&args.runs) {
        if let Ok(bundle) = Bundle::load(&folder)
            && bundle.facts.violation.token == wanted
        {
            return Ok(folder);
        }
    }
    let known = untorn_spec::scenario(&token.scenario);
    let anew = known.map_or_else(String::new, |scenario| {
        let (scenario, profile) = (&scenario.name, &token.profile);
        format!("; `untorn run {scenario} --fs {profile}` records the case anew")
    });
    let runs = args.runs.display();
    let message = format!("no run in {runs} has a bundle for this token: give --runs{anew}");
    bail!(Usage(message))
}

/// What may be done while the recovered file system is mounted.
fn look_around(args: &ReplayArgs, mount_point: &Path, agent: u32, target: &str) -> Result<()> {
    if let Some(extract) = &args.extract {
        // The agent's root shows its mount namespace (proc_pid_root(5)).
        let inside = mount_point.strip_prefix("/").unwrap_or(mount_point);
        let from = Path::new("/proc")
            .join(agent.to_string())
            .join("root")
            .join(inside)
            .join(target);
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(&from)
            .arg(extract)
            .status()?;
        if !copied.success() {
            bail!(
                "cp -a of the recovered tree to {} failed",
                extract.display()
            );
        }
    }
    if args.shell {
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        writeln!(
            io::stderr(),
            "the recovered file system is at {}",
            mount_point.display()
        )?;
        let status = std::process::Command::new("nsenter")
            .arg(format!("--mount=/proc/{agent}/ns/mnt"))
            .arg(format!("--wd={}", mount_point.display()))
            .arg("--")
            .arg(shell)
            .status()
            .context("cannot start nsenter (package util-linux)")?;
        writeln!(io::stderr(), "the shell ended with {status}")?;
    }
    Ok(())
}
