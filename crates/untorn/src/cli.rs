//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use untorn_vm::AcceleratorChoice;

/// Does a directory update survive a power cut? Every crash state is covered, not a sample.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 all as expected; 1 violation; 2 usage or scenario invalid; \
                  3 unsupported here; 4 control not caught; 5 inconclusive; 70 internal error; \
                  130 stopped by Ctrl-C; 143 stopped by SIGTERM."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what this machine can run, and the command that mends what is missing
    Doctor(DoctorArgs),
    /// List scenarios, writers, suites and file-system profiles
    List(ListArgs),
    /// Run scenarios, built-in ones by name or others by file
    Run(RunArgs),
    /// Run a suite and write a certificate for this kernel
    Certify(CertifyArgs),
    /// Run any of these commands under another kernel, in a guest
    Vm(VmArgs),
    /// Check any program: is the directory entirely old or entirely new after a power cut?
    Check(CheckArgs),
    /// See one crash state again, exactly
    Replay(ReplayArgs),
    /// Make any report again from a run folder
    Report(ReportArgs),
    /// Measure recoveries per second
    #[command(hide = true)]
    Bench(BenchArgs),
    /// What the harness starts itself
    #[command(subcommand, hide = true)]
    Internal(InternalCommand),
}

/// Programs that the harness starts itself.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum InternalCommand {
    /// Mounts the disk under test and looks at it
    Agent,
    /// Is a built-in writer
    Subject,
    /// Is the first process of a guest
    Init,
}

/// `untorn doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Remove what a killed run left behind
    #[arg(long)]
    pub clean: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `untorn list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What every run takes.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// File-system profiles, separated by commas, or `all`; see `untorn list`
    #[arg(long, value_name = "LIST")]
    pub fs: Option<String>,
    /// Disks that are explored at a time; one per processor when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: Option<u16>,
    /// Seed that everything random derives from; drawn and printed when left out
    #[arg(long)]
    pub seed: Option<u64>,
    /// Folder in which the run's folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print the certificate as JSON instead of the table
    #[arg(long)]
    pub json: bool,
    /// Colours in the table
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// `untorn run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Names of built-in scenarios, or files
    #[arg(required = true)]
    pub scenarios: Vec<String>,
    /// How it is run.
    #[command(flatten)]
    pub options: RunOptions,
}

/// How guests are run.
#[derive(Debug, Args)]
pub struct GuestArgs {
    /// The static build of this program that runs in the guest; found by itself where
    /// `scripts/build-static` has made it
    #[arg(long, value_name = "FILE")]
    pub init: Option<PathBuf>,
    /// Memory of a guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1536, value_parser = clap::value_parser!(u32).range(32..))]
    pub memory: u32,
    /// Seconds of silence after which a guest is taken for dead; a living one says a word every
    /// second
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..))]
    pub silence: u64,
    /// What runs guests: kvm, tcg (emulation), or auto: kvm where it works
    #[arg(long, value_name = "WHICH")]
    pub accel: Option<AcceleratorChoice>,
}

/// `untorn vm`.
#[derive(Debug, Args)]
pub struct VmArgs {
    /// A name such as debian:6.12 (see `scripts/fetch-kernel`), a folder with a kernel and its
    /// modules, an image, IMAGE,MODULES, or .deb files separated by commas
    #[arg(long, value_name = "KERNEL")]
    pub kernel: String,
    /// How the guest is run.
    #[command(flatten)]
    pub guest: GuestArgs,
    /// The command, without the program's name: `run two-files --fs ext4`
    #[arg(last = true, required = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

/// `untorn certify`.
#[derive(Debug, Args)]
pub struct CertifyArgs {
    /// The suite; see `untorn list`
    #[arg(long, default_value = "standard")]
    pub suite: String,
    /// A kernel to certify in a guest instead of this one, as `untorn vm` takes it; may be given
    /// several times. `--workers` is then the number of guests at a time.
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// How guests are run.
    #[command(flatten)]
    pub guest: GuestArgs,
    /// How it is run. `certificate.json` is written into `--out`, beside the run's folder.
    #[command(flatten)]
    pub options: RunOptions,
}

/// `untorn check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The tree before; it is copied, never changed
    #[arg(long, value_name = "DIR")]
    pub old: PathBuf,
    /// Seconds that the command may run
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Most recoveries for one crash space
    #[arg(long, value_name = "N", default_value_t = untorn_runner::RECOVERIES_PER_SPACE_MAX)]
    pub recoveries_max: u64,
    /// After which calls of the command another file is synced, so that the journal commits what
    /// was not synced: one recording per call, at most 64, or the last one only
    #[arg(long, value_name = "WHICH", default_value = "each")]
    pub boundaries: CommandBoundaries,
    /// How it is run.
    #[command(flatten)]
    pub options: RunOptions,
    /// The command; `{dir}` stands for the directory that it updates. Its exit status 0 says that
    /// the update is durable.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Calls of a command after which it is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommandBoundaries {
    /// Each, before the first one too
    Each,
    /// The last: its exit
    Last,
    /// None
    None,
}

impl From<CommandBoundaries> for untorn_spec::Boundaries {
    fn from(which: CommandBoundaries) -> Self {
        match which {
            CommandBoundaries::Each => Self::Each,
            CommandBoundaries::Last => Self::Last,
            CommandBoundaries::None => Self::None,
        }
    }
}

/// `untorn replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// A bundle's folder, or a token
    #[arg(value_name = "BUNDLE|TOKEN")]
    pub what: String,
    /// Folder with runs, where a token's bundle is looked for
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Start a shell in the recovered file system to look around
    #[arg(long)]
    pub shell: bool,
    /// Copy the recovered tree to this folder, which must not exist
    #[arg(long, value_name = "DIR")]
    pub extract: Option<PathBuf>,
}

/// `untorn report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A run: a unique beginning of its name, its folder, or `latest`
    #[arg(default_value = "latest")]
    pub run: String,
    /// Folder with runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: ReportFormat,
}

/// Reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// The table for the terminal
    Table,
    /// Every violation as a story
    Stories,
    /// certificate.json
    Json,
    /// junit.xml
    Junit,
    /// report.html
    Html,
}

/// `untorn bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// File-system profiles
    #[arg(long, value_name = "LIST", default_value = "ext4,xfs,btrfs")]
    pub fs: String,
    /// Scenario whose exploration is measured
    #[arg(long, default_value = "two-files")]
    pub scenario: String,
    /// Numbers of workers, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,2"
    )]
    pub workers: Vec<u16>,
    /// Measure without deferred replies too
    #[arg(long)]
    pub without_deferred: bool,
}
