//! The command, and the built-in writers, right and wrong ones.

pub mod subject;
pub mod writers;
