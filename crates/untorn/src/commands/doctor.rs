//! `untorn doctor`: what this machine can run, and the command that mends what is missing.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use untorn_device::leftovers::{self, Leftover};
use untorn_device::{Capability, Need, Status, probe, requirements_among};
use untorn_spec::{Exit, PROFILES, Profile};

/// The suite whose profiles must be runnable.
const DEFAULT_SUITE: &str = "standard";

/// What is asked of the doctor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DoctorOptions {
    /// Only remove what killed runs left, and say what that was.
    pub clean: bool,
    /// Print JSON.
    pub json: bool,
}

/// Examines this machine, or cleans up after killed runs.
///
/// Examining comes to [`Exit::Unsupported`] when a profile of the default suite cannot be run, and
/// cleaning to [`Exit::Internal`] when something could not be removed.
///
/// # Errors
/// When `out` cannot be written to.
pub fn doctor(options: &DoctorOptions, out: &mut impl Write) -> Result<Exit> {
    let left = leftovers::find();
    if options.clean {
        return clean(&left, options.json, out);
    }
    let found = probe();
    let verdicts = verdicts(&found);
    if options.json {
        let value = json!({
            "kernel": kernel(),
            "capabilities": found.iter().map(capability_json).collect::<Vec<_>>(),
            "profiles": verdicts.iter().map(Verdict::json).collect::<Vec<_>>(),
            "leftovers": left.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &value)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}\n", kernel())?;
        for capability in &found {
            write_capability(capability, out)?;
        }
        write_verdicts(&verdicts, out)?;
        write_leftovers(&left, out)?;
    }
    let runnable = |verdict: &Verdict| !verdict.is_default || verdict.unsupported.is_none();
    Ok(if verdicts.iter().all(runnable) {
        Exit::Success
    } else {
        Exit::Unsupported
    })
}

fn kernel() -> String {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let [name, release, machine] = [uname.sysname(), uname.release(), uname.machine()].map(text);
    format!("{name} {release} {machine}")
}

/// Whether a profile can be run.
struct Verdict {
    profile: &'static Profile,
    is_default: bool,
    unsupported: Option<untorn_device::Unsupported>,
}

impl Verdict {
    fn json(&self) -> Value {
        let unsupported = self.unsupported.as_ref();
        json!({
            "name": self.profile.name,
            "default": self.is_default,
            "supported": unsupported.is_none(),
            "reason": unsupported.map(|why| &why.reason),
            "help": unsupported.map(|why| &why.help),
        })
    }
}

fn verdicts(found: &[Capability]) -> Vec<Verdict> {
    let defaults = untorn_spec::suite(DEFAULT_SUITE)
        .map(untorn_spec::Suite::default_profiles)
        .unwrap_or_default();
    let verdict = |profile: &'static Profile| Verdict {
        profile,
        is_default: defaults.iter().any(|known| known.name == profile.name),
        unsupported: requirements_among(found, profile).err(),
    };
    PROFILES.iter().map(verdict).collect()
}

fn capability_json(capability: &Capability) -> Value {
    let (found, missing, help) = match &capability.status {
        Status::Present(detail) => (Some(detail), None, None),
        Status::Missing { what, help } => (None, Some(what), Some(help)),
    };
    json!({
        "name": capability.name,
        "need": capability.need.to_string(),
        "purpose": capability.purpose,
        "present": found.is_some(),
        "found": found,
        "missing": missing,
        "help": help,
    })
}

fn write_capability(capability: &Capability, out: &mut impl Write) -> Result<()> {
    let Capability {
        name,
        need,
        purpose,
        status,
    } = capability;
    match status {
        Status::Present(detail) => writeln!(out, "  present  {name:<21} {detail}")?,
        Status::Missing { what, help } => {
            // What nobody needs yet must not look like a fault.
            let word = if *need == Need::Optional {
                "absent"
            } else {
                "MISSING"
            };
            writeln!(out, "  {word:<8} {name:<21} {what}")?;
            writeln!(out, "  {:<30} needed for {purpose}", "")?;
            writeln!(out, "  {:<30} {help}", "")?;
        }
    }
    Ok(())
}

fn write_verdicts(verdicts: &[Verdict], out: &mut impl Write) -> Result<()> {
    let (can, cannot): (Vec<&Verdict>, Vec<&Verdict>) = verdicts
        .iter()
        .partition(|verdict| verdict.unsupported.is_none());
    writeln!(out, "\nFile-system profiles")?;
    for verdict in can {
        writeln!(out, "  can run  {}", verdict.profile.name)?;
    }
    for Verdict {
        profile,
        unsupported,
        ..
    } in cannot
    {
        let reason = unsupported.as_ref().map_or("", |why| &why.reason);
        writeln!(out, "  CANNOT   {:<21} {reason}", profile.name)?;
    }
    Ok(())
}

fn write_leftovers(left: &[Leftover], out: &mut impl Write) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nLeft by killed runs: `untorn doctor --clean` removes"
    )?;
    for leftover in left {
        writeln!(out, "  {leftover}")?;
    }
    Ok(())
}

fn clean(left: &[Leftover], json: bool, out: &mut impl Write) -> Result<Exit> {
    let removed = leftovers::remove(left);
    let outcomes: Vec<(&Leftover, Option<String>)> = left
        .iter()
        .zip(&removed)
        .map(|(leftover, removed)| (leftover, removed.as_ref().err().map(ToString::to_string)))
        .collect();
    if json {
        let entries: Vec<Value> = outcomes
            .iter()
            .map(|(leftover, error)| {
                json!({
                    "what": leftover.to_string(), "removed": error.is_none(), "error": error,
                })
            })
            .collect();
        serde_json::to_writer_pretty(&mut *out, &json!({ "leftovers": entries }))?;
        writeln!(out)?;
    } else if outcomes.is_empty() {
        writeln!(out, "nothing was left by killed runs")?;
    } else {
        for (leftover, error) in &outcomes {
            match error {
                None => writeln!(out, "removed      {leftover}")?,
                Some(error) => writeln!(out, "NOT removed  {leftover}: {error}")?,
            }
        }
    }
    let all = outcomes.iter().all(|(_, error)| error.is_none());
    Ok(if all { Exit::Success } else { Exit::Internal })
}

#[cfg(test)]
mod tests {
    use untorn_spec::FsKind;

    use super::*;

    fn without_xfs() -> Vec<Capability> {
        vec![Capability {
            name: "mkfs.xfs",
            need: Need::FileSystem(FsKind::Xfs),
            purpose: "making its images",
            status: Status::Missing {
                what: "mkfs.xfs is not installed".to_owned(),
                help: "`apt-get install xfsprogs`".to_owned(),
            },
        }]
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_missing_is_told_with_its_help() {
        let told = text(|out| write_capability(&without_xfs()[0], out));
        assert!(told.contains("MISSING  mkfs.xfs              mkfs.xfs is not installed"));
        assert!(told.contains("`apt-get install xfsprogs`"), "{told}");
    }

    #[test]
    fn profiles_without_their_file_system_cannot_run() {
        let verdicts = verdicts(&without_xfs());
        let told = text(|out| write_verdicts(&verdicts, out));
        assert!(told.contains("  can run  ext4\n"), "{told}");
        assert!(told.contains("  CANNOT   xfs-512"), "{told}");
        let broken: Vec<bool> = verdicts
            .iter()
            .filter(|verdict| verdict.is_default)
            .map(|verdict| verdict.unsupported.is_some())
            .collect();
        assert!(broken.contains(&true) && broken.contains(&false));
    }

    #[test]
    fn the_whole_report_is_json_on_demand() {
        let options = DoctorOptions {
            clean: false,
            json: true,
        };
        let told = text(|out| doctor(&options, out).map(drop));
        let value: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(value["profiles"].as_array().unwrap().len(), PROFILES.len());
        assert!(value["capabilities"][0]["present"].is_boolean());
    }

    #[test]
    fn cleaning_nothing_succeeds() {
        let mut out = Vec::new();
        assert_eq!(clean(&[], false, &mut out).unwrap(), Exit::Success);
        assert_eq!(out, b"nothing was left by killed runs\n");
    }
}
