//! [`Limits`] of a search, the [`Order`] it goes in, and the [`Mode`] of claim it earned.

/// How far a search may go, and in which order.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Runs that may be handed out in all; `None` for no limit.
    pub runs_max: Option<u64>,
    /// The order of runs.
    pub order: Order,
    /// The share of `runs_max`, in percent, after which a breadth-first search goes over to
    /// sampling; 100 or more for never.
    pub ordered_percent: u32,
    /// Seed of the stream that draws samples.
    pub sample_seed: u64,
}

impl Default for Limits {
    /// No limit on runs, order chosen by the space, three quarters of any budget in order.
    fn default() -> Self {
        Self {
            runs_max: None,
            order: Order::Auto,
            ordered_percent: 75,
            sample_seed: 0,
        }
    }
}

impl Limits {
    /// No limit at all: every cell is visited.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// At most this many runs.
    pub fn runs(runs_max: u64, sample_seed: u64) -> Self {
        Self {
            runs_max: Some(runs_max),
            sample_seed,
            ..Self::default()
        }
    }
}

/// The order in which runs are handed out.
///
/// Every order visits the same cells when it is left to finish. They differ in what has been seen
/// when it is not, and depth-first keeps a small frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Breadth-first when a limit on runs is given and the space has more states than that,
    /// depth-first otherwise.
    ///
    /// No search makes more runs than there are states, so a depth-first search chosen here always
    /// finishes. The number of states says nothing else about the number of runs: programs read few
    /// of the choices that exist.
    Auto,
    /// The sibling found last comes first, default [`First`](crate::DefaultPick::First).
    DepthFirst,
    /// Fewest departures from the nearer anchor first, with that anchor as the default.
    ///
    /// Callers with a limit in time rather than in runs want this one.
    BreadthFirst,
}

/// What a search has earned the right to claim so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every state was covered.
    Exhausted,
    /// Some states were not covered (yet).
    Bounded {
        /// Every state with at most this many departures from one of the anchors was covered;
        /// `None` when not even both anchors were. See
        /// [`Explorer::departures_completed`](crate::Explorer::departures_completed).
        departures_completed: Option<u32>,
        /// Completed runs that were drawn by the sampler.
        sampled_runs: u64,
    },
}
