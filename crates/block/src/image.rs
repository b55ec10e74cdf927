//! A disk's content: sparse, cheap to clone, changed copy-on-write.

use std::io::{self, Read, Write};
use std::sync::Arc;

/// Bytes in one page of an [`Image`].
pub const PAGE: usize = 4096;
const PAGES_PER_CHUNK: usize = 256;
/// First bytes of an image in a file.
const MAGIC: [u8; 8] = *b"untorn\0\x01";

type Page = [u8; PAGE];
type Chunk = [Option<Arc<Page>>; PAGES_PER_CHUNK];

/// The content of a disk. Pages never written hold zeros and take no memory; a clone shares all
/// pages with its original.
#[derive(Clone)]
pub struct Image {
    chunks: Vec<Arc<Chunk>>,
    bytes: u64,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("bytes", &self.bytes)
            .field("pages_held", &self.pages_held())
            .finish_non_exhaustive()
    }
}

impl Image {
    /// A disk of that many bytes, all zero. Rounded up to a whole number of pages.
    pub fn zeroed(bytes: u64) -> Self {
        let pages = bytes.div_ceil(PAGE as u64);
        let chunks = usize::try_from(pages).expect("an image fits in memory");
        let empty: Arc<Chunk> = Arc::new([const { None }; PAGES_PER_CHUNK]);
        let chunks = vec![empty; chunks.div_ceil(PAGES_PER_CHUNK)];
        Self {
            chunks,
            bytes: pages * PAGE as u64,
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Pages that are held in memory.
    pub fn pages_held(&self) -> usize {
        self.chunks
            .iter()
            .map(|chunk| chunk.iter().flatten().count())
            .sum()
    }

    /// Pages that were written, with the offset at which each begins.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.chunks.iter().flat_map(|chunk| chunk.iter());
        pages.enumerate().filter_map(|(number, page)| {
            page.as_deref()
                .map(|page| ((number * PAGE) as u64, &page[..]))
        })
    }

    fn page(&self, page: usize) -> Option<&Page> {
        self.chunks[page / PAGES_PER_CHUNK][page % PAGES_PER_CHUNK].as_deref()
    }

    /// Fills `buffer` from `offset` on. What lies behind the end reads as zeros.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) {
        for piece in pieces(offset, buffer.len()) {
            let part = &mut buffer[piece.in_buffer.clone()];
            let held = if piece.page_start < self.bytes {
                self.page(piece.page)
            } else {
                None
            };
            match held {
                Some(page) => {
                    part.copy_from_slice(&page[piece.in_page..piece.in_page + part.len()]);
                }
                None => part.fill(0),
            }
        }
    }

    /// The bytes from `offset` on.
    pub fn read_vec(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        self.read(offset, &mut buffer);
        buffer
    }

    /// Puts `data` at `offset`. What lies behind the end is dropped.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for piece in pieces(offset, data.len()) {
            if piece.page_start >= self.bytes {
                return;
            }
            let part = &data[piece.in_buffer.clone()];
            let chunk = &mut self.chunks[piece.page / PAGES_PER_CHUNK];
            let place = piece.page % PAGES_PER_CHUNK;
            if chunk[place].is_none() && part.iter().all(|byte| *byte == 0) {
                continue;
            }
            let page = Arc::make_mut(chunk)[place].get_or_insert_with(|| Arc::new([0; PAGE]));
            let page = Arc::make_mut(page);
            page[piece.in_page..piece.in_page + part.len()].copy_from_slice(part);
        }
    }

    /// Puts zeros on `bytes` bytes from `offset` on.
    pub fn zero(&mut self, offset: u64, bytes: u64) {
        let end = (offset + bytes).min(self.bytes);
        let mut at = offset;
        while at < end {
            let next = ((at / PAGE as u64 + 1) * PAGE as u64).min(end);
            let length = usize::try_from(next - at).expect("less than a page");
            self.write(at, &[0; PAGE][..length]);
            at = next;
        }
    }

    /// Writes the held pages with their numbers, so that [`Image::read_from`] restores the image.
    /// A digest at the end shows when something was cut off or changed.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_to(&self, to: &mut impl Write) -> io::Result<()> {
        let mut digest = blake3::Hasher::new();
        let mut put = |bytes: &[u8]| {
            digest.update(bytes);
            to.write_all(bytes)
        };
        put(&MAGIC)?;
        put(&self.bytes.to_le_bytes())?;
        put(&(self.pages_held() as u64).to_le_bytes())?;
        for (number, chunk) in self.chunks.iter().enumerate() {
            for (place, page) in chunk.iter().enumerate() {
                if let Some(page) = page {
                    let index = (number * PAGES_PER_CHUNK + place) as u64;
                    put(&index.to_le_bytes())?;
                    put(&page[..])?;
                }
            }
        }
        to.write_all(digest.finalize().as_bytes())
    }

    /// Reads what [`Image::write_to`] wrote.
    ///
    /// # Errors
    /// Those of `from`; `InvalidData` when it is no such image.
    pub fn read_from(from: &mut impl Read) -> io::Result<Self> {
        let broken = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let mut digest = blake3::Hasher::new();
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes)?;
            digest.update(&bytes);
            io::Result::Ok(bytes)
        };
        if number()? != MAGIC {
            return broken("not an image");
        }
        let bytes = u64::from_le_bytes(number()?);
        let pages = u64::from_le_bytes(number()?);
        if bytes > 1 << 40 || pages > bytes / PAGE as u64 {
            return broken("not an image");
        }
        let mut image = Self::zeroed(bytes);
        let mut page = [0; 8 + PAGE];
        for _ in 0..pages {
            from.read_exact(&mut page)?;
            digest.update(&page);
            let (index, page) = page.split_at(8);
            let index = u64::from_le_bytes(index.try_into().expect("8 bytes"));
            if index >= image.bytes / PAGE as u64 {
                return broken("page behind the end");
            }
            image.write(index * PAGE as u64, page);
        }
        let mut expected = [0; 32];
        from.read_exact(&mut expected)?;
        if *digest.finalize().as_bytes() != expected {
            return broken("the digest does not match");
        }
        Ok(image)
    }
}

struct Piece {
    page: usize,
    page_start: u64,
    in_page: usize,
    in_buffer: std::ops::Range<usize>,
}

/// Cuts a range of bytes at page boundaries.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == bytes {
            return None;
        }
        let at = offset + done as u64;
        let in_page = usize::try_from(at % PAGE as u64).expect("less than a page");
        let length = (PAGE - in_page).min(bytes - done);
        let page = usize::try_from(at / PAGE as u64).expect("an image fits in memory");
        let in_buffer = done..done + length;
        done += length;
        Some(Piece {
            page,
            page_start: at - in_page as u64,
            in_page,
            in_buffer,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_back_what_a_plain_buffer_would_hold(
            writes in prop::collection::vec((0u64..20_000, prop::collection::vec(any::<u8>(), 1..9000)), 0..12),
        ) {
            let mut image = Image::zeroed(20_480);
            let mut plain = vec![0u8; 20_480];
            for (offset, data) in &writes {
                image.write(*offset, data);
                let start = usize::try_from(*offset).unwrap();
                let end = (start + data.len()).min(plain.len());
                plain[start..end].copy_from_slice(&data[..end - start]);
            }
            prop_assert_eq!(&image.read_vec(0, 20_480), &plain);
            let mut file = Vec::new();
            image.write_to(&mut file).unwrap();
            let again = Image::read_from(&mut &file[..]).unwrap();
            prop_assert_eq!(again.read_vec(0, 20_480), plain);
        }
    }

    #[test]
    fn a_clone_does_not_follow_its_original() {
        let mut image = Image::zeroed(8192);
        image.write(4000, &[7; 200]);
        let clone = image.clone();
        image.zero(4096, 4096);
        assert_eq!(clone.read_vec(4096, 104), vec![7; 104]);
        assert_eq!(image.read_vec(4096, 104), vec![0; 104]);
        assert_eq!(image.read_vec(4000, 96), vec![7; 96]);
    }

    #[test]
    fn a_broken_file_is_refused() {
        let error = Image::read_from(&mut &[0xff; 100][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_that_was_cut_or_changed_anywhere_is_refused() {
        let mut image = Image::zeroed(8 * PAGE as u64);
        image.write(5 * PAGE as u64, &[5; PAGE]);
        image.write(0, &[1; 2 * PAGE]);
        let mut file = Vec::new();
        image.write_to(&mut file).unwrap();
        Image::read_from(&mut &file[..]).unwrap();
        for place in (0..file.len()).step_by(97).chain([8, 24, 24 + 8 + PAGE]) {
            Image::read_from(&mut &file[..place]).unwrap_err();
            let mut changed = file.clone();
            changed[place] ^= 1;
            Image::read_from(&mut &changed[..]).unwrap_err();
        }
    }
}
