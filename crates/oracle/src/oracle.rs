//! [`Oracle`]: old or new, entirely, or a violation.

use std::fmt;

use serde::{Deserialize, Serialize};
use untorn_spec::ViolationKind;

use crate::classify::classify;
use crate::{FileFinding, Finding, Node, TreePath, TreeSnapshot};

/// What a scenario permits beyond the crash model's rules.
#[derive(Clone, Debug, Default)]
pub struct OracleOptions {
    /// Whether the target may be absent for a moment, also when no allowed generation is.
    pub may_be_absent: bool,
}

/// Judges recovered trees against the generations that a subject publishes.
#[derive(Clone, Debug)]
pub struct Oracle {
    generations: Vec<TreeSnapshot>,
    options: OracleOptions,
}

/// Trees that nothing can be judged against.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// There has to be an initial tree, which may be a missing one.
    #[error("there is no generation to judge against")]
    NoGeneration,
    /// A tree that cannot be read says nothing about what should be there.
    #[error("generation {generation} has an unreadable entry: {path}")]
    Unreadable {
        /// The generation.
        generation: usize,
        /// The entry.
        path: TreePath,
    },
}

/// What a recovered tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Entirely this generation, and it is allowed. Of equal generations the newest allowed one.
    Generation(usize),
    /// Not there, which the scenario permits.
    Absent,
    /// Anything else.
    Violation,
}

/// The oracle's word on one recovered tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// What the tree is.
    pub outcome: Outcome,
    /// What is wrong with it, when it is a violation.
    pub violation: Option<Violation>,
}

/// What is wrong with a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The kind for the whole tree.
    pub kind: ViolationKind,
    /// What is wrong, in one sentence.
    pub summary: String,
    /// What was found at each path, in order of paths.
    pub findings: Vec<FileFinding>,
}

impl Violation {
    /// The findings in words, without those on paths that never change.
    pub fn detail(&self) -> Vec<String> {
        let changes = |found: &&FileFinding| found.finding != Finding::Unchanged;
        self.findings
            .iter()
            .filter(changes)
            .map(ToString::to_string)
            .collect()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.summary)
    }
}

impl Oracle {
    /// An oracle for these trees, the initial one first. It is [`TreeSnapshot::missing`] when the
    /// target is not there at first.
    ///
    /// # Errors
    /// No tree at all, or one that could not be read in full.
    pub fn new(
        generations: Vec<TreeSnapshot>,
        options: OracleOptions,
    ) -> Result<Self, OracleError> {
        if generations.is_empty() {
            return Err(OracleError::NoGeneration);
        }
        for (generation, tree) in generations.iter().enumerate() {
            let nodes = tree.nodes().into_iter();
            let mut unreadable = nodes.filter(|(_, node)| matches!(node, Node::Unreadable { .. }));
            if let Some((path, _)) = unreadable.next() {
                return Err(OracleError::Unreadable { generation, path });
            }
        }
        Ok(Self {
            generations,
            options,
        })
    }

    /// The trees that are judged against.
    pub fn generations(&self) -> &[TreeSnapshot] {
        &self.generations
    }

    /// Judges a recovered tree against the generations that are allowed, usually those of
    /// [`History::allowed`](crate::History::allowed).
    ///
    /// A tree that equals a generation that is not allowed is `lost-acknowledged`, before any other
    /// kind and also when that generation is a missing target: what came back is known exactly.
    ///
    /// # Panics
    /// When `allowed` is empty or names a generation that the oracle does not have: no tree at all
    /// would be right then, which is a mistake of the caller.
    pub fn judge(&self, seen: &TreeSnapshot, allowed: &[usize]) -> Judgement {
        assert!(!allowed.is_empty(), "some generation is always allowed");
        let newest = allowed
            .iter()
            .copied()
            .filter(|&g| self.generations[g] == *seen)
            .max();
        if let Some(generation) = newest {
            return Judgement {
                outcome: Outcome::Generation(generation),
                violation: None,
            };
        }
        if seen.is_missing() && self.options.may_be_absent {
            return Judgement {
                outcome: Outcome::Absent,
                violation: None,
            };
        }
        let (kind, findings) = classify(seen, &self.generations, allowed);
        let (kind, summary) = match self.generations.iter().rposition(|tree| tree == seen) {
            Some(generation) => {
                let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
                let allowed = allowed.join(", ");
                let summary = format!("generation {generation} came back, allowed: {allowed}");
                (ViolationKind::LostAcknowledged, summary)
            }
            None => (kind, summarize(kind, &findings)),
        };
        violated(kind, summary, findings)
    }

    /// Judges a tree after recovering and running the subject once more: it has to be exactly this
    /// generation, and anything else is `diverges`.
    ///
    /// # Panics
    /// When the oracle does not have that generation.
    pub fn judge_converged(&self, seen: &TreeSnapshot, generation: usize) -> Judgement {
        let mut judgement = self.judge(seen, &[generation]);
        if let Some(violation) = &mut judgement.violation {
            violation.summary = format!("one more run ends otherwise: {violation}");
            violation.kind = ViolationKind::Diverges;
        } else if judgement.outcome == Outcome::Absent {
            let summary = "one more run ends without the target".to_owned();
            judgement = violated(ViolationKind::Diverges, summary, Vec::new());
        }
        judgement
    }
}

fn violated(kind: ViolationKind, summary: String, findings: Vec<FileFinding>) -> Judgement {
    let violation = Some(Violation {
        kind,
        summary,
        findings,
    });
    Judgement {
        outcome: Outcome::Violation,
        violation,
    }
}

/// The first finding that shows the kind, and how many more there are.
fn summarize(kind: ViolationKind, findings: &[FileFinding]) -> String {
    let shows = |found: &&FileFinding| match kind {
        ViolationKind::Mode => matches!(found.finding, Finding::Attributes { .. }),
        ViolationKind::Leftover => found.finding == Finding::Extra,
        _ => found.finding.damage() == Some(kind),
    };
    let mut showing = findings.iter().filter(shows);
    match (showing.next(), showing.count()) {
        (None, _) if kind == ViolationKind::Mixed => "entries of several generations".to_owned(),
        (None, _) => "all entries are of a generation that is no longer allowed".to_owned(),
        (Some(first), 0) => first.to_string(),
        (Some(first), more) => format!("{first} (and {more} more)"),
    }
}
