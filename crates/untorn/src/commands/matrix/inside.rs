//! What comes out of a guest: events, which go into the run of its kernel here, and bundles.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use untorn_runner::{BundleFacts, shell_word};
use untorn_spec::{CaseId, RunEvent, RunInfo, ViolationRecord};
use untorn_vm::protocol::JobExit;
use untorn_vm::{Sink, write_part};

use super::campaign::Campaign;
use super::target::{Target, Unit};

/// Takes what comes out of a guest that runs a unit.
pub(super) struct Inside<'s, 'a> {
    pub(super) campaign: &'s Campaign<'a>,
    pub(super) target: &'a Target,
    /// Beginning of the names of this command's bundles.
    pub(super) prefix: String,
    /// Events that have not come altogether.
    pub(super) line: Vec<u8>,
    pub(super) finished: Vec<String>,
    pub(super) under_way: Option<CaseId>,
    pub(super) unsupported: bool,
    pub(super) bundles: Vec<PathBuf>,
    /// The end of what it said on stderr.
    pub(super) said: Vec<u8>,
    pub(super) failed: Option<anyhow::Error>,
}

impl Inside<'_, '_> {
    pub(super) fn is_done(&self, unit: &Unit) -> bool {
        self.unsupported
            || unit
                .scenarios
                .iter()
                .all(|name| self.finished.contains(name))
    }

    /// Why a command that ended left cases undone.
    pub(super) fn ended_early(&self, exit: JobExit) -> String {
        let said = String::from_utf8_lossy(&self.said);
        let said: Vec<&str> = said.lines().rev().take(3).collect();
        let said: Vec<&str> = said.into_iter().rev().collect();
        let how = match exit {
            JobExit::Code(code) => format!("ended with exit code {code}"),
            JobExit::Signal(signal) => format!("was killed by signal {signal}"),
        };
        format!("the run in the guest {how}: {}", said.join("; "))
    }

    fn event(&mut self, event: RunEvent) -> Result<()> {
        let event = match event {
            RunEvent::RunStarted(info) => {
                let mut state = self.target.state();
                if state.started {
                    return Ok(());
                }
                state.started = true;
                drop(state);
                let info = RunInfo {
                    run_id: self.campaign.run_id.to_owned(),
                    suite: self.campaign.suite.to_owned(),
                    ..info
                };
                self.target.folder.write_manifest(&info)?;
                RunEvent::RunStarted(info)
            }
            RunEvent::RunFinished { .. } => return Ok(()),
            RunEvent::ProfileStarted(info) => {
                let mut state = self.target.state();
                if !state.profiles_started.insert(info.profile.clone()) {
                    return Ok(());
                }
                RunEvent::ProfileStarted(info)
            }
            RunEvent::ProfileUnsupported { profile, reason } => {
                self.unsupported = true;
                self.say(&profile, &format!("unsupported: {reason}"));
                RunEvent::ProfileUnsupported { profile, reason }
            }
            RunEvent::CaseStarted { case, recordings } => {
                self.under_way = Some(case.clone());
                RunEvent::CaseStarted { case, recordings }
            }
            RunEvent::ViolationFound(mut record) => {
                self.place(&mut record);
                RunEvent::ViolationFound(record)
            }
            RunEvent::CaseFinished(mut result) => {
                for record in &mut result.violations {
                    self.place(record);
                }
                self.under_way = None;
                self.finished.push(result.case.scenario.clone());
                self.say(
                    &result.case.profile,
                    &format!(
                        "{}: {}, {} recoveries in {:.1} s",
                        result.case.scenario, result.verdict, result.recoveries, result.seconds
                    ),
                );
                RunEvent::CaseFinished(result)
            }
            event @ RunEvent::RecordingExplored(_) => event,
        };
        self.target.note(&event)
    }

    fn say(&self, profile: &str, what: &str) {
        let given = &self.target.kernel.given;
        // Nobody is left to be told that stderr is closed.
        writeln!(io::stderr(), "{given}: {profile}: {what}").ok();
    }

    /// Where a bundle of the guest is here: guests number theirs each on its own.
    fn place(&self, record: &mut ViolationRecord) {
        let Some(number) = record.bundle.strip_prefix("violations/") else {
            return;
        };
        record.bundle = format!("violations/{}-{number}", self.prefix);
        let folder = self.target.folder.path().join(&record.bundle);
        let folder = shell_word(&folder.display().to_string());
        record.replay = format!("{} replay {folder}", self.target.typed);
    }

    /// A bundle says itself where it is.
    pub(super) fn rewrite_bundles(&mut self) -> Result<()> {
        for path in std::mem::take(&mut self.bundles) {
            // A guest that died may have left half of it.
            let Ok(mut facts) = serde_json::from_slice::<BundleFacts>(&fs::read(&path)?) else {
                continue;
            };
            self.place(&mut facts.violation);
            fs::write(&path, serde_json::to_vec_pretty(&facts)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn events(&mut self, bytes: &[u8]) -> Result<()> {
        self.line.extend(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            let event = serde_json::from_slice(&line).context("an event of a guest")?;
            self.event(event)?;
        }
        Ok(())
    }

    fn take_file(&mut self, path: &Path, mode: u32, append: bool, bytes: &[u8]) -> Result<()> {
        let mut parts = path.iter().skip(1).map(|part| part.to_string_lossy());
        let first = parts.next().unwrap_or_default();
        if first == "events.jsonl" {
            return self.events(bytes);
        }
        if first != "violations" {
            return Ok(());
        }
        let (Some(number), Some(name)) = (parts.next(), parts.next()) else {
            return Ok(());
        };
        let here = format!("violations/{}-{number}/{name}", self.prefix);
        let written = write_part(
            self.target.folder.path(),
            Path::new(&here),
            mode,
            append,
            bytes,
        )?;
        if name == "bundle.json" && !self.bundles.contains(&written) {
            self.bundles.push(written);
        }
        Ok(())
    }
}

impl Sink for Inside<'_, '_> {
    fn output(&mut self, stderr: bool, bytes: &[u8]) -> io::Result<()> {
        const KEPT_BYTES: usize = 4096;
        if stderr {
            self.said.extend(bytes);
            let excess = self.said.len().saturating_sub(KEPT_BYTES);
            self.said.drain(..excess);
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, mode: u32, append: bool, bytes: &[u8]) -> io::Result<()> {
        self.take_file(path, mode, append, bytes).map_err(|error| {
            let said = io::Error::other(format!("{error:#}"));
            self.failed.get_or_insert(error);
            said
        })
    }
}
