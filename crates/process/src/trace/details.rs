//! What a call asks for besides its paths, in the words that built-in writers have for it.

use nix::libc;

use super::call::{MUTATING_IOCTLS, MUTATING_OPEN};
use super::path::lower;

/// The flags that decide what an open may change, and the mode where one is used.
pub(crate) fn open(flags: i32, mode_bits: u64) -> String {
    let names = [
        (libc::O_CREAT, "CREAT"),
        (libc::O_EXCL, "EXCL"),
        (libc::O_TRUNC, "TRUNC"),
        (libc::O_APPEND, "APPEND"),
        (libc::O_TMPFILE, "TMPFILE"),
    ];
    let set: Vec<&str> = names
        .into_iter()
        .filter(|(flag, _)| flags & flag == *flag)
        .map(|(_, name)| name)
        .collect();
    let mut detail = set.join("|");
    if flags & (MUTATING_OPEN & !libc::O_TRUNC) != 0 {
        detail.push(' ');
        detail.push_str(&mode(mode_bits));
    }
    detail
}

pub(crate) fn mode(bits: u64) -> String {
    format!("{:04o}", bits & 0o7777)
}

/// Owner and group as chown(1) writes them; a side that stays as it is is left empty.
pub(crate) fn owner(user: u64, group: u64) -> String {
    let side = |id: u64| match lower(id) {
        -1 => String::new(),
        id => id.cast_unsigned().to_string(),
    };
    format!("{}:{}", side(user), side(group))
}

/// The words that `untorn_fs::RenameMode` has for the flags.
pub(crate) fn rename(flags: u64) -> String {
    if flags == 0 {
        return "REPLACE".to_owned();
    }
    let names = [(1, "NOREPLACE"), (2, "EXCHANGE"), (4, "WHITEOUT")];
    let set: Vec<&str> = names
        .into_iter()
        .filter(|(flag, _)| flags & flag != 0)
        .map(|(_, name)| name)
        .collect();
    set.join("|")
}

pub(crate) fn sync_file_range(flags: u64) -> String {
    let names = [(1, "WAIT_BEFORE"), (2, "WRITE"), (4, "WAIT_AFTER")];
    let set: Vec<&str> = names
        .into_iter()
        .filter(|(flag, _)| flags & flag != 0)
        .map(|(_, name)| name)
        .collect();
    set.join("|")
}

/// The name of a request that changes a file.
pub(crate) fn ioctl(request: u64) -> Option<String> {
    let request = lower(request).cast_unsigned();
    let found = MUTATING_IOCTLS
        .iter()
        .find(|(number, _)| *number == request);
    found.map(|(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::{ioctl, mode, open, owner, rename, sync_file_range};

    #[test]
    fn details_are_worded_as_those_of_built_in_writers() {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        assert_eq!(open(flags, 0o644), "CREAT|EXCL 0644");
        assert_eq!(open(libc::O_WRONLY | libc::O_TRUNC, 0), "TRUNC");
        assert_eq!(open(libc::O_RDWR | libc::O_TMPFILE, 0o600), "TMPFILE 0600");
        assert_eq!(owner(0, u64::from(u32::MAX)), "0:");
        assert_eq!(rename(2), "EXCHANGE");
        assert_eq!(rename(0), "REPLACE");
        assert_eq!(sync_file_range(2), "WRITE");
        assert_eq!(mode(0o100_755), "0755");
        assert_eq!(ioctl(0x4004_9409), Some("FICLONE".to_owned()));
        assert_eq!(ioctl(0x5401), None);
    }
}
