//! What differs from one processor to the next: numbers of calls, and registers.
//!
//! To support another one, write a file with the same items as `x86_64.rs` and name it here.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

#[cfg(not(target_arch = "x86_64"))]
mod other;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use other::*;
