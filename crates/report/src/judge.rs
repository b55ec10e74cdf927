//! How verdicts of cases make the verdict of a profile. [`crate::Fold::verdict`] states the rule.

use untorn_spec::{Expected, ScenarioEntry, Verdict};

/// A verdict and, where it is neither `holds` nor `violated`, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) reason: Option<String>,
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: Some(reason.into()),
        }
    }

    /// The worse of both; the first where they are equally bad.
    pub(crate) fn and(self, other: Self) -> Self {
        if other.verdict > self.verdict {
            other
        } else {
            self
        }
    }
}

const HOLDS: Judgement = Judgement {
    verdict: Verdict::Holds,
    reason: None,
};

/// The verdict of a profile whose cases these are.
pub(crate) fn judge(scenarios: &[ScenarioEntry], controls: &[ScenarioEntry]) -> Judgement {
    if scenarios.is_empty() && controls.is_empty() {
        return Judgement::new(Verdict::Inconclusive, "no case was run");
    }
    let parts = scenarios.iter().map(judge_scenario);
    parts
        .chain(controls.iter().map(judge_control))
        .chain(shows_nothing(scenarios))
        .fold(HOLDS, Judgement::and)
}

/// What a case of a correct writer adds.
pub(crate) fn judge_scenario(entry: &ScenarioEntry) -> Judgement {
    match (entry.expected, entry.verdict) {
        (_, Verdict::Holds) | (Expected::Violated, Verdict::Violated) => HOLDS,
        (Expected::Holds, Verdict::Violated) => Judgement {
            verdict: Verdict::Violated,
            reason: None,
        },
        (_, verdict @ (Verdict::Unsupported | Verdict::Inconclusive | Verdict::HarnessBroken)) => {
            Judgement::new(verdict, reason(entry))
        }
    }
}

/// What a control adds.
pub(crate) fn judge_control(entry: &ScenarioEntry) -> Judgement {
    match (entry.verdict, entry.caught) {
        (Verdict::HarnessBroken, _) => Judgement::new(Verdict::HarnessBroken, reason(entry)),
        (_, None | Some(true)) => HOLDS,
        (Verdict::Unsupported, Some(false)) => Judgement::new(Verdict::Unsupported, reason(entry)),
        (Verdict::Holds | Verdict::Violated | Verdict::Inconclusive, Some(false)) => {
            Judgement::new(
                Verdict::HarnessBroken,
                format!("{} was not caught", entry.name),
            )
        }
    }
}

/// A profile that must lose something, and on which every correct writer holds, shows that the
/// crash disk is too kind.
fn shows_nothing(scenarios: &[ScenarioEntry]) -> Option<Judgement> {
    let mut must_show = scenarios
        .iter()
        .filter(|entry| entry.expected == Expected::Violated)
        .peekable();
    must_show.peek()?;
    must_show
        .all(|entry| entry.verdict == Verdict::Holds)
        .then(|| {
            Judgement::new(
                Verdict::HarnessBroken,
                "even a correct writer must come out violated here, and none did",
            )
        })
}

fn reason(entry: &ScenarioEntry) -> String {
    let why = entry.reason.as_deref().unwrap_or("no reason was given");
    format!("{}: {why}", entry.name)
}
