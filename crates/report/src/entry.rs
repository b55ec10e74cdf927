//! Results of cases as entries of a certificate.

use untorn_spec::{CaseResult, ScenarioEntry, ViolationEntry, ViolationRecord};

/// The entry of a finished case.
pub(crate) fn scenario_entry(result: &CaseResult) -> ScenarioEntry {
    ScenarioEntry {
        name: result.case.scenario.clone(),
        writer: result.case.writer.clone(),
        kind: result.kind.clone(),
        expected: result.expected,
        verdict: result.verdict,
        reason: result.reason.clone(),
        caught: result.caught(),
        exhaustive: result.exhaustive,
        coverage: result.coverage,
        departures_completed: result.departures_completed,
        crash_states_log2: result.crash_states_log2,
        recordings: result.recordings,
        recoveries: result.recoveries,
        seconds: result.seconds,
        outcomes: result.outcomes.clone(),
        violations: result.violations.iter().map(violation_entry).collect(),
    }
}

fn violation_entry(record: &ViolationRecord) -> ViolationEntry {
    ViolationEntry {
        kind: record.kind,
        token: record.token.clone(),
        after_syscall: record.after_syscall.clone(),
        lost: record.lost.clone(),
        bundle: record.bundle.clone(),
    }
}
