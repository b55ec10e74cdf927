//! Every unsafe block of this crate.
#![expect(
    unsafe_code,
    reason = "fork, signal handlers and inherited descriptors have no safe interface"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{ForkResult, Pid, fork};

use crate::child_setup::ChildSetup;
use crate::interrupt;

/// Has `setup` applied in the child of `command`, between fork and exec.
pub(crate) fn set_up_child(command: &mut Command, setup: ChildSetup) {
    // SAFETY: the closure runs in the fork of a process that may have other threads, so it may
    // only do what is async-signal-safe. `ChildSetup::apply` makes system calls on data that is
    // ready, and does not allocate, lock or panic.
    unsafe {
        command.pre_exec(move || setup.apply());
    }
}

/// Gives every signal its default disposition. Exec does that for handlers, but hands on what is
/// ignored. See sigaction(2).
///
/// The C library's wrapper would leave out the signals that it uses itself.
pub(crate) fn reset_signal_dispositions() {
    // The kernel's `struct sigaction` is handler, flags, restorer and mask, of at most 32 bytes;
    // all of it zero is SIG_DFL.
    let default = [0_u64; 4];
    let mask_bytes: libc::size_t = 8;
    for number in 1..=64 {
        let old = std::ptr::null_mut::<u64>();
        // SAFETY: the kernel reads the structure, writes none back, and SIG_DFL installs no code.
        // SIGKILL and SIGSTOP are refused with an error, which is as it should be.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                default.as_ptr(),
                old,
                mask_bytes,
            );
        }
    }
}

/// Has `signal` noted by [`interrupt::note`]. See sigaction(2).
pub(crate) fn install_handler(signal: Signal) -> io::Result<()> {
    extern "C" fn on_signal(number: libc::c_int) {
        interrupt::note(number);
    }
    // Calls that the signal breaks into go on afterwards; whoever wants to know polls.
    let action = SigAction::new(
        SigHandler::Handler(on_signal),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: `interrupt::note` is async-signal-safe: atomics and one write(2), and it leaves
    // errno alone.
    unsafe { sigaction(signal, &action) }?;
    Ok(())
}

/// Forks a process that does nothing until the other end of `lifeline` is closed. As the first
/// process of a pid namespace it is that namespace's init. See `pid_namespaces(7)`.
pub(crate) fn fork_idle(lifeline: &OwnedFd) -> io::Result<Pid> {
    // SAFETY: this process may have other threads, so the child may only do what is
    // async-signal-safe until it ends: `idle` makes system calls only, and never returns.
    match unsafe { fork() }? {
        ForkResult::Child => idle(lifeline.as_raw_fd()),
        ForkResult::Parent { child } => Ok(child),
    }
}

/// The life of the process made by [`fork_idle`].
fn idle(lifeline: RawFd) -> ! {
    // The terminal's signals are not meant for it, nor are any others. Ignored children are
    // reaped by the kernel.
    SigSet::all().thread_set_mask().ok();
    rustix::process::setsid().ok();
    // SAFETY: SIG_IGN installs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    // Descriptors of the harness must not be held open from here: devices, disks, sockets.
    // SAFETY: this process uses no descriptor but the lifeline, and never runs code that does.
    let kept = unsafe { libc::dup2(lifeline, 0) };
    let from: libc::c_uint = 1;
    // SAFETY: as above.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, from, libc::c_uint::MAX, 0) };
    if kept == 0 && closed == 0 {
        let mut byte = 0_u8;
        loop {
            // SAFETY: the buffer is one byte long and lives.
            let read = unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
            // No signal can interrupt the read, so anything but a byte is the end.
            if read <= 0 {
                break;
            }
        }
    }
    // SAFETY: `_exit` runs no code of the process that was forked.
    unsafe { libc::_exit(i32::from(closed != 0)) }
}

/// Takes over a descriptor that was inherited under the number `number`, when it is a socket that
/// keeps packets apart.
pub(crate) fn take_inherited_socket(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: the number is not -1, and the borrow ends with the check. Should nothing be open
    // under it, the check fails with EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    if rustix::net::sockopt::socket_type(borrowed)? != rustix::net::SocketType::SEQPACKET {
        return Err(rustix::io::Errno::PROTOTYPE.into());
    }
    // The harness left it open over exec; no child of this process should have it.
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: the descriptor is open, and the caller takes it over once only.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
