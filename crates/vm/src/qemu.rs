//! The emulator's command line.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::accelerator::Accelerator;
use crate::initramfs::PROGRAM;
use crate::kernel::Kernel;
use crate::protocol::PORT;
use crate::{VmError, sys};

/// The emulator for this architecture, which is the only one that kernels are looked at for.
const QEMU: &str = "qemu-system-x86_64";

/// Arguments of the kernel, beside those that name init. Expedited grace periods make unmounting
/// fast; a panic ends the machine at once, and running out of memory or an oops is one.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 oops=panic \
    sysctl.vm.panic_on_oom=1 rcupdate.rcu_expedited=1 mitigations=off random.trust_cpu=on \
    nokaslr no_timer_check tsc=reliable";

/// A guest's machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) initramfs: &'a Path,
    pub(crate) memory_mib: u32,
    pub(crate) accelerator: Accelerator,
    /// Socket on which the harness listens.
    pub(crate) channel: &'a Path,
}

impl Machine<'_> {
    /// Starts it. The console is the child's standard output.
    pub(crate) fn start(&self) -> Result<Child, VmError> {
        let accelerator = self.accelerator.qemu_name();
        let processor = match self.accelerator {
            Accelerator::Kvm => "host",
            // Four levels of page tables are walked faster than five.
            Accelerator::Emulation => "max,la57=off",
        };
        let mut command = Command::new(QEMU);
        command
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .args(["-machine", &format!("pc,accel={accelerator}")])
            .args(["-cpu", processor, "-smp", "1"])
            .args(["-m", &format!("{}M", self.memory_mib)])
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(self.initramfs)
            .args([
                "-append",
                &format!("{KERNEL_ARGUMENTS} rdinit={PROGRAM} -- internal init"),
            ])
            .args(["-serial", "stdio"])
            .args(["-device", "virtio-serial-pci"])
            .args([
                "-device",
                &format!("virtserialport,chardev=channel,name={PORT}"),
            ])
            .arg("-chardev")
            .arg(format!("socket,id=channel,path={}", self.channel.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        sys::die_with_parent(&mut command);
        command.spawn().map_err(no_qemu)
    }
}

/// The emulator's version, such as `7.2.22`.
///
/// # Errors
/// When it is not installed.
pub fn qemu_version() -> Result<String, VmError> {
    let output = Command::new(QEMU)
        .arg("--version")
        .output()
        .map_err(no_qemu)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    Ok(version.unwrap_or("of unknown version").to_owned())
}

fn no_qemu(error: io::Error) -> VmError {
    if error.kind() == io::ErrorKind::NotFound {
        return VmError::NoQemu {
            program: QEMU.to_owned(),
        };
    }
    VmError::io("run", Path::new(QEMU), error)
}
