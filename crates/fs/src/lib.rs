//! The syscall boundary: a file system trait, the real one, and the wrapper that traces it.
