//! The program that is a guest's init: this one, linked statically.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::VmError;

/// Variable that names the static program.
pub const STATIC_VARIABLE: &str = "UNTORN_STATIC";

/// The program for guests: `given`, else the one that the environment names, else this one, else
/// one that `scripts/build-static` has put beside it.
///
/// # Errors
/// When it is not there, or not linked statically for this architecture.
pub fn find_static_program(given: Option<&Path>) -> Result<PathBuf, VmError> {
    let named = std::env::var_os(STATIC_VARIABLE).filter(|value| !value.is_empty());
    if let Some(path) = given.map(Path::to_owned).or(named.map(PathBuf::from)) {
        check(&path)?;
        return Ok(path);
    }
    let own = std::env::current_exe().map_err(|error| VmError::NoStaticBinary {
        what: format!("the path of this program is unknown: {error}"),
    })?;
    // target/release/untorn and target/x86_64-unknown-linux-gnu/release/untorn.
    let target = format!("{}-unknown-linux-gnu/release", std::env::consts::ARCH);
    let beside = own.ancestors().skip(2).take(2).map(|folder| {
        folder
            .join(&target)
            .join(own.file_name().unwrap_or_default())
    });
    let own_answer = check(&own);
    for candidate in [own.clone()].into_iter().chain(beside) {
        if check(&candidate).is_ok() {
            return Ok(candidate);
        }
    }
    own_answer.map(|()| own)
}

fn check(path: &Path) -> Result<(), VmError> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(4096).read_to_end(&mut head))
        .map_err(|error| VmError::NoStaticBinary {
            what: format!("cannot read {}: {error}", path.display()),
        })?;
    judge(&head).map_err(|why| VmError::NoStaticBinary {
        what: format!("{} cannot run in a guest: {why}", path.display()),
    })
}

/// Looks at the head of an ELF file, see elf(5).
fn judge(head: &[u8]) -> Result<(), &'static str> {
    const X86_64: u16 = 62;
    const PT_INTERP: u32 = 3;
    if !head.starts_with(b"\x7fELF\x02\x01") || head.len() < 64 {
        return Err("it is no 64-bit ELF file");
    }
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    if u16_at(0x12) != X86_64 {
        return Err("it is for another architecture");
    }
    let mut table = [0; 8];
    table.copy_from_slice(&head[0x20..0x28]);
    let table = usize::try_from(u64::from_le_bytes(table)).unwrap_or(usize::MAX);
    let (size, count) = (usize::from(u16_at(0x36)), usize::from(u16_at(0x38)));
    let kinds = (0..count).filter_map(|index| {
        let at = table.checked_add(index * size)?;
        let kind = head.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes([kind[0], kind[1], kind[2], kind[3]]))
    });
    if { kinds }.any(|kind| kind == PT_INTERP) {
        return Err("it is linked dynamically");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(machine: u8, segment: u8) -> Vec<u8> {
        let mut head = vec![0; 128];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[0x12] = machine;
        head[0x20] = 64;
        head[0x36] = 56;
        head[0x38] = 1;
        head[64] = segment;
        head
    }

    #[test]
    fn only_a_static_program_for_this_architecture_will_do() {
        assert_eq!(judge(&elf(62, 1)), Ok(()));
        assert!(judge(&elf(62, 3)).unwrap_err().contains("dynamically"));
        assert!(judge(&elf(183, 1)).unwrap_err().contains("architecture"));
        assert!(judge(b"#!/bin/sh").unwrap_err().contains("no 64-bit ELF"));
    }

    #[test]
    fn a_program_that_was_named_is_not_passed_over() {
        let error = find_static_program(Some(Path::new("/bin/sh"))).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("/bin/sh cannot run in a guest"), "{error}");
        assert!(error.contains("`scripts/build-static`"), "{error}");
    }
}
