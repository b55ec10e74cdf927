//! Search over choices made lazily, with the coverage computed and never estimated.
//!
//! A *choice* has an identity and a number of possible picks. The program under search asks for
//! choices in whatever order it likes and usually for very few of all that exist. Each run is given
//! a [`Path`] of picks that are fixed beforehand and a [`DefaultPick`] for the rest, and reports
//! the [`Decision`]s it made. From those the [`Explorer`] derives the runs still to be made.
//!
//! # Why the runs partition the space
//! A state gives every choice a pick. The *cell* of a path is the set of states that agree with it.
//! A run with path C that decides d1, d2, .. dn judges the cell of C + d1 + .. + dn, whatever the
//! undecided choices would have been. Its siblings are, for each i and each pick v other than the
//! one made, C + d1 + .. + d(i-1) + (di = v). A state of the cell of C either agrees with all n
//! decisions or has a first one that it departs from, with exactly one pick there; so the run's own
//! cell and the siblings' cells partition the cell of C. This used nothing about which picks the
//! run made, nor about the order in which another run would ask. Different tasks may therefore
//! carry different defaults, and a program that asks in another order next time costs some extra
//! runs and no soundness.
//!
//! # Where to look
//! [`Explorer`] hands out [`Task`]s under [`Limits`]; [`Coverage`] says how much was judged, and
//! [`Mode`] what may be claimed. Nothing here knows about disks, threads or clocks: callers that
//! share an explorer wrap it in a mutex, and callers with a time limit call
//! [`Explorer::start_sampling`] and [`Explorer::stop`].

mod cell;
mod choice;
mod coverage;
mod error;
mod explorer;
mod frontier;
mod limits;
mod path;
mod space;
mod task;

pub use choice::{Decision, DefaultPick, ParseDefaultPickError};
pub use coverage::Coverage;
pub use error::ExploreError;
pub use explorer::Explorer;
pub use limits::{Limits, Mode, Order};
pub use path::{ParsePathError, Path};
pub use task::Task;
