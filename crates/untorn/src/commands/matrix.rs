//! `untorn certify --kernel`: a suite under several kernels, spread over guests.
//!
//! A guest is given one file system at a time. What it says goes, as events, into the run folder of
//! its kernel here. A guest that dies makes the case that was under way inconclusive, and another
//! guest goes on behind it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use untorn_process::Interrupt;
use untorn_report::{Fold, GuestTimes, Matrix, MatrixPart, matrix_table, write_matrix_html};
use untorn_runner::{CasePlan, ProfilePlan, RunFolder, shell_word};
use untorn_spec::{CaseId, CaseResult, Exit, Profile, RunEvent, RunInfo, Verdict, ViolationRecord};
use untorn_vm::protocol::{Job, JobExit};
use untorn_vm::{
    Guest, GuestOptions, Kernel, Sink, VmError, find_static_program, qemu_version, write_initramfs,
    write_part,
};

use super::vm::{environment, guest_text, modules_for, options};
use crate::cli::CertifyArgs;
use crate::session::{certificate_json, new_run_id, shown, typed_program, write_reports};

/// Directory in the guest in which it keeps its runs.
const RUNS: &str = "/runs";
/// How often guests may die without a case under way before a file system is given up.
const FRUITLESS_MAX: u32 = 2;

/// Certifies every kernel that was given.
///
/// # Errors
/// Bad input, a kernel that cannot be booted at all, or the run was interrupted.
pub fn certify_kernels(args: &CertifyArgs, suite: &str, plan: &[ProfilePlan]) -> Result<Exit> {
    let interrupt = Interrupt::install().context("cannot handle signals")?;
    let begun = Instant::now();
    let program = find_static_program(args.guest.init.as_deref())?;
    let qemu = qemu_version()?;
    let scratch =
        untorn_device::leftovers::scratch_dir().context("cannot make a scratch directory")?;
    let seed = args.options.seed.unwrap_or_else(rand::random);
    let run_id = new_run_id();
    let mut err = io::stderr();
    writeln!(
        err,
        "seed {seed}, results in {}",
        args.options.out.display()
    )?;

    let mut targets = Vec::new();
    for (number, given) in args.kernel.iter().enumerate() {
        let kernel = Kernel::find(given)?;
        let initramfs = scratch.path().join(format!("initramfs-{number}"));
        write_initramfs(&kernel, &program, &[], &initramfs)
            .with_context(|| format!("{given} cannot be used"))?;
        let runs = args.options.out.join(&kernel.name);
        targets.push(Target {
            typed: format!("{} vm --kernel {} --", typed_program(), shell_word(given)),
            folder: RunFolder::create(&runs, &run_id, &typed_program())?,
            runs,
            initramfs,
            state: Mutex::new(State::new(plan)),
            kernel,
        });
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let campaign = Campaign {
        suite,
        seed,
        run_id: &run_id,
        qemu: &qemu,
        plan,
        options: options(&args.guest),
        targets: &targets,
        interrupt: &interrupt,
        failed: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 0..args.options.workers.map_or(processors, usize::from) {
            scope.spawn(|| campaign.work());
        }
    });
    let failed = lock(&campaign.failed).take();
    let parts = targets
        .iter()
        .map(|target| target.finish(&run_id))
        .collect::<Result<Vec<_>>>()?;
    if let Some(error) = failed {
        return Err(error.context(format!(
            "the run ended early; what was found is in {}",
            args.options.out.display()
        )));
    }
    let profiles: Vec<&str> = plan.iter().map(|profile| profile.profile.name).collect();
    let matrix = Matrix::new(&profiles, &parts, begun.elapsed().as_secs_f64());
    publish(args, &matrix)?;
    Ok(matrix.verdict.into())
}

/// Writes the matrix beside the kernels' folders, and prints it.
fn publish(args: &CertifyArgs, matrix: &Matrix) -> Result<()> {
    let write = |name: &str, content: &[u8]| {
        let path = args.options.out.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    let mut json = serde_json::to_vec_pretty(matrix)?;
    json.push(b'\n');
    let json_path = write("matrix.json", &json)?;
    let mut html = Vec::new();
    write_matrix_html(&mut html, matrix)?;
    let html_path = write("matrix.html", &html)?;
    let mut out = io::stdout();
    if args.options.json {
        out.write_all(&json)?;
    } else {
        writeln!(out, "{}", matrix_table(matrix))?;
        writeln!(out, "verdict  {}", matrix.verdict)?;
        writeln!(out, "matrix   {}, {}", shown(&json_path), shown(&html_path))?;
    }
    Ok(())
}

/// One kernel.
struct Target {
    kernel: Kernel,
    /// What is typed to run something under it.
    typed: String,
    initramfs: PathBuf,
    /// Folder of its runs.
    runs: PathBuf,
    folder: RunFolder,
    state: Mutex<State>,
}

/// What is known of a kernel so far.
struct State {
    waiting: Vec<Unit>,
    guests: u32,
    guests_now: u32,
    /// Numbers the commands that were run in guests.
    commands: u32,
    started: bool,
    profiles_started: BTreeSet<String>,
    fold: Fold,
    recovery_seconds: Vec<(String, f64)>,
    begun: Option<Instant>,
    times: GuestTimes,
}

/// One file system's cases that are still to be run.
#[derive(Clone)]
struct Unit {
    profile: &'static Profile,
    scenarios: Vec<String>,
    fruitless: u32,
}

impl State {
    fn new(plan: &[ProfilePlan]) -> Self {
        let units = plan.iter().filter(|profile| !profile.cases.is_empty());
        let waiting = units.map(|profile| Unit {
            profile: profile.profile,
            scenarios: profile
                .cases
                .iter()
                .map(|case| case.id.scenario.clone())
                .collect(),
            fruitless: 0,
        });
        Self {
            waiting: waiting.collect(),
            guests: 0,
            guests_now: 0,
            commands: 0,
            started: false,
            profiles_started: BTreeSet::new(),
            fold: Fold::new(),
            recovery_seconds: Vec::new(),
            begun: None,
            times: GuestTimes::default(),
        }
    }

    fn seconds(&self) -> f64 {
        self.begun
            .map_or(0.0, |begun| begun.elapsed().as_secs_f64())
    }
}

impl Target {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn note(&self, event: &RunEvent) -> Result<()> {
        let mut state = self.state();
        self.folder.append(event)?;
        state.fold.add(event);
        let seconds = state.seconds();
        match event {
            RunEvent::CaseStarted { .. } if state.times.first_case_seconds == 0.0 => {
                state.times.first_case_seconds = seconds;
            }
            RunEvent::CaseFinished(result) => {
                state.times.seconds = seconds;
                let name = &result.case.profile;
                let spent = result.recovery_seconds;
                match state
                    .recovery_seconds
                    .iter_mut()
                    .find(|(known, _)| known == name)
                {
                    Some((_, sum)) => *sum += spent,
                    None => state.recovery_seconds.push((name.clone(), spent)),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the kernel's run and writes its reports.
    fn finish(&self, run_id: &str) -> Result<MatrixPart> {
        let whole = self.state().waiting.is_empty();
        if whole {
            let seconds = self.state().times.seconds;
            self.note(&RunEvent::RunFinished { seconds })?;
        }
        let state = self.state();
        let certificate = state.fold.certificate();
        write_reports(&self.folder, &certificate, state.fold.violations())?;
        let path = self.runs.join("certificate.json");
        fs::write(&path, certificate_json(&certificate)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        debug_assert!(
            self.folder.path().ends_with(run_id),
            "reports are linked by it"
        );
        Ok(MatrixPart {
            name: self.kernel.given.clone(),
            folder: self.kernel.name.clone(),
            certificate,
            times: GuestTimes {
                guests: state.guests,
                ..state.times
            },
            recovery_seconds: state.recovery_seconds.clone(),
        })
    }
}

/// What the threads share, each of which has one guest at a time.
struct Campaign<'a> {
    suite: &'a str,
    seed: u64,
    run_id: &'a str,
    qemu: &'a str,
    plan: &'a [ProfilePlan],
    options: GuestOptions,
    targets: &'a [Target],
    interrupt: &'a Interrupt,
    failed: Mutex<Option<anyhow::Error>>,
}

impl<'a> Campaign<'a> {
    fn work(&self) {
        let mut guest = None;
        loop {
            if lock(&self.failed).is_some() {
                break;
            }
            let current = guest.as_ref().map(|(target, _)| *target);
            let Some((target, unit)) = self.next(current) else {
                break;
            };
            if let Err(error) = self.run(target, unit, &mut guest) {
                lock(&self.failed).get_or_insert(error);
            }
        }
        if let Some((target, guest)) = guest.take() {
            leave(target, guest);
        }
    }

    /// What to do next: more for the guest that is there, else for the kernel with the fewest.
    fn next(&self, current: Option<&'a Target>) -> Option<(&'a Target, Unit)> {
        let take = |target: &'a Target| {
            let mut state = target.state();
            let has = !state.waiting.is_empty();
            has.then(|| (target, state.waiting.remove(0)))
        };
        if let Some(found) = current.and_then(take) {
            return Some(found);
        }
        let mut targets: Vec<&Target> = self.targets.iter().collect();
        targets.sort_by_key(|target| target.state().guests_now);
        targets.into_iter().find_map(take)
    }

    /// Runs a unit, in the guest that is there or another.
    fn run(
        &self,
        target: &'a Target,
        unit: Unit,
        guest: &mut Option<(&'a Target, Guest)>,
    ) -> Result<()> {
        if let Some((other, old)) = guest.take_if(|(other, _)| !std::ptr::eq(*other, target)) {
            leave(other, old);
        }
        let number = {
            let mut state = target.state();
            state.commands += 1;
            state.commands
        };
        let mut sink = Inside {
            campaign: self,
            target,
            prefix: format!("{}-{number}", unit.profile.name),
            line: Vec::new(),
            finished: Vec::new(),
            under_way: None,
            unsupported: false,
            bundles: Vec::new(),
            said: Vec::new(),
            failed: None,
        };
        let outcome = self.guest(target, guest).and_then(|running| {
            let job = self.job(target, &unit, running);
            running.run(&job, &mut sink, self.interrupt)
        });
        sink.rewrite_bundles()?;
        if let Some(error) = sink.failed.take() {
            return Err(error);
        }
        let death = match outcome {
            Ok(_) if sink.is_done(&unit) => return Ok(()),
            Ok(exit) => sink.ended_early(exit),
            Err(error @ VmError::Died { .. }) => {
                if let Some((target, dead)) = guest.take() {
                    drop(dead);
                    target.state().guests_now -= 1;
                }
                error.to_string()
            }
            Err(error) => return Err(error.into()),
        };
        self.go_on_behind(target, unit, &sink, &death)
    }

    /// Reports the case that was under way, and has the rest run by another guest.
    fn go_on_behind(
        &self,
        target: &Target,
        mut unit: Unit,
        sink: &Inside<'_, '_>,
        death: &str,
    ) -> Result<()> {
        writeln!(
            io::stderr(),
            "{}: {}: {death}",
            target.kernel.given,
            unit.profile.name
        )?;
        unit.scenarios
            .retain(|scenario| !sink.finished.contains(scenario));
        if let Some(case) = &sink.under_way {
            unit.scenarios.retain(|scenario| *scenario != case.scenario);
            unit.fruitless = 0;
            target.note(&RunEvent::CaseFinished(self.lost(case, death)))?;
        } else {
            unit.fruitless += 1;
        }
        if unit.scenarios.is_empty() {
            return Ok(());
        }
        if unit.fruitless < FRUITLESS_MAX {
            target.state().waiting.insert(0, unit);
            return Ok(());
        }
        for scenario in &unit.scenarios {
            if let Some(case) = self.case(unit.profile.name, scenario) {
                target.note(&RunEvent::CaseFinished(self.lost(&case.id, death)))?;
            }
        }
        Ok(())
    }

    fn case(&self, profile: &str, scenario: &str) -> Option<&CasePlan> {
        let mut cases = self.plan.iter().flat_map(|profile| &profile.cases);
        cases.find(|case| case.id.profile == profile && case.id.scenario == scenario)
    }

    /// The result of a case that its guest did not survive.
    fn lost(&self, case: &CaseId, death: &str) -> CaseResult {
        let plan = self.case(&case.profile, &case.scenario);
        let control = plan.and_then(|plan| plan.control.as_ref());
        CaseResult::without_recoveries(
            case.clone(),
            plan.map_or(untorn_spec::Expected::Holds, |plan| plan.expected),
            control.map(|control| (control.kinds.clone(), control.must_be_caught)),
            Verdict::Inconclusive,
            death.to_owned(),
        )
    }

    /// The guest that is there, or a new one.
    fn guest<'g>(
        &self,
        target: &'a Target,
        guest: &'g mut Option<(&'a Target, Guest)>,
    ) -> Result<&'g mut Guest, VmError> {
        if guest.is_none() {
            {
                let mut state = target.state();
                state.guests += 1;
                state.guests_now += 1;
                state.begun.get_or_insert_with(Instant::now);
            }
            let booted = Guest::boot(
                &target.kernel,
                &target.initramfs,
                &self.options,
                self.interrupt,
            );
            let booted = match booted {
                Ok(booted) => booted,
                Err(error) => {
                    target.state().guests_now -= 1;
                    return Err(error);
                }
            };
            let mut state = target.state();
            if state.times.boot_seconds == 0.0 {
                state.times.boot_seconds = booted.boot.as_secs_f64();
            }
            let text = guest_text(self.qemu, &booted);
            let (given, seconds) = (&target.kernel.given, booted.boot.as_secs_f64());
            let release = &booted.release;
            // Nobody is left to be told that stderr is closed.
            writeln!(
                io::stderr(),
                "{given}: {release} booted in {seconds:.1} s ({text})"
            )
            .ok();
            drop(state);
            *guest = Some((target, booted));
        }
        match guest {
            Some((_, guest)) => Ok(guest),
            None => Err(VmError::Protocol("there is no guest".to_owned())),
        }
    }

    fn job(&self, target: &Target, unit: &Unit, guest: &Guest) -> Job {
        let mut args = vec!["run".to_owned()];
        args.extend(unit.scenarios.iter().cloned());
        let seed = self.seed.to_string();
        for argument in [
            "--fs",
            unit.profile.name,
            "--seed",
            &seed,
            "--out",
            RUNS,
            "--json",
        ] {
            args.push(argument.to_owned());
        }
        Job {
            args,
            env: environment(guest_text(self.qemu, guest), target.typed.clone()),
            directory: "/".into(),
            collect: Some(RUNS.into()),
            modules: modules_for(Some(unit.profile.name)),
        }
    }
}

fn leave(target: &Target, guest: Guest) {
    guest.power_off();
    target.state().guests_now -= 1;
}

/// Takes what comes out of a guest that runs a unit.
struct Inside<'s, 'a> {
    campaign: &'s Campaign<'a>,
    target: &'a Target,
    /// Beginning of the names of this command's bundles.
    prefix: String,
    /// Events that have not come altogether.
    line: Vec<u8>,
    finished: Vec<String>,
    under_way: Option<CaseId>,
    unsupported: bool,
    bundles: Vec<PathBuf>,
    /// The end of what it said on stderr.
    said: Vec<u8>,
    failed: Option<anyhow::Error>,
}

impl Inside<'_, '_> {
    fn is_done(&self, unit: &Unit) -> bool {
        self.unsupported
            || unit
                .scenarios
                .iter()
                .all(|name| self.finished.contains(name))
    }

    /// Why a command that ended left cases undone.
    fn ended_early(&self, exit: JobExit) -> String {
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
    fn rewrite_bundles(&mut self) -> Result<()> {
        for path in std::mem::take(&mut self.bundles) {
            // A guest that died may have left half of it.
            let Ok(mut facts) =
                serde_json::from_slice::<untorn_runner::BundleFacts>(&fs::read(&path)?)
            else {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
