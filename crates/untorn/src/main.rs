//! `untorn`: does a directory update survive a power cut?

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = untorn::cli::Cli::parse();
    let exit = untorn::commands::dispatch(cli);
    ExitCode::from(exit.code())
}
