//! `untorn list`.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use untorn_spec::{Exit, Expected, PROFILES, WRITERS, scenarios, suites};

use crate::cli::ListArgs;

/// Lists what can be named on the command line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn list(args: &ListArgs, out: &mut impl Write) -> Result<Exit> {
    if args.json {
        let value = json!({
            "suites": suites().iter().map(|suite| json!({
                "name": suite.name, "about": suite.about, "profiles": suite.profiles,
                "scenarios": suite.scenarios,
            })).collect::<Vec<_>>(),
            "scenarios": scenarios().iter().map(|scenario| json!({
                "name": scenario.name, "about": scenario.about, "writer": scenario.writer,
                "control": scenario.control.is_some(),
            })).collect::<Vec<_>>(),
            "writers": WRITERS.iter().map(|writer| json!({
                "name": writer.name, "about": writer.about,
            })).collect::<Vec<_>>(),
            "profiles": PROFILES.iter().map(|profile| json!({
                "name": profile.name, "about": profile.about, "expected": profile.expected,
                "unit": profile.unit, "mkfs": profile.mkfs, "mount_options": profile.mount_options,
            })).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &value)?;
        writeln!(out)?;
        return Ok(Exit::Success);
    }
    section(
        out,
        "Suites",
        suites().iter().map(|suite| (&*suite.name, &*suite.about)),
    )?;
    section(
        out,
        "Scenarios",
        scenarios().iter().map(|case| (&*case.name, &*case.about)),
    )?;
    section(
        out,
        "Writers",
        WRITERS.iter().map(|writer| (writer.name, writer.about)),
    )?;
    writeln!(out, "File-system profiles")?;
    for profile in PROFILES {
        let expected = match profile.expected {
            Expected::Holds => "holds",
            Expected::Violated => "violated",
        };
        writeln!(
            out,
            "  {:<22} expected {expected:<9} {}",
            profile.name, profile.about
        )?;
    }
    Ok(Exit::Success)
}

fn section<'a>(
    out: &mut impl Write,
    title: &str,
    rows: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<()> {
    writeln!(out, "{title}")?;
    for (name, about) in rows {
        writeln!(out, "  {name:<38} {about}")?;
    }
    writeln!(out)?;
    Ok(())
}
