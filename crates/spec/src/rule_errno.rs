//! The errors that a rule can inject: [`FaultErrno`].

use std::fmt;

/// An error number with its name. The numbers are those of Linux on all its common machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FaultErrno(usize);

/// Names and numbers (errno(3)), those that calls on files can give.
const ERRNOS: [(&str, i32); 27] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("EXDEV", 18),
    ("ENODEV", 19),
    ("ENOTDIR", 20),
    ("EISDIR", 21),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("EMLINK", 31),
    ("ENAMETOOLONG", 36),
    ("ENOSYS", 38),
    ("ENOTEMPTY", 39),
    ("ELOOP", 40),
    ("EOPNOTSUPP", 95),
    ("EDQUOT", 122),
];

impl FaultErrno {
    /// A failed disk.
    pub const EIO: Self = Self(3);
    /// A full disk.
    pub const ENOSPC: Self = Self(18);
    /// A signal.
    pub const EINTR: Self = Self(2);

    /// Every error a rule can name.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ERRNOS.len()).map(Self)
    }

    /// The error of that name, in upper or lower case.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|errno| errno.name().eq_ignore_ascii_case(name))
    }

    /// The error of that number.
    pub fn numbered(number: i32) -> Option<Self> {
        Self::all().find(|errno| errno.number() == number)
    }

    /// The name, such as `EIO`.
    pub const fn name(self) -> &'static str {
        ERRNOS[self.0].0
    }

    /// The number.
    pub const fn number(self) -> i32 {
        ERRNOS[self.0].1
    }
}

impl fmt::Display for FaultErrno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::FaultErrno;

    #[test]
    fn constants_and_names_agree() {
        assert_eq!(FaultErrno::EIO.name(), "EIO");
        assert_eq!(FaultErrno::ENOSPC.name(), "ENOSPC");
        assert_eq!(FaultErrno::EINTR.name(), "EINTR");
        for errno in FaultErrno::all() {
            assert_eq!(FaultErrno::named(errno.name()), Some(errno));
            assert_eq!(FaultErrno::numbered(errno.number()), Some(errno));
        }
        assert_eq!(FaultErrno::named("eio"), Some(FaultErrno::EIO));
        assert_eq!(FaultErrno::named("EWHAT"), None);
    }
}
