//! The history of steps, and which of them are durable: [`Log`].

use std::collections::BTreeSet;
use std::rc::Rc;

use super::node::{Attributes, Ino, Name, Page};

/// What one step changes. Values are absolute, so a step means the same whatever came before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// Names and what they lead to from now on; all of them change together.
    Names(Vec<(Ino, Name, Option<Ino>)>),
    /// A record of attributes.
    Attributes(Ino, Rc<Attributes>),
    /// A size.
    Size(Ino, u64),
    /// A page.
    Page(Ino, u64, Page),
}

impl Change {
    /// Whether it is of metadata, as the ordered model counts it: sizes go with the data.
    pub(crate) fn is_metadata(&self) -> bool {
        match self {
            Self::Names(_) | Self::Attributes(..) => true,
            Self::Size(..) | Self::Page(..) => false,
        }
    }

    fn is_data_of(&self, file: Ino) -> bool {
        match self {
            Self::Size(ino, _) | Self::Page(ino, ..) => *ino == file,
            Self::Names(_) | Self::Attributes(..) => false,
        }
    }

    fn is_attributes_of(&self, file: Ino) -> bool {
        matches!(self, Self::Attributes(ino, _) if *ino == file)
    }
}

/// How a step stands with a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Durability {
    /// A crash may lose it, and a sync makes it durable.
    Pending,
    /// A crash keeps it.
    Durable,
    /// Writing it back has failed: a crash may lose it for ever.
    Lost,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) change: Change,
    pub(crate) durability: Durability,
}

/// All steps since the file system was last settled.
#[derive(Debug, Default)]
pub(crate) struct Log {
    steps: Vec<Step>,
    /// The pending ones, in order.
    pending: Vec<usize>,
}

impl Log {
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn record(&mut self, change: Change) {
        self.pending.push(self.steps.len());
        self.steps.push(Step {
            change,
            durability: Durability::Pending,
        });
    }

    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.pending.clear();
    }

    /// What fsync and fdatasync of a file promise.
    pub(crate) fn sync_file(&mut self, file: Ino, with_attributes: bool) {
        self.resolve(Durability::Durable, |change| {
            change.is_data_of(file) || (with_attributes && change.is_attributes_of(file))
        });
    }

    /// What fsync of a directory promises. The earlier changes of every name that a durable step
    /// touches become durable with it, because they come before it in the order of that name.
    pub(crate) fn sync_directory(&mut self, directory: Ino) {
        let mut touched: BTreeSet<(Ino, Name)> = BTreeSet::new();
        let mut durable = BTreeSet::new();
        for &index in self.pending.iter().rev() {
            let Change::Names(names) = &self.steps[index].change else {
                continue;
            };
            let promised = names.iter().any(|(dir, name, _)| {
                *dir == directory || touched.contains(&(*dir, Rc::clone(name)))
            });
            if promised {
                let others = names.iter().filter(|(dir, ..)| *dir != directory);
                touched.extend(others.map(|(dir, name, _)| (*dir, Rc::clone(name))));
                durable.insert(index);
            }
        }
        for &index in &durable {
            self.steps[index].durability = Durability::Durable;
        }
        self.pending.retain(|index| !durable.contains(index));
        self.resolve(Durability::Durable, |change| {
            change.is_attributes_of(directory)
        });
    }

    /// What syncfs promises.
    pub(crate) fn sync_all(&mut self) {
        self.resolve(Durability::Durable, |_| true);
    }

    /// A step of nobody's that is durable, and with it what comes before it in an order of steps.
    pub(crate) fn barrier(&mut self) {
        self.steps.push(Step {
            change: Change::Names(Vec::new()),
            durability: Durability::Durable,
        });
    }

    /// Gives up the pending data of a file.
    pub(crate) fn lose_data(&mut self, file: Ino) {
        self.resolve(Durability::Lost, |change| change.is_data_of(file));
    }

    /// Gives up the pending data of all files.
    pub(crate) fn lose_all_data(&mut self) {
        self.resolve(Durability::Lost, |change| !change.is_metadata());
    }

    fn resolve(&mut self, durability: Durability, is_meant: impl Fn(&Change) -> bool) {
        let steps = &mut self.steps;
        self.pending.retain(|&index| {
            let step = &mut steps[index];
            let meant = is_meant(&step.change);
            if meant {
                step.durability = durability;
            }
            !meant
        });
    }
}
