//! [`Frontier`]: the cells still to be judged, in the order of the search.

use std::collections::{BTreeMap, VecDeque};

use crate::cell::Cell;

/// Cells to be judged. Every operation takes time independent of the number of cells; `draw` takes
/// time linear in the number of different departure counts, which is at most that of choices.
#[derive(Debug)]
pub(crate) enum Frontier {
    /// Depth-first: the cell pushed last comes first.
    Stack(Vec<Cell>),
    /// Breadth-first: fewest departures first, and first in first out among equals.
    Layers(BTreeMap<u32, VecDeque<Cell>>),
}

impl Frontier {
    pub(crate) fn depth_first() -> Self {
        Self::Stack(Vec::new())
    }

    pub(crate) fn breadth_first() -> Self {
        Self::Layers(BTreeMap::new())
    }

    pub(crate) fn push(&mut self, cell: Cell, departures: u32) {
        match self {
            Self::Stack(cells) => cells.push(cell),
            Self::Layers(layers) => layers.entry(departures).or_default().push_back(cell),
        }
    }

    /// Puts a cell back so that it is the next one in order.
    pub(crate) fn put_back(&mut self, cell: Cell, departures: u32) {
        match self {
            Self::Stack(cells) => cells.push(cell),
            Self::Layers(layers) => layers.entry(departures).or_default().push_front(cell),
        }
    }

    /// Takes the next cell in order.
    pub(crate) fn pop(&mut self) -> Option<Cell> {
        match self {
            Self::Stack(cells) => cells.pop(),
            Self::Layers(layers) => {
                let mut nearest = layers.first_entry()?;
                let cell = nearest.get_mut().pop_front();
                if nearest.get().is_empty() {
                    nearest.remove();
                }
                cell
            }
        }
    }

    /// Takes the cell at a position below the number of cells, in no order in particular.
    pub(crate) fn draw(&mut self, mut position: usize) -> Option<Cell> {
        match self {
            Self::Stack(cells) => (position < cells.len()).then(|| cells.swap_remove(position)),
            Self::Layers(layers) => {
                let (&departures, cells) = layers.iter_mut().find(|(_, cells)| {
                    let found = position < cells.len();
                    position -= if found { 0 } else { cells.len() };
                    found
                })?;
                let cell = cells.swap_remove_back(position);
                if cells.is_empty() {
                    layers.remove(&departures);
                }
                cell
            }
        }
    }
}
