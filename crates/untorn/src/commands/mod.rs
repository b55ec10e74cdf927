//! One file per subcommand.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use untorn_process::{CommandError, InterruptSignal, Interrupted, SubjectError};
use untorn_runner::{CommandFailed, error_text};
use untorn_spec::Exit;
use untorn_vm::VmError;

use crate::cli::{Cli, Command, InternalCommand};
use crate::session::Usage;

pub mod bench;
pub mod certify;
pub mod check;
pub mod doctor;
pub mod list;
pub mod matrix;
pub mod replay;
pub mod report;
pub mod vm;

/// Does what was asked for. Errors are told on stderr.
pub fn dispatch(cli: Cli) -> Exit {
    let result = match cli.command {
        Command::Doctor(args) => {
            let options = doctor::DoctorOptions {
                clean: args.clean,
                json: args.json,
            };
            doctor::doctor(&options, &mut io::stdout())
        }
        Command::List(args) => list::list(&args, &mut io::stdout()),
        Command::Run(args) => certify::run_scenarios(&args),
        Command::Certify(args) => certify::certify(&args),
        Command::Vm(args) => vm::vm(&args),
        Command::Check(args) => check::check(&args),
        Command::Replay(args) => replay::replay(&args, &mut io::stdout()),
        Command::Report(args) => report::report(&args, &mut io::stdout()),
        Command::Bench(args) => bench::bench(&args, &mut io::stdout()),
        Command::Internal(internal) => run_internal(internal),
    };
    result.unwrap_or_else(|error| {
        let exit = exit_of(&error);
        // Nobody is left to be told that stderr is closed, and nobody asks why `| head` ended it.
        if exit != Exit::Success {
            writeln!(io::stderr(), "untorn: {}", error_text(&error)).ok();
        }
        exit
    })
}

fn run_internal(command: InternalCommand) -> Result<Exit> {
    match command {
        InternalCommand::Agent => {
            untorn_runner::agent_main()?;
            Ok(Exit::Success)
        }
        InternalCommand::Init => crate::init::init().map(|()| Exit::Success),
        InternalCommand::Subject => {
            let succeeded = crate::subject::main() == ExitCode::SUCCESS;
            Ok(if succeeded {
                Exit::Success
            } else {
                Exit::Violation
            })
        }
    }
}

/// The exit code of an error, by the first cause that has one.
fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(interrupted) = interrupted(cause) {
            return match interrupted.signal {
                InterruptSignal::Interrupt => Exit::Interrupted,
                InterruptSignal::Terminate => Exit::Terminated,
            };
        }
        let is_usage =
            cause.is::<Usage>() || cause.is::<CommandFailed>() || cause.is::<CommandError>();
        if is_usage {
            return Exit::Usage;
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => return Exit::Success,
            Some(io::ErrorKind::StorageFull) => return Exit::Unsupported,
            Some(_) | None => {}
        }
        if cause.is::<untorn_device::DeviceError>() {
            return Exit::Unsupported;
        }
        if let Some(error) = cause.downcast_ref() {
            return vm::exit_of_error(error);
        }
    }
    Exit::Internal
}

fn interrupted<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a Interrupted> {
    if let Some(CommandError::Interrupted(interrupted)) = cause.downcast_ref() {
        return Some(interrupted);
    }
    if let Some(VmError::Interrupted(interrupted)) = cause.downcast_ref() {
        return Some(interrupted);
    }
    if let Some(SubjectError::Interrupted(interrupted)) = cause.downcast_ref() {
        return Some(interrupted);
    }
    cause.downcast_ref()
}
