//! ptrace(2), waitpid(2) and seccomp(2), as far as no crate has them for threads and for every
//! signal.
#![expect(
    unsafe_code,
    reason = "ptrace and seccomp take their arguments as untyped words"
)]

use std::io;

use nix::libc;
use nix::unistd::Pid;

/// What a tracee does when it goes on, until its next stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Runs.
    Continue,
    /// Runs to the end of the call that it is in.
    ToCallEnd,
    /// Stays stopped, by a stop signal, until SIGCONT.
    Listen,
}

/// Stop of a tracee for the end of a call: SIGTRAP with the mark of `PTRACE_O_TRACESYSGOOD`.
pub(crate) const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// The first stop of a new tracee, and stops by stop signals.
pub(crate) const EVENT_STOP: i32 = 128;

fn request(request: u32, thread: Pid, address: usize, data: usize) -> io::Result<usize> {
    // SAFETY: none of the requests made in this module writes to this process's memory, except
    // those whose callers pass a pointer to a buffer that lives, with its size.
    let result =
        unsafe { libc::syscall(libc::SYS_ptrace, request, thread.as_raw(), address, data) };
    usize::try_from(result).map_err(|_negative| io::Error::last_os_error())
}

/// Becomes the tracer of a process, without stopping it. Its children will be traced too, and all
/// are killed when the calling thread ends. See ptrace(2), `PTRACE_SEIZE`.
pub(crate) fn seize(process: Pid) -> io::Result<()> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACESECCOMP;
    let options = usize::try_from(options).expect("the options are positive");
    request(0x4206, process, 0, options)?;
    Ok(())
}

/// Lets a stopped tracee go on, with a signal or without (0). See ptrace(2), `PTRACE_CONT`,
/// `PTRACE_SYSCALL` and `PTRACE_LISTEN`.
pub(crate) fn resume(thread: Pid, how: Resume, signal: i32) -> io::Result<()> {
    let code = match how {
        Resume::Continue => 7,
        Resume::ToCallEnd => 24,
        Resume::Listen => 0x4208,
    };
    let signal = usize::try_from(signal).expect("signals are positive");
    request(code, thread, 0, signal)?;
    Ok(())
}

/// What the event of a stop is about, such as the thread's former number at exec. See ptrace(2),
/// `PTRACE_GETEVENTMSG`.
pub(crate) fn event_message(thread: Pid) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    request(0x4201, thread, 0, (&raw mut message).expose_provenance())?;
    Ok(message)
}

/// A call, as the kernel tells it at a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallInfo {
    /// The filter stopped at it.
    Begun {
        architecture: u32,
        instruction: u64,
        number: u64,
        arguments: [u64; 6],
        data: u16,
    },
    /// It is over, with a result or a negative error.
    Ended { result: i64 },
}

/// The call at which a tracee is stopped. See ptrace(2), `PTRACE_GET_SYSCALL_INFO`.
pub(crate) fn call_info(thread: Pid) -> io::Result<CallInfo> {
    // `struct ptrace_syscall_info`: kind and architecture, instruction and stack pointers, then
    // number, arguments and filter's data, or result.
    let mut words = [0_u64; 11];
    let pointer = (&raw mut words).expose_provenance();
    request(0x420e, thread, size_of_val(&words), pointer)?;
    let first = words[0].to_ne_bytes();
    let [kind, _, _, _, architecture @ ..] = first;
    let [_, instruction, _, number, arguments @ .., data] = words;
    let data = data.to_ne_bytes();
    match kind {
        2 => Ok(CallInfo::Ended {
            result: number.cast_signed(),
        }),
        3 => Ok(CallInfo::Begun {
            architecture: u32::from_ne_bytes(architecture),
            instruction,
            number,
            arguments,
            data: u16::from_ne_bytes([data[0], data[1]]),
        }),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// What waitpid(2) tells of a tracee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It has ended; the raw status.
    Ended(i32),
    /// It is stopped by a signal, and by an event when that is not 0.
    Stopped { signal: i32, event: i32 },
}

/// Waits for the next stop or end among the tracees (and children) of the calling thread; those
/// of other threads are left to them. None when there are no more.
pub(crate) fn wait_any() -> io::Result<Option<(Pid, Wait)>> {
    wait_for(-1)
}

/// Waits for the next stop or end of one of them.
pub(crate) fn wait_one(process: Pid) -> io::Result<Option<(Pid, Wait)>> {
    wait_for(process.as_raw())
}

fn wait_for(which: i32) -> io::Result<Option<(Pid, Wait)>> {
    loop {
        let mut status = 0;
        let options = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: the status is a local variable.
        let pid = unsafe { libc::waitpid(which, &raw mut status, options) };
        if pid < 0 {
            match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINTR) => continue,
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
                error => return Err(error),
            }
        }
        let pid = Pid::from_raw(pid);
        return Ok(Some(if libc::WIFSTOPPED(status) {
            let signal = libc::WSTOPSIG(status);
            let event = status >> 16;
            (pid, Wait::Stopped { signal, event })
        } else {
            (pid, Wait::Ended(status))
        }));
    }
}

/// Waits like [`wait_one`], but takes nothing: true when the process is stopped, false when it has
/// ended and still waits to be reaped, or is gone. See waitid(2), `WNOWAIT`.
pub(crate) fn stops_before_it_ends(process: Pid) -> io::Result<bool> {
    loop {
        // SAFETY: all zero is a valid `siginfo_t`.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let id = libc::id_t::try_from(process.as_raw()).expect("process numbers are positive");
        let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
        // SAFETY: the structure is a local variable.
        let result =
            unsafe { libc::waitid(libc::P_PID, id, &raw mut info, options | libc::__WNOTHREAD) };
        if result == 0 {
            return Ok(matches!(
                info.si_code,
                libc::CLD_TRAPPED | libc::CLD_STOPPED
            ));
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINTR) => {}
            error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(false),
            error => return Err(error),
        }
    }
}

/// Puts the filter on the calling process, for good. Async-signal-safe. See seccomp(2).
///
/// Only without the right to do so otherwise does the process give up gaining rights by exec:
/// a command that runs as root behaves as if nobody watched.
pub(crate) fn install_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    match set_filter(filter) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            rustix::thread::set_no_new_privs(true)?;
            set_filter(filter)
        }
        result => result,
    }
}

fn set_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_long| io::ErrorKind::InvalidInput)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let (mode, unused) = (libc::SECCOMP_MODE_FILTER, 0_usize);
    // SAFETY: the kernel copies the filter, which lives for the length of the call.
    let result = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            mode,
            &raw const program,
            unused,
            unused,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        let requests = [
            (libc::PTRACE_CONT, 7),
            (libc::PTRACE_SYSCALL, 24),
            (libc::PTRACE_SEIZE, 0x4206),
            (libc::PTRACE_LISTEN, 0x4208),
            (libc::PTRACE_GETEVENTMSG, 0x4201),
        ];
        for (theirs, ours) in requests {
            assert_eq!(theirs.cast_signed(), ours);
        }
    }
}
