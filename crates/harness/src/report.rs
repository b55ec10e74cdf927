//! What a check found: [`Report`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use untorn_explore::Path;
use untorn_fs::{Op, Persistence, SweepReport};
use untorn_oracle::Violation;
use untorn_spec::ViolationKind;

use crate::faults::{FaultFailure, Faults};

/// Something wrong that a crash may leave: the first of its kind under its model.
#[derive(Debug, Clone)]
pub struct Found {
    /// The model that permits it.
    pub persistence: Persistence,
    /// When the power was cut.
    pub moment: String,
    /// What is wrong.
    pub violation: Violation,
    /// The choices that lead to it.
    pub path: Path,
    /// In how many recoveries this kind was found.
    pub count: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            persistence,
            moment,
            violation,
            path,
            ..
        } = self;
        write!(f, "{violation} (power cut {moment}, {persistence}, {path})")
    }
}

/// What power cuts found.
#[derive(Debug, Clone, Default)]
pub struct CrashReport {
    /// Moments at which the power was cut.
    pub moments: u64,
    /// Recoveries that were judged; each stands for all states that look the same.
    pub runs: u64,
    /// Recoveries to the old tree.
    pub old: u64,
    /// Recoveries to the new tree.
    pub new: u64,
    /// Moments and models that were not judged because the same may be left as at an earlier one.
    pub repeated: u64,
    /// Moments and models of which not every state was covered.
    pub unfinished: u64,
    /// What was wrong: for each model and kind the first.
    pub found: BTreeMap<(Persistence, ViolationKind), Found>,
}

impl CrashReport {
    /// Whether every state was covered and right.
    pub fn holds(&self) -> bool {
        self.found.is_empty() && self.unfinished == 0
    }

    pub(crate) fn add(&mut self, found: Found) {
        let kind = (found.persistence, found.violation.kind);
        let count = found.count;
        let known = self
            .found
            .entry(kind)
            .or_insert(Found { count: 0, ..found });
        known.count += count;
    }

    /// The same, seen again at another moment.
    pub(crate) fn repeated(mut self, moment: &str) -> Self {
        for found in self.found.values_mut() {
            moment.clone_into(&mut found.moment);
        }
        Self {
            repeated: 1,
            unfinished: self.unfinished,
            found: self.found,
            ..Self::default()
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.moments += other.moments;
        self.runs += other.runs;
        self.old += other.old;
        self.new += other.new;
        self.repeated += other.repeated;
        self.unfinished += other.unfinished;
        for found in other.found.into_values() {
            self.add(found);
        }
    }
}

/// The text is one line of numbers.
impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            moments,
            runs,
            old,
            new,
            repeated,
            unfinished,
            ..
        } = self;
        let wrong = runs - old - new;
        write!(
            f,
            "{moments} moments, {runs} recoveries: {old} old, {new} new, {wrong} wrong"
        )?;
        if *repeated > 0 {
            write!(f, ", {repeated} repetitions passed over")?;
        }
        if *unfinished > 0 {
            write!(f, ", {unfinished} explorations not finished")?;
        }
        Ok(())
    }
}

/// What a check found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The mutating calls of the undisturbed run.
    pub calls: Vec<Op>,
    /// What power cuts during the undisturbed run found.
    pub crashes: CrashReport,
    pub(crate) faults: Option<Faults>,
}

impl Report {
    /// What the faults found; `None` if none were tried.
    pub fn faults(&self) -> Option<&SweepReport<FaultFailure>> {
        self.faults.as_ref().map(|faults| &faults.sweep)
    }

    /// What power cuts behind the faults found.
    pub fn crashes_behind_faults(&self) -> Option<&CrashReport> {
        self.faults.as_ref().map(|faults| &faults.crashes)
    }

    /// All recoveries that were judged.
    pub fn runs(&self) -> u64 {
        self.crashes.runs
            + self
                .crashes_behind_faults()
                .map_or(0, |crashes| crashes.runs)
    }

    /// Whether everything was covered, and right.
    pub fn holds(&self) -> bool {
        let faults = self.faults.as_ref();
        self.crashes.holds()
            && faults.is_none_or(|faults| faults.sweep.holds() && faults.crashes.unfinished == 0)
    }

    /// The kinds of violation that power cuts during the undisturbed run found under a model.
    pub fn kinds(&self, persistence: Persistence) -> BTreeSet<ViolationKind> {
        let kinds = self.crashes.found.keys();
        kinds
            .filter(|(model, _)| *model == persistence)
            .map(|(_, kind)| *kind)
            .collect()
    }

    /// Fails the test with everything that is wrong.
    ///
    /// # Panics
    /// If the report does not hold.
    pub fn assert_holds(&self) {
        assert!(self.holds(), "{self}");
    }
}

/// The text is a summary, then each thing that is wrong on a line of its own.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "power cuts: {}", self.crashes)?;
        if let Some(faults) = &self.faults {
            writeln!(f, "faults: {}", faults.sweep)?;
            writeln!(f, "power cuts behind faults: {}", faults.crashes)?;
        }
        for found in self.crashes.found.values() {
            writeln!(f, "  {found}")?;
            for line in found.violation.detail() {
                writeln!(f, "    {line}")?;
            }
        }
        for (pair, failure) in self.faults.iter().flat_map(|faults| &faults.sweep.failures) {
            writeln!(f, "  {pair}: {failure}")?;
        }
        for pair in self
            .faults
            .iter()
            .flat_map(|faults| &faults.sweep.unreached)
        {
            writeln!(f, "  {pair}: the call was not made again")?;
        }
        Ok(())
    }
}
