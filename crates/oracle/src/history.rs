//! [`History`]: which generations were started and acknowledged, and which may therefore be seen.

use serde::{Deserialize, Serialize};

/// One step of a subject, in the order in which they happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryEvent {
    /// The subject was told to publish this generation.
    Started(usize),
    /// The subject said that this generation is published.
    Acknowledged(usize),
}

/// An event that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// Generations are numbered in order of start, and 0 is there from the beginning.
    #[error("generation {generation} cannot start after generation {latest}")]
    StartOrder {
        /// The generation.
        generation: usize,
        /// The one started last.
        latest: usize,
    },
    /// Only what was started can be acknowledged.
    #[error("generation {0} was acknowledged but never started")]
    NeverStarted(usize),
    /// A generation is acknowledged once; 0 is from the beginning.
    #[error("generation {0} was acknowledged twice")]
    AcknowledgedTwice(usize),
}

/// What a subject started and acknowledged so far.
///
/// Generation 0, the initial tree, counts as started and acknowledged before everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    events: Vec<HistoryEvent>,
    /// In order of start, without generation 0.
    started: Vec<Span>,
}

/// When a generation was started and acknowledged, counted in events.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    generation: usize,
    started: usize,
    acknowledged: Option<usize>,
}

impl History {
    /// Nothing happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A history of these events.
    ///
    /// # Errors
    /// An event cannot follow those before it.
    pub fn from_events(
        events: impl IntoIterator<Item = HistoryEvent>,
    ) -> Result<Self, HistoryError> {
        let mut history = Self::new();
        events
            .into_iter()
            .try_for_each(|event| history.record(event))?;
        Ok(history)
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The event cannot follow those before it. The history is then as it was.
    pub fn record(&mut self, event: HistoryEvent) -> Result<(), HistoryError> {
        let now = self.events.len();
        match event {
            HistoryEvent::Started(generation) => {
                let latest = self.started.last().map_or(0, |span| span.generation);
                if generation <= latest {
                    return Err(HistoryError::StartOrder { generation, latest });
                }
                self.started.push(Span {
                    generation,
                    started: now,
                    acknowledged: None,
                });
            }
            HistoryEvent::Acknowledged(generation) => {
                if generation == 0 {
                    return Err(HistoryError::AcknowledgedTwice(0));
                }
                let mut spans = self.started.iter_mut();
                let span = spans.find(|span| span.generation == generation);
                let span = span.ok_or(HistoryError::NeverStarted(generation))?;
                if span.acknowledged.is_some() {
                    return Err(HistoryError::AcknowledgedTwice(generation));
                }
                span.acknowledged = Some(now);
            }
        }
        self.events.push(event);
        Ok(())
    }

    /// What happened, in order.
    pub fn events(&self) -> &[HistoryEvent] {
        &self.events
    }

    /// The generations that may be seen after a power cut now, in ascending order.
    ///
    /// The rule, word for word: a generation is allowed when it was started, unless some
    /// acknowledged one started after it had been acknowledged. So a generation that was never
    /// acknowledged stays allowed for good: its writer may still have been at work, and its tree
    /// may have landed after any other.
    pub fn allowed(&self) -> Vec<usize> {
        let acknowledged = self
            .started
            .iter()
            .filter(|span| span.acknowledged.is_some());
        let latest_start = acknowledged.map(|span| span.started).max();
        let superseded = |span: &Span| {
            span.acknowledged
                .zip(latest_start)
                .is_some_and(|(at, latest)| latest > at)
        };
        let initial = latest_start.is_none().then_some(0);
        let later = self.started.iter().filter(|span| !superseded(span));
        initial
            .into_iter()
            .chain(later.map(|span| span.generation))
            .collect()
    }
}
