//! Prints the mutating calls of any command below a directory:
//! `cargo run --example trace -- DIRECTORY COMMAND...`, run in that directory.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use untorn_process::{CommandSpec, Interrupt, TraceEvent, TracedCommand};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let usage = "usage: trace DIRECTORY COMMAND...";
    let root = PathBuf::from(words.next().ok_or(usage)?).canonicalize()?;
    let program = words.next().ok_or(usage)?;
    let mut spec = CommandSpec::new(program, words.collect::<Vec<OsString>>());
    spec.cwd = Some(root.clone());
    let start = Instant::now();
    let mut command = TracedCommand::spawn(&spec, &root, &Interrupt::install()?)?;
    loop {
        match command.next()? {
            TraceEvent::Returned(call) => match call.errno {
                None => println!("{:4} {}", call.index, call.text),
                Some(errno) => {
                    let error = std::io::Error::from_raw_os_error(errno);
                    println!("{:4} {} = {error}", call.index, call.text);
                }
            },
            TraceEvent::Warning(warning) => println!("     {warning}"),
            TraceEvent::Exited(exit) => {
                println!("{} after {:?}", exit.status, start.elapsed());
                print!("{}{}", exit.stdout, exit.stderr);
                return Ok(());
            }
        }
    }
}
