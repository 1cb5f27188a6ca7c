//! A whole sequence of rows at once.

use super::{Session, Step};
use crate::batch::Rows;
use crate::element::Element;
use crate::error::Error;
use crate::sampler::Scratch;
use core::fmt;

/// A replay that stopped early.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayError {
    /// The steps before the error. The session has taken them.
    pub steps: Vec<Step>,
    /// What went wrong: [`Error::Row`] with the step's index, or [`Error::Shape`].
    pub error: Error,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} steps: {}", self.steps.len(), self.error)
    }
}

impl std::error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Session {
    /// Takes a step over each row in turn, with the draw that stands beside it.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not as many draws as rows, or the first step's error. The steps before it stay taken, and
    /// come with the error.
    pub fn replay<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        draws: &[f64],
        scratch: &mut Scratch,
    ) -> Result<Vec<Step>, ReplayError> {
        let mut steps = Vec::new();
        match self.replay_into(rows, draws, scratch, &mut steps) {
            Ok(()) => Ok(steps),
            Err(error) => Err(ReplayError { steps, error }),
        }
    }

    /// As [`replay`](Self::replay), all or nothing: after an error the session is what it was before.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not as many draws as rows; [`Error::Row`] for the first step that fails.
    pub fn replay_atomic<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        draws: &[f64],
        scratch: &mut Scratch,
    ) -> Result<Vec<Step>, Error> {
        let before = self.checkpoint();
        self.replay(rows, draws, scratch).map_err(|stopped| {
            // Its own checkpoint always fits.
            let _ = self.restore(&before);
            stopped.error
        })
    }

    fn replay_into<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        draws: &[f64],
        scratch: &mut Scratch,
        steps: &mut Vec<Step>,
    ) -> Result<(), Error> {
        crate::batch::check_length("number of draws", rows.len(), draws.len())?;
        steps.reserve(rows.len());
        for (index, &u) in draws.iter().enumerate() {
            let step = crate::batch::row_of(rows, index)
                .and_then(|row| self.sample(row, u, scratch))
                .map_err(|error| error.in_row(index))?;
            steps.push(step);
        }
        Ok(())
    }
}
