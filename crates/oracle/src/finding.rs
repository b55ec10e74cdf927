//! [`Finding`]: what is to be said about one path of a tree that is not as it should be.

use std::fmt;

use serde::{Deserialize, Serialize};
use untorn_spec::ViolationKind;

use crate::TreePath;

/// What was found at one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFinding {
    /// Where.
    pub path: TreePath,
    /// What.
    pub finding: Finding,
}

impl fmt::Display for FileFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.finding)
    }
}

/// What was found at a path. Generations are named by number; 0 is the initial tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Exactly what all generations have here.
    Unchanged,
    /// Exactly what these generations have here, and others have not.
    Whole {
        /// Which.
        generations: Vec<usize>,
    },
    /// Nothing, as in these generations, while others have something here.
    Absent {
        /// Which.
        generations: Vec<usize>,
    },
    /// What these generations have here, with another mode, owner or extended attributes.
    Attributes {
        /// Which.
        generations: Vec<usize>,
        /// How they differ from the newest of those.
        what: String,
    },
    /// A file of size 0, which no generation has here.
    Empty,
    /// The root directory without entries, which no generation has.
    EmptyDirectory,
    /// Nothing but zeros.
    Zeros {
        /// The generation that has as many bytes, or more.
        generation: usize,
        /// The bytes found.
        length: u64,
        /// The bytes of that generation.
        of: u64,
    },
    /// The beginning of a generation's content, then zeros.
    ZeroTail {
        /// Which generation.
        generation: usize,
        /// The bytes that are right.
        kept: u64,
        /// The bytes of that generation.
        of: u64,
    },
    /// The beginning of a generation's content.
    Prefix {
        /// Which generation.
        generation: usize,
        /// The bytes found.
        length: u64,
        /// The bytes of that generation.
        of: u64,
    },
    /// Blocks of these generations side by side in one file.
    Torn {
        /// Which.
        generations: Vec<usize>,
        /// Whether there are blocks of zeros among them.
        zeros: bool,
    },
    /// Content or a link target of no generation.
    Unknown,
    /// Something of a type that no generation has here.
    WrongType {
        /// What it is, in words.
        found: String,
    },
    /// Something that the file system could not show.
    Unreadable {
        /// The error it gave.
        errno: i32,
    },
    /// Nothing, although every allowed generation that has the directory around it has something
    /// here.
    Missing,
    /// Something where no generation has anything.
    Extra,
}

impl Finding {
    /// The kind of violation that this finding shows all by itself, whatever the other paths say.
    pub fn damage(&self) -> Option<ViolationKind> {
        match self {
            Self::Empty | Self::EmptyDirectory => Some(ViolationKind::Empty),
            Self::Zeros { .. } | Self::ZeroTail { .. } | Self::Prefix { .. } => {
                Some(ViolationKind::Truncated)
            }
            Self::Torn { .. }
            | Self::Unknown
            | Self::WrongType { .. }
            | Self::Unreadable { .. } => Some(ViolationKind::Corrupt),
            Self::Missing => Some(ViolationKind::Missing),
            Self::Unchanged
            | Self::Whole { .. }
            | Self::Absent { .. }
            | Self::Attributes { .. }
            | Self::Extra => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchanged => f.write_str("unchanged"),
            Self::Whole { generations } => write!(f, "{}", Generations(generations)),
            Self::Absent { generations } => write!(f, "absent, as in {}", Generations(generations)),
            Self::Attributes { generations, what } => {
                write!(f, "{}, but {what}", Generations(generations))
            }
            Self::Empty => f.write_str("empty"),
            Self::EmptyDirectory => f.write_str("directory without entries"),
            Self::Zeros {
                generation,
                length,
                of,
            } => {
                write!(
                    f,
                    "{length} zero bytes for {of} bytes of {}",
                    Generations(&[*generation])
                )
            }
            Self::ZeroTail {
                generation,
                kept,
                of,
            } => {
                write!(
                    f,
                    "zeros after {kept} of {of} bytes of {}",
                    Generations(&[*generation])
                )
            }
            Self::Prefix {
                generation,
                length,
                of,
            } => {
                write!(
                    f,
                    "first {length} of {of} bytes of {}",
                    Generations(&[*generation])
                )
            }
            Self::Torn { generations, zeros } => {
                let zeros = if *zeros { " and zeros" } else { "" };
                write!(f, "blocks of {}{zeros}", Generations(generations))
            }
            Self::Unknown => f.write_str("content of no generation"),
            Self::WrongType { found } => write!(f, "a {found}, as in no generation"),
            Self::Unreadable { errno } => write!(f, "unreadable: {}", error_text(*errno)),
            Self::Missing => f.write_str("missing"),
            Self::Extra => f.write_str("extra"),
        }
    }
}

fn error_text(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

/// Generations in words: the initial tree is the old one, every other is newer than that.
struct Generations<'a>(&'a [usize]);

impl fmt::Display for Generations<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [0] => f.write_str("old (generation 0)"),
            [generation] => write!(f, "new (generation {generation})"),
            several => {
                let numbers: Vec<_> = several.iter().map(ToString::to_string).collect();
                write!(f, "generations {}", numbers.join(", "))
            }
        }
    }
}
