//! Batches of a case: light picks, or a Mirostat step of a session each.

use super::cases::{Case, What, check_step, draw, renew, session};
use sortless::mirostat::{Session, SessionBatch, Step, Version};
use sortless::{Batch, Element, Error, Level, Pick, Rows, Sampler, reference};

/// A batch that runs again and again, with its results.
pub enum Batched {
    /// Picks.
    Picks { batch: Batch, sampler: [Sampler; 1], picks: Vec<Result<Pick, Error>> },
    /// Steps.
    Steps {
        batch: SessionBatch,
        version: Version,
        sessions: Vec<Session>,
        steps: Vec<Result<Step, Error>>,
    },
}

impl Batched {
    /// Whether a case has batches.
    pub fn fits(case: &Case) -> bool {
        matches!(case.what, What::Pick | What::Step(_))
    }

    /// A case on this many rows, on one thread or on all.
    pub fn new(case: Case, level: Level, size: usize, all: bool) -> Self {
        if let What::Step(version) = case.what {
            return Self::Steps {
                batch: if all { SessionBatch::new() } else { SessionBatch::serial() },
                version,
                sessions: vec![session(case, level); size],
                steps: vec![Err(Error::NoAllowedToken); size],
            };
        }
        let sampler = Sampler::new(case.params).expect("the cases are in range");
        Self::Picks {
            batch: if all { Batch::new() } else { Batch::serial() },
            sampler: [sampler.with_level(level)],
            picks: vec![Err(Error::NoAllowedToken); size],
        }
    }

    /// One call.
    pub fn call<E: Element>(&mut self, rows: &Rows<'_, E>, draws: &[f64]) {
        let done = match self {
            Self::Picks { batch, sampler, picks } => batch.sample_into(rows, sampler, draws, picks),
            Self::Steps { batch, sessions, steps, .. } => {
                sessions.iter_mut().for_each(renew);
                batch.sample_into(rows, sessions, draws, steps)
            }
        };
        done.expect("the lengths agree");
    }

    /// One call, and every 21st row against the reference, so that large batches don't take long. Sessions take some steps
    /// before it, until their `mu` is about where it settles.
    pub fn check<E: Element>(&mut self, rows: &Rows<'_, E>, draws: &[f64]) {
        if let Self::Steps { .. } = self {
            for n in 0..32 {
                let draws: Vec<f64> = (0..rows.len()).map(|i| draw(i, 1000 + n)).collect();
                self.call(rows, &draws);
            }
        }
        self.call(rows, draws);
        for i in (0..rows.len()).step_by(21) {
            let (row, u) = (rows.get(i).expect("inside"), draws[i]);
            match self {
                Self::Picks { sampler, picks, .. } => {
                    assert_eq!(picks[i], reference::sample(row, sampler[0].params(), u), "row {i}");
                }
                Self::Steps { version, steps, .. } => {
                    check_step(steps[i].clone(), *version, row, u);
                }
            }
        }
    }

    /// Panics unless the last call's results were the same.
    pub fn assert_same(&self, other: &Self) {
        match (self, other) {
            (Self::Picks { picks: a, .. }, Self::Picks { picks: b, .. }) => assert_eq!(a, b),
            (Self::Steps { steps: a, .. }, Self::Steps { steps: b, .. }) => assert_eq!(a, b),
            _ => panic!("different cases"),
        }
    }
}
