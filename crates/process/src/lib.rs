//! Start, hold, kill and reap subjects.
