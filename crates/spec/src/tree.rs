//! The trees that a [`TreeSpec`] stands for, with their contents.

use std::collections::BTreeSet;

use crate::content::{BLOCK_BYTES, block, content, is_headless, parse_header};
use crate::{FileSpec, TreeSpec};

/// Sizes of generated files: a byte less and a byte more than a sector, btrfs's limit for data
/// inside metadata, a block, and two blocks.
const SIZES: [u32; 8] = [511, 513, 2047, 2049, 4095, 4097, 8191, 8193];

/// Mode of the target and of every directory below it.
const DIRECTORY_MODE: u32 = 0o755;

/// Mode of a file that names none.
const FILE_MODE: u32 = 0o644;

/// One generation of a tree, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeContent {
    /// Directories, parents before children; the first is the target itself.
    pub directories: Vec<DirectoryContent>,
    /// Files: the named ones, then the generated ones.
    pub files: Vec<FileContent>,
}

/// A directory of a [`TreeContent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryContent {
    /// Path relative to the target; empty for the target itself.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
}

/// A file of a [`TreeContent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// Path relative to the target.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Where a disk block belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLocation {
    /// 0 is the old tree, 1 the new one.
    pub generation: u32,
    /// Path relative to the target.
    pub path: String,
    /// Position of the block's first byte in the file.
    pub offset: u64,
}

impl TreeSpec {
    /// The tree of a generation: 0 is the one before the update, 1 the one after. `None` when
    /// there is no tree, because the target is absent at first.
    ///
    /// Later generations have the sizes and modes of generation 1, and contents of their own.
    pub fn generation(&self, generation: u32) -> Option<TreeContent> {
        if self.absent_at_first && generation == 0 {
            return None;
        }
        let files: Vec<FileContent> = self
            .planned()
            .map(|file| FileContent {
                mode: file.mode(generation).unwrap_or(FILE_MODE),
                bytes: content(generation, &file.path, size(&file, generation)),
                path: file.path,
            })
            .collect();
        let parents: BTreeSet<&str> = files
            .iter()
            .flat_map(|file| ancestors(&file.path))
            .collect();
        let directories = std::iter::once("")
            .chain(parents)
            .map(|path| DirectoryContent {
                path: path.to_owned(),
                mode: DIRECTORY_MODE,
            })
            .collect();
        Some(TreeContent { directories, files })
    }

    /// The place in either generation that a piece of disk holds, told by its content; the piece
    /// must begin where a 512-byte sector of a file does.
    ///
    /// A file's last few bytes may be too short to name their place. They are compared with every
    /// such end (the disk fills up with zeros), and `None` is the answer when several fit.
    pub fn locate(&self, piece: &[u8]) -> Option<BlockLocation> {
        if let Some((generation, path, offset)) = parse_header(piece) {
            let file = self.planned().find(|file| file.path == path)?;
            let known = generation <= 1 && offset < size(&file, generation);
            return known.then(|| location(generation, path, offset));
        }
        let end = piece.iter().rposition(|byte| *byte != 0)? + 1;
        let mut fitting = self.headless_ends().filter(|(location, bytes)| {
            // The cheap comparison first: a tree has hundreds of ends.
            *bytes == end
                && block(
                    location.generation,
                    &location.path,
                    offset_of(location),
                    end,
                ) == piece[..end]
        });
        let (only, _) = fitting.next()?;
        fitting.next().is_none().then_some(only)
    }

    /// Every last piece of a file that is too short for a header, with its length.
    fn headless_ends(&self) -> impl Iterator<Item = (BlockLocation, usize)> {
        let generations = if self.absent_at_first { 1..=1 } else { 0..=1 };
        self.planned().flat_map(move |file| {
            generations.clone().filter_map(move |generation| {
                let bytes = size(&file, generation) % BLOCK_BYTES;
                let offset = size(&file, generation) - bytes;
                (bytes > 0 && is_headless(generation, &file.path, offset, bytes))
                    .then(|| (location(generation, &file.path, offset), bytes))
            })
        })
    }

    /// Every file, named or generated, as if all had been named.
    pub(crate) fn planned(&self) -> impl Iterator<Item = FileSpec> {
        let generated = (0..self.count).map(|number| {
            let old = number as usize % SIZES.len();
            // Between 1 and 7 steps further, so that old and new sizes always differ and every
            // pair of sizes occurs in a tree of 56 files.
            let steps = 1 + (number as usize / SIZES.len()) % (SIZES.len() - 1);
            FileSpec {
                path: format!("file-{number:03}"),
                bytes: [SIZES[old], SIZES[(old + steps) % SIZES.len()]],
                modes: ["0644".to_owned(), "0644".to_owned()],
            }
        });
        self.file.clone().into_iter().chain(generated)
    }
}

impl FileSpec {
    /// Permission bits in a generation, `None` when the text is not octal: at most four digits.
    pub fn mode(&self, generation: u32) -> Option<u32> {
        let text = &self.modes[side(generation)];
        let octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        octal.then(|| u32::from_str_radix(text, 8).ok()).flatten()
    }
}

/// Index into the pairs of a [`FileSpec`].
const fn side(generation: u32) -> usize {
    if generation == 0 { 0 } else { 1 }
}

fn size(file: &FileSpec, generation: u32) -> usize {
    file.bytes[side(generation)] as usize
}

/// The directories above a path, nearest to the root first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

fn location(generation: u32, path: &str, offset: usize) -> BlockLocation {
    BlockLocation {
        generation,
        path: path.to_owned(),
        offset: offset as u64,
    }
}

/// The offset as the length it was made from.
fn offset_of(location: &BlockLocation) -> usize {
    usize::try_from(location.offset).unwrap_or(usize::MAX)
}
