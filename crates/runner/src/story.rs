//! Turns a violating crash state into what a person needs to understand it: the earliest cut at
//! which it is possible, what the cut lost, and what the disk had never been sent.

use std::collections::{BTreeMap, HashMap, HashSet};

use untorn_block::{BlockLog, BlockOp, Epoch};
use untorn_explore::Path;
use untorn_oracle::{Node, TreeSnapshot};
use untorn_spec::{ReplayToken, ViolationKind, ViolationRecord};

use crate::bundle::{Bundle, BundleFacts};
use crate::case::{CasePlan, log2};
use crate::judge::{Judge, Judged, Violation};
use crate::recording::Recording;

/// The smallest piece by which content is recognised.
const PIECE: usize = 512;

/// Where a violation was found.
pub(crate) struct Context<'a> {
    pub(crate) plan: &'a CasePlan,
    pub(crate) recording: &'a Recording,
    pub(crate) epoch: &'a Epoch,
    pub(crate) picks: &'a Path,
    pub(crate) judge: &'a Judge,
}

impl Context<'_> {
    /// Position in the log just behind the last thing that must have happened before the cut.
    fn cut(&self, kind: ViolationKind) -> usize {
        let written = self
            .picks
            .iter()
            .filter(|(_, pick)| *pick > 0)
            .filter_map(|(unit, pick)| {
                let versions = self.epoch.space.in_flight.get(&unit)?;
                Some(versions.get(pick as usize - 1)?.written_at + 1)
            });
        let mut cut = written.max().unwrap_or(0).max(self.epoch.start);
        if kind == ViolationKind::LostAcknowledged {
            let is_acknowledged =
                |op: &BlockOp| matches!(op, BlockOp::Mark(untorn_block::Mark::Acknowledged));
            let acknowledged = self.recording.log.ops.iter().position(is_acknowledged);
            cut = cut.max(acknowledged.map_or(0, |position| position + 1));
        }
        cut
    }
}

impl Context<'_> {
    /// The violation with all that is needed to see it again.
    pub(crate) fn bundle(&self, violation: ViolationRecord) -> Bundle {
        let Context {
            plan,
            recording,
            epoch,
            picks,
            judge,
        } = self;
        let facts = BundleFacts {
            violation,
            profile: plan.profile.name.to_owned(),
            unit: plan.profile.unit,
            epoch: epoch.index,
            choices: picks.to_string(),
            target: plan.target.clone(),
            acknowledged: recording.log.acknowledged_before(epoch.end),
            old: judge.old().clone(),
            new: judge.new_tree().clone(),
        };
        Bundle {
            facts,
            base: recording.base.clone(),
            log: recording.log.clone(),
            scenario: plan.scenario_text.clone(),
        }
    }
}

/// All that the story of a violation needs, but for the place of its bundle.
pub(crate) fn record(
    context: &Context<'_>,
    violation: &Violation,
    judged: &Judged,
) -> ViolationRecord {
    let Context {
        plan,
        recording,
        epoch,
        picks,
        judge,
    } = context;
    let cut = context.cut(violation.kind);
    let (after, during) = recording.log.syscalls_around(cut);
    let acknowledged = recording.log.acknowledged_before(cut);
    let known = KnownContent::of([("old", judge.old()), ("new", judge.new_tree())]);
    let token = ReplayToken {
        profile: plan.id.profile.clone(),
        scenario: plan.id.scenario.clone(),
        recording: recording.disturbance,
        epoch: epoch.index,
        path: picks.to_string(),
    };
    ViolationRecord {
        case: plan.id.clone(),
        kind: violation.kind,
        token: token.to_string(),
        disturbance: recording.disturbance,
        disturbance_text: recording.disturbance_text.clone(),
        epoch: epoch.index,
        crash_states_log2: log2(&epoch.space.states()),
        after_syscall: after.map(str::to_owned),
        during_syscall: during.map(str::to_owned),
        acknowledged,
        allowed: if acknowledged {
            vec!["new".to_owned()]
        } else {
            vec!["old".to_owned(), "new".to_owned()]
        },
        seen: violation.detail.clone(),
        lost: lost(context, cut, &known),
        never_written: never_written(&recording.log, cut, judge.old(), judge.new_tree()),
        tree_digest: judged.digest.clone(),
        bundle: String::new(),
        replay: String::new(),
    }
}

/// Recognises blocks of the old and the new tree wherever they lie.
struct KnownContent {
    pieces: HashMap<Vec<u8>, String>,
}

impl KnownContent {
    fn of<'a>(trees: impl IntoIterator<Item = (&'static str, &'a TreeSnapshot)>) -> Self {
        let mut pieces = HashMap::new();
        for (generation, tree) in trees {
            for (path, node) in tree.nodes() {
                let Node::File { content, .. } = node else {
                    continue;
                };
                for piece in content.known().chunks(PIECE) {
                    let mut whole = piece.to_vec();
                    whole.resize(PIECE, 0);
                    pieces
                        .entry(whole)
                        .or_insert_with(|| format!("{path} ({generation})"));
                }
            }
        }
        Self { pieces }
    }

    /// Which file a unit belongs to, or what kind of metadata it is.
    fn label(&self, unit: &[u8]) -> String {
        let in_file = unit.chunks(PIECE).find_map(|piece| self.pieces.get(piece));
        if let Some(file) = in_file {
            return format!("data of {file}");
        }
        metadata(unit).to_owned()
    }
}

/// The magic numbers that tell metadata apart (`include/linux/jbd2.h`,
/// `fs/xfs/libxfs/xfs_log_format.h`, `fs/btrfs/ctree.h`, `fs/ext4/ext4.h`).
fn metadata(unit: &[u8]) -> &'static str {
    if unit.starts_with(&[0xc0, 0x3b, 0x39, 0x98]) {
        return match unit.get(7) {
            Some(1) => "ext4 journal: descriptor block",
            Some(2) => "ext4 journal: commit block",
            Some(3 | 4) => "ext4 journal: superblock",
            Some(5) => "ext4 journal: revocation block",
            _ => "ext4 journal",
        };
    }
    if unit.starts_with(&[0xfe, 0xed, 0xba, 0xbe]) {
        return "xfs log: record header";
    }
    if unit.get(0x40..0x48) == Some(b"_BHRfS_M") {
        return "btrfs superblock";
    }
    if unit.get(1024 + 56..1024 + 58) == Some(&[0x53, 0xef]) {
        return "ext4 superblock";
    }
    "metadata"
}

/// What the disk had received by `cut` and does not hold in this state, a line per file or kind.
fn lost(context: &Context<'_>, cut: usize, known: &KnownContent) -> Vec<String> {
    let mut labels: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (unit, versions) in &context.epoch.space.in_flight {
        let received = versions
            .iter()
            .take_while(|version| version.written_at < cut)
            .count();
        // Where nobody looked, nothing was lost that mattered.
        let Some(pick) = context.picks.get(*unit) else {
            continue;
        };
        if (pick as usize) < received {
            let latest = &versions[received - 1].data;
            labels.entry(known.label(latest)).or_default().push(*unit);
        }
    }
    labels
        .into_iter()
        .map(|(label, units)| {
            let plural = if units.len() == 1 { "unit" } else { "units" };
            let list: Vec<String> = units.iter().take(8).map(u64::to_string).collect();
            let more = if units.len() > 8 { ", .." } else { "" };
            format!("{label}: {plural} {}{more}", list.join(", "))
        })
        .collect()
}

/// Files of the new tree of which the disk had not received everything by `cut`. What the old tree
/// held already had no need to be written.
fn never_written(
    log: &BlockLog,
    cut: usize,
    old: &TreeSnapshot,
    new: &TreeSnapshot,
) -> Vec<String> {
    let old = old.nodes();
    let known: HashSet<&[u8]> = old
        .values()
        .filter_map(|node| match node {
            Node::File { content, .. } => Some(content.known()),
            _ => None,
        })
        .collect();
    let written: Vec<&[u8]> = log.ops[..cut.min(log.ops.len())]
        .iter()
        .filter_map(|op| match op {
            BlockOp::Write { data, .. } => Some(&**data),
            BlockOp::Flush { .. }
            | BlockOp::FlushDone { .. }
            | BlockOp::Discard { .. }
            | BlockOp::Mark(_) => None,
        })
        .collect();
    let mut lines = Vec::new();
    for (path, node) in new.nodes() {
        let Node::File { content, .. } = node else {
            continue;
        };
        if known.contains(content.known()) {
            continue;
        }
        let pieces: Vec<&[u8]> = content.known().chunks(PIECE).collect();
        // Small files may lie anywhere within a block of metadata, so every offset counts.
        let missing = pieces
            .iter()
            .filter(|piece| !written.iter().any(|data| contains(data, piece)))
            .count();
        if missing == pieces.len() && missing > 0 {
            lines.push(format!("{path}: none of its {} bytes", content.length()));
        } else if missing > 0 {
            lines.push(format!(
                "{path}: about {} of its {} bytes",
                missing * PIECE,
                content.length()
            ));
        }
    }
    lines
}

fn contains(data: &[u8], piece: &[u8]) -> bool {
    memchr::memmem::find(data, piece).is_some()
}
