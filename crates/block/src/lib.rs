//! Block logs, epochs, crash spaces, and the lazy crash disk as a data structure.
//!
//! * [`Image`]: a disk's content.
//! * [`BlockLog`]: what a disk received, with [`Mark`]s; [`read_log`] and [`write_log`] keep it in
//!   the format of dm-log-writes.
//! * [`epochs`] cuts a log at completed flushes into [`CrashSpace`]s.
//! * [`CrashDisk`]: one run over a crash space, decided as it is read.
//!
//! Nothing here opens a device or knows a file system.

mod disk;
mod image;
mod log;
mod log_writes;
mod space;

pub use disk::{CrashDisk, DefaultVersion, UnitDecision};
pub use image::{Image, PAGE};
pub use log::{BlockLog, BlockOp, Mark};
pub use log_writes::{LogError, read_log, write_log};
pub use space::{CrashSpace, Epoch, Version, epochs};
