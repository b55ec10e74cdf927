//! The command, and the built-in writers, right and wrong ones.
