//! What a crash has left, decided when somebody looks: [`Survivor`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::rc::Rc;

use super::image::{Chain, Gate, Image, Start};
use super::node::{Attributes, Ino, Name, Page, bytes_before_end, clipped};

/// Makes the choices of a crash. Each is asked for at most once, when it is first needed.
pub trait Chooser {
    /// A number below `arity`, which is at least 2. 0 keeps the least, `arity - 1` the most.
    fn choose(&self, id: u64, arity: u32) -> u32;
}

impl<T: Fn(u64, u32) -> u32> Chooser for T {
    fn choose(&self, id: u64, arity: u32) -> u32 {
        self(id, arity)
    }
}

/// The durable state after a crash. What it answers never changes; it only becomes decided.
pub(crate) struct Survivor {
    image: Rc<Image>,
    chooser: Rc<dyn Chooser>,
    picks: RefCell<Vec<Option<u32>>>,
}

impl Survivor {
    pub(crate) fn new(image: Rc<Image>, chooser: Rc<dyn Chooser>) -> Self {
        let picks = RefCell::new(vec![None; image.choices.len()]);
        Self {
            image,
            chooser,
            picks,
        }
    }

    pub(crate) fn crashes(&self) -> u64 {
        self.image.base.crashes() + 1
    }

    fn pick(&self, slot: usize) -> u32 {
        if let Some(pick) = self.picks.borrow()[slot] {
            return pick;
        }
        let choice = &self.image.choices[slot];
        let pick = self.chooser.choose(choice.id, choice.arity);
        assert!(
            pick < choice.arity,
            "pick {pick} of choice {} is out of range: it offers {}",
            choice.id,
            choice.arity
        );
        self.picks.borrow_mut()[slot] = Some(pick);
        pick
    }

    /// Whether a step was kept. What it depends on is asked first, so that a step that cannot
    /// have been kept is no choice.
    fn kept(&self, step: usize) -> bool {
        match &self.image.gates[step] {
            Gate::Kept => true,
            Gate::Cut { slot, position } => self.pick(*slot) > *position,
            Gate::Single { slot } => self.pick(*slot) == 1,
            Gate::After { slot, earlier } => {
                earlier.iter().all(|&step| self.kept(step)) && self.pick(*slot) == 1
            }
        }
    }

    /// The version that was kept; `None` for that of the base.
    fn resolve<'a, T>(&self, chain: &'a Chain<T>) -> Option<&'a T> {
        let start = match &chain.start {
            Start::Base => None,
            Start::Known(value) => Some(value),
        };
        if let Some(slot) = chain.slot {
            let later = (self.pick(slot) as usize).checked_sub(1);
            return later.map_or(start, |later| Some(&chain.later[later].1));
        }
        let mut kept = start;
        for (step, value) in &chain.later {
            if self.kept(*step) {
                kept = Some(value);
            } else if !matches!(self.image.gates[*step], Gate::Single { .. }) {
                // Later steps on the same thing were not kept either.
                break;
            }
        }
        kept
    }

    pub(crate) fn entry(&self, dir: Ino, name: &OsStr) -> Option<Ino> {
        let chain = self.image.history(dir).and_then(|h| h.entries.get(name));
        match chain.and_then(|chain| self.resolve(chain)) {
            Some(target) => *target,
            None => self.image.base.entry(dir, name),
        }
    }

    pub(crate) fn add_names(&self, dir: Ino, names: &mut BTreeSet<Name>) {
        self.image.base.add_names(dir, names);
        let history = self.image.history(dir).into_iter();
        names.extend(history.flat_map(|history| history.entries.keys().cloned()));
    }

    pub(crate) fn attributes(&self, ino: Ino) -> Option<Rc<Attributes>> {
        let chain = self.image.history(ino).map(|history| &history.attributes);
        match chain.and_then(|chain| self.resolve(chain)) {
            Some(attributes) => Some(Rc::clone(attributes)),
            None => self.image.base.attributes(ino),
        }
    }

    pub(crate) fn size(&self, ino: Ino) -> u64 {
        let chain = self.image.history(ino).map(|history| &history.size);
        match chain.and_then(|chain| self.resolve(chain)) {
            Some(size) => *size,
            None => self.image.base.size(ino),
        }
    }

    pub(crate) fn page(&self, ino: Ino, index: u64) -> Option<Page> {
        let bytes = bytes_before_end(index, self.size(ino));
        if bytes == 0 {
            return None;
        }
        let chain = self.image.history(ino).and_then(|h| h.pages.get(&index));
        let page = match chain.and_then(|chain| self.resolve(chain)) {
            Some(page) => Rc::clone(page),
            None => self.image.base.page(ino, index)?,
        };
        Some(clipped(page, bytes))
    }

    pub(crate) fn add_pages(&self, ino: Ino, pages: &mut BTreeSet<u64>) {
        self.image.base.add_pages(ino, pages);
        let history = self.image.history(ino).into_iter();
        pages.extend(history.flat_map(|history| history.pages.keys()));
    }
}
