//! The disk under test: one content behind a FUSE file, recorded or undecided.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{ReplyData, ReplyEmpty, ReplyWrite};
use untorn_block::{BlockLog, BlockOp, CrashDisk, Image, Mark, UnitDecision};

use crate::pace::Pace;

/// What the disk does with requests.
enum Mode {
    /// Reads and writes the image.
    Plain,
    /// The same, and notes everything in a block log.
    Recording(BlockLog),
    /// Decides what it holds as it is read.
    Crash(Box<CrashDisk>),
}

struct State {
    image: Image,
    mode: Mode,
    flush_hold: Duration,
    flushes: u32,
    deferred: VecDeque<DeferredRead>,
    defers: bool,
    /// How often answering a read of a unit was found not to be what the kernel waited for.
    useless_before: Arc<HashMap<u64, u32>>,
    /// Units of this run that were decided although the kernel waited for others.
    useless: Vec<u64>,
    stopping: bool,
}

struct DeferredRead {
    offset: u64,
    bytes: usize,
    reply: ReplyData,
}

/// A disk shared by the FUSE server that answers requests, the releaser that answers deferred
/// ones, and the harness that records on it and explores it.
pub(crate) struct Disk {
    state: Mutex<State>,
    /// Wakes the releaser when a read was deferred.
    deferred: Condvar,
    /// Counts requests and answers: it stands still exactly when the disk is quiet.
    activity: AtomicU64,
    pace: Pace,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").finish_non_exhaustive()
    }
}

impl Disk {
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            state: Mutex::new(State {
                image: Image::zeroed(bytes),
                mode: Mode::Plain,
                flush_hold: Duration::ZERO,
                flushes: 0,
                deferred: VecDeque::new(),
                defers: true,
                useless_before: Arc::default(),
                useless: Vec::new(),
                stopping: false,
            }),
            deferred: Condvar::new(),
            activity: AtomicU64::new(0),
            pace: Pace::new(),
        }
    }

    /// A panic while the lock is held leaves no broken state that matters: the run is lost anyway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lock().image.bytes()
    }

    pub(crate) fn set_deferred(&self, defers: bool) {
        self.lock().defers = defers;
    }

    pub(crate) fn load(&self, image: Image) {
        let mut state = self.lock();
        state.image = image;
        state.mode = Mode::Plain;
    }

    pub(crate) fn image(&self) -> Image {
        self.lock().image.clone()
    }

    pub(crate) fn start_recording(&self, flush_hold: Duration) -> Image {
        let mut state = self.lock();
        state.mode = Mode::Recording(BlockLog::default());
        state.flush_hold = flush_hold;
        state.flushes = 0;
        state.image.clone()
    }

    pub(crate) fn mark(&self, mark: Mark) {
        if let Mode::Recording(log) = &mut self.lock().mode {
            log.mark(mark);
        }
    }

    pub(crate) fn stop_recording(&self) -> BlockLog {
        match std::mem::replace(&mut self.lock().mode, Mode::Plain) {
            Mode::Recording(log) => log,
            Mode::Plain | Mode::Crash(_) => BlockLog::default(),
        }
    }

    pub(crate) fn start_crash(&self, crash: CrashDisk, useless_before: Arc<HashMap<u64, u32>>) {
        let mut state = self.lock();
        state.mode = Mode::Crash(Box::new(crash));
        state.useless_before = useless_before;
        state.useless.clear();
    }

    /// Answers what still waits with anything: the kernel had not seen it before the verdict, so
    /// the verdict cannot depend on it.
    pub(crate) fn seal(&self) -> Sealed {
        let mut state = self.lock();
        let Mode::Crash(crash) = &mut state.mode else {
            return Sealed::default();
        };
        let decisions = crash.seal();
        while let Some(read) = state.deferred.pop_front() {
            self.answer(&mut state, read);
        }
        Sealed {
            decisions,
            useless: std::mem::take(&mut state.useless),
        }
    }

    fn answer(&self, state: &mut State, read: DeferredRead) {
        let mut buffer = vec![0; read.bytes];
        match &mut state.mode {
            Mode::Crash(crash) => crash.read(read.offset, &mut buffer),
            Mode::Plain | Mode::Recording(_) => state.image.read(read.offset, &mut buffer),
        }
        self.activity.fetch_add(1, Ordering::SeqCst);
        read.reply.data(&buffer);
        self.answered();
    }

    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.deferred.notify_all();
    }

    /// How long the kernel takes at the moment from an answer to its next request.
    pub(crate) fn pace(&self) -> Duration {
        self.pace.estimate()
    }

    fn arrived(&self) {
        self.activity.fetch_add(1, Ordering::SeqCst);
        self.pace.arrived();
    }

    fn answered(&self) {
        self.pace.answered();
    }

    // ---- the server's side ----

    pub(crate) fn serve_read(&self, offset: u64, bytes: usize, reply: ReplyData) {
        self.arrived();
        let mut buffer = vec![0; bytes];
        let mut state = self.lock();
        let defers = state.defers;
        match &mut state.mode {
            Mode::Plain | Mode::Recording(_) => state.image.read(offset, &mut buffer),
            Mode::Crash(crash) => {
                if defers && crash.is_undecided(offset, bytes) {
                    state.deferred.push_back(DeferredRead {
                        offset,
                        bytes,
                        reply,
                    });
                    drop(state);
                    self.deferred.notify_one();
                    return;
                }
                crash.read(offset, &mut buffer);
            }
        }
        drop(state);
        reply.data(&buffer);
        self.answered();
    }

    pub(crate) fn serve_write(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        self.arrived();
        let mut state = self.lock();
        let State { image, mode, .. } = &mut *state;
        let written = u32::try_from(data.len()).unwrap_or(u32::MAX);
        match mode {
            Mode::Plain => image.write(offset, data),
            Mode::Recording(log) => {
                image.write(offset, data);
                log.ops.push(BlockOp::Write {
                    offset,
                    data: data.into(),
                });
                // Answered before the lock is given up, so that the order of the log is the order
                // of completion: a flush issued later stands later, and no sooner.
                reply.written(written);
                return;
            }
            Mode::Crash(crash) => crash.write(offset, data),
        }
        drop(state);
        reply.written(written);
    }

    pub(crate) fn serve_discard(&self, offset: u64, bytes: u64, reply: ReplyEmpty) {
        self.arrived();
        let mut state = self.lock();
        let State { image, mode, .. } = &mut *state;
        match mode {
            Mode::Plain => image.zero(offset, bytes),
            Mode::Recording(log) => {
                image.zero(offset, bytes);
                log.ops.push(BlockOp::Discard { offset, bytes });
            }
            Mode::Crash(crash) => {
                let mut done = 0;
                while done < bytes {
                    let length = (bytes - done).min(ZEROS.len() as u64);
                    let zeros = &ZEROS[..usize::try_from(length).unwrap_or(ZEROS.len())];
                    crash.write(offset + done, zeros);
                    done += length;
                }
            }
        }
        reply.ok();
    }

    pub(crate) fn serve_flush(self: &Arc<Self>, reply: ReplyEmpty) {
        self.arrived();
        let mut state = self.lock();
        let number = state.flushes;
        let hold = state.flush_hold;
        let Mode::Recording(log) = &mut state.mode else {
            drop(state);
            reply.ok();
            return;
        };
        log.ops.push(BlockOp::Flush { number });
        state.flushes += 1;
        drop(state);
        if hold.is_zero() {
            self.complete_flush(number, reply);
            return;
        }
        let disk = self.clone();
        std::thread::spawn(move || {
            std::thread::sleep(hold);
            disk.complete_flush(number, reply);
        });
    }

    fn complete_flush(&self, number: u32, reply: ReplyEmpty) {
        let mut state = self.lock();
        if let Mode::Recording(log) = &mut state.mode {
            log.ops.push(BlockOp::FlushDone { number });
        }
        // Answered before the lock is given up, like a write.
        reply.ok();
    }

    // ---- the releaser's side ----

    /// Waits until reads wait, and counts them; `None` when the disk is being taken down.
    pub(crate) fn wait_for_deferred(&self) -> Option<usize> {
        let mut state = self.lock();
        while state.deferred.is_empty() && !state.stopping {
            state = self
                .deferred
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        (!state.stopping).then_some(state.deferred.len())
    }

    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::SeqCst)
    }

    /// Answers one read, and so decides its units, if nothing has happened since `activity` was
    /// seen. Of several the one that was least often useless before, and then the oldest.
    pub(crate) fn release_one(&self, activity: u64) -> Option<Released> {
        let mut state = self.lock();
        if self.activity() != activity {
            return None;
        }
        let State {
            mode,
            deferred,
            useless_before,
            ..
        } = &mut *state;
        let Mode::Crash(crash) = mode else {
            return None;
        };
        let units = |read: &DeferredRead| crash.undecided(read.offset, read.bytes);
        let useless = |read: &DeferredRead| {
            let times = units(read)
                .into_iter()
                .map(|unit| useless_before.get(&unit).copied());
            times.map(Option::unwrap_or_default).min().unwrap_or(0)
        };
        let chosen = (0..deferred.len()).min_by_key(|place| useless(&deferred[*place]))?;
        let released = Released {
            units: units(&deferred[chosen]),
            only: deferred.len() == 1,
        };
        let read = deferred.remove(chosen)?;
        self.answer(&mut state, read);
        Some(released)
    }

    /// The kernel did not go on after this answer: it waits for something else.
    pub(crate) fn note_useless(&self, released: &Released) {
        if !released.only {
            self.lock().useless.extend(&released.units);
        }
    }
}

/// A deferred read that was answered.
#[derive(Debug)]
pub(crate) struct Released {
    units: Vec<u64>,
    /// There was no other to choose.
    only: bool,
}

/// What a run decided.
#[derive(Debug, Default)]
pub struct Sealed {
    /// The choices made, in order.
    pub decisions: Vec<UnitDecision>,
    /// Units among them that were decided although the kernel waited for others.
    pub useless: Vec<u64>,
}

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
