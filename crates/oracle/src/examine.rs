//! Examining one path: which generations does what was seen belong to, and if to none, why.

use crate::content::zero_tail;
use crate::difference::describe_attributes;
use crate::{Content, Finding, Node};

/// One path as it was seen and as each generation has it.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub(crate) seen: Option<&'a Node>,
    pub(crate) generations: Vec<Option<&'a Node>>,
    /// Which generations have a directory around this path; all of them for the root.
    pub(crate) surrounded: Vec<bool>,
}

/// What is known of a path after examining it.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) finding: Finding,
    /// The generations that this path could belong to; `None` when it takes no part in the
    /// question, for being damaged or for being in no generation.
    pub(crate) belongs_to: Option<Vec<usize>>,
}

impl<'a> Site<'a> {
    pub(crate) fn examine(&self, allowed: &[usize]) -> Examined {
        let Some(seen) = self.seen else {
            return self.examine_absence(allowed);
        };
        if self.generations.iter().all(Option::is_none) {
            return Examined {
                finding: Finding::Extra,
                belongs_to: None,
            };
        }
        let whole = self.matching(|node| node.is_the_same(seen));
        if !whole.is_empty() {
            let finding = if whole.len() == self.generations.len() {
                Finding::Unchanged
            } else {
                Finding::Whole {
                    generations: whole.clone(),
                }
            };
            return Examined {
                finding,
                belongs_to: Some(whole),
            };
        }
        let generations = self.matching(|node| node.holds_the_same(seen));
        if let Some(&newest) = generations.last() {
            let wanted = self.generations[newest].and_then(Node::attributes);
            let what = wanted
                .zip(seen.attributes())
                .map_or_else(Vec::new, |(wanted, seen)| describe_attributes(wanted, seen));
            let belongs_to = Some(generations.clone());
            let finding = Finding::Attributes {
                generations,
                what: what.join(", "),
            };
            return Examined {
                finding,
                belongs_to,
            };
        }
        Examined {
            finding: self.damage(seen),
            belongs_to: None,
        }
    }

    /// Being absent says nothing for a generation that does not even have the directory around the
    /// path: a first tree of which half has arrived is not mixed with having no tree.
    fn examine_absence(&self, allowed: &[usize]) -> Examined {
        let surrounded = |&generation: &usize| self.surrounded[generation];
        let lacks = |&generation: &usize| self.generations[generation].is_none();
        let mut wanted = allowed.iter().copied().filter(surrounded).peekable();
        let missing = wanted.peek().is_some() && !wanted.any(|generation| lacks(&generation));
        let generations: Vec<_> = (0..self.generations.len())
            .filter(surrounded)
            .filter(lacks)
            .collect();
        if missing || generations.is_empty() {
            return Examined {
                finding: Finding::Missing,
                belongs_to: None,
            };
        }
        let finding = Finding::Absent {
            generations: generations.clone(),
        };
        Examined {
            finding,
            belongs_to: Some(generations),
        }
    }

    fn matching(&self, matches: impl Fn(&Node) -> bool) -> Vec<usize> {
        let nodes = self.generations.iter().enumerate();
        nodes
            .filter(|(_, node)| node.is_some_and(&matches))
            .map(|(generation, _)| generation)
            .collect()
    }

    fn damage(&self, seen: &Node) -> Finding {
        match seen {
            Node::Unreadable { errno } => Finding::Unreadable { errno: *errno },
            Node::File { content, .. } if content.is_empty() => Finding::Empty,
            Node::File { content, .. } => {
                let contents = self.contents();
                if contents.is_empty() {
                    return Finding::WrongType {
                        found: seen.kind_name().to_owned(),
                    };
                }
                let beginnings = contents
                    .iter()
                    .filter_map(|&(generation, whole)| beginning(content, generation, whole));
                // Of several generations the one that explains most, and the newest among equals.
                let best = beginnings
                    .max_by_key(|&(kept, _)| kept)
                    .map(|(_, finding)| finding);
                best.or_else(|| torn(content, &contents))
                    .unwrap_or(Finding::Unknown)
            }
            Node::Symlink { .. } if self.has(|node| matches!(node, Node::Symlink { .. })) => {
                Finding::Unknown
            }
            Node::Missing | Node::Directory { .. } | Node::Symlink { .. } | Node::Other { .. } => {
                Finding::WrongType {
                    found: seen.kind_name().to_owned(),
                }
            }
        }
    }

    fn has(&self, matches: impl Fn(&Node) -> bool) -> bool {
        self.generations.iter().flatten().any(|node| matches(node))
    }

    /// The contents that generations have here.
    fn contents(&self) -> Vec<(usize, &'a Content)> {
        let mut contents = Vec::new();
        for (generation, node) in self.generations.iter().enumerate() {
            if let Some(Node::File { content, .. }) = node {
                contents.push((generation, content));
            }
        }
        contents
    }
}

/// Says how a non-empty content is the beginning of another, if it is, and how many bytes of it are
/// right. Bytes that a summary did not keep are taken to be right: this decides between two kinds
/// of damage and never between damage and none.
fn beginning(seen: &Content, generation: usize, whole: &Content) -> Option<(u64, Finding)> {
    let (length, of) = (seen.length(), whole.length());
    if length > of {
        return None;
    }
    let known: Vec<_> = seen.known().iter().zip(whole.known()).collect();
    let common = known
        .iter()
        .take_while(|(seen, whole)| seen == whole)
        .count();
    let body = length - seen.zero_tail();
    let agrees = common == known.len();
    if !agrees && (common as u64) < body {
        return None;
    }
    let kept = body.max(common as u64);
    if agrees && length < of {
        Some((
            length,
            Finding::Prefix {
                generation,
                length,
                of,
            },
        ))
    } else if body == 0 {
        Some((
            0,
            Finding::Zeros {
                generation,
                length,
                of,
            },
        ))
    } else if !agrees || seen.zero_tail() > whole.zero_tail() {
        Some((
            kept,
            Finding::ZeroTail {
                generation,
                kept,
                of,
            },
        ))
    } else {
        None
    }
}

/// The smallest unit that a disk writes all or nothing.
const BLOCK_BYTES: usize = 512;

/// Says whether a content is put together from blocks of several generations, each at its place.
fn torn(seen: &Content, contents: &[(usize, &Content)]) -> Option<Finding> {
    let Content::Whole(seen) = seen else {
        return None;
    };
    if !contents
        .iter()
        .any(|(_, content)| content.length() == seen.len() as u64)
    {
        return None;
    }
    let mut generations = Vec::new();
    let mut zeros = false;
    for (number, block) in seen.chunks(BLOCK_BYTES).enumerate() {
        let start = number * BLOCK_BYTES;
        let range = start..start + block.len();
        let holds = |&&(_, content): &&(usize, &Content)| {
            content
                .known()
                .get(range.clone())
                .is_some_and(|known| known == block)
        };
        if let Some(&(generation, _)) = contents.iter().find(holds) {
            generations.push(generation);
        } else if zero_tail(block) == block.len() as u64 {
            zeros = true;
        } else {
            return None;
        }
    }
    generations.sort_unstable();
    generations.dedup();
    Some(Finding::Torn { generations, zeros })
}
