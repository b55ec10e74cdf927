//! The modules of a kernel: which are built in, which are files, and what must be loaded first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::VmError;
use crate::modinfo::{ModInfo, normal};

/// A directory of modules, such as `/lib/modules/6.1.0`, or a tree in which a kernel was built.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    files: BTreeMap<String, PathBuf>,
    /// `None` when there is no list of them: then any module may be built in.
    builtin: Option<BTreeSet<String>>,
}

/// A module, ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with `_` for `-`.
    pub name: String,
    /// The uncompressed file.
    pub content: Vec<u8>,
}

impl Modules {
    /// Looks for module files anywhere below `directory`, and for the list of built-in ones.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn in_directory(directory: &Path) -> Result<Self, VmError> {
        let mut modules = Self::default();
        let mut directories = vec![directory.to_owned()];
        while let Some(directory) = directories.pop() {
            let read = |error| VmError::io("read", &directory, error);
            for entry in fs::read_dir(&directory).map_err(read)? {
                let entry = entry.map_err(read)?;
                let kind = entry.file_type().map_err(read)?;
                let file_name = entry.file_name();
                let name = file_name.to_string_lossy();
                if kind.is_dir() {
                    directories.push(entry.path());
                } else if let Some(name) = module_name(&name) {
                    modules.files.insert(name, entry.path());
                }
            }
        }
        let list = directory.join("modules.builtin");
        match fs::read_to_string(&list) {
            Ok(text) => modules.builtin = Some(builtin_names(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(VmError::io("read", &list, error)),
        }
        Ok(modules)
    }

    /// True when the kernel has it, as a file or built in. In doubt it is taken for built in.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(&normal(name)) || self.may_be_built_in(&normal(name))
    }

    fn may_be_built_in(&self, name: &str) -> bool {
        self.builtin
            .as_ref()
            .is_none_or(|builtin| builtin.contains(name))
    }

    /// Modules of that name or alias. Only those whose names begin like the alias are looked at:
    /// `crypto-crc32c` may be `crc32c_generic`, `crc32c_intel` or `crc32c_cryptoapi`, one for each
    /// way to compute it. A module that cannot be read provides nothing.
    fn providers(&self, alias: &str) -> Vec<String> {
        if self.files.contains_key(alias) {
            return vec![alias.to_owned()];
        }
        let stem = alias.strip_prefix("crypto_").unwrap_or(alias);
        let crypto = format!("crypto_{stem}");
        let named = self.files.iter().filter(|(name, _)| name.starts_with(stem));
        let provides = |path: &Path| {
            let info = read_module(path)
                .ok()
                .and_then(|file| ModInfo::parse(&file));
            info.is_some_and(|info| info.aliases.contains(&crypto))
        };
        let found = named.filter(|(_, path)| provides(path));
        found.map(|(name, _)| name.clone()).collect()
    }

    /// The module `wanted` and all that it needs, each behind what it needs itself; nothing when
    /// it is built in.
    ///
    /// # Errors
    /// When a module that is needed is not there, or a file is no module.
    pub fn closure(&self, wanted: &str) -> Result<Vec<Module>, VmError> {
        let mut loading = Loading {
            modules: self,
            seen: BTreeSet::new(),
            ordered: Vec::new(),
        };
        loading.add(&normal(wanted), None)?;
        Ok(loading.ordered)
    }
}

struct Loading<'m> {
    modules: &'m Modules,
    seen: BTreeSet<String>,
    ordered: Vec<Module>,
}

impl Loading<'_> {
    fn add(&mut self, name: &str, needed_by: Option<&str>) -> Result<(), VmError> {
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.modules.files.get(name) else {
            if self.modules.may_be_built_in(name) {
                return Ok(());
            }
            return Err(VmError::NoModule {
                module: name.to_owned(),
                needed_by: needed_by
                    .map(|by| format!(", which {by} needs"))
                    .unwrap_or_default(),
            });
        };
        let content = read_module(path)?;
        let info = ModInfo::parse(&content).ok_or_else(|| VmError::NotAModule {
            path: path.clone(),
            reason: "it is no 64-bit ELF file with a section .modinfo".to_owned(),
        })?;
        for soft in &info.soft {
            for provider in self.modules.providers(soft) {
                self.add(&provider, Some(name))?;
            }
        }
        for hard in &info.depends {
            self.add(hard, Some(name))?;
        }
        let name = name.to_owned();
        self.ordered.push(Module { name, content });
        Ok(())
    }
}

/// The name of the module in a file such as `virtio-rng.ko.xz`.
fn module_name(file: &str) -> Option<String> {
    let (stem, compression) = file.rsplit_once(".ko")?;
    matches!(compression, "" | ".xz" | ".zst" | ".gz").then(|| normal(stem))
}

/// The names in `modules.builtin`, a path a line.
fn builtin_names(list: &str) -> BTreeSet<String> {
    let file_names = list
        .lines()
        .filter_map(|line| line.trim().rsplit('/').next());
    file_names.filter_map(module_name).collect()
}

/// Reads and uncompresses a module.
fn read_module(path: &Path) -> Result<Vec<u8>, VmError> {
    let file = File::open(path).map_err(|error| VmError::io("open", path, error))?;
    let mut content = Vec::new();
    let extension = path.extension().unwrap_or_default();
    let read = match extension.to_str() {
        Some("xz") => lzma_rust2::XzReader::new(file, true).read_to_end(&mut content),
        Some("gz") => flate2::read::MultiGzDecoder::new(file).read_to_end(&mut content),
        Some("zst") => {
            zstd::Decoder::new(file).and_then(|mut decoder| decoder.read_to_end(&mut content))
        }
        _ => { file }.read_to_end(&mut content),
    };
    read.map_err(|error| VmError::NotAModule {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::modinfo::tests::module;

    /// A tree with those modules, each with its dependencies.
    fn tree(modules: &[(&str, &str)], builtin: Option<&str>) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("kernel/deep");
        fs::create_dir_all(&directory).unwrap();
        for (file, modinfo) in modules {
            let content = module(modinfo);
            let path = directory.join(file);
            let packed = match path.extension().unwrap().to_str().unwrap() {
                "xz" => {
                    let options = lzma_rust2::XzOptions::with_preset(1);
                    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
                    writer.write_all(&content).unwrap();
                    writer.finish().unwrap()
                }
                "zst" => zstd::encode_all(&*content, 1).unwrap(),
                "gz" => {
                    let level = flate2::Compression::fast();
                    let mut writer = flate2::write::GzEncoder::new(Vec::new(), level);
                    writer.write_all(&content).unwrap();
                    writer.finish().unwrap()
                }
                _ => content,
            };
            fs::write(path, packed).unwrap();
        }
        if let Some(builtin) = builtin {
            fs::write(top.path().join("modules.builtin"), builtin).unwrap();
        }
        top
    }

    fn order(modules: &Modules, wanted: &str) -> Vec<String> {
        let closure = modules.closure(wanted).unwrap();
        closure.into_iter().map(|module| module.name).collect()
    }

    #[test]
    fn what_is_needed_comes_first_whatever_its_compression() {
        let top = tree(
            &[
                (
                    "btrfs.ko.xz",
                    "softdep=pre: crc32c xxhash64\0depends=raid6_pq,zstd-a\0",
                ),
                ("raid6_pq.ko.zst", "depends=xor\0"),
                ("xor.ko.gz", "depends=\0"),
                ("zstd-a.ko", "depends=xor,libcrc32c\0"),
                ("crc32c.ko", "depends=\0"),
                ("not-a-module.txt", ""),
            ],
            Some("kernel/lib/libcrc32c.ko\n"),
        );
        let modules = Modules::in_directory(top.path()).unwrap();
        assert_eq!(
            order(&modules, "btrfs"),
            ["crc32c", "xor", "raid6_pq", "zstd_a", "btrfs"]
        );
        assert_eq!(order(&modules, "libcrc32c"), [""; 0]);
        assert!(modules.has("zstd-a") && modules.has("libcrc32c") && !modules.has("xfs"));
    }

    #[test]
    fn an_alias_stands_for_all_that_provide_it() {
        let top = tree(
            &[
                (
                    "btrfs.ko",
                    "softdep=pre: crypto-crc32c xxhash64\0depends=\0",
                ),
                ("crc32c-intel.ko", "alias=crypto-crc32c\0depends=\0"),
                ("crc32c-cryptoapi.ko", "alias=crypto-crc32c\0depends=crc\0"),
                ("crc32c-other.ko", "alias=crypto-other\0depends=\0"),
                ("crc.ko", "depends=\0"),
            ],
            Some(""),
        );
        let modules = Modules::in_directory(top.path()).unwrap();
        assert_eq!(
            order(&modules, "btrfs"),
            ["crc", "crc32c_cryptoapi", "crc32c_intel", "btrfs"]
        );
    }

    #[test]
    fn a_missing_module_is_named_with_who_needs_it() {
        let top = tree(
            &[("a.ko", "depends=b\0"), ("b.ko", "depends=c\0")],
            Some(""),
        );
        let modules = Modules::in_directory(top.path()).unwrap();
        let error = modules.closure("a").unwrap_err().to_string();
        assert_eq!(error, "this kernel has no module c, which b needs");
        let error = modules.closure("fuse").unwrap_err().to_string();
        assert_eq!(error, "this kernel has no module fuse");
    }

    #[test]
    fn without_a_list_anything_may_be_built_in() {
        let top = tree(&[("a.ko", "depends=b\0")], None);
        let modules = Modules::in_directory(top.path()).unwrap();
        assert_eq!(order(&modules, "a"), ["a"]);
        assert_eq!(order(&modules, "fuse"), [""; 0]);
    }

    #[test]
    fn a_broken_file_is_named() {
        let top = tree(&[], None);
        for file in ["a.ko", "b.ko.xz", "c.ko.zst", "d.ko.gz"] {
            fs::write(top.path().join(file), b"nonsense").unwrap();
        }
        let modules = Modules::in_directory(top.path()).unwrap();
        for name in ["a", "b", "c", "d"] {
            let error = modules.closure(name).unwrap_err().to_string();
            assert!(error.contains(&format!("/{name}.ko")), "{error}");
        }
    }
}
