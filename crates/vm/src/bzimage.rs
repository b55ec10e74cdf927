//! The header of a kernel image, see `Documentation/arch/x86/boot.rst` of the kernel.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::VmError;

/// Bytes in which the header and the version's text are.
const HEAD_BYTES: u64 = 64 * 1024;

/// The release, such as `6.1.0-57-cloud-amd64`, of a bzImage for 64-bit x86.
///
/// # Errors
/// When the file is something else, with what it is.
pub(crate) fn release(path: &Path) -> Result<String, VmError> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head))
        .map_err(|error| VmError::io("read", path, error))?;
    parse(&head).map_err(|reason| VmError::NotAKernel {
        path: path.to_owned(),
        reason,
    })
}

fn parse(head: &[u8]) -> Result<String, &'static str> {
    if head.get(0x38..0x3c) == Some(b"ARM\x64") {
        return Err("it is a kernel for another architecture, aarch64");
    }
    if head.starts_with(b"\x7fELF") {
        return Err("it is an ELF file, such as vmlinux: give the bzImage made of it");
    }
    if head.starts_with(b"\x1f\x8b") || head.starts_with(b"MZ\0\0zimg") {
        return Err("it is a compressed kernel for another architecture");
    }
    if head.get(0x1fe..0x200) != Some(b"\x55\xaa") || head.get(0x202..0x206) != Some(b"HdrS") {
        return Err("it has no header of a bzImage");
    }
    let u16_at = |at: usize| {
        let bytes = head.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u16::from_le_bytes)
    };
    // XLF_KERNEL_64, since version 2.12 of the protocol.
    if u16_at(0x206) < 0x020c || u16_at(0x236) & 1 == 0 {
        return Err("it is a kernel for another architecture, 32-bit x86");
    }
    let text = usize::from(u16_at(0x20e)) + 0x200;
    let text = head.get(text..).unwrap_or_default();
    let end = text.iter().position(|byte| *byte == 0 || *byte == b' ');
    let release = end.and_then(|end| std::str::from_utf8(&text[..end]).ok());
    match release {
        Some(release) if release.starts_with(|first: char| first.is_ascii_digit()) => {
            Ok(release.to_owned())
        }
        _ => Err("its header tells no version"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The header of a kernel that does nothing.
    pub(crate) fn image(version: &str) -> Vec<u8> {
        let mut head = vec![0; 0x400];
        head[0x1fe..0x200].copy_from_slice(b"\x55\xaa");
        head[0x202..0x206].copy_from_slice(b"HdrS");
        head[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
        head[0x236] = 1;
        head[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        head[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        head
    }

    #[test]
    fn the_release_is_the_first_word_of_the_version() {
        let head = image("6.1.0-57-cloud-amd64 (somebody@somewhere) #1 SMP\0");
        assert_eq!(parse(&head), Ok("6.1.0-57-cloud-amd64".to_owned()));
    }

    #[test]
    fn what_is_no_kernel_for_this_machine_is_told() {
        let mut arm = vec![0; 64];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        let mut narrow = image("6.1 x");
        narrow[0x236] = 0;
        let mut nameless = image("");
        nameless[0x20e..0x210].fill(0xff);
        for (head, said) in [
            (&b"hello"[..], "no header"),
            (&arm, "aarch64"),
            (b"\x7fELF\x02", "vmlinux"),
            (&narrow, "32-bit"),
            (&nameless, "no version"),
        ] {
            let reason = parse(head).unwrap_err();
            assert!(reason.contains(said), "{reason}");
        }
    }
}
