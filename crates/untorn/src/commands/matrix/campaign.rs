//! The threads of a matrix, each of which has one guest at a time.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Result;
use untorn_process::Interrupt;
use untorn_runner::{CasePlan, ProfilePlan};
use untorn_spec::{CaseId, CaseResult, Expected, RunEvent, Verdict};
use untorn_vm::protocol::Job;
use untorn_vm::{Guest, GuestOptions, VmError};

use super::inside::Inside;
use super::lock;
use super::target::{Target, Unit};
use crate::commands::vm::{environment, guest_text, modules_for};

/// Directory in the guest in which it keeps its runs.
const RUNS: &str = "/runs";
/// How often guests may die without a case under way before a file system is given up.
const FRUITLESS_MAX: u32 = 2;

/// What the threads share, each of which has one guest at a time.
pub(super) struct Campaign<'a> {
    pub(super) suite: &'a str,
    pub(super) seed: u64,
    pub(super) run_id: &'a str,
    pub(super) qemu: &'a str,
    pub(super) plan: &'a [ProfilePlan],
    pub(super) options: GuestOptions,
    pub(super) targets: &'a [Target],
    pub(super) interrupt: &'a Interrupt,
    pub(super) failed: Mutex<Option<anyhow::Error>>,
}

impl<'a> Campaign<'a> {
    pub(super) fn work(&self) {
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
            plan.map_or(Expected::Holds, |plan| plan.expected),
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
