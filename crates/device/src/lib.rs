//! The kernel's side: a FUSE-served disk under a loop device, mkfs, mount, capability probe.
