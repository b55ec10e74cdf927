//! Whether the processor runs guests itself. That /dev/kvm opens does not show it: it can accept a
//! guest and never run it. So the first guest is tried with a time limit, and the answer is kept
//! for as long as this machine is up.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// What runs a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor.
    Kvm,
    /// The emulator.
    Emulation,
}

impl Accelerator {
    /// As QEMU names it.
    pub(crate) fn qemu_name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Emulation => "tcg",
        }
    }
}

impl std::fmt::Display for Accelerator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kvm => "KVM",
            Self::Emulation => "emulation",
        })
    }
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcceleratorChoice {
    /// KVM where a guest shows that it works, emulation otherwise.
    #[default]
    Auto,
    /// This one.
    Only(Accelerator),
}

impl FromStr for AcceleratorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "kvm" => Ok(Self::Only(Accelerator::Kvm)),
            "tcg" => Ok(Self::Only(Accelerator::Emulation)),
            other => Err(format!("`{other}` is none of auto, kvm and tcg")),
        }
    }
}

/// What is known of KVM on this machine since it was started; `None` when a guest must show it.
pub(crate) fn known() -> Option<Accelerator> {
    let opened = fs::File::options().read(true).write(true).open("/dev/kvm");
    if opened.is_err() {
        return Some(Accelerator::Emulation);
    }
    let text = fs::read_to_string(note()).ok()?;
    let (boot, works) = text.trim().split_once(' ')?;
    if boot != boot_id()? {
        return None;
    }
    Some(match works {
        "works" => Accelerator::Kvm,
        _ => Accelerator::Emulation,
    })
}

/// Keeps what a guest has shown. When it cannot be kept, the next one has to show it again.
pub(crate) fn remember(shown: Accelerator) {
    let Some(boot) = boot_id() else { return };
    let works = match shown {
        Accelerator::Kvm => "works",
        Accelerator::Emulation => "hangs",
    };
    let note = note();
    if let Some(folder) = note.parent() {
        fs::create_dir_all(folder).ok();
    }
    fs::write(note, format!("{boot} {works}\n")).ok();
}

fn note() -> PathBuf {
    untorn_device::cache_dir().join("kvm")
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}
