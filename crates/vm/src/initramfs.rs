//! The archive that a guest boots from: the program, modules, images, and files to work on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use untorn_spec::PROFILES;

use crate::VmError;
use crate::cpio::CpioWriter;
use crate::kernel::Kernel;

/// The program in the guest.
pub const PROGRAM: &str = "/untorn";
/// Directory of the ready-made images.
pub const IMAGES: &str = "/images";
/// Directory of the modules.
pub const MODULES: &str = "/modules";
/// File in it that tells for each module that can be asked for which files to load, in order.
pub const MODULE_ORDER: &str = "order.json";

/// Loaded at boot: the way to the harness, and what every disk under test needs.
pub const AT_BOOT: [&str; 4] = ["virtio_pci", "virtio_console", "fuse", "loop"];
/// Without these nothing can be run.
const NEEDED: [&str; 4] = AT_BOOT;
/// Taken along where the kernel has them; what lacks them says so itself.
const WANTED: [&str; 7] = [
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "overlay",
    "dm-flakey",
    "dm-log-writes",
];

/// Writes the archive to `out`. `files` are files and directories of this machine that are taken
/// along, under the paths they have here.
///
/// # Errors
/// When the kernel lacks a module that is needed, or something cannot be read or written.
pub fn write_initramfs(
    kernel: &Kernel,
    program: &Path,
    files: &[PathBuf],
    out: &Path,
) -> Result<(), VmError> {
    let failed = |error| VmError::io("write", out, error);
    let file = File::create(out).map_err(failed)?;
    let mut cpio = CpioWriter::new(BufWriter::with_capacity(1 << 20, file));
    for directory in ["proc", "sys", "dev", "tmp", "run"] {
        cpio.directory(directory).map_err(failed)?;
    }
    let binary = fs::read(program).map_err(|error| VmError::io("read", program, error))?;
    cpio.file(PROGRAM, 0o755, &binary).map_err(failed)?;
    add_modules(kernel, &mut cpio, out)?;
    for profile in PROFILES {
        // A machine that cannot make an image has no use for the profile, and the guest says so.
        if let Ok(image) = untorn_device::make_image(profile) {
            let mut content = Vec::new();
            image.write_to(&mut content).map_err(failed)?;
            let path = format!("{IMAGES}/{}.image", profile.name);
            cpio.file(&path, 0o644, &content).map_err(failed)?;
        }
    }
    for file in files {
        add_tree(file, &mut cpio, out)?;
    }
    cpio.finish()
        .and_then(|mut buffered| buffered.flush())
        .map_err(failed)
}

fn add_modules(
    kernel: &Kernel,
    cpio: &mut CpioWriter<impl Write>,
    out: &Path,
) -> Result<(), VmError> {
    let failed = |error| VmError::io("write", out, error);
    let mut order: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut written: Vec<String> = Vec::new();
    let wanted = WANTED.into_iter().filter(|name| kernel.modules.has(name));
    for name in NEEDED.into_iter().chain(wanted) {
        let mut files = Vec::new();
        for module in kernel.modules.closure(name)? {
            let path = format!("{MODULES}/{}.ko", module.name);
            if !written.contains(&path) {
                cpio.file(&path, 0o644, &module.content).map_err(failed)?;
                written.push(path.clone());
            }
            files.push(path);
        }
        order.insert(name, files);
    }
    let order = serde_json::to_vec(&order).map_err(|error| failed(error.into()))?;
    cpio.file(&format!("{MODULES}/{MODULE_ORDER}"), 0o644, &order)
        .map_err(failed)
}

/// Adds a file, or a directory with all files below it, under its own path.
fn add_tree(path: &Path, cpio: &mut CpioWriter<impl Write>, out: &Path) -> Result<(), VmError> {
    let failed = |error| VmError::io("read", path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    let name = path.to_string_lossy();
    if metadata.is_dir() {
        cpio.directory(&name)
            .map_err(|error| VmError::io("write", out, error))?;
        for entry in fs::read_dir(path).map_err(failed)? {
            add_tree(&entry.map_err(failed)?.path(), cpio, out)?;
        }
        return Ok(());
    }
    let content = fs::read(path).map_err(failed)?;
    cpio.file(&name, metadata.permissions().mode(), &content)
        .map_err(|error| VmError::io("write", out, error))
}
