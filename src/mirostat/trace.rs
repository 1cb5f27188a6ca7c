//! How a generation went: means, windows, spread, perplexity. All of surprise, in bits.

use super::Step;
use crate::error::Error;
use std::collections::VecDeque;

/// The mean surprise of the steps up to each step.
///
/// ```
/// # use sortless::mirostat::running_mean;
/// assert_eq!(running_mean([2.0, 4.0, 3.0]).collect::<Vec<_>>(), [2.0, 3.0, 3.0]);
/// ```
pub fn running_mean(surprises: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    let mut sum = 0.0;
    surprises.into_iter().zip(1u64..).map(move |(s, n)| {
        sum += s;
        sum / n as f64
    })
}

/// The mean surprise of the last `window` steps up to each step; of fewer at the beginning.
///
/// # Errors
/// [`Error::Parameter`] for a window of 0.
///
/// ```
/// # use sortless::mirostat::rolling_mean;
/// assert_eq!(rolling_mean([2.0, 4.0, 3.0], 2)?.collect::<Vec<_>>(), [2.0, 3.0, 3.5]);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn rolling_mean(
    surprises: impl IntoIterator<Item = f64>,
    window: usize,
) -> Result<impl Iterator<Item = f64>, Error> {
    let mut last = SurpriseWindow::new(window)?;
    Ok(surprises.into_iter().map(move |s| {
        last.push(s);
        last.mean().unwrap_or(s)
    }))
}

/// `2^` the mean surprise: the perplexity of the drawn tokens under the model. `None` for none.
///
/// ```
/// # use sortless::mirostat::perplexity;
/// assert_eq!(perplexity([1.0, 3.0]), Some(4.0));
/// ```
pub fn perplexity(surprises: impl IntoIterator<Item = f64>) -> Option<f64> {
    running_mean(surprises).last().map(libm::exp2)
}

/// The last surprises of a generation that is under way; never holds more than its capacity.
///
/// ```
/// use sortless::mirostat::SurpriseWindow;
/// let mut window = SurpriseWindow::new(2)?;
/// assert_eq!(window.mean(), None);
/// for surprise in [9.0, 1.0, 2.0] {
///     window.push(surprise);
/// }
/// assert_eq!((window.len(), window.mean()), (2, Some(1.5)));
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SurpriseWindow {
    surprises: VecDeque<f64>,
    capacity: usize,
}

impl SurpriseWindow {
    /// An empty window of this capacity, at least 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a capacity of 0.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        super::config::check("capacity", capacity as f64, |c| c >= 1.0, "at least 1")?;
        Ok(Self { surprises: VecDeque::new(), capacity })
    }

    /// Adds a surprise; the oldest leaves a full window.
    pub fn push(&mut self, surprise: f64) {
        if self.surprises.len() == self.capacity {
            self.surprises.pop_front();
        }
        self.surprises.push_back(surprise);
    }

    /// Adds a step's surprise.
    pub fn push_step(&mut self, step: &Step) {
        self.push(step.surprise);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.surprises.clear();
    }

    /// The mean; `None` while empty. Summed anew each time, so that no error builds up over a long generation.
    pub fn mean(&self) -> Option<f64> {
        let n = self.surprises.len();
        (n > 0).then(|| self.surprises.iter().sum::<f64>() / n as f64)
    }

    /// How many surprises are in it.
    pub fn len(&self) -> usize {
        self.surprises.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.surprises.is_empty()
    }

    /// How many it can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

/// Adds up a generation step by step, in constant memory.
///
/// ```
/// # use sortless::{Scratch, mirostat::{Config, Session, TraceAccumulator, Version}};
/// let mut session = Session::new(Config::new(2.0)?, Version::V2);
/// let mut trace = TraceAccumulator::new(2.0)?;
/// trace.push(&session.sample(&[0.0f32; 4], 0.5, &mut Scratch::new())?);
/// let summary = trace.summary().unwrap();
/// assert_eq!((summary.count, summary.mean_surprise, summary.mean_absolute_error), (1, 2.0, 0.0));
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TraceAccumulator {
    target: f64,
    count: u64,
    surprise: f64,
    kept: f64,
    error: f64,
    mu: f64,
}

/// What a [`TraceAccumulator`] knows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TraceSummary {
    /// How many steps.
    pub count: u64,
    /// Their mean surprise in bits.
    pub mean_surprise: f64,
    /// How many tokens were kept, on average.
    pub mean_kept: f64,
    /// The mean of `abs(surprise - target)`, in bits.
    pub mean_absolute_error: f64,
    /// `mu` after the last step, in bits.
    pub final_mu: f64,
}

impl TraceAccumulator {
    /// No step yet; errors are against this target surprise, in bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] if it is not finite.
    pub fn new(target: f64) -> Result<Self, Error> {
        super::config::check("target", target, f64::is_finite, "finite")?;
        Ok(Self { target, count: 0, surprise: 0.0, kept: 0.0, error: 0.0, mu: 0.0 })
    }

    /// Adds a step.
    pub fn push(&mut self, step: &Step) {
        self.count += 1;
        self.surprise += step.surprise;
        self.kept += f64::from(step.kept);
        self.error += (step.surprise - self.target).abs();
        self.mu = step.mu_after;
    }

    /// The summary so far; `None` before the first step.
    pub fn summary(&self) -> Option<TraceSummary> {
        let n = self.count as f64;
        (self.count > 0).then(|| TraceSummary {
            count: self.count,
            mean_surprise: self.surprise / n,
            mean_kept: self.kept / n,
            mean_absolute_error: self.error / n,
            final_mu: self.mu,
        })
    }
}

impl Extend<Step> for TraceAccumulator {
    fn extend<I: IntoIterator<Item = Step>>(&mut self, steps: I) {
        steps.into_iter().for_each(|step| self.push(&step));
    }
}

/// How far the steps of a generation lie apart. Quantiles are those of the nearest lower rank: the value at index
/// `floor(q (n - 1))` of the sorted list.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Spread {
    /// The smallest surprise in bits.
    pub min: f64,
    /// The largest surprise in bits.
    pub max: f64,
    /// The population variance of the surprise, in bits squared.
    pub variance: f64,
    /// The median surprise in bits.
    pub median: f64,
    /// The surprise that 90% don't exceed, in bits.
    pub p90: f64,
    /// The fewest tokens kept.
    pub kept_min: u32,
    /// The most tokens kept.
    pub kept_max: u32,
}

impl Spread {
    /// Of these steps; `None` for none.
    pub fn of(steps: &[Step]) -> Option<Self> {
        let mut sorted: Vec<f64> = steps.iter().map(|s| s.surprise).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares = sorted.iter().map(|s| (s - mean) * (s - mean));
        // In integers: floor(0.9 (n - 1)) of a float could fall short.
        let p90 = n.checked_sub(1)? * 9 / 10;
        Some(Self {
            min: *sorted.first()?,
            max: *sorted.last()?,
            variance: squares.sum::<f64>() / n as f64,
            median: *sorted.get((n - 1) / 2)?,
            p90: *sorted.get(p90)?,
            kept_min: steps.iter().map(|s| s.kept).min()?,
            kept_max: steps.iter().map(|s| s.kept).max()?,
        })
    }
}
