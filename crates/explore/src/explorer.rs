//! [`Explorer`]: hands out the runs of one space and counts what they cover.

use std::collections::BTreeMap;

use num_bigint::BigUint;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cell::{Cell, Departures, Pick, Run};
use crate::frontier::Frontier;
use crate::space::Space;
use crate::{Coverage, Decision, DefaultPick, ExploreError, Limits, Mode, Order, Task};

/// The search over one space.
///
/// Several workers may hold tasks at once. What is visited depends on nothing but the space, the
/// limits and the order of calls.
#[derive(Debug)]
pub struct Explorer {
    space: Space,
    limits: Limits,
    order: Order,
    frontier: Frontier,
    /// How many cells, waiting or outstanding, have this many least departures.
    open: BTreeMap<u32, u64>,
    waiting: u64,
    outstanding: u64,
    completed: u64,
    completed_sampled: u64,
    covered: BigUint,
    sampling: bool,
    stopped: bool,
    sampler: ChaCha8Rng,
}

impl Explorer {
    /// A search over all choices that exist, given as ids with their number of picks.
    ///
    /// # Errors
    /// A choice with fewer than two picks, or one that is named twice.
    pub fn new(
        arities: impl IntoIterator<Item = (u64, u32)>,
        limits: Limits,
    ) -> Result<Self, ExploreError> {
        let space = Space::new(arities)?;
        let may_not_finish = limits
            .runs_max
            .is_some_and(|max| *space.total() > BigUint::from(max));
        let order = match limits.order {
            Order::Auto if may_not_finish => Order::BreadthFirst,
            Order::Auto => Order::DepthFirst,
            chosen => chosen,
        };
        let frontier = match order {
            Order::BreadthFirst => Frontier::breadth_first(),
            Order::Auto | Order::DepthFirst => Frontier::depth_first(),
        };
        let mut explorer = Self {
            sampler: ChaCha8Rng::seed_from_u64(limits.sample_seed),
            space,
            limits,
            order,
            frontier,
            open: BTreeMap::new(),
            waiting: 0,
            outstanding: 0,
            completed: 0,
            completed_sampled: 0,
            covered: BigUint::ZERO,
            sampling: false,
            stopped: false,
        };
        explorer.push(Cell::default(), 0);
        Ok(explorer)
    }

    /// The next run to be made, or `None` when none can be handed out now.
    ///
    /// `None` is final only when [`is_finished`](Self::is_finished) says so: while tasks are
    /// outstanding, completing one may bring more.
    #[expect(
        clippy::should_implement_trait,
        reason = "`None` does not end this sequence"
    )]
    pub fn next(&mut self) -> Option<Task> {
        if self.waiting == 0 || self.is_closed() {
            return None;
        }
        let sampled = self.sampling || self.ordered_share_is_used();
        let cell = if sampled {
            // The bias of scaling a 64-bit number is far below what could be noticed.
            let position = (u128::from(self.sampler.next_u64()) * u128::from(self.waiting)) >> 64;
            self.frontier.draw(usize::try_from(position).ok()?)?
        } else {
            self.frontier.pop()?
        };
        self.waiting -= 1;
        self.outstanding += 1;
        let path = cell.path(&self.space);
        let departures = self.departures(&path);
        let default = if sampled {
            DefaultPick::Seeded(self.sampler.next_u64())
        } else {
            self.anchor(departures)
        };
        Some(Task {
            path,
            default,
            cell,
            departures,
            sampled,
        })
    }

    /// Takes a run's decisions beyond its path, in the order in which it made them.
    ///
    /// # Errors
    /// Decisions that contradict the space or the task. The run then covers nothing and its task
    /// goes back to be handed out again, so that nothing is claimed and nothing is lost.
    pub fn complete(&mut self, task: Task, made: &[Decision]) -> Result<(), ExploreError> {
        if let Err(error) = self.space.validate(&task.path, made) {
            self.abandon(task);
            return Err(error);
        }
        self.outstanding -= 1;
        self.completed += 1;
        self.completed_sampled += u64::from(task.sampled);
        self.covered += self.space.states(&task.path, made);
        self.close(task.departures.least());
        self.push_siblings(task, made);
        Ok(())
    }

    /// Takes a task back that was not run. It does not count against any limit.
    pub fn abandon(&mut self, task: Task) {
        self.outstanding -= 1;
        self.waiting += 1;
        self.frontier.put_back(task.cell, task.departures.least());
    }

    /// From now on draws tasks at random, as after the ordered share of a limit on runs: for callers
    /// whose limit is time.
    pub fn start_sampling(&mut self) {
        self.sampling = true;
    }

    /// Hands out nothing from now on, so that the search finishes with the tasks outstanding.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether no task is outstanding and none will be handed out any more.
    pub fn is_finished(&self) -> bool {
        self.outstanding == 0 && (self.waiting == 0 || self.is_closed())
    }

    /// States covered by completed runs, of all states.
    pub fn coverage(&self) -> Coverage {
        Coverage::new(self.covered.clone(), self.space.total().clone())
    }

    /// What may be claimed so far.
    pub fn mode(&self) -> Mode {
        if self.open.is_empty() {
            return Mode::Exhausted;
        }
        Mode::Bounded {
            departures_completed: self.departures_completed(),
            sampled_runs: self.completed_sampled,
        }
    }

    /// The number d such that every state with at most d departures from one of the two anchors
    /// ("all picks 0", "all picks last") is covered; `None` when not even the anchors are, or when
    /// everything is covered and there is no bound to state.
    ///
    /// It is one less than the least number of departures among the constraints of all open cells,
    /// waiting or outstanding. The argument: runs and open cells partition the space, so a state
    /// that is not covered lies in an open cell and agrees with all its constraints. Each constraint
    /// that departs from an anchor is a departure of the state from the same anchor, so the state
    /// has at least as many from either anchor as the constraints have, and the lesser of its two
    /// numbers is at least the lesser of theirs. Nothing in this depends on the order of the search,
    /// so the claim is as true after sampling or depth-first.
    pub fn departures_completed(&self) -> Option<u32> {
        let (&least, _) = self.open.first_key_value()?;
        least.checked_sub(1)
    }

    /// Runs completed.
    pub fn runs_completed(&self) -> u64 {
        self.completed
    }

    /// Tasks handed out and not yet given back.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Cells that wait to be handed out.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    fn is_closed(&self) -> bool {
        let handed_out = self.completed + self.outstanding;
        self.stopped || self.limits.runs_max.is_some_and(|max| handed_out >= max)
    }

    fn ordered_share_is_used(&self) -> bool {
        let handed_out = u128::from(self.completed + self.outstanding);
        let percent = u128::from(self.limits.ordered_percent);
        self.order == Order::BreadthFirst
            && self
                .limits
                .runs_max
                .is_some_and(|max| handed_out * 100 >= u128::from(max) * percent)
    }

    /// The nearer anchor's default, so that a breadth-first search sees both anchors in its first
    /// two runs: the root's first sibling fixes one pick to its last.
    fn anchor(&self, departures: Departures) -> DefaultPick {
        let last_is_nearer = departures.from_last < departures.from_first;
        if self.order == Order::BreadthFirst && last_is_nearer {
            DefaultPick::Last
        } else {
            DefaultPick::First
        }
    }

    fn departures(&self, path: &crate::Path) -> Departures {
        path.iter()
            .fold(Departures::default(), |departures, (id, pick)| {
                let index = self
                    .space
                    .index(id)
                    .expect("a task's path names choices of its space");
                departures.with(pick, self.space.arity(index))
            })
    }

    fn push_siblings(&mut self, task: Task, made: &[Decision]) {
        let index = |id| self.space.index(id).expect("decisions are validated first");
        let picks = made.iter().map(|decision| Pick {
            index: index(decision.id),
            pick: decision.pick,
        });
        let run = Run::new(task.cell, picks.collect());
        let mut departures = task.departures;
        for (fork, made) in (0_u32..).zip(run.made()) {
            let arity = self.space.arity(made.index);
            // Depth-first takes the last one first, so the order is turned round for low picks to
            // come before high ones. Breadth-first wants the last pick, an anchor's, early as well.
            for pick in (0..arity).rev().filter(|&pick| pick != made.pick) {
                let sibling = Cell::sibling(&run, fork, pick);
                self.push(sibling, departures.with(pick, arity).least());
            }
            departures = departures.with(made.pick, arity);
        }
    }

    fn push(&mut self, cell: Cell, departures: u32) {
        *self.open.entry(departures).or_default() += 1;
        self.waiting += 1;
        self.frontier.push(cell, departures);
    }

    /// Forgets an open cell that a run has split.
    fn close(&mut self, departures: u32) {
        if let Some(count) = self.open.get_mut(&departures) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&departures);
            }
        }
    }
}
