//! Runs of the explorer per second against the model, on one core, the whole check included.
//!
//! `cargo run --release -p untorn-harness --example bench`

#![expect(
    clippy::print_stdout,
    reason = "what it measures is what was asked for"
)]

use std::ffi::OsStr;
use std::time::Instant;

use atomicdir::{Durability, Options, Tree, publish};
use untorn_harness::{Check, Node, TreeSnapshot};

const TARGET: &str = "live";

fn trees(files: u32) -> (TreeSnapshot, TreeSnapshot, Tree) {
    let name = |file: u32| format!("file{file:03}").into_bytes();
    let snapshot = |generation: &str| {
        let file = |file| {
            (
                name(file),
                Node::file(0o644, format!("{generation} {file}")),
            )
        };
        TreeSnapshot::new(Node::directory(0o755, (0..files).map(file)))
    };
    let mut tree = Tree::new(0o755);
    for file in 0..files {
        tree.file(format!("file{file:03}"), 0o644, format!("new {file}"));
    }
    (snapshot("old"), snapshot("new"), tree)
}

fn main() {
    println!("files  durability  converges  recoveries  seconds  per second  holds");
    for files in [2, 10] {
        for (word, durability) in [("fsync", Durability::Fsync), ("syncfs", Durability::Syncfs)] {
            for converges in [false, true] {
                let (old, new, tree) = trees(files);
                let check = Check::new(TARGET, &old, &new).converges(converges);
                let check = if files > 2 { check.actions(&[]) } else { check };
                let started = Instant::now();
                let report = check.run(|fs, parent| {
                    let options = Options {
                        durability,
                        token: Some(7),
                        ..Options::default()
                    };
                    publish(fs, parent, OsStr::new(TARGET), &tree, &options)
                });
                let seconds = started.elapsed().as_secs_f64();
                let runs = report.runs();
                #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
                let rate = runs as f64 / seconds;
                println!(
                    "{files:>5}  {word:<10}  {converges:<9}  {runs:>10}  {seconds:>7.2}  \
                     {rate:>10.0}  {}",
                    report.holds()
                );
            }
        }
    }
}
