//! `untorn certify --kernel`: a suite under several kernels, spread over guests.
//!
//! A guest is given one file system at a time. What it says goes, as events, into the run folder of
//! its kernel here. A guest that dies makes the case that was under way inconclusive, and another
//! guest goes on behind it.

mod campaign;
mod inside;
mod target;

use std::fs;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use untorn_process::Interrupt;
use untorn_report::{Matrix, matrix_table, write_matrix_html};
use untorn_runner::{ProfilePlan, RunFolder, shell_word};
use untorn_spec::Exit;
use untorn_vm::{Kernel, find_static_program, qemu_version, write_initramfs};

use self::campaign::Campaign;
use self::target::{State, Target};
use super::vm::options;
use crate::cli::CertifyArgs;
use crate::session::{new_run_id, shown, typed_program};

/// Certifies every kernel that was given.
///
/// # Errors
/// Bad input, a kernel that cannot be booted at all, or the run was interrupted.
pub fn certify_kernels(args: &CertifyArgs, suite: &str, plan: &[ProfilePlan]) -> Result<Exit> {
    let interrupt = Interrupt::install().context("cannot handle signals")?;
    let begun = Instant::now();
    let program = find_static_program(args.guest.init.as_deref())?;
    let qemu = qemu_version()?;
    let scratch =
        untorn_device::leftovers::scratch_dir().context("cannot make a scratch directory")?;
    let seed = args.options.seed.unwrap_or_else(rand::random);
    let run_id = new_run_id();
    let mut err = io::stderr();
    writeln!(
        err,
        "seed {seed}, results in {}",
        args.options.out.display()
    )?;

    let mut targets = Vec::new();
    for (number, given) in args.kernel.iter().enumerate() {
        let kernel = Kernel::find(given)?;
        let initramfs = scratch.path().join(format!("initramfs-{number}"));
        write_initramfs(&kernel, &program, &[], &initramfs)
            .with_context(|| format!("{given} cannot be used"))?;
        let runs = args.options.out.join(&kernel.name);
        targets.push(Target {
            typed: format!("{} vm --kernel {} --", typed_program(), shell_word(given)),
            folder: RunFolder::create(&runs, &run_id, &typed_program())?,
            runs,
            initramfs,
            state: Mutex::new(State::new(plan)),
            kernel,
        });
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let campaign = Campaign {
        suite,
        seed,
        run_id: &run_id,
        qemu: &qemu,
        plan,
        options: options(&args.guest),
        targets: &targets,
        interrupt: &interrupt,
        failed: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 0..args.options.workers.map_or(processors, usize::from) {
            scope.spawn(|| campaign.work());
        }
    });
    let failed = lock(&campaign.failed).take();
    let parts = targets
        .iter()
        .map(|target| target.finish(&run_id))
        .collect::<Result<Vec<_>>>()?;
    if let Some(error) = failed {
        return Err(error.context(format!(
            "the run ended early; what was found is in {}",
            args.options.out.display()
        )));
    }
    let profiles: Vec<&str> = plan.iter().map(|profile| profile.profile.name).collect();
    let matrix = Matrix::new(&profiles, &parts, begun.elapsed().as_secs_f64());
    publish(args, &matrix)?;
    Ok(matrix.verdict.into())
}

/// Writes the matrix beside the kernels' folders, and prints it.
fn publish(args: &CertifyArgs, matrix: &Matrix) -> Result<()> {
    let write = |name: &str, content: &[u8]| {
        let path = args.options.out.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    let mut json = serde_json::to_vec_pretty(matrix)?;
    json.push(b'\n');
    let json_path = write("matrix.json", &json)?;
    let mut html = Vec::new();
    write_matrix_html(&mut html, matrix)?;
    let html_path = write("matrix.html", &html)?;
    let mut out = io::stdout();
    if args.options.json {
        out.write_all(&json)?;
    } else {
        writeln!(out, "{}", matrix_table(matrix))?;
        writeln!(out, "verdict  {}", matrix.verdict)?;
        writeln!(out, "matrix   {}, {}", shown(&json_path), shown(&html_path))?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
