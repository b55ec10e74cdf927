//! Archives in the format that kernels unpack at boot (`newc`, see
//! `Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel).

use std::collections::BTreeSet;
use std::io::{self, Write};

const MAGIC: &str = "070701";
const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_000;

/// Writes an archive. Directories come before what is in them, whether they were asked for or not.
#[derive(Debug)]
pub struct CpioWriter<W> {
    out: W,
    inode: u32,
    made: BTreeSet<String>,
}

impl<W: Write> CpioWriter<W> {
    /// An archive without entries.
    pub fn new(out: W) -> Self {
        Self {
            out,
            inode: 0,
            made: BTreeSet::new(),
        }
    }

    /// Adds a directory and those above it.
    ///
    /// # Errors
    /// Those of writing.
    pub fn directory(&mut self, path: &str) -> io::Result<()> {
        let path = path.trim_matches('/');
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let part = &path[..end];
            if !part.is_empty() && self.made.insert(part.to_owned()) {
                self.entry(part, DIRECTORY, b"")?;
            }
        }
        Ok(())
    }

    /// Adds a file and the directories above it.
    ///
    /// # Errors
    /// Those of writing, and `InvalidInput` for more than the format can hold.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let path = path.trim_matches('/');
        if let Some((directory, _)) = path.rsplit_once('/') {
            self.directory(directory)?;
        }
        self.entry(path, FILE | (mode & 0o7777), content)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.inode = 0;
        self.header("TRAILER!!!", 0, 0)?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let bytes = u32::try_from(content.len()).map_err(|_too_large| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{path} is too large"))
        })?;
        self.inode += 1;
        self.header(path, mode, bytes)?;
        self.out.write_all(content)?;
        self.pad(content.len())
    }

    fn header(&mut self, path: &str, mode: u32, bytes: u32) -> io::Result<()> {
        let name_bytes = u32::try_from(path.len() + 1).map_err(io::Error::other)?;
        let fields = [
            self.inode, mode, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0,
        ];
        let digits = fields.map(|field| format!("{field:08x}"));
        let mut header = MAGIC.to_owned();
        header.push_str(&digits.concat());
        header.push_str(path);
        header.push('\0');
        self.out.write_all(header.as_bytes())?;
        self.pad(header.len())
    }

    fn pad(&mut self, length: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..length.wrapping_neg() % 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, modes and contents, as a reader of the format sees them.
    fn read(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let number = |at: usize, field: usize| {
            let start = at + 6 + 8 * field;
            let digits = std::str::from_utf8(&archive[start..start + 8]).unwrap();
            usize::from_str_radix(digits, 16).unwrap()
        };
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(at % 4, 0);
            assert_eq!(&archive[at..at + 6], MAGIC.as_bytes());
            let (mode, bytes, name_bytes) = (number(at, 1), number(at, 6), number(at, 11));
            let name_at = at + 110;
            let name = &archive[name_at..name_at + name_bytes - 1];
            let name = String::from_utf8(name.to_vec()).unwrap();
            let data = (name_at + name_bytes).next_multiple_of(4);
            at = (data + bytes).next_multiple_of(4);
            if name == "TRAILER!!!" {
                assert_eq!(at, archive.len());
                return entries;
            }
            let mode = u32::try_from(mode).unwrap();
            entries.push((name, mode, archive[data..data + bytes].to_vec()));
        }
    }

    #[test]
    fn directories_come_before_their_files_and_once() {
        let mut cpio = CpioWriter::new(Vec::new());
        cpio.file("/a/b/one", 0o755, b"1").unwrap();
        cpio.file("a/b/three", 0o644, b"333").unwrap();
        cpio.directory("/a/c").unwrap();
        cpio.file("top", 0o600, b"").unwrap();
        let entries = read(&cpio.finish().unwrap());
        let names: Vec<(&str, u32)> = entries
            .iter()
            .map(|(name, mode, _)| (name.as_str(), *mode))
            .collect();
        assert_eq!(
            names,
            [
                ("a", 0o040_755),
                ("a/b", 0o040_755),
                ("a/b/one", 0o100_755),
                ("a/b/three", 0o100_644),
                ("a/c", 0o040_755),
                ("top", 0o100_600),
            ]
        );
        assert_eq!(entries[2].2, b"1");
        assert_eq!(entries[3].2, b"333");
    }

    #[test]
    fn an_empty_archive_is_a_trailer() {
        assert!(read(&CpioWriter::new(Vec::new()).finish().unwrap()).is_empty());
    }
}
