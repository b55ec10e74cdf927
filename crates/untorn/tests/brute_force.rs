//! The explorer agrees with the kernel: in small crash spaces every state is mounted by itself, and
//! comes to what the exploration says of it.
#![allow(
    clippy::print_stderr,
    reason = "a test says how much it compared, and that it was not run"
)]

use untorn_process::Interrupt;
use untorn_runner::{
    AgentCommand, BruteForceLimits, CasePlan, ComparedSpace, Settings, WriterCommand,
    compare_with_brute_force, plan,
};
use untorn_spec::{Disturbance, profile, scenario};

/// Spaces of up to 12 units, as many as a few seconds allow.
const LIMITS: BruteForceLimits = BruteForceLimits {
    units_max: 12,
    states_per_space_max: 4096,
    states_max: 600,
};

fn case(profile_name: &str, scenario_name: &str) -> CasePlan {
    let scenario = scenario(scenario_name).expect("built in").clone();
    let writer = WriterCommand {
        program: env!("CARGO_BIN_EXE_untorn").into(),
        args: vec!["internal".into(), "subject".into()],
    };
    let profile = profile(profile_name).expect("built in");
    let mut plans = plan(&[(scenario, None)], &[profile], &writer);
    plans.remove(0).cases.remove(0)
}

/// Compares one case, undisturbed and with a neighbour's commit at each of these boundaries.
fn compared(profile: &str, scenario: &str, boundaries: &[u32]) -> Vec<ComparedSpace> {
    let disturbances: Vec<Disturbance> = boundaries
        .iter()
        .map(|boundary| Disturbance::NeighborCommit(*boundary))
        .collect();
    let settings = Settings {
        agent: AgentCommand {
            program: env!("CARGO_BIN_EXE_untorn").into(),
            args: vec!["internal".to_owned(), "agent".to_owned()],
        },
        workers: 1,
        seed: 1,
        deferred_replies: true,
    };
    let scratch = untorn_device::leftovers::scratch_dir().expect("a scratch directory");
    let interrupt = Interrupt::detached().expect("a descriptor");
    let found = compare_with_brute_force(
        &case(profile, scenario),
        &disturbances,
        &LIMITS,
        &settings,
        scratch.path(),
        &interrupt,
    );
    let found = found.unwrap_or_else(|error| panic!("{scenario} on {profile}: {error:#}"));
    for space in &found {
        eprintln!("{profile} {scenario} {space}");
    }
    found
}

fn agree(profile: &str) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: comparing with brute force on {profile} needs root");
        return;
    }
    // The commit comes where it does most: between the correct writer's syncs and its exchange, and
    // after the exchange that nothing has synced.
    let mut all = compared(profile, "two-files", &[14]);
    // More files have more in flight at a time: on small sectors too much.
    if profile != "xfs-512" {
        all.extend(compared(profile, "nested", &[6, 14, 28]));
    }
    let wrong = compared(profile, "control-exchange-without-fsync", &[10]);
    let kinds = wrong.iter().flat_map(|space| &space.brute_force);
    let empty = kinds.filter(|outcome| outcome.outcome == "empty").count();
    assert!(
        empty > 0,
        "brute force has not seen the mistake: {wrong:#?}"
    );
    all.extend(wrong);

    for space in &all {
        assert!(space.agrees(), "{profile}: {space:#?}");
    }
    let larger = all.iter().filter(|space| space.units > 4).count();
    let states: u64 = all.iter().map(|space| space.states).sum();
    let recoveries: u64 = all.iter().map(|space| space.recoveries).sum();
    eprintln!(
        "{profile}: {} spaces agree, {larger} of them of more than 4 units; {states} states, \
         {recoveries} recoveries of the explorer",
        all.len()
    );
    assert!(larger >= 2, "only {larger} spaces of more than 4 units");
}

#[test]
fn brute_force_agrees_on_ext4() {
    agree("ext4");
}

#[test]
fn brute_force_agrees_on_xfs() {
    agree("xfs");
}

#[test]
fn brute_force_agrees_on_xfs_with_small_sectors() {
    agree("xfs-512");
}

#[test]
fn brute_force_agrees_on_btrfs() {
    agree("btrfs");
}
