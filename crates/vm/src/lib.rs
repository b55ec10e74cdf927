//! Boots a given kernel with this program as its init, and runs commands in it.
//!
//! * [`Kernel`]: found by name, folder, image or packages, with its modules.
//! * [`write_initramfs`]: program, modules and ready-made images in one archive.
//! * [`Guest`]: QEMU with that kernel; [`protocol`] is what it and its init say to each other.
//!
//! This crate knows nothing of scenarios: it runs command lines, and hands on what they print and
//! write. No guest outlives its handle, however the harness ends.

mod accelerator;
mod bzimage;
mod console;
mod cpio;
mod error;
mod folder;
mod guest;
mod initramfs;
mod kernel;
mod modinfo;
mod modules;
mod program;
pub mod protocol;
mod qemu;
mod sys;

pub use accelerator::{Accelerator, AcceleratorChoice};
pub use console::Console;
pub use cpio::CpioWriter;
pub use error::{Death, DeathKind, VmError};
pub use folder::write_part;
pub use guest::{Guest, GuestOptions, Sink};
pub use initramfs::{AT_BOOT, IMAGES, MODULE_ORDER, MODULES, PROGRAM, write_initramfs};
pub use kernel::{Kernel, kernels_dir};
pub use modules::{Module, Modules};
pub use program::{STATIC_VARIABLE, find_static_program};
pub use qemu::qemu_version;
