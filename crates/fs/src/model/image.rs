//! Everything that a crash may leave, before anybody looks: [`CrashImage`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use super::base::Base;
use super::log::{Change, Durability, Step};
use super::node::{Attributes, Info, Ino, Name, Page, same_page};
use super::state::State;
use super::survivor::{Chooser, Survivor};
use super::{ModelFs, Persistence};

/// All that a power cut at one moment may leave.
///
/// A *state* gives each of the [`choices`](Self::choices) a pick. They are independent, and every
/// state is one that may be left; several states can look the same.
#[derive(Clone)]
pub struct CrashImage {
    image: Rc<Image>,
}

impl fmt::Debug for CrashImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashImage")
            .field("choices", &self.image.choices)
            .finish_non_exhaustive()
    }
}

/// One choice of a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceInfo {
    /// Its identity.
    pub id: u64,
    /// How many picks it offers.
    pub arity: u32,
    /// What it decides, in words.
    pub what: String,
}

impl CrashImage {
    pub(crate) fn new(state: &State, persistence: Persistence) -> Self {
        Self {
            image: Rc::new(Image::new(state, persistence)),
        }
    }

    /// Every choice there is, with its number of picks.
    pub fn choices(&self) -> &[ChoiceInfo] {
        &self.image.choices
    }

    /// The file system after the power is back. The chooser is asked whenever a call looks at
    /// something that has not been decided yet; what it decides stays.
    pub fn recover(&self, chooser: Rc<dyn Chooser>) -> ModelFs {
        let infos = Rc::clone(&self.image.infos);
        let survivor = Survivor::new(Rc::clone(&self.image), chooser);
        ModelFs::of(State::after_crash(
            Base::Survivor(Rc::new(survivor)),
            infos,
            self.image.umask,
        ))
    }
}

/// What decides whether a step was kept.
#[derive(Debug)]
pub(crate) enum Gate {
    /// It is durable.
    Kept,
    /// The power was cut at one place of an order of steps.
    Cut { slot: usize, position: u32 },
    /// It was kept or not, whatever happened to others.
    Single { slot: usize },
    /// It was kept or not, if the earlier steps on the same names were.
    After { slot: usize, earlier: Vec<usize> },
}

/// What a thing was when it was last made durable.
#[derive(Debug)]
pub(crate) enum Start<T> {
    Base,
    Known(T),
}

/// The versions of one thing.
#[derive(Debug)]
pub(crate) struct Chain<T> {
    pub(crate) start: Start<T>,
    /// The later ones, each with its step.
    pub(crate) later: Vec<(usize, T)>,
    /// The choice among all of them, where it does not follow from the steps.
    pub(crate) slot: Option<usize>,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self {
            start: Start::Base,
            later: Vec::new(),
            slot: None,
        }
    }
}

impl<T> Chain<T> {
    fn push(&mut self, index: usize, step: &Step, value: T) {
        if step.durability == Durability::Durable {
            self.start = Start::Known(value);
            self.later.clear();
        } else {
            self.later.push((index, value));
        }
    }

    /// Leaves out what looks like an earlier version, and makes the rest a choice of its own.
    fn choose_freely(
        &mut self,
        base: Option<&T>,
        same: impl Fn(&T, &T) -> bool,
        add_choice: impl FnOnce(u32) -> usize,
    ) {
        let start = match &self.start {
            Start::Known(value) => Some(value),
            Start::Base => base,
        };
        let mut distinct: Vec<(usize, T)> = Vec::new();
        for (step, value) in std::mem::take(&mut self.later) {
            let is_known = start.is_some_and(|start| same(start, &value))
                || distinct.iter().any(|(_, known)| same(known, &value));
            if !is_known {
                distinct.push((step, value));
            }
        }
        self.later = distinct;
        if !self.later.is_empty() {
            let arity = u32::try_from(self.later.len() + 1).expect("fewer than 2^32 versions");
            self.slot = Some(add_choice(arity));
        }
    }
}

/// The versions of everything that can change in an inode.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) entries: BTreeMap<Name, Chain<Option<Ino>>>,
    pub(crate) attributes: Chain<Rc<Attributes>>,
    pub(crate) size: Chain<u64>,
    pub(crate) pages: BTreeMap<u64, Chain<Page>>,
}

/// A crash image's content.
pub(crate) struct Image {
    pub(crate) base: Base,
    pub(crate) infos: Rc<Vec<Info>>,
    pub(crate) umask: u32,
    pub(crate) histories: Vec<History>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) choices: Vec<ChoiceInfo>,
}

impl Image {
    fn new(state: &State, persistence: Persistence) -> Self {
        let mut image = Self {
            base: state.base.clone(),
            infos: Rc::clone(&state.infos),
            umask: state.umask,
            histories: Vec::new(),
            gates: Vec::new(),
            choices: Vec::new(),
        };
        image
            .histories
            .resize_with(state.infos.len(), History::default);
        let steps = state.log.steps();
        match persistence {
            Persistence::Posix => image.add_name_gates(steps),
            Persistence::Ordered => image.add_cut(steps, Change::is_metadata),
            Persistence::Strict => image.add_cut(steps, |_| true),
        }
        for (index, step) in steps.iter().enumerate() {
            image.add_versions(index, step);
        }
        match persistence {
            Persistence::Posix => {
                image.choose_attributes_freely();
                image.choose_data_freely();
            }
            Persistence::Ordered => image.choose_data_freely(),
            Persistence::Strict => {}
        }
        image
    }

    pub(crate) fn history(&self, ino: Ino) -> Option<&History> {
        self.histories.get(ino as usize)
    }

    fn add_choice(choices: &mut Vec<ChoiceInfo>, base: &Base, arity: u32, what: String) -> usize {
        let slot = choices.len();
        // The choices of an earlier crash, which may still be open, have other identities.
        let id = (base.crashes() << 32) + slot as u64;
        choices.push(ChoiceInfo { id, arity, what });
        slot
    }

    /// One gate for each change of names, behind the earlier ones on the same names.
    fn add_name_gates(&mut self, steps: &[Step]) {
        let mut last: HashMap<(Ino, &Name), usize> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            let gate = match (&step.change, step.durability) {
                (Change::Names(names), Durability::Pending) => {
                    let mut earlier = Vec::new();
                    for (dir, name, _) in names {
                        earlier.extend(last.insert((*dir, name), index));
                    }
                    // A step that touches a name twice does not wait for itself.
                    earlier.retain(|&step| step != index);
                    earlier.dedup();
                    let what = describe_names(names);
                    let slot = Self::add_choice(&mut self.choices, &self.base, 2, what);
                    Gate::After { slot, earlier }
                }
                // The others are not asked: they are durable or have a choice of their own.
                _ => Gate::Kept,
            };
            self.gates.push(gate);
        }
    }

    /// One choice for a place in the order of those steps that count; what comes before a durable
    /// one is durable.
    fn add_cut(&mut self, steps: &[Step], counts: impl Fn(&Change) -> bool) {
        let is_last = |step: &Step| counts(&step.change) && step.durability == Durability::Durable;
        let first = steps.iter().rposition(is_last).map_or(0, |last| last + 1);
        let is_open = |step: &&Step| counts(&step.change) && step.durability == Durability::Pending;
        let open = steps[first..].iter().filter(is_open).count();
        let open = u32::try_from(open).expect("fewer than 2^32 steps");
        let slot = (open > 0).then(|| {
            let what = "where the power was cut in the order of steps".to_owned();
            Self::add_choice(&mut self.choices, &self.base, open + 1, what)
        });
        let mut position = 0;
        for (index, step) in steps.iter().enumerate() {
            let gate = match (slot, step.durability) {
                _ if !counts(&step.change) => Gate::Kept,
                (_, Durability::Lost) => {
                    let what = "data that could not be written back".to_owned();
                    let slot = Self::add_choice(&mut self.choices, &self.base, 2, what);
                    Gate::Single { slot }
                }
                (Some(slot), Durability::Pending) if index >= first => {
                    position += 1;
                    Gate::Cut {
                        slot,
                        position: position - 1,
                    }
                }
                _ => Gate::Kept,
            };
            self.gates.push(gate);
        }
    }

    fn add_versions(&mut self, index: usize, step: &Step) {
        let histories = &mut self.histories;
        match &step.change {
            Change::Names(names) => {
                for (dir, name, target) in names {
                    let entries = &mut histories[*dir as usize].entries;
                    let chain = match entries.get_mut(name) {
                        Some(chain) => chain,
                        None => entries.entry(Rc::clone(name)).or_default(),
                    };
                    chain.push(index, step, *target);
                }
            }
            Change::Attributes(ino, attributes) => {
                let chain = &mut histories[*ino as usize].attributes;
                chain.push(index, step, Rc::clone(attributes));
            }
            Change::Size(ino, size) => histories[*ino as usize].size.push(index, step, *size),
            Change::Page(ino, number, page) => {
                let pages = &mut histories[*ino as usize].pages;
                let chain = pages.entry(*number).or_default();
                chain.push(index, step, Rc::clone(page));
            }
        }
    }

    fn choose_attributes_freely(&mut self) {
        let (choices, base) = (&mut self.choices, &self.base);
        for (ino, history) in (0..).zip(&mut self.histories) {
            let known = base.settled().map(|settled| {
                let attributes = settled.attributes(ino);
                attributes.unwrap_or_else(|| Rc::clone(&self.infos[ino as usize].created))
            });
            history.attributes.choose_freely(
                known.as_ref(),
                |left, right| left == right,
                |arity| {
                    Self::add_choice(choices, base, arity, format!("attributes of inode {ino}"))
                },
            );
        }
    }

    fn choose_data_freely(&mut self) {
        let (choices, base) = (&mut self.choices, &self.base);
        for (ino, history) in (0..).zip(&mut self.histories) {
            let known = base.settled().map(|settled| settled.size(ino));
            history.size.choose_freely(
                known.as_ref(),
                |left, right| left == right,
                |arity| Self::add_choice(choices, base, arity, format!("size of inode {ino}")),
            );
            for (&number, chain) in &mut history.pages {
                let known = base.settled().map(|settled| {
                    let page = settled.page(ino, number);
                    page.unwrap_or_default()
                });
                chain.choose_freely(
                    known.as_ref(),
                    |left, right| same_page(left, right),
                    |arity| {
                        let what = format!("page {number} of inode {ino}");
                        Self::add_choice(choices, base, arity, what)
                    },
                );
            }
        }
    }
}

fn describe_names(names: &[(Ino, Name, Option<Ino>)]) -> String {
    let part = |(_, name, target): &(Ino, Name, Option<Ino>)| {
        let name = name.to_string_lossy();
        match target {
            Some(ino) => format!("{name} is inode {ino}"),
            None => format!("{name} is gone"),
        }
    };
    let parts: Vec<_> = names.iter().map(part).collect();
    parts.join(" and ")
}
