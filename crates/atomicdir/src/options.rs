//! How to publish: [`Options`].

use std::io;

/// How the staged tree is made durable before the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Starts write-back on all files, then fsyncs each file, then each directory from the
    /// leaves up. Waits for nothing but this tree, and hears of every write error.
    #[default]
    Fsync,
    /// One `syncfs`. Faster for many files, but it also waits for what others have written to the
    /// same file system. Before Linux 5.8 it does not report write errors (syncfs(2)), so prefer
    /// [`Durability::Fsync`] there.
    Syncfs,
}

/// How to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How the staged tree is made durable.
    pub durability: Durability,
    /// Whether leftovers of dead writers are removed first.
    pub sweep: bool,
    /// The random part of the staging directory's name; `None` asks the kernel. Two writers that
    /// use the same token do not disturb each other: the second takes another name.
    pub token: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            sweep: true,
            token: None,
        }
    }
}

impl Options {
    /// The token for the given attempt to find a free name, from 0.
    pub(crate) fn token_for(&self, attempt: u64) -> io::Result<u64> {
        match self.token {
            Some(token) => Ok(token.wrapping_add(attempt)),
            None => random_token(),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn random_token() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // At most 256 bytes are always given in full once the pool is ready (getrandom(2)).
    let given = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if given == bytes.len() {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn random_token() -> io::Result<u64> {
    Err(rustix::io::Errno::NOSYS.into())
}
