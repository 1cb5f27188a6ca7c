//! Many sessions, a row each.

use super::{Checkpoint, Session, Step};
use crate::batch::{Pool, Rows, check_length, row_of};
use crate::element::Element;
use crate::error::Error;
use core::borrow::BorrowMut;

/// Takes a step of many sessions at once, each over its own row. Keeps one scratch a thread.
///
/// With the feature `rayon` rows are spread over the rayon pool that the call is made in; the results are the same on any
/// number of threads, in any order of the rows and any split of the batch. Sessions are given as `&mut [Session]` or, where they live
/// elsewhere, as `&mut [&mut Session]`; either way one can't be in a batch twice.
///
/// ```
/// use sortless::Rows;
/// use sortless::mirostat::{Config, Session, SessionBatch, Version};
/// let mut sessions = vec![Session::new(Config::new(1.0)?, Version::V2); 2];
/// let logits = [0.0f32, 5.0, f32::NAN, 0.0];
/// let rows = Rows::matrix(&logits, 2, 2, 2)?;
/// let steps = SessionBatch::new().sample(&rows, &mut sessions, &[0.5; 2])?;
/// assert_eq!(steps[0].as_ref().unwrap().token, 1);
/// assert!(steps[1].is_err());
/// assert_eq!((sessions[0].steps(), sessions[1].steps()), (1, 0));
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SessionBatch {
    pool: Pool,
    /// What an all-or-nothing call finds before it tells, and where it goes back to.
    steps: Vec<Result<Step, Error>>,
    before: Vec<Checkpoint>,
}

impl SessionBatch {
    /// Spreads rows over rayon's threads, if the feature `rayon` is on.
    pub fn new() -> Self {
        Self::over(Pool::new(true))
    }

    /// Stays on the calling thread.
    pub fn serial() -> Self {
        Self::over(Pool::new(false))
    }

    fn over(pool: Pool) -> Self {
        Self { pool, steps: Vec::new(), before: Vec::new() }
    }

    /// A step of each session over its row, with its draw.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit; no session has moved then. What is wrong with a row stands in its own
    /// result, and its session hasn't moved.
    pub fn sample<E: Element, S: BorrowMut<Session> + Send>(
        &mut self,
        rows: &Rows<'_, E>,
        sessions: &mut [S],
        draws: &[f64],
    ) -> Result<Vec<Result<Step, Error>>, Error> {
        let mut steps = vec![Ok(Step::default()); rows.len()];
        self.sample_into(rows, sessions, draws, &mut steps)?;
        Ok(steps)
    }

    /// As [`sample`](Self::sample), into the caller's memory.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit; nothing is touched then.
    pub fn sample_into<E: Element, S: BorrowMut<Session> + Send>(
        &mut self,
        rows: &Rows<'_, E>,
        sessions: &mut [S],
        draws: &[f64],
        steps: &mut [Result<Step, Error>],
    ) -> Result<(), Error> {
        check_length("number of sessions", rows.len(), sessions.len())?;
        check_length("number of draws", rows.len(), draws.len())?;
        check_length("number of results", rows.len(), steps.len())?;
        self.pool.each_pair(sessions, steps, |i, scratch, session, step| {
            let session: &mut Session = session.borrow_mut();
            *step = row_of(rows, i).and_then(|row| session.sample(row, draws[i], scratch));
        });
        Ok(())
    }

    /// All or nothing: a step of each session into `steps`, or no session has moved and nothing is written.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit; [`Error::Row`] for the first row that fails.
    pub fn sample_all<E: Element, S: BorrowMut<Session> + Send>(
        &mut self,
        rows: &Rows<'_, E>,
        sessions: &mut [S],
        draws: &[f64],
        steps: &mut [Step],
    ) -> Result<(), Error> {
        check_length("number of results", rows.len(), steps.len())?;
        self.before.clear();
        let checkpoints = sessions.iter().map(|s| (*s).borrow().checkpoint());
        self.before.extend(checkpoints);
        let mut found = core::mem::take(&mut self.steps);
        found.clear();
        found.resize(rows.len(), Ok(Step::default()));
        let mut result = self.sample_into(rows, sessions, draws, &mut found);
        if result.is_ok() {
            for (row, step) in found.iter().enumerate() {
                if let Err(error) = step {
                    result = Err(error.clone().in_row(row));
                    break;
                }
            }
        }
        if result.is_ok() {
            for (step, found) in steps.iter_mut().zip(&found) {
                if let Ok(found) = found {
                    *step = *found;
                }
            }
        } else {
            for (session, before) in sessions.iter_mut().zip(&self.before) {
                // Its own checkpoint always fits.
                let _ = session.borrow_mut().restore(before);
            }
        }
        self.steps = found;
        result
    }
}
