//! Syscalls that rustix has no safe wrapper for. All unsafe of this crate is here.

use std::io;
use std::os::fd::BorrowedFd;

/// Starts write-back of the whole file without waiting: `sync_file_range(2)` with
/// `SYNC_FILE_RANGE_WRITE`.
#[cfg(target_os = "linux")]
pub(crate) fn start_write_back(fd: BorrowedFd<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // An offset and a length of 0 mean everything from the start to the end of the file.
    #[expect(unsafe_code, reason = "neither rustix nor nix wraps sync_file_range")]
    // SAFETY: the call takes plain numbers and touches no memory of this process; the descriptor
    // is borrowed, so it stays open while the call runs.
    let result =
        unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_write_back(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Err(rustix::io::Errno::NOSYS.into())
}
