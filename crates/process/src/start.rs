//! Starting a child, and why that failed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::child_setup::{ChildSetup, SetupStep};
use crate::sys;

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error("`{}` was not found {where_looked}", program.display())]
    NotFound {
        /// The program.
        program: OsString,
        /// Where it was looked for, such as `in PATH (/usr/bin:/bin)`.
        where_looked: String,
    },
    /// The program is there and cannot be executed.
    #[error("`{}` cannot be executed: {source}", program.display())]
    NotExecutable {
        /// The program.
        program: OsString,
        /// What the kernel says.
        source: io::Error,
    },
    /// The child was forked and could not be made ready.
    #[error("the child for `{}` could not {step}: {source}", program.display())]
    Setup {
        /// The program.
        program: OsString,
        /// What it could not do.
        step: SetupStep,
        /// What the kernel says.
        source: io::Error,
    },
    /// There is no child, for want of a process, a descriptor or memory.
    #[error("no child could be made for `{}`: {source}", program.display())]
    Spawn {
        /// The program.
        program: OsString,
        /// What the kernel says.
        source: io::Error,
    },
}

/// The pipe on which a child names the step that failed.
pub(crate) fn failed_step_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// Forks, sets up and executes.
pub(crate) fn start(
    mut command: Command,
    setup: ChildSetup,
    failed_step: &OwnedFd,
) -> Result<Child, StartError> {
    sys::set_up_child(&mut command, setup);
    command.spawn().map_err(|source| {
        let program = command.get_program().to_owned();
        let mut byte = [0];
        let step = match rustix::io::read(failed_step, &mut byte) {
            Ok(1) => SetupStep::from_byte(byte[0]),
            _ => None,
        };
        if let Some(step) = step {
            return StartError::Setup {
                program,
                step,
                source,
            };
        }
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => StartError::NotFound {
                where_looked: where_looked(&program, &command),
                program,
            },
            Some(Errno::ACCESS | Errno::NOEXEC) => StartError::NotExecutable { program, source },
            _ => StartError::Spawn { program, source },
        }
    })
}

/// Where exec looked for the program, by the environment that the child was given.
fn where_looked(program: &OsStr, command: &Command) -> String {
    if program.as_encoded_bytes().contains(&b'/') {
        return if Path::new(program).exists() {
            "with its interpreter or loader: the file itself is there".to_owned()
        } else {
            "at that path".to_owned()
        };
    }
    let of_command = command.get_envs().find(|(name, _)| *name == "PATH");
    let path = match of_command {
        Some((_, path)) => path.map(OsStr::to_owned),
        None => std::env::var_os("PATH"),
    };
    match path {
        Some(path) => format!("in PATH ({})", path.display()),
        None => "in the default path, as PATH is not set".to_owned(),
    }
}
