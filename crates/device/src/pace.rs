//! How fast the kernel goes on after an answer: what a fair time to wait is, on this machine and
//! under its load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A longer silence says that the kernel had nothing more to ask for, not that it is slow.
const SILENCE: Duration = Duration::from_millis(4);

/// A running estimate of the time from an answer to the next request. It follows a slowdown fast
/// and forgets it slowly, since waiting too long costs little.
#[derive(Debug)]
pub(crate) struct Pace {
    start: Instant,
    /// Nanoseconds since `start` of the last answer, 0 once a request has followed it.
    answered: AtomicU64,
    estimate_ns: AtomicU64,
}

impl Pace {
    pub(crate) fn new() -> Self {
        let (answered, estimate_ns) = (AtomicU64::new(0), AtomicU64::new(50_000));
        Self {
            start: Instant::now(),
            answered,
            estimate_ns,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn answered(&self) {
        self.answered.store(self.now(), Ordering::Relaxed);
    }

    pub(crate) fn arrived(&self) {
        let answered = self.answered.swap(0, Ordering::Relaxed);
        if answered != 0 {
            self.learn(Duration::from_nanos(self.now().saturating_sub(answered)));
        }
    }

    fn learn(&self, took: Duration) {
        if took > SILENCE {
            return;
        }
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let known = self.estimate_ns.load(Ordering::Relaxed);
        // Lost updates between threads only cost a sample.
        let next = if took > known {
            known + (took - known) / 4
        } else {
            known - (known - took) / 32
        };
        self.estimate_ns.store(next, Ordering::Relaxed);
    }

    pub(crate) fn estimate(&self) -> Duration {
        Duration::from_nanos(self.estimate_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_slowdown_fast_and_forgets_it_slowly() {
        let pace = Pace::new();
        for _ in 0..200 {
            pace.learn(Duration::from_micros(20));
        }
        assert!(pace.estimate() < Duration::from_micros(25));
        for _ in 0..8 {
            pace.learn(Duration::from_millis(1));
        }
        assert!(pace.estimate() > Duration::from_micros(800));
        for _ in 0..8 {
            pace.learn(Duration::from_micros(20));
        }
        assert!(pace.estimate() > Duration::from_micros(600));
    }

    #[test]
    fn a_silence_is_no_sample() {
        let pace = Pace::new();
        let before = pace.estimate();
        pace.learn(Duration::from_secs(1));
        assert_eq!(pace.estimate(), before);
    }
}
