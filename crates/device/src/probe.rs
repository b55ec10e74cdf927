//! What this machine can run: the capability probe.
//!
//! * [`probe`] looks at everything and says for each thing what is there, or what helps.
//! * [`requirements`] looks at what one profile needs, before it is run.
//!
//! Every check tries the thing itself where that is cheap and leaves nothing behind: the FUSE
//! connection that is made is gone with the thread that made it, and no loop device is bound.

mod environment;
mod filesystems;
mod kernel;

use std::fmt;

use untorn_spec::{FsKind, Profile};

/// Something that this machine has or lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// A short name, such as `loop-devices`.
    pub name: &'static str,
    /// Who cannot do without it.
    pub need: Need,
    /// What it is used for, as half a sentence.
    pub purpose: &'static str,
    /// Whether it is there.
    pub status: Status,
}

/// Who cannot do without a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every run.
    Required,
    /// Runs on this file system.
    FileSystem(FsKind),
    /// Only what comes later: faulty block devices and other kernels.
    Optional,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => f.pad("required"),
            Self::FileSystem(kind) => f.pad(kind.name()),
            Self::Optional => f.pad("optional"),
        }
    }
}

/// Whether a capability is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is; what exactly was found, such as a version.
    Present(String),
    /// It is not.
    Missing {
        /// What exactly is missing.
        what: String,
        /// What mends it: a command where there is one.
        help: String,
    },
}

impl Status {
    fn missing(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Missing {
            what: what.into(),
            help: help.into(),
        }
    }
}

/// Why a profile cannot be run here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {help}")]
pub struct Unsupported {
    /// What is missing.
    pub reason: String,
    /// What mends it.
    pub help: String,
}

const FILE_SYSTEMS: [FsKind; 3] = [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs];

/// Looks at everything, in the order in which a person would mend it.
pub fn probe() -> Vec<Capability> {
    let mut found = required();
    for kind in FILE_SYSTEMS {
        found.extend(of_file_system(kind));
    }
    let optional = |name, purpose, status| Capability {
        name,
        need: Need::Optional,
        purpose,
        status,
    };
    found.extend([
        optional(
            "device-mapper",
            "block devices that fail on purpose",
            kernel::device_mapper(),
        ),
        optional("kvm", "other kernels at full speed", environment::kvm()),
        optional("qemu", "other kernels", environment::qemu()),
    ]);
    found
}

/// What every run needs.
fn required() -> Vec<Capability> {
    let kernel::NamespaceAndFuse {
        namespace,
        fuse,
        async_direct_io,
    } = kernel::namespace_and_fuse();
    let checks = [
        (
            "privilege",
            "mounting and binding loop devices",
            environment::privilege(),
        ),
        (
            "mount-namespaces",
            "mounts that vanish with their process",
            namespace,
        ),
        ("fuse", "serving the disk under test", fuse),
        (
            "fuse-async-direct-io",
            "keeping several disk requests under way",
            async_direct_io,
        ),
        (
            "loop-devices",
            "a block device over the served disk",
            kernel::loop_devices(),
        ),
        ("memory", "images and crash spaces", environment::memory()),
        (
            "temporary-space",
            "making images and mount points",
            environment::temporary_space(),
        ),
    ];
    checks
        .into_iter()
        .map(|(name, purpose, status)| Capability {
            name,
            need: Need::Required,
            purpose,
            status,
        })
        .collect()
}

/// What one file system needs beyond that.
fn of_file_system(kind: FsKind) -> [Capability; 2] {
    let capability = |name, purpose, status| Capability {
        name,
        need: Need::FileSystem(kind),
        purpose,
        status,
    };
    [
        capability(
            kind.name(),
            "mounting it with this kernel",
            filesystems::in_kernel(kind),
        ),
        capability(kind.mkfs(), "making its images", filesystems::mkfs(kind)),
    ]
}

/// What `profile` needs, to be asked before it is run.
///
/// # Errors
/// The first thing that is missing.
pub fn requirements(profile: &Profile) -> Result<(), Unsupported> {
    let mut found = required();
    found.extend(of_file_system(profile.fs));
    requirements_among(&found, profile)
}

/// The same judged from what [`probe`] has found.
///
/// # Errors
/// The first thing that is missing.
pub fn requirements_among(found: &[Capability], profile: &Profile) -> Result<(), Unsupported> {
    for capability in found {
        let needed = match capability.need {
            Need::Required => true,
            Need::FileSystem(kind) => kind == profile.fs,
            Need::Optional => false,
        };
        if let (true, Status::Missing { what, help }) = (needed, &capability.status) {
            return Err(Unsupported {
                reason: what.clone(),
                help: help.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(need: Need, status: Status) -> Capability {
        Capability {
            name: "thing",
            need,
            purpose: "testing",
            status,
        }
    }

    #[test]
    fn a_profile_needs_what_is_required_and_its_own_file_system() {
        let missing = || Status::missing("no thing", "get one");
        let ext4 = untorn_spec::profile("ext4").unwrap();
        let judge = |need| requirements_among(&[capability(need, missing())], ext4);
        assert_eq!(judge(Need::Optional), Ok(()));
        assert_eq!(judge(Need::FileSystem(FsKind::Xfs)), Ok(()));
        assert_eq!(
            judge(Need::Required).unwrap_err().to_string(),
            "no thing; get one"
        );
        assert!(judge(Need::FileSystem(FsKind::Ext4)).is_err());
    }

    #[test]
    fn a_probe_leaves_nothing_behind_and_names_help_for_all_that_is_missing() {
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let before = mounts();
        let found = probe();
        assert_eq!(mounts(), before);
        for capability in found {
            if let Status::Missing { what, help } = capability.status {
                assert!(!what.is_empty() && !help.is_empty(), "{}", capability.name);
            }
        }
    }
}
