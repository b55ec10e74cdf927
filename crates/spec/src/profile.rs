//! File-system profiles: what is made, how it is mounted, and what is expected of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Expected;

/// The kernel's name of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FsKind {
    /// ext4.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FsKind {
    /// The name that mount(2) takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The program that makes such a file system.
    pub const fn mkfs(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
        }
    }

    /// The Debian package that holds [`FsKind::mkfs`].
    pub const fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
        }
    }
}

impl fmt::Display for FsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One way of making and mounting a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The name used on the command line and in tokens.
    pub name: &'static str,
    /// Which file system.
    pub fs: FsKind,
    /// Bytes that the disk writes all or nothing: its sector, 512 or 4096.
    pub unit: u32,
    /// Size of the image in MiB.
    pub image_mib: u32,
    /// Largest request in KiB that the disk takes at once. Small ones keep apart what a recovery
    /// needs and what it reads ahead; a file system that always needs a whole node gains from
    /// taking it whole.
    pub request_kib: u32,
    /// Arguments of mkfs. Identifiers and hash seeds are fixed, so that the image is the same
    /// every time.
    pub mkfs: &'static [&'static str],
    /// Data of mount(2), `""` for none.
    pub mount_options: &'static str,
    /// What a correct writer may expect of it.
    pub expected: Expected,
    /// One sentence for `untorn list`: what is special, and why that is expected.
    pub about: &'static str,
}

const EXT4_UUID: &str = "-Uda7ada7a-0000-4000-8000-000000000001";
const EXT4_EXTENDED: &str = "hash_seed=da7ada7a-0000-4000-8000-000000000002,lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0";

/// A lean ext4: three times the rate of the defaults, which take 1 KiB blocks on small images. 256
/// inodes hold the old and the new tree of 60 files; 128 would not.
const EXT4: &[&str] = &[
    "-q",
    "-F",
    "-b4096",
    "-Jsize=4",
    "-N256",
    "-m0",
    EXT4_UUID,
    "-E",
    EXT4_EXTENDED,
];

const BASE: Profile = Profile {
    name: "ext4",
    fs: FsKind::Ext4,
    unit: 4096,
    image_mib: 16,
    request_kib: 1024,
    mkfs: EXT4,
    mount_options: "",
    expected: Expected::Holds,
    about: "ordered data, journal of 4 MiB, 4096-byte blocks and sectors",
};

/// Every built-in profile, in the order in which they are listed and run.
pub const PROFILES: &[Profile] = &[
    BASE,
    Profile {
        name: "ext4-data-journal",
        mount_options: "data=journal",
        about: "data goes through the journal too",
        ..BASE
    },
    Profile {
        name: "ext4-data-writeback",
        mount_options: "data=writeback",
        about: "data is not ordered before metadata; fsync still orders it",
        ..BASE
    },
    Profile {
        name: "ext4-fast-commit",
        mkfs: &[
            "-q",
            "-F",
            "-b4096",
            "-Jsize=4,fast_commit_size=1024",
            "-Ofast_commit",
            "-N256",
            "-m0",
            EXT4_UUID,
            "-E",
            EXT4_EXTENDED,
        ],
        about: "fsync writes small logical records where it can",
        ..BASE
    },
    Profile {
        name: "ext4-nodelalloc",
        mount_options: "nodelalloc",
        about: "blocks are allocated at write, so ordered mode covers new files",
        ..BASE
    },
    Profile {
        name: "ext4-noauto-da-alloc",
        mount_options: "noauto_da_alloc",
        about: "no write-out at rename over an existing file",
        ..BASE
    },
    Profile {
        name: "ext4-no-journal",
        mkfs: &[
            "-q",
            "-F",
            "-b4096",
            "-O^has_journal",
            "-N256",
            "-m0",
            EXT4_UUID,
            "-E",
            "hash_seed=da7ada7a-0000-4000-8000-000000000002,lazy_itable_init=0,root_owner=0:0",
        ],
        expected: Expected::Violated,
        about: "no journal: several blocks change one by one, so nothing larger than one is atomic",
        ..BASE
    },
    Profile {
        name: "ext4-nobarrier",
        mount_options: "nobarrier",
        expected: Expected::Violated,
        about: "no flush is ever sent, so nothing that was acknowledged is durable",
        ..BASE
    },
    Profile {
        name: "xfs",
        fs: FsKind::Xfs,
        image_mib: 320,
        mkfs: &[
            "-q",
            "-f",
            "-ssize=4096",
            "-muuid=da7ada7a-0000-4000-8000-000000000003",
        ],
        about: "4096-byte sectors",
        ..BASE
    },
    Profile {
        name: "xfs-512",
        fs: FsKind::Xfs,
        unit: 512,
        // A log write of many sectors is read in pieces, so that only those are decided that the
        // search for its head waits for.
        request_kib: 4,
        image_mib: 320,
        mkfs: &[
            "-q",
            "-f",
            "-ssize=512",
            "-muuid=da7ada7a-0000-4000-8000-000000000003",
        ],
        about: "512-byte sectors, so that a log write is torn finely",
        ..BASE
    },
    Profile {
        name: "btrfs",
        fs: FsKind::Btrfs,
        // From Linux 7.2 on, one of 512 MiB is so short of room for metadata that nearly every call
        // commits a transaction and writes everybody's data, which hides missing syncs.
        image_mib: 1024,
        mkfs: &[
            "-q",
            "-f",
            "-msingle",
            "-dsingle",
            "-Uda7ada7a-0000-4000-8000-000000000004",
        ],
        about: "copy on write, one copy of metadata",
        ..BASE
    },
];

/// The profile of that name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}
