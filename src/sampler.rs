//! The samplers: a checked set of parameters that turns rows into tokens.

use crate::element::Element;
use crate::error::Error;
use crate::filter::{Decision, Kept, Stages, Typical, TypicalMemory, decide};
use crate::full::{self, Full, Known};
use crate::head::{self, Head, Reach};
use crate::kernels::{Candidate, Moments, ONE, Scale, moments};
use crate::level::Level;
use crate::params::SamplingParams;
use crate::paths::{Path, Paths};
use crate::pick::{Alternative, Pick, Report};
use crate::rank::{Bracket, Need, Ranked};
use crate::report;
use crate::row::Row;
use crate::total::{self, Total};

/// Reused memory of a sampler: after a few rows nothing is allocated any more. One is enough for any number of samplers
/// and vocabularies, used one after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) blocks: Vec<f32>,
    pub(crate) head: head::Memory,
    pub(crate) full: full::Memory,
    typical: TypicalMemory,
    total: total::Memory,
    few: Vec<f32>,
    paths: Paths,
    pub(crate) weights: crate::weights::Memory,
    pub(crate) lists: crate::source::Lists,
    pub(crate) tally: crate::process::Tally,
}

impl Scratch {
    /// No memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which paths decided so far.
    #[doc(hidden)]
    pub fn paths(&self) -> Paths {
        self.paths
    }

    /// Whether only [`Path::Full`] may decide.
    pub(crate) fn only_full(&self) -> bool {
        self.paths.start() == Path::Full
    }

    /// From now on only paths from this one on may decide, so that tests can reach each.
    #[doc(hidden)]
    pub fn start_at(&mut self, path: Path) {
        self.paths.start_at(path);
    }

    fn parts(&mut self) -> (&mut Vec<f32>, Parts<'_>) {
        let Self { blocks, head, full, typical, total, few, paths, .. } = self;
        (blocks, Parts { head, full, typical, total, few, paths })
    }
}

/// The parts of a [`Scratch`] that a decision uses, once the row has borrowed the block maxima.
struct Parts<'a> {
    head: &'a mut head::Memory,
    full: &'a mut full::Memory,
    typical: &'a mut TypicalMemory,
    total: &'a mut total::Memory,
    few: &'a mut Vec<f32>,
    paths: &'a mut Paths,
}

impl Parts<'_> {
    fn again(&mut self) -> Parts<'_> {
        let Self { head, full, typical, total, few, paths } = self;
        Parts { head, full, typical, total, few, paths }
    }
}

/// A checked [`SamplingParams`] and the level it runs on; picks tokens from rows. Stateless: the same row, parameters and
/// draw give the same bits, everywhere.
///
/// ```
/// use sortless::{Sampler, SamplingParams, Scratch};
/// let sampler = Sampler::new(SamplingParams::new().with_temperature(0.8).with_top_p(0.9))?;
/// let mut scratch = Scratch::new();
/// let pick = sampler.sample(&[1.0f32, 3.0, 2.0, f32::NEG_INFINITY], 0.25, &mut scratch)?;
/// assert_eq!((pick.token, pick.kept), (1, Some(2)));
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    params: SamplingParams,
    level: Level,
}

impl Sampler {
    /// Checks the parameters; runs on the best level.
    ///
    /// # Errors
    /// [`Error::Parameter`], for the first that is outside its range.
    pub fn new(params: SamplingParams) -> Result<Self, Error> {
        params.check()?;
        Ok(Self { params, level: Level::best() })
    }

    /// The first of the largest logits, whatever the draw.
    ///
    /// ```
    /// # use sortless::{Sampler, Scratch};
    /// assert_eq!(Sampler::greedy().sample(&[0.0f32, 1.0, 1.0], 0.5, &mut Scratch::new())?.token, 1);
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn greedy() -> Self {
        Self { params: SamplingParams::new().with_temperature(0.0), level: Level::best() }
    }

    /// A draw from the whole distribution at a temperature, a normal positive f32 or 0 for greedy.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn temperature(temperature: f32) -> Result<Self, Error> {
        Self::new(SamplingParams::new().with_temperature(temperature))
    }

    /// A draw from the `k` best tokens at temperature 1. `k` is at least 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn top_k(k: u32) -> Result<Self, Error> {
        Self::new(SamplingParams::new().with_top_k(k))
    }

    /// A draw from the nucleus at temperature 1: the shortest ranked prefix with at least the share `p`, in (0, 1], of
    /// the mass.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn top_p(p: f64) -> Result<Self, Error> {
        Self::new(SamplingParams::new().with_top_p(p))
    }

    /// A draw from the tokens with at least the share `p`, in [0, 1], of the best token's weight, at temperature 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn min_p(p: f64) -> Result<Self, Error> {
        Self::new(SamplingParams::new().with_min_p(p))
    }

    /// A draw from the tokens with at least the share `epsilon`, in [0, 1), of the mass, and the best, at temperature 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn epsilon(epsilon: f64) -> Result<Self, Error> {
        Self::new(SamplingParams::new().with_epsilon(epsilon))
    }

    /// A draw from the locally typical set of mass `p`, in (0, 1], at temperature 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn typical(p: f64) -> Result<Self, Error> {
        Self::new(SamplingParams::new().with_typical_p(p))
    }

    /// The same on another level: for tests and benchmarks, since every level gives the same bits.
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The parameters.
    pub fn params(&self) -> &SamplingParams {
        &self.params
    }

    /// The level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Picks a token from a row of 1 to [`MAX_VOCAB`](crate::MAX_VOCAB) logits with the draw `u` in `[0, 1)`.
    ///
    /// # Errors
    /// [`Error::RowLength`], [`Error::NotFinite`], [`Error::NoAllowedToken`], [`Error::Draw`], in this order.
    pub fn sample<E: Element>(
        &self,
        row: &[E],
        u: f64,
        scratch: &mut Scratch,
    ) -> Result<Pick, Error> {
        let (blocks, parts) = scratch.parts();
        let blocks = (!self.params.is_greedy()).then_some(blocks);
        let row = Row::new(row, self.row_temperature(), u, self.level, blocks)?;
        let decision = self.decide(&row, u, None, parts);
        Ok(Pick { token: decision.token.id(), kept: decision.kept.map(|k| k.count as u32) })
    }

    /// Picks a token as [`sample`](Self::sample) does and reports everything about it and the `alternatives` best tokens
    /// into `report`, which an error leaves as it was.
    ///
    /// Needs the exact total of the row, so a light pick is faster.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    ///
    /// ```
    /// use sortless::{Report, Sampler, Scratch};
    /// let mut report = Report::default();
    /// Sampler::top_k(2)?.report(&[2.0f32, 2.0, 1.0, 2.0], 0.75, 1, &mut Scratch::new(), &mut report)?;
    /// assert_eq!((report.chosen.token, report.kept, report.chosen.conditional), (1, 2, 0.5));
    /// // The best one, then the drawn one.
    /// assert_eq!(report.alternatives.iter().map(|a| a.token).collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn report<E: Element>(
        &self,
        row: &[E],
        u: f64,
        alternatives: usize,
        scratch: &mut Scratch,
        report: &mut Report,
    ) -> Result<(), Error> {
        let (blocks, mut parts) = scratch.parts();
        let row = Row::new(row, self.row_temperature(), u, self.level, Some(blocks))?;
        let moments = moments(row.level, row.data, row.scale);
        let decision = self.decide(&row, u, Some(moments), parts.again());
        let numbers = Numbers { scale: row.scale, moments, decision };
        let (kept, kept_mass) = numbers.kept();
        report.kept = kept as u32;
        report.retained = report::share(kept_mass, moments.mass);
        report.entropy = report::entropy(moments.mean(), numbers.log_total());
        report.chosen = numbers.of(decision.token);
        let best = parts.head.best(&row, alternatives);
        report.alternatives.clear();
        report.alternatives.extend(best.iter().map(|&t| numbers.of(t)));
        if !best.contains(&decision.token) {
            report.alternatives.push(report.chosen);
        }
        Ok(())
    }

    /// Greedy reports at temperature 1.
    fn row_temperature(&self) -> f32 {
        if self.params.is_greedy() { 1.0 } else { self.params.temperature }
    }

    fn decide<E: Element>(
        &self,
        row: &Row<'_, E>,
        u: f64,
        known: Option<Moments>,
        scratch: Parts<'_>,
    ) -> Decision {
        if self.params.is_greedy() {
            return Decision::single(row.best());
        }
        let Parts { head, full, typical, total, few, paths } = scratch;
        let stages = Stages::new(&self.params, row.data.len());
        let Row { level, data, scale, .. } = *row;
        let mut typical = Typical { level, scale, whole: known, memory: typical };
        let mut total = Total::new(row, known.map(|m| m.mass), total);
        while total.path < paths.start().min(Path::Exact) {
            total.improve();
        }
        'reaches: for reach in Reaches::new(&stages, row).filter(|_| paths.start() < Path::Full) {
            let Some(mut ranked) = Head::new(row, reach, total.known, head) else { break };
            loop {
                match decide(&stages, u, &mut ranked, &mut typical) {
                    Ok(decision) => {
                        paths.count(total.path);
                        return decision;
                    }
                    Err(Need::Depth) => break,
                    Err(Need::Total) if ranked.is_unbounded() => {
                        let bounds = ranked.bounds(row, few);
                        total.least = total.least.max(bounds.low);
                        ranked.set_total(bounds);
                        continue;
                    }
                    Err(Need::Total) => {}
                    // What goes deeper anyway takes them on its way.
                    Err(Need::Moments) if is_flat(&ranked, row, few) => break 'reaches,
                    Err(Need::Moments) => {
                        let whole = moments(level, data, scale);
                        typical.whole = Some(whole);
                        total.set(whole.mass);
                        ranked.set_total(Bracket::exact(whole.mass));
                        continue;
                    }
                }
                // Better bounds cost a pass: not where they will only show that the decision goes deeper.
                if total.path == Path::Bounds {
                    let mut deeper = |ranked: &mut Head<'_>, total| {
                        ranked.set_total(Bracket::exact(total));
                        decide(&stages, u, ranked, &mut typical).err() == Some(Need::Depth)
                    };
                    let most = ranked.total().map_or(u64::MAX, |bounds| bounds.high);
                    if deeper(&mut ranked, most) {
                        let estimate = ranked.estimate(row, few);
                        if deeper(&mut ranked, estimate) {
                            break;
                        }
                    }
                }
                match total.improve() {
                    Some(better) => ranked.set_total(better),
                    None => break,
                }
            }
            if is_flat(&ranked, row, few) {
                break;
            }
        }
        paths.count(Path::Full);
        let known = Known { total: total.exact(), moments: typical.whole };
        let rings = stages.typical_of_all();
        let mut ranked = Full::new(row, known, rings, full, |sketch| {
            // What comes out doesn't matter, only what it sought.
            let _ = decide(&stages, u, sketch, &mut typical);
        });
        // The whole rank needs nothing more: a checked row has a token with mass.
        let decision = decide(&stages, u, &mut ranked, &mut typical);
        debug_assert!(decision.is_ok());
        decision.unwrap_or(Decision::single(row.best()))
    }
}

/// Whether a head has so small a part of the mass that another try is not worth it.
fn is_flat<E: Element>(head: &Head<'_>, row: &Row<'_, E>, few: &mut Vec<f32>) -> bool {
    const PART: u64 = 4;
    head.mass() < head.estimate(row, few) / PART
}

impl Decision {
    /// Greedy's: one token, which weighs 1.
    fn single(token: Candidate) -> Self {
        let kept = Kept { count: 1, mass: ONE, bound: token, least: 1, typical: None };
        Self { token, kept: Some(kept) }
    }
}

/// How far down the rank to look, in turn, before the whole row is looked at.
struct Reaches {
    first: Option<Reach>,
    second: Option<Reach>,
}

impl Reaches {
    fn new<E: Element>(stages: &Stages, row: &Row<'_, E>) -> Self {
        let blocks = row.blocks.len();
        if row.data.len() <= Reach::SHORT {
            return Self { first: Some(Reach::ALL), second: None };
        }
        let fits = |reach: fn(usize) -> Reach, n: usize| (n <= blocks).then(|| reach(n));
        let few = Some(Reach::Tokens(Reach::FEW.min(blocks)));
        let (first, second) = if let Some(k) = stages.top_k {
            (fits(Reach::Best, k as usize), None)
        } else if let (None, Some(p)) = (stages.top_p, stages.min_p) {
            (min_p_reach(row, p), None)
        } else {
            (few, fits(Reach::Tokens, Reach::MORE))
        };
        Self { first, second }
    }
}

impl Iterator for Reaches {
    type Item = Reach;

    fn next(&mut self) -> Option<Reach> {
        self.first.take().or_else(|| self.second.take())
    }
}

/// Min-p's cut is one of logits; with a margin, since its survivors are decided exactly. `None` if they may be too many
/// to sort.
fn min_p_reach<E: Element>(row: &Row<'_, E>, p: f64) -> Option<Reach> {
    let x = libm::log(p) * (1.0 + 1e-5) - 1e-5;
    let logit = (f64::from(row.scale.max()) + f64::from(row.scale.temperature()) * x) as f32;
    let logit = logit - logit.abs() * 1e-6;
    Reach::from(row.blocks, logit)
}

/// What reported numbers are made of.
struct Numbers {
    scale: Scale,
    moments: Moments,
    decision: Decision,
}

impl Numbers {
    fn log_total(&self) -> f64 {
        report::log_total(self.moments.mass)
    }

    /// Number and mass of the kept tokens.
    fn kept(&self) -> (u64, u64) {
        self.decision.kept.map_or((self.moments.count, self.moments.mass), |k| (k.count, k.mass))
    }

    fn of(&self, token: Candidate) -> Alternative {
        let x = f64::from(self.scale.argument(token.logit()));
        let mass = self.scale.mass(token.logit());
        let kept = self.decision.kept.is_none_or(|k| k.contains(token, self.scale));
        Alternative {
            token: token.id(),
            probability: report::share(mass, self.moments.mass),
            conditional: if kept { report::share(mass, self.kept().1) } else { 0.0 },
            surprise: report::surprise(x, self.log_total()),
            logprob: report::logprob(x, self.log_total()),
        }
    }
}
