//! The command, and the built-in writers, right and wrong ones.
//!
//! * [`cli`]: what can be said on the command line.
//! * [`commands`]: one file per subcommand; [`session`] is what those that run something share.
//! * [`init`]: the first process of a guest.
//! * [`subject`] and [`writers`]: the child that is a built-in writer.

pub mod cli;
pub mod commands;
pub mod init;
pub mod session;
pub mod subject;
pub mod writers;
