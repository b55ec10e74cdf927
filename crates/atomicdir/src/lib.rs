//! Publish a directory atomically and durably.
