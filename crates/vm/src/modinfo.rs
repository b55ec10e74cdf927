//! What a kernel module says of itself, in the section `.modinfo` of its ELF file.

/// The parts that decide what must be loaded before a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModInfo {
    /// Modules whose symbols it uses.
    pub(crate) depends: Vec<String>,
    /// Modules or aliases that it would like to have: it loads without them, and may not work.
    pub(crate) soft: Vec<String>,
    /// Other names by which it is asked for.
    pub(crate) aliases: Vec<String>,
}

impl ModInfo {
    /// Reads an uncompressed module; `None` when it is not a 64-bit little-endian ELF file with
    /// that section.
    pub(crate) fn parse(module: &[u8]) -> Option<Self> {
        let mut info = Self::default();
        for entry in section(module, b".modinfo")?.split(|byte| *byte == 0) {
            let Some((key, value)) = std::str::from_utf8(entry)
                .ok()
                .and_then(|entry| entry.split_once('='))
            else {
                continue;
            };
            match key {
                "depends" => {
                    let names = value.split(',').filter(|name| !name.is_empty());
                    info.depends.extend(names.map(normal));
                }
                "alias" => info.aliases.push(normal(value)),
                "softdep" => {
                    if let Some(before) = value.trim().strip_prefix("pre:") {
                        let before = before.split("post:").next().unwrap_or_default();
                        info.soft.extend(before.split_whitespace().map(normal));
                    }
                }
                _ => {}
            }
        }
        Some(info)
    }
}

/// The kernel takes `-` and `_` for the same in names of modules.
pub(crate) fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// Content of a section, see elf(5).
fn section<'a>(file: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let u16_at = |at: usize| Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let usize_at = |at: usize| {
        let bytes = file.get(at..at.checked_add(8)?)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (table, size) = (usize_at(0x28)?, usize::from(u16_at(0x3a)?));
    let (count, names) = (usize::from(u16_at(0x3c)?), usize::from(u16_at(0x3e)?));
    let header = |index: usize| table.checked_add(index.checked_mul(size)?);
    let content = |header: usize| {
        let (start, bytes) = (usize_at(header + 0x18)?, usize_at(header + 0x20)?);
        file.get(start..start.checked_add(bytes)?)
    };
    let names = content(header(names)?)?;
    for index in 0..count {
        let header = header(index)?;
        let name = names.get(usize::try_from(u32_at(header)?).ok()?..)?;
        if name.split(|byte| *byte == 0).next() == Some(wanted) {
            return content(header);
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The smallest module with that text in `.modinfo`.
    pub(crate) fn module(modinfo: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0.names\0";
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let info_at = file.len();
        file.extend(modinfo.as_bytes());
        let names_at = file.len();
        file.extend(names);
        let table = file.len() as u64;
        file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        for (at, value) in [(0x3a, 64_u16), (0x3c, 3), (0x3e, 2)] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        for (name, start, bytes) in [
            (0_u32, 0, 0),
            (1, info_at, modinfo.len()),
            (10, names_at, names.len()),
        ] {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&(start as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(bytes as u64).to_le_bytes());
            file.extend(header);
        }
        file
    }

    #[test]
    fn dependencies_are_read() {
        let text =
            "alias=crypto-a\0softdep=pre: crc32c blake2b-256 post: x\0depends=raid6_pq,dm-mod\0";
        let info = ModInfo::parse(&module(text)).unwrap();
        assert_eq!(info.depends, ["raid6_pq", "dm_mod"]);
        assert_eq!(info.soft, ["crc32c", "blake2b_256"]);
        assert_eq!(info.aliases, ["crypto_a"]);
        let none = ModInfo::parse(&module("depends=\0")).unwrap();
        assert_eq!(none, ModInfo::default());
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert_eq!(ModInfo::parse(b""), None);
        assert_eq!(ModInfo::parse(b"\x7fELF\x02\x01 and no more"), None);
        let mut cut = module("depends=a\0");
        cut.truncate(cut.len() - 70);
        assert_eq!(ModInfo::parse(&cut), None);
    }
}
