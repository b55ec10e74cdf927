//! Telling crash images apart: [`ImageKey`].

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::Persistence;
use super::base::Base;
use super::log::Step;
use super::node::Info;
use super::state::State;

/// What a crash image is made of. Two images with equal keys permit the same states, so judging
/// one of them is enough.
#[derive(Clone)]
pub struct ImageKey {
    persistence: Persistence,
    base: Base,
    infos: Rc<Vec<Info>>,
    steps: Rc<Vec<Step>>,
    umask: u32,
}

impl ImageKey {
    pub(crate) fn new(state: &State, persistence: Persistence) -> Self {
        Self {
            persistence,
            base: state.base.clone(),
            infos: Rc::clone(&state.infos),
            steps: Rc::new(state.log.steps().to_vec()),
            umask: state.umask,
        }
    }
}

impl std::fmt::Debug for ImageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageKey").finish_non_exhaustive()
    }
}

impl PartialEq for ImageKey {
    fn eq(&self, other: &Self) -> bool {
        let same_base = match (&self.base, &other.base) {
            (Base::Settled(left), Base::Settled(right)) => left == right,
            // What an earlier crash left is decided by looking; only the same one is the same.
            (Base::Survivor(left), Base::Survivor(right)) => Rc::ptr_eq(left, right),
            (Base::Settled(_), Base::Survivor(_)) | (Base::Survivor(_), Base::Settled(_)) => false,
        };
        same_base
            && self.persistence == other.persistence
            && self.umask == other.umask
            && self.steps == other.steps
            && self.infos == other.infos
    }
}

impl Eq for ImageKey {}

impl Hash for ImageKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.persistence.hash(state);
        self.steps.hash(state);
    }
}
