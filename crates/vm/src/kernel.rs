//! Kernels: found, looked at, and their modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::modules::Modules;
use crate::{VmError, bzimage};

/// A kernel that can be booted.
#[derive(Debug)]
pub struct Kernel {
    /// Name for folders and reports, such as `debian-6.12`, or the release.
    pub name: String,
    /// What was given for it.
    pub given: String,
    /// What `uname -r` will say.
    pub release: String,
    /// The image.
    pub image: PathBuf,
    /// Its modules.
    pub modules: Modules,
    /// Where packages were unpacked.
    _unpacked: Option<TempDir>,
}

/// What was given for a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Given {
    /// A name in the cache: its folder's name.
    Cached(String),
    /// A folder: an unpacked package, or a tree in which a kernel was built.
    Tree(PathBuf),
    /// An image, and maybe a folder with modules.
    Image(PathBuf, Option<PathBuf>),
    /// Packages.
    Packages(Vec<PathBuf>),
}

impl Given {
    fn parse(given: &str) -> Self {
        let parts: Vec<&str> = given.split(',').collect();
        let is_package = |part: &&str| Path::new(part).extension().is_some_and(|end| end == "deb");
        if parts.iter().all(is_package) {
            return Self::Packages(parts.into_iter().map(PathBuf::from).collect());
        }
        match parts[..] {
            [image, modules] => Self::Image(image.into(), Some(modules.into())),
            [one] if Path::new(one).is_dir() => Self::Tree(one.into()),
            [one] if one.contains('/') || Path::new(one).exists() => Self::Image(one.into(), None),
            _ => Self::Cached(given.replace(':', "-")),
        }
    }
}

/// Folder of the cache in which kernels are.
pub fn kernels_dir() -> PathBuf {
    untorn_device::cache_dir().join("kernels")
}

impl Kernel {
    /// The kernel that `given` names: a name in the cache such as `debian:6.12`, a folder with a
    /// kernel and its modules, `IMAGE` or `IMAGE,MODULES`, or `.deb` files separated by commas.
    ///
    /// # Errors
    /// When there is no such kernel, or it cannot be booted here.
    pub fn find(given: &str) -> Result<Self, VmError> {
        match Given::parse(given) {
            Given::Cached(name) => {
                let folder = kernels_dir().join(&name);
                if name.is_empty() || name.starts_with('.') || !folder.is_dir() {
                    return Err(unknown(given));
                }
                Self::in_tree(given, Some(name), &folder, None)
            }
            Given::Tree(folder) => Self::in_tree(given, None, &folder, None),
            Given::Image(image, modules) => {
                let release = bzimage::release(&image)?;
                let of_host = Path::new("/lib/modules").join(&release);
                let modules = modules.or_else(|| of_host.is_dir().then_some(of_host));
                let modules = match modules {
                    Some(folder) => Modules::in_directory(&modules_in(&folder, &release))?,
                    None => Modules::default(),
                };
                Ok(Self {
                    name: release.clone(),
                    given: given.to_owned(),
                    release,
                    image,
                    modules,
                    _unpacked: None,
                })
            }
            Given::Packages(packages) => {
                let unpacked = unpack(&packages)?;
                let folder = unpacked.path().to_owned();
                Self::in_tree(given, None, &folder, Some(unpacked))
            }
        }
    }

    fn in_tree(
        given: &str,
        name: Option<String>,
        folder: &Path,
        unpacked: Option<TempDir>,
    ) -> Result<Self, VmError> {
        let image = image_in(folder).ok_or_else(|| VmError::NotAKernel {
            path: folder.to_owned(),
            reason: "there is no vmlinuz or bzImage in it",
        })?;
        let release = bzimage::release(&image)?;
        Ok(Self {
            name: name.unwrap_or_else(|| release.clone()),
            given: given.to_owned(),
            modules: Modules::in_directory(&modules_in(folder, &release))?,
            release,
            image,
            _unpacked: unpacked,
        })
    }
}

fn unknown(given: &str) -> VmError {
    let entries = fs::read_dir(kernels_dir()).into_iter().flatten().flatten();
    let mut known: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("debian-"))
        .map(|name| name.replacen('-', ":", 1))
        .collect();
    known.sort();
    let fetch = if given.starts_with("debian:") {
        format!("`scripts/fetch-kernel {given}` fetches it")
    } else {
        "give a name such as debian:6.12, a folder, an image, or .deb files".to_owned()
    };
    let help = if known.is_empty() {
        fetch
    } else {
        format!("{fetch}; the cache has {}", known.join(", "))
    };
    VmError::UnknownKernel {
        name: given.to_owned(),
        help,
    }
}

/// The one image in a folder: at its top, in `boot`, beside its modules, or where a build puts it.
fn image_in(folder: &Path) -> Option<PathBuf> {
    let built = folder.join("arch/x86/boot/bzImage");
    if built.is_file() {
        return Some(built);
    }
    let below = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let tops = [folder.to_owned(), folder.join("boot")];
    let releases = [folder.join("lib/modules"), folder.join("usr/lib/modules")]
        .into_iter()
        .flat_map(below);
    let is_image = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && (name.starts_with("vmlinuz") || name == "bzImage")
    };
    tops.into_iter()
        .chain(releases)
        .flat_map(below)
        .find(is_image)
}

/// The directory of this release's modules in a folder, or the folder itself.
fn modules_in(folder: &Path, release: &str) -> PathBuf {
    let places = ["lib/modules", "usr/lib/modules", "."];
    places
        .into_iter()
        .map(|place| folder.join(place).join(release))
        .find(|place| place.is_dir())
        .unwrap_or_else(|| folder.to_owned())
}

fn unpack(packages: &[PathBuf]) -> Result<TempDir, VmError> {
    let temporary = std::env::temp_dir();
    let folder = untorn_device::leftovers::scratch_dir()
        .map_err(|error| VmError::io("make a directory in", &temporary, error))?;
    for package in packages {
        let output = Command::new("dpkg-deb")
            .arg("-x")
            .args([package, folder.path()])
            .output()
            .map_err(|error| VmError::io("unpack (with dpkg-deb)", package, error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(VmError::io("unpack", package, std::io::Error::other(said)));
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bzimage::tests::image;

    #[test]
    fn what_is_given_is_told_apart() {
        let cached = |name: &str| Given::Cached(name.to_owned());
        assert_eq!(Given::parse("debian:6.12"), cached("debian-6.12"));
        assert_eq!(Given::parse("nothing"), cached("nothing"));
        assert_eq!(Given::parse("/"), Given::Tree("/".into()));
        assert_eq!(
            Given::parse("./k/bzImage,m"),
            Given::Image("./k/bzImage".into(), Some("m".into()))
        );
        assert_eq!(Given::parse("/k/b"), Given::Image("/k/b".into(), None));
        assert_eq!(
            Given::parse("a.deb,b.deb"),
            Given::Packages(vec!["a.deb".into(), "b.deb".into()])
        );
    }

    #[test]
    fn a_folder_is_looked_through() {
        for (image_at, modules_at) in [
            ("vmlinuz", "lib/modules/9.9.1-x"),
            ("boot/vmlinuz-9.9.1-x", "usr/lib/modules/9.9.1-x"),
            ("usr/lib/modules/9.9.1-x/vmlinuz", "usr/lib/modules/9.9.1-x"),
            ("arch/x86/boot/bzImage", "."),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let image_at = folder.path().join(image_at);
            let modules_at = folder.path().join(modules_at);
            fs::create_dir_all(image_at.parent().unwrap()).unwrap();
            fs::create_dir_all(&modules_at).unwrap();
            fs::write(&image_at, image("9.9.1-x (me) #1\0")).unwrap();
            fs::write(modules_at.join("modules.builtin"), "kernel/fuse.ko\n").unwrap();
            let kernel = Kernel::find(folder.path().to_str().unwrap()).unwrap();
            assert_eq!((&*kernel.release, &kernel.image), ("9.9.1-x", &image_at));
            assert!(kernel.modules.has("fuse") && !kernel.modules.has("loop"));
        }
    }

    #[test]
    fn what_cannot_be_booted_is_told() {
        let error = |given: &str| Kernel::find(given).unwrap_err().to_string();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        assert!(error(path).contains("no vmlinuz"), "{}", error(path));
        let text = folder.path().join("vmlinuz");
        fs::write(&text, "hello").unwrap();
        assert!(error(path).contains("no header of a bzImage"));
        assert!(error(text.to_str().unwrap()).contains("no header of a bzImage"));
        assert!(error("/no/such/image").contains("No such file"));
        assert!(
            error("/no/such.deb").contains("unpack"),
            "{}",
            error("/no/such.deb")
        );
        let unknown = error("debian:0.1");
        assert!(
            unknown.contains("`scripts/fetch-kernel debian:0.1` fetches it"),
            "{unknown}"
        );
        assert!(error("linux").contains("a name such as debian:6.12"));
    }
}
