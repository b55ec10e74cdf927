//! File contents that tell where they belong.
//!
//! Every 512 bytes of a file begin with a line that names the generation, the path and the offset,
//! so that a disk block found anywhere, torn off from everything else, still tells its place.

/// Bytes between two header lines: the smallest unit a disk writes all or nothing.
pub(crate) const BLOCK_BYTES: usize = 512;

/// The whole content of a file.
pub(crate) fn content(generation: u32, path: &str, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .step_by(BLOCK_BYTES)
        .flat_map(|offset| block(generation, path, offset, BLOCK_BYTES.min(bytes - offset)))
        .collect()
}

/// The bytes from `offset`, a multiple of [`BLOCK_BYTES`], on.
///
/// A last block that is too short for its header line holds digits drawn from the same stream
/// instead: as many different bytes as fit.
pub(crate) fn block(generation: u32, path: &str, offset: usize, bytes: usize) -> Vec<u8> {
    let mut digits = Digits::new(generation, path, offset);
    let mut block = header(generation, path, offset).into_bytes();
    if bytes < block.len() {
        return digits.take(bytes).collect();
    }
    while block.len() < bytes {
        let column = block.len() % 64;
        block.push(if column == 63 { b'\n' } else { digits.draw() });
    }
    block[bytes - 1] = b'\n';
    block
}

/// The line at the start of a block.
fn header(generation: u32, path: &str, offset: usize) -> String {
    let tag = seed(generation, path, offset);
    format!("untorn generation={generation} path={path} offset={offset:08} {tag:016x}\n")
}

/// True when so few bytes hold no header line.
pub(crate) fn is_headless(generation: u32, path: &str, offset: usize, bytes: usize) -> bool {
    bytes < header(generation, path, offset).len()
}

/// Generation, path and offset named by the header line that `block` begins with, if there is one
/// and its tag is right.
pub(crate) fn parse_header(block: &[u8]) -> Option<(u32, &str, usize)> {
    let end = block.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&block[..end]).ok()?;
    let rest = line.strip_prefix("untorn generation=")?;
    let (generation, rest) = rest.split_once(" path=")?;
    let (rest, tag) = rest.rsplit_once(' ')?;
    let (path, offset) = rest.rsplit_once(" offset=")?;
    let generation = generation.parse().ok()?;
    let offset = offset.parse().ok()?;
    let tag = u64::from_str_radix(tag, 16).ok()?;
    (tag == seed(generation, path, offset)).then_some((generation, path, offset))
}

/// FNV-1a over all that names a block: small, and fixed by its definition.
fn seed(generation: u32, path: &str, offset: usize) -> u64 {
    let offset = offset as u64;
    generation
        .to_le_bytes()
        .into_iter()
        .chain(offset.to_le_bytes())
        .chain(path.bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

/// An endless stream of hexadecimal digits: splitmix64, sixteen digits a step.
struct Digits {
    state: u64,
    word: u64,
    left: u32,
}

impl Digits {
    fn new(generation: u32, path: &str, offset: usize) -> Self {
        Self {
            state: seed(generation, path, offset),
            word: 0,
            left: 0,
        }
    }

    fn draw(&mut self) -> u8 {
        if self.left == 0 {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = self.state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            self.word = word ^ (word >> 31);
            self.left = 16;
        }
        let digit = b"0123456789abcdef"[(self.word & 0xf) as usize];
        self.word >>= 4;
        self.left -= 1;
        digit
    }
}

impl Iterator for Digits {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        Some(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::{block, content, is_headless, parse_header};

    #[test]
    fn a_block_begins_with_a_line_that_names_its_place() {
        let bytes = content(1, "tls.key", 5000);
        assert_eq!(bytes.len(), 5000);
        let text = String::from_utf8(bytes[4096..4608].to_vec()).unwrap();
        assert!(text.starts_with("untorn generation=1 path=tls.key offset=00004096 "));
        assert!(text.ends_with('\n'));
        assert_eq!(
            parse_header(&bytes[4096..]),
            Some((1, "tls.key", 4096)),
            "and the line can be read back"
        );
    }

    #[test]
    fn a_wrong_tag_is_no_header() {
        let mut bytes = block(0, "a", 0, 512);
        let place = bytes.iter().position(|byte| *byte == b'a').unwrap();
        bytes[place] = b'b';
        assert_eq!(parse_header(&bytes), None);
    }

    #[test]
    fn short_ends_are_filled_to_the_byte() {
        for bytes in 1..=64 {
            assert_eq!(block(0, "file-000", 512, bytes).len(), bytes);
        }
        assert!(is_headless(0, "file-000", 512, 1));
        assert!(!is_headless(0, "file-000", 512, 512));
    }

    #[test]
    fn names_with_spaces_and_words_of_the_header_are_read_back() {
        let path = "a offset=1 path=b c";
        assert_eq!(
            parse_header(&block(7, path, 1024, 512)),
            Some((7, path, 1024))
        );
    }
}
