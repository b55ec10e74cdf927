//! Waiting for one of several descriptors until a deadline.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of the descriptors can be read from, is closed at its other end, or has an
/// error. Tells of each whether it is ready; all `false` is the deadline.
pub(crate) fn ready<const N: usize>(
    descriptors: [Option<BorrowedFd<'_>>; N],
    deadline: Instant,
) -> rustix::io::Result<[bool; N]> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .flatten()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
        .collect();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut polled, Some(&timespec(left))) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    let mut results = polled.iter().map(|one| !one.revents().is_empty());
    Ok(descriptors.map(|descriptor| descriptor.is_some() && results.next() == Some(true)))
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        // A wait of more than a lifetime may as well be shorter.
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
