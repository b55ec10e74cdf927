//! What can be wrong with a space or with what a run reports.

/// A space that is none, or a report that contradicts the space or the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExploreError {
    /// A choice needs at least two picks; with fewer there is nothing to choose.
    #[error("choice {id} offers {arity} picks: a choice needs at least 2")]
    NoChoice {
        /// The choice.
        id: u64,
        /// The picks it was said to offer.
        arity: u32,
    },
    /// A space names a choice twice.
    #[error("choice {id} is declared twice")]
    DeclaredTwice {
        /// The choice.
        id: u64,
    },
    /// A run decided a choice that its path had fixed.
    #[error("choice {id} was decided although the path fixes it")]
    Constrained {
        /// The choice.
        id: u64,
    },
    /// A run decided a choice twice.
    #[error("choice {id} was decided twice in one run")]
    DecidedTwice {
        /// The choice.
        id: u64,
    },
    /// A run decided a choice that the space does not contain.
    #[error("choice {id} does not exist in this space")]
    Unknown {
        /// The choice.
        id: u64,
    },
    /// A run saw another number of picks than the space declares.
    #[error("choice {id} has {declared} picks, but a run reported {reported}")]
    Arity {
        /// The choice.
        id: u64,
        /// The picks the space declares.
        declared: u32,
        /// The picks the run reported.
        reported: u32,
    },
    /// A run made a pick that the choice does not offer.
    #[error("pick {pick} of choice {id} is out of range: it offers {arity}")]
    PickOutOfRange {
        /// The choice.
        id: u64,
        /// The picks it offers.
        arity: u32,
        /// The pick made.
        pick: u32,
    },
}
