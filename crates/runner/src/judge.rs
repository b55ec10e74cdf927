//! Judges what a recovery saw, and remembers the judgement: most recoveries of a case see one of a
//! handful of trees.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use untorn_oracle::{Name, Node, Oracle, OracleOptions, Outcome, TreeSnapshot, judge_leftovers};
use untorn_spec::{TreeContent, ViolationKind};

use crate::agent::Seen;
use crate::worker::{Recovered, Worker};

/// Staging trees that one writer that died may leave behind.
const LEFTOVERS_MAX: usize = 1;

/// Generations of a case: the tree before and the tree after.
const OLD: usize = 0;
const NEW: usize = 1;

/// What is wrong with a recovered tree, in the words of the story.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) kind: ViolationKind,
    pub(crate) detail: Vec<String>,
}

/// A judgement.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    /// `old`, `new`, or the kind of the violation.
    pub(crate) outcome: String,
    pub(crate) violation: Option<Violation>,
    /// Digest of the tree, `-` when it could not be mounted.
    pub(crate) digest: String,
}

impl Judged {
    fn violates(kind: ViolationKind, detail: Vec<String>, digest: String) -> Self {
        let violation = Some(Violation { kind, detail });
        Self {
            outcome: kind.to_string(),
            violation,
            digest,
        }
    }

    /// The same tree, on a file system that cannot be written to.
    pub(crate) fn unusable(before: &Self, what: &str) -> Self {
        let mut detail = vec![format!(
            "the file system cannot be used after recovery: {what}"
        )];
        detail.extend(
            before
                .violation
                .iter()
                .flat_map(|violation| violation.detail.clone()),
        );
        Self::violates(ViolationKind::Unmountable, detail, before.digest.clone())
    }
}

/// The oracle of one case.
pub(crate) struct Judge {
    oracle: Oracle,
    known: Mutex<HashMap<(Seen, bool), Arc<Judged>>>,
}

impl Judge {
    pub(crate) fn new(old: TreeSnapshot, new: TreeSnapshot) -> Result<Self> {
        let oracle = Oracle::new(vec![old, new], OracleOptions::default())?;
        Ok(Self {
            oracle,
            known: Mutex::new(HashMap::new()),
        })
    }

    pub(crate) fn old(&self) -> &TreeSnapshot {
        &self.oracle.generations()[OLD]
    }

    pub(crate) fn new_tree(&self) -> &TreeSnapshot {
        &self.oracle.generations()[NEW]
    }

    /// Judges what `worker` has just recovered.
    pub(crate) fn judge(
        &self,
        worker: &Worker,
        recovered: &Recovered,
        acknowledged: bool,
    ) -> Result<Arc<Judged>> {
        let seen = match recovered {
            Recovered::Seen(seen) => seen,
            Recovered::Unmountable(what) => {
                let detail = vec![what.clone()];
                let kind = ViolationKind::Unmountable;
                return Ok(Arc::new(Judged::violates(kind, detail, "-".to_owned())));
            }
        };
        let key = (seen.clone(), acknowledged);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(judged) = known().get(&key) {
            return Ok(judged.clone());
        }
        let judged = Arc::new(self.judge_tree(&worker.tree()?, &seen.siblings, acknowledged));
        known().insert(key, judged.clone());
        Ok(judged)
    }

    /// Judges a tree and the names beside it.
    pub(crate) fn judge_tree(
        &self,
        tree: &TreeSnapshot,
        siblings: &[String],
        acknowledged: bool,
    ) -> Judged {
        let allowed: &[usize] = if acknowledged { &[NEW] } else { &[OLD, NEW] };
        let judgement = self.oracle.judge(tree, allowed);
        let digest = tree.digest().to_string();
        if let Some(violation) = judgement.violation {
            let detail = in_words(violation.kind, &violation.summary, violation.detail());
            return Judged::violates(violation.kind, detail, digest);
        }
        let names: BTreeSet<Name> = siblings
            .iter()
            .map(|name| Name::from(name.as_str()))
            .collect();
        if let Some(violation) = judge_leftovers(&names, &BTreeSet::new(), LEFTOVERS_MAX) {
            let mut detail = vec![violation.summary];
            detail.extend(siblings.iter().cloned());
            return Judged::violates(ViolationKind::Leftover, detail, digest);
        }
        let outcome = match judgement.outcome {
            Outcome::Generation(OLD) => "old",
            Outcome::Generation(_) => "new",
            Outcome::Absent | Outcome::Violation => "absent",
        };
        Judged {
            outcome: outcome.to_owned(),
            violation: None,
            digest,
        }
    }
}

/// The summary above the lines that it sums up, unless it only says one of them again.
fn in_words(kind: ViolationKind, summary: &str, lines: Vec<String>) -> Vec<String> {
    let summary = match kind {
        // There are but two generations here.
        ViolationKind::LostAcknowledged => "the old tree came back, whole",
        _ if lines.iter().any(|line| summary.starts_with(line.as_str())) => return lines,
        _ => summary,
    };
    let mut told = vec![summary.to_owned()];
    told.extend(lines);
    told
}

/// What a snapshot of a generated tree will be.
pub(crate) fn snapshot_of(tree: &TreeContent) -> TreeSnapshot {
    let mut root = Node::directory(0o755, std::iter::empty::<(Name, Node)>());
    for directory in &tree.directories {
        insert(
            &mut root,
            &directory.path,
            Node::directory(directory.mode, std::iter::empty::<(Name, Node)>()),
        );
    }
    for file in &tree.files {
        insert(
            &mut root,
            &file.path,
            Node::file(file.mode, file.bytes.clone()),
        );
    }
    TreeSnapshot::new(root)
}

/// Puts a node at a path; `""` is the top, whose entries so far are none.
fn insert(root: &mut Node, path: &str, node: Node) {
    let mut at = root;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let Node::Directory { entries, .. } = at else {
            return;
        };
        at = entries.entry(Name::from(part)).or_insert(Node::Missing);
    }
    *at = node;
}

#[cfg(test)]
mod tests {
    use untorn_spec::ViolationKind;

    use super::in_words;

    #[test]
    fn a_story_says_nothing_twice() {
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        let told = |kind, summary, detail: &[&str]| in_words(kind, summary, lines(detail));
        let both = ["tls.crt: empty", "tls.key: empty"];
        assert_eq!(
            told(ViolationKind::Empty, "tls.crt: empty (and 1 more)", &both),
            both
        );
        let summary = "entries of several generations";
        let mixed = told(ViolationKind::Mixed, summary, &["a: new", "b: old"]);
        assert_eq!(mixed, [summary, "a: new", "b: old"]);
        let summary = "generation 0 came back, allowed: 1";
        let lost = told(ViolationKind::LostAcknowledged, summary, &["a: old"]);
        assert_eq!(lost, ["the old tree came back, whole", "a: old"]);
    }
}
