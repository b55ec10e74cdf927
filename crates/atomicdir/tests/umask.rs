//! Modes are exact whatever the umask. The umask belongs to the whole process, so this is the only
//! test in its program.

mod common;

use common::{Scratch, varied};

#[test]
fn modes_are_exact_under_umask_077() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    Scratch::with(&varied()).publish_cleanly(&varied());
}
