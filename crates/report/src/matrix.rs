//! Certificates of several kernels side by side: rows kernels, columns file systems.

use serde::{Deserialize, Serialize};
use untorn_spec::{Certificate, FilesystemEntry, Format, Kernel, ScenarioEntry, Tool, Verdict};

/// `matrix.json`, format 1.0: fields are added to, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Name and version of the format.
    pub format: Format,
    /// The worst of all.
    pub verdict: Verdict,
    /// Suite that was run.
    pub suite: String,
    /// This program.
    pub tool: Tool,
    /// Seed that everything random derives from.
    pub seed: u64,
    /// Wall-clock time of the whole in seconds.
    pub seconds: f64,
    /// Profiles, in the order of the columns.
    pub profiles: Vec<String>,
    /// One row per kernel.
    pub kernels: Vec<MatrixRow>,
}

/// One kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// What was given for it, such as `debian:6.12`.
    pub name: String,
    /// What it says of itself, and what ran it.
    pub kernel: Kernel,
    /// Verdict of its certificate.
    pub verdict: Verdict,
    /// Where its certificate is, relative to the matrix.
    pub certificate: String,
    /// Where its page is, relative to the matrix.
    pub report: String,
    /// Guests that were booted for it.
    pub guests: u32,
    /// From the start of its first guest to the first word of its init, in seconds.
    pub boot_seconds: f64,
    /// From the start of its first guest to its first case, in seconds.
    pub first_case_seconds: f64,
    /// From the start of its first guest to its last result, in seconds.
    pub seconds: f64,
    /// One cell per profile.
    pub cells: Vec<MatrixCell>,
}

/// One kernel with one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// The profile.
    pub profile: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// Why it is neither `holds` nor `violated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Cases of correct writers.
    pub scenarios: u32,
    /// Every crash state of every one of them was judged.
    pub exhaustive: bool,
    /// The least share of crash states judged in one of them.
    pub coverage: f64,
    /// Controls that had to be caught.
    pub controls: u32,
    /// Those that were.
    pub controls_caught: u32,
    /// Recoveries made.
    pub recoveries: u64,
    /// Recoveries in a second of recovering, per guest.
    pub recoveries_per_second: f64,
    /// Wall-clock time of its cases in seconds.
    pub seconds: f64,
}

/// What a certificate does not tell of a kernel's guests.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GuestTimes {
    /// See [`MatrixRow::guests`].
    pub guests: u32,
    /// See [`MatrixRow::boot_seconds`].
    pub boot_seconds: f64,
    /// See [`MatrixRow::first_case_seconds`].
    pub first_case_seconds: f64,
    /// See [`MatrixRow::seconds`].
    pub seconds: f64,
}

/// A kernel's certificate, to be put into a matrix.
#[derive(Debug, Clone)]
pub struct MatrixPart {
    /// See [`MatrixRow::name`].
    pub name: String,
    /// Folder of the kernel, relative to the matrix.
    pub folder: String,
    /// Its certificate.
    pub certificate: Certificate,
    /// Its guests.
    pub times: GuestTimes,
    /// Seconds that each profile's workers spent on recoveries.
    pub recovery_seconds: Vec<(String, f64)>,
}

impl Matrix {
    /// Puts certificates side by side. `profiles` are the columns.
    pub fn new(profiles: &[&str], parts: &[MatrixPart], seconds: f64) -> Self {
        let kernels: Vec<MatrixRow> = parts
            .iter()
            .map(|part| MatrixRow::new(part, profiles))
            .collect();
        let first = parts.first().map(|part| &part.certificate);
        // Nothing tested is no pass.
        let worst = kernels.iter().map(|row| row.verdict).reduce(Verdict::and);
        Self {
            format: Format {
                name: "untorn-matrix".to_owned(),
                ..Format::default()
            },
            verdict: worst.unwrap_or(Verdict::Inconclusive),
            suite: first.map_or_else(String::new, |first| first.suite.clone()),
            tool: first.map_or_else(
                || Tool {
                    version: "unknown".to_owned(),
                    commit: "unknown".to_owned(),
                },
                |first| first.tool.clone(),
            ),
            seed: first.map_or(0, |first| first.seed),
            seconds,
            profiles: profiles.iter().map(|name| (*name).to_owned()).collect(),
            kernels,
        }
    }
}

impl MatrixRow {
    fn new(part: &MatrixPart, profiles: &[&str]) -> Self {
        let MatrixPart {
            name,
            folder,
            certificate,
            times,
            recovery_seconds,
        } = part;
        let cell = |profile: &&str| {
            let entry = certificate
                .filesystems
                .iter()
                .find(|entry| entry.profile == *profile);
            let spent = recovery_seconds
                .iter()
                .find(|(name, _)| name == profile)
                .map_or(0.0, |(_, seconds)| *seconds);
            match entry {
                Some(entry) => MatrixCell::new(entry, spent),
                None => MatrixCell::untried(profile),
            }
        };
        Self {
            name: name.clone(),
            kernel: certificate.kernel.clone(),
            verdict: certificate.verdict,
            certificate: format!("{folder}/certificate.json"),
            report: format!("{folder}/{}/report.html", certificate.run_id),
            guests: times.guests,
            boot_seconds: times.boot_seconds,
            first_case_seconds: times.first_case_seconds,
            seconds: times.seconds,
            cells: profiles.iter().map(cell).collect(),
        }
    }
}

impl MatrixCell {
    fn new(entry: &FilesystemEntry, recovery_seconds: f64) -> Self {
        let all = || entry.scenarios.iter().chain(&entry.controls);
        let recoveries: u64 = all().map(|case| case.recoveries).sum();
        let count = |wanted: fn(&ScenarioEntry) -> bool| {
            let count = entry.controls.iter().filter(|case| wanted(case)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let coverages = entry.scenarios.iter().map(|case| case.coverage);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let recoveries_made = recoveries as f64;
        Self {
            profile: entry.profile.clone(),
            verdict: entry.verdict,
            reason: entry.reason.clone(),
            scenarios: u32::try_from(entry.scenarios.len()).unwrap_or(u32::MAX),
            exhaustive: !entry.scenarios.is_empty()
                && entry.scenarios.iter().all(|case| case.exhaustive),
            coverage: coverages.reduce(f64::min).unwrap_or(0.0),
            controls: count(|case| case.caught.is_some()),
            controls_caught: count(|case| case.caught == Some(true)),
            recoveries,
            recoveries_per_second: if recovery_seconds > 0.0 {
                recoveries_made / recovery_seconds
            } else {
                0.0
            },
            seconds: all().map(|case| case.seconds).sum(),
        }
    }

    fn untried(profile: &str) -> Self {
        Self {
            profile: profile.to_owned(),
            verdict: Verdict::Inconclusive,
            reason: Some("nothing was run".to_owned()),
            scenarios: 0,
            exhaustive: false,
            coverage: 0.0,
            controls: 0,
            controls_caught: 0,
            recoveries: 0,
            recoveries_per_second: 0.0,
            seconds: 0.0,
        }
    }
}
