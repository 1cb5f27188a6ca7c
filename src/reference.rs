//! The contract as code: every decision by a full sort and plain loops, to read and test against.
//!
//! Whatever the samplers do fast gives the token, the count and the numbers that the functions here
//! give, bit for bit. They share with the samplers the weight function
//! [`weight`], the types, and the scalar formulas of the reported numbers;
//! all that selects is written a second time here.
//!
//! ```
//! use sortless::{reference, SamplingParams};
//! let params = SamplingParams::new().with_top_p(0.75);
//! let pick = reference::sample(&[0.0f32, 0.0, 0.0, 0.0], &params, 0.5)?;
//! assert_eq!((pick.token, pick.kept), (1, Some(3)));
//! # Ok::<(), sortless::Error>(())
//! ```

use core::cmp::Ordering;

use crate::element::Element;
use crate::error::{Error, NotFinite, Number};
use crate::kernels::{ONE, weight};
use crate::params::{SamplingParams, check_temperature};
use crate::pick::{Alternative, Pick, Report};
use crate::report;

/// A Mirostat step's decision. The feedback is the session's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MirostatPick {
    /// The token id.
    pub token: u32,
    /// How many tokens it was drawn from; each has mass.
    pub kept: u32,
    /// The token's mass over the row's total.
    pub probability: f64,
    /// The token's surprise in bits under the full row's distribution.
    pub surprise: f64,
}

/// The token for a draw `u`.
///
/// At temperature 0 it is the first maximum; `u` is checked, but doesn't matter.
///
/// # Errors
/// [`Error::Parameter`] first, then what is wrong with the row, then [`Error::Draw`].
pub fn sample<E: Element>(row: &[E], params: &SamplingParams, u: f64) -> Result<Pick, Error> {
    Sorted::new(row, params)?.sample(params, u)
}

/// The same decision with its numbers and the best `alternatives` tokens.
///
/// # Errors
/// As [`sample`].
pub fn report<E: Element>(
    row: &[E],
    params: &SamplingParams,
    u: f64,
    alternatives: usize,
) -> Result<Report, Error> {
    Sorted::new(row, params)?.report(params, u, alternatives)
}

/// A row sorted once, for any number of decisions at the temperature that it was sorted for.
#[doc(hidden)]
pub struct Sorted(Ranked);

impl Sorted {
    /// Sorts a row. Of the parameters only the temperature matters yet.
    pub fn new<E: Element>(row: &[E], params: &SamplingParams) -> Result<Self, Error> {
        params.check()?;
        // Greedy reports at temperature 1.
        let greedy = params.temperature == 0.0;
        let temperature = if greedy { 1.0 } else { params.temperature };
        Ok(Self(Ranked::from_logits(row, temperature)?))
    }

    /// As the function [`sample`].
    pub fn sample(&self, params: &SamplingParams, u: f64) -> Result<Pick, Error> {
        let decision = decide(&self.0, params, u)?;
        Ok(Pick {
            token: decision.token.id,
            kept: decision.truncated.then_some(decision.kept.len() as u32),
        })
    }

    /// As the function [`report`].
    pub fn report(
        &self,
        params: &SamplingParams,
        u: f64,
        alternatives: usize,
    ) -> Result<Report, Error> {
        let ranked = &self.0;
        let Decision { kept, token, .. } = decide(ranked, params, u)?;

        let kept_mass = total(&kept);
        let mut is_kept = vec![false; ranked.tokens.len()];
        for t in &kept {
            is_kept[t.rank] = true;
        }
        let describe = |t: &Token| Alternative {
            token: t.id,
            probability: report::share(t.mass, ranked.total),
            conditional: match is_kept[t.rank] {
                true => report::share(t.mass, kept_mass),
                false => 0.0,
            },
            surprise: report::surprise(t.x, ranked.log_total),
            logprob: report::logprob(t.x, ranked.log_total),
        };

        let best = ranked.tokens.iter().take(alternatives);
        let mut list: Vec<Alternative> = best.map(describe).collect();
        if token.rank >= list.len() {
            list.push(describe(&token));
        }
        Ok(Report {
            chosen: describe(&token),
            kept: kept.len() as u32,
            retained: report::share(kept_mass, ranked.total),
            entropy: report::entropy(mean(&ranked.tokens), ranked.log_total),
            alternatives: list,
        })
    }

    /// Ids and masses of the kept tokens, in the order of the draw.
    pub fn kept(&self, params: &SamplingParams) -> Result<Vec<(u32, u64)>, Error> {
        let kept = decide(&self.0, params, 0.0)?.kept;
        Ok(kept.iter().map(|t| (t.id, t.mass)).collect())
    }
}

/// Mirostat v1's decision from a row of logits: slope from the first `m` ranked tokens with mass,
/// k from the slope and `mu`, then top-k.
///
/// # Errors
/// [`Error::Parameter`] for a temperature that is no normal positive number, a `mu` that is not
/// finite or `m < 2`; then what is wrong with the row, then [`Error::Draw`].
pub fn mirostat_v1<E: Element>(
    row: &[E],
    temperature: f32,
    mu: f64,
    m: usize,
    u: f64,
) -> Result<MirostatPick, Error> {
    check_temperature(temperature)?;
    check_mu(mu)?;
    check_m(m)?;
    let ranked = Ranked::from_logits(row, temperature)?;
    check_draw(u)?;
    ranked.mirostat_v1(mu, m, u)
}

/// [`mirostat_v1`] from a row of weights, finite and at least 0, instead of logits.
///
/// # Errors
/// As [`mirostat_v1`]; [`Error::NegativeWeight`] for a weight below 0.
pub fn mirostat_v1_weights(
    weights: &[f32],
    mu: f64,
    m: usize,
    u: f64,
) -> Result<MirostatPick, Error> {
    check_mu(mu)?;
    check_m(m)?;
    let ranked = Ranked::from_weights(weights)?;
    check_draw(u)?;
    ranked.mirostat_v1(mu, m, u)
}

/// Mirostat v2's decision from a row of logits: the best token, and all with mass whose surprise is
/// at most `mu` bits.
///
/// # Errors
/// As [`mirostat_v1`].
pub fn mirostat_v2<E: Element>(
    row: &[E],
    temperature: f32,
    mu: f64,
    u: f64,
) -> Result<MirostatPick, Error> {
    check_temperature(temperature)?;
    check_mu(mu)?;
    let ranked = Ranked::from_logits(row, temperature)?;
    check_draw(u)?;
    ranked.mirostat_v2(mu, u)
}

/// [`mirostat_v2`] from a row of weights, finite and at least 0, instead of logits.
///
/// # Errors
/// As [`mirostat_v1_weights`].
pub fn mirostat_v2_weights(weights: &[f32], mu: f64, u: f64) -> Result<MirostatPick, Error> {
    check_mu(mu)?;
    let ranked = Ranked::from_weights(weights)?;
    check_draw(u)?;
    ranked.mirostat_v2(mu, u)
}

// What a row is.

/// An unmasked token.
#[derive(Clone, Copy)]
struct Token {
    id: u32,
    /// What ranks it: the logit, or the weight as given.
    value: f32,
    /// Its place in the rank, from 0.
    rank: usize,
    /// The exponent argument; an f32 unless the row came as weights.
    x: f64,
    weight: f32,
    mass: u64,
}

/// The unmasked tokens of a checked row, best first.
struct Ranked {
    tokens: Vec<Token>,
    /// The row's length.
    vocab: usize,
    /// `S`.
    total: u64,
    /// `L`.
    log_total: f64,
}

impl Ranked {
    fn from_logits<E: Element>(row: &[E], temperature: f32) -> Result<Self, Error> {
        let logits: Vec<f32> = row.iter().map(|v| v.to_f32()).collect();
        check_length(&logits)?;
        check_finite(&logits)?;
        let max = largest(&logits);
        if max == f32::NEG_INFINITY {
            return Err(Error::NoAllowedToken);
        }
        let mut tokens = Vec::new();
        for (id, &logit) in logits.iter().enumerate() {
            if logit != f32::NEG_INFINITY {
                let x = argument(logit, max, temperature);
                tokens.push(token(id, logit, f64::from(x), weight(x)));
            }
        }
        Ok(Self::new(tokens, logits.len()))
    }

    fn from_weights(values: &[f32]) -> Result<Self, Error> {
        check_length(values)?;
        // The lowest index with any fault is the one to name.
        let good = values.iter().take_while(|&&v| v >= 0.0 && v.is_finite());
        let index = good.count();
        if let Some(&value) = values.get(index) {
            check_finite(&values[..=index])?;
            let value = Number(f64::from(value));
            return Err(Error::NegativeWeight { index, value });
        }
        let max = largest(values);
        if max == 0.0 {
            return Err(Error::NoAllowedToken);
        }
        let mut tokens = Vec::new();
        for (id, &value) in values.iter().enumerate() {
            if value > 0.0 {
                let w = value / max;
                tokens.push(token(id, value, report::log_weight(w), w));
            }
        }
        Ok(Self::new(tokens, values.len()))
    }

    fn new(mut tokens: Vec<Token>, vocab: usize) -> Self {
        tokens.sort_by(|a, b| {
            // As values, so that -0 equals +0.
            let descending = b.value.partial_cmp(&a.value).unwrap_or(Ordering::Equal);
            descending.then(a.id.cmp(&b.id))
        });
        for (rank, t) in tokens.iter_mut().enumerate() {
            t.rank = rank;
        }
        let total = total(&tokens);
        Self { tokens, vocab, total, log_total: report::log_total(total) }
    }

    fn with_mass(&self) -> Vec<Token> {
        self.tokens.iter().copied().filter(|t| t.mass > 0).collect()
    }

    fn mirostat_v1(&self, mu: f64, m: usize, u: f64) -> Result<MirostatPick, Error> {
        let mut kept = self.with_mass();
        let xs: Vec<f64> = kept.iter().take(m).map(|t| t.x).collect();
        let k = match xs.len() {
            0 | 1 => 1,
            _ => report::mirostat_k(report::zipf_slope(&xs), mu, self.vocab),
        };
        kept.truncate(k);
        self.mirostat_draw(&kept, u)
    }

    fn mirostat_v2(&self, mu: f64, u: f64) -> Result<MirostatPick, Error> {
        let mut kept = self.with_mass();
        kept.retain(|t| t.rank == 0 || report::surprise(t.x, self.log_total) <= mu);
        self.mirostat_draw(&kept, u)
    }

    fn mirostat_draw(&self, kept: &[Token], u: f64) -> Result<MirostatPick, Error> {
        let token = draw(kept, u)?;
        Ok(MirostatPick {
            token: token.id,
            kept: kept.len() as u32,
            probability: report::share(token.mass, self.total),
            surprise: report::surprise(token.x, self.log_total),
        })
    }
}

fn token(id: usize, value: f32, x: f64, weight: f32) -> Token {
    Token { id: id as u32, value, rank: 0, x, weight, mass: mass(weight) }
}

/// `(l - m) / T`, each step rounded once.
fn argument(logit: f32, max: f32, temperature: f32) -> f32 {
    // A maximum of -0 is +0.
    (logit - (max + 0.0)) / temperature
}

/// `w * 2^43` to the nearest integer, ties to even.
fn mass(weight: f32) -> u64 {
    (f64::from(weight) * ONE as f64).round_ties_even() as u64
}

fn total(tokens: &[Token]) -> u64 {
    tokens.iter().map(|t| t.mass).sum()
}

/// The mean exponent argument, `R / M`.
fn mean(tokens: &[Token]) -> f64 {
    let mut r = 0i64;
    for t in tokens {
        if t.mass > 0 {
            r += (f64::from(t.weight) * t.x * ONE as f64).round_ties_even() as i64;
        }
    }
    r as f64 / total(tokens) as f64
}

fn largest(values: &[f32]) -> f32 {
    let mut max = f32::NEG_INFINITY;
    for &v in values {
        if v > max {
            max = v;
        }
    }
    max
}

fn check_length(values: &[f32]) -> Result<(), Error> {
    match values.len() {
        1..=crate::MAX_VOCAB => Ok(()),
        len => Err(Error::RowLength { len }),
    }
}

fn check_finite(values: &[f32]) -> Result<(), Error> {
    for (index, &v) in values.iter().enumerate() {
        let value = match v {
            _ if v.is_nan() => NotFinite::NaN,
            f32::INFINITY => NotFinite::PosInf,
            _ => continue,
        };
        return Err(Error::NotFinite { index, value });
    }
    Ok(())
}

fn check_draw(u: f64) -> Result<(), Error> {
    // The valid range is what is tested, so that NaN can't slip through.
    if (0.0..1.0).contains(&u) {
        return Ok(());
    }
    Err(Error::Draw { u: Number(u) })
}

fn check_mu(mu: f64) -> Result<(), Error> {
    if mu.is_finite() {
        return Ok(());
    }
    Err(Error::Parameter { name: "mu", value: Number(mu), expected: "finite" })
}

fn check_m(m: usize) -> Result<(), Error> {
    if m >= 2 {
        return Ok(());
    }
    Err(Error::Parameter { name: "m", value: Number(m as f64), expected: "at least 2" })
}

// What is kept, and the draw.

struct Decision {
    /// In the order of the draw.
    kept: Vec<Token>,
    /// Whether a filter was on that doesn't keep everything by definition.
    truncated: bool,
    token: Token,
}

fn decide(ranked: &Ranked, params: &SamplingParams, u: f64) -> Result<Decision, Error> {
    params.check()?;
    check_draw(u)?;
    let greedy = params.temperature == 0.0;
    let mut alive = ranked.with_mass();
    let mut truncated = greedy;
    if greedy {
        alive.truncate(1);
    } else {
        if let Some(k) = params.top_k {
            truncated |= (k as usize) < ranked.vocab;
            alive.truncate(k as usize);
        }
        if let Some(p) = params.top_p {
            truncated |= p < 1.0;
            keep_prefix(&mut alive, p);
        }
        if let Some(p) = params.min_p {
            truncated |= p > 0.0;
            keep_min_p(&mut alive, p);
        }
        if let Some(p) = params.typical_p {
            truncated |= p < 1.0;
            order_by_typicality(&mut alive);
            keep_prefix(&mut alive, p);
        }
        if let Some(p) = params.epsilon {
            truncated |= p > 0.0;
            keep_epsilon(&mut alive, p);
        }
    }
    let token = draw(&alive, u)?;
    Ok(Decision { kept: alive, truncated, token })
}

/// The shortest prefix, in the order that the tokens stand in, with mass `>= cut(p, M)`.
fn keep_prefix(alive: &mut Vec<Token>, p: f64) {
    let cut = cut(p, total(alive));
    let mut sum = 0;
    let mut len = 0;
    for t in alive.iter() {
        if sum >= cut {
            break;
        }
        sum += t.mass;
        len += 1;
    }
    alive.truncate(len);
}

fn keep_min_p(alive: &mut Vec<Token>, min_p: f64) {
    if let Some(best) = best(alive) {
        let least = min_p * f64::from(best.weight);
        alive.retain(|t| t.rank == best.rank || f64::from(t.weight) >= least);
    }
}

fn keep_epsilon(alive: &mut Vec<Token>, epsilon: f64) {
    if let Some(best) = best(alive) {
        let least = cut(epsilon, total(alive));
        alive.retain(|t| t.rank == best.rank || t.mass >= least);
    }
}

/// The distance from the mean of `x` is that of the surprise from the entropy, in nats.
fn order_by_typicality(alive: &mut [Token]) {
    let mean = mean(alive);
    let distance = |t: &Token| (t.x - mean).abs();
    alive.sort_by(|a, b| {
        let ascending = distance(a).partial_cmp(&distance(b));
        ascending.unwrap_or(Ordering::Equal).then(a.id.cmp(&b.id))
    });
}

/// The best-ranked token alive.
fn best(alive: &[Token]) -> Option<Token> {
    alive.iter().copied().min_by_key(|t| t.rank)
}

/// The first token whose cumulative mass is `> floor(u * kept mass)`.
fn draw(kept: &[Token], u: f64) -> Result<Token, Error> {
    let target = floor_share(u, total(kept));
    let mut sum = 0;
    for t in kept {
        sum += t.mass;
        if sum > target {
            return Ok(*t);
        }
    }
    // Out of reach: the best token has mass, some token is always kept, and target < the sum.
    Err(Error::NoAllowedToken)
}

/// `p = a * 2^-b` exactly, for `p` in `[0, 1]`.
fn parts(p: f64) -> (u64, u32) {
    let bits = p.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52) as u32 & 0x7ff {
        0 => (fraction, 1074),
        exponent => (fraction | 1 << 52, 1075u32.saturating_sub(exponent)),
    }
}

/// `ceil(p * mass)`; 0 only for `p = 0` (mass is never 0 here).
fn cut(p: f64, mass: u64) -> u64 {
    let (a, b) = parts(p);
    if a == 0 {
        return 0;
    }
    if b >= 128 {
        return 1;
    }
    let product = u128::from(a) * u128::from(mass);
    let floor = product >> b;
    let exact = floor << b == product;
    floor as u64 + u64::from(!exact)
}

/// `floor(u * mass)`.
fn floor_share(u: f64, mass: u64) -> u64 {
    let (a, b) = parts(u);
    if b >= 128 {
        return 0;
    }
    ((u128::from(a) * u128::from(mass)) >> b) as u64
}

// What the kernels compute, for their tests.

/// The first index of the largest logit: a scan with strict `>` from the first element, in which a
/// NaN in first place stays. `None` for an empty row.
pub fn argmax<E: Element>(row: &[E]) -> Option<usize> {
    if row.is_empty() {
        return None;
    }
    let mut best = 0;
    for (i, v) in row.iter().enumerate() {
        if v.to_f32() > row[best].to_f32() {
            best = i;
        }
    }
    Some(best)
}

/// The largest logit, `+0.0` where it is a zero, or which logit is NaN or +inf; -inf for an empty
/// row.
///
/// # Errors
/// [`Error::NotFinite`] with the lowest such index.
pub fn max<E: Element>(row: &[E]) -> Result<f32, Error> {
    let logits: Vec<f32> = row.iter().map(|v| v.to_f32()).collect();
    check_finite(&logits)?;
    Ok(largest(&logits) + 0.0)
}

/// The weight of every logit, in row order. A logit above `max` counts as `max`.
pub fn weights<E: Element>(row: &[E], max: f32, temperature: f32) -> Vec<f32> {
    let mut weights = Vec::new();
    for v in row {
        let x = argument(v.to_f32(), max, temperature);
        weights.push(weight(if x > 0.0 { 0.0 } else { x }));
    }
    weights
}

/// The sum of the masses of a row of at most 2^20 logits; the rest of a longer row is left out.
pub fn total_mass<E: Element>(row: &[E], max: f32, temperature: f32) -> u64 {
    let weights = weights(row, max, temperature);
    weights.into_iter().take(crate::MAX_VOCAB).map(mass).sum()
}

/// Count and mass of the tokens with mass whose weight `w` has `2^-i <= w < 2^(1 - i)`, at index
/// `i`; of the first 2^20 logits.
pub fn exponent_histogram<E: Element>(
    row: &[E],
    max: f32,
    temperature: f32,
) -> ([u32; 45], [u64; 45]) {
    let (mut counts, mut masses) = ([0u32; 45], [0u64; 45]);
    let weights = weights(row, max, temperature);
    for w in weights.into_iter().take(crate::MAX_VOCAB) {
        if mass(w) == 0 {
            continue;
        }
        // Halving is exact. What has mass is above 2^-44, so the index stays inside.
        let (mut i, mut floor) = (0, 1.0);
        while w < floor {
            i += 1;
            floor *= 0.5;
        }
        counts[i] += 1;
        masses[i] += mass(w);
    }
    (counts, masses)
}

/// Ids and logits of the tokens with a logit of at least `threshold`, by ascending id; masked ones
/// never.
pub fn at_least<E: Element>(row: &[E], threshold: f32) -> Vec<(u32, f32)> {
    let mut found = Vec::new();
    for (id, v) in row.iter().enumerate() {
        let logit = v.to_f32();
        if logit >= threshold && logit != f32::NEG_INFINITY {
            found.push((id as u32, logit));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    const MASKED: f32 = f32::NEG_INFINITY;

    fn logits(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    fn params() -> SamplingParams {
        SamplingParams::new()
    }

    /// The kept ids in the order of the draw.
    fn kept(row: &[f32], params: &SamplingParams) -> Vec<u32> {
        let kept = Sorted::new(row, params).and_then(|sorted| sorted.kept(params)).unwrap();
        kept.iter().map(|t| t.0).collect()
    }

    fn pick(row: &[f32], params: &SamplingParams, u: f64) -> (u32, Option<u32>) {
        let pick = sample(row, params, u).unwrap();
        (pick.token, pick.kept)
    }

    #[test]
    fn a01_the_smallest_set_that_reaches_p() {
        let row = logits(&[0.4, 0.3, 0.2, 0.1]);
        assert_eq!(kept(&row, &params().with_top_p(0.6)), [0, 1]);
        let row = logits(&[0.55, 0.45]);
        assert_eq!(kept(&row, &params().with_top_p(0.9)), [0, 1]);
        let row = logits(&[0.5, 0.3, 0.1, 0.1]);
        assert_eq!(kept(&row, &params().with_top_p(0.79)), [0, 1]);
    }

    #[test]
    fn a02_a_sum_that_equals_p_is_enough() {
        for (p, n) in [(0.25, 1), (0.5, 2), (0.75, 3), (1.0, 4)] {
            assert_eq!(kept(&[7.0; 4], &params().with_top_p(p)).len(), n);
        }
        // The next f64 above 1/2 needs one more token.
        let above = f64::from_bits(0.5f64.to_bits() + 1);
        assert_eq!(kept(&[7.0; 4], &params().with_top_p(above)), [0, 1, 2]);
    }

    #[test]
    fn a05_a_tiny_p_keeps_the_best_token() {
        let row: Vec<f32> = (0..4096).map(|i| (i % 61) as f32 * 0.01).collect();
        for p in [1e-8, 1e-300, f64::from_bits(1)] {
            assert_eq!(pick(&row, &params().with_top_p(p), 0.999), (60, Some(1)));
        }
    }

    #[test]
    fn a06_a08_p_at_and_just_below_1() {
        let below = f64::from_bits(1.0f64.to_bits() - 1);
        assert_eq!(kept(&[1.0; 12], &params().with_top_p(below)).len(), 12);
        for u in [0.0, 0.3, 0.999_999] {
            let off = pick(&[1.0, 3.0, 2.0], &params(), u);
            assert_eq!(pick(&[1.0, 3.0, 2.0], &params().with_top_p(1.0), u), off);
            assert_eq!(off.1, None);
        }
    }

    #[test]
    fn a09_p_0_is_an_error() {
        let error = sample(&[0.0f32, 3.0, 1.0], &params().with_top_p(0.0), 0.5).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "top_p", .. }));
    }

    #[test]
    fn a11_a_later_stage_sees_what_an_earlier_one_left() {
        let row = logits(&[0.15, 0.14, 0.13, 0.12, 0.46]);
        assert_eq!(kept(&row, &params().with_top_k(1).with_top_p(0.8)), [4]);
        // 0.46 of 0.75 is more than 0.6, 0.46 of 1 is less.
        assert_eq!(kept(&row, &params().with_top_p(0.6)), [4, 0]);
        assert_eq!(kept(&row, &params().with_top_k(3).with_top_p(0.6)), [4]);
    }

    #[test]
    fn a14_d04_temperature_comes_first_and_divides_the_logits() {
        let row = [2.0, 1.0, 0.0, -1.0];
        let p = params().with_top_p(0.8);
        assert_eq!(kept(&row, &p.with_temperature(2.0)), [0, 1, 2]);
        assert_eq!(kept(&row, &p), [0, 1]);
        let r = report(&[2.0f32, 0.0], &params().with_temperature(2.0), 0.0, 0).unwrap();
        assert!((r.chosen.probability - 0.731_058_6).abs() < 1e-6);
    }

    #[test]
    fn b02_b03_top_k() {
        let row = [0.1, 0.7, 0.2];
        assert_eq!(pick(&row, &params().with_top_k(1), 0.9), (1, Some(1)));
        assert_eq!(pick(&row, &params().with_top_k(2), 0.9).1, Some(2));
        assert_eq!(pick(&row, &params().with_top_k(3), 0.9).1, None);
        assert_eq!(pick(&row, &params().with_top_k(100_000), 0.9).1, None);
        // A token without mass is never kept: e^-31 is below 2^-44.
        assert_eq!(kept(&[0.0, -31.0, MASKED, -1.0], &params().with_top_k(3)), [0, 3]);
    }

    #[test]
    fn b07_b09_min_p_is_a_share_of_the_best_after_temperature() {
        let p = params().with_min_p(0.1);
        assert_eq!(kept(&[5.0, 4.9, 1.0], &p), [0, 1]);
        let p = params().with_min_p(0.05);
        assert_eq!(kept(&[0.0, -2.5], &p), [0, 1]);
        assert_eq!(kept(&[0.0, -2.5], &p.with_temperature(0.5)), [0]);
        assert_eq!(kept(&[1.0, 1.0, 0.999], &params().with_min_p(1.0)), [0, 1]);
        assert_eq!(pick(&[1.0, 0.0], &params().with_min_p(0.0), 0.0).1, None);
    }

    #[test]
    fn b11_typical_drops_the_best_token() {
        let row = logits(&[0.6, 0.3, 0.1]);
        // Distances from the entropy .387, .306, 1.405.
        assert_eq!(kept(&row, &params().with_typical_p(0.2)), [1]);
        assert_eq!(kept(&row, &params().with_typical_p(0.5)), [1, 0]);
        let all = params().with_typical_p(1.0);
        assert_eq!(kept(&row, &all), [1, 0, 2]);
        // Not truncated, but drawn in typical's order.
        assert_eq!(pick(&row, &all, 0.29), (1, None));
        assert_eq!(pick(&row, &all, 0.31), (0, None));
    }

    #[test]
    fn b12_typical_with_a_masked_token() {
        let row = [1.0, 0.0, MASKED];
        assert_eq!(kept(&row, &params().with_typical_p(1.0)), [0, 1]);
        assert_eq!(kept(&row, &params().with_typical_p(0.7)), [0]);
        let r = report(&row, &params(), 0.0, 9).unwrap();
        assert!((r.entropy * core::f64::consts::LN_2 - 0.582_203).abs() < 1e-6);
        assert_eq!(r.alternatives.len(), 2);
    }

    #[test]
    fn b14_epsilon_after_typical_keeps_the_best_ranked_one_and_the_order() {
        let row = logits(&[0.6, 0.3, 0.1]);
        // Typical leaves 1 and 0, in this order; .6 of .9 and .3 of .9.
        let p = params().with_typical_p(0.5);
        assert_eq!(kept(&row, &p.with_epsilon(0.3)), [1, 0]);
        assert_eq!(kept(&row, &p.with_epsilon(0.4)), [0]);
        assert_eq!(kept(&row, &p.with_epsilon(0.9)), [0]);
        // Where typical left the best token out, the best of the rest stays.
        assert_eq!(kept(&row, &params().with_typical_p(0.2).with_epsilon(0.9)), [1]);
    }

    #[test]
    fn epsilon_is_a_share_of_what_is_alive() {
        assert_eq!(kept(&[1.0; 4], &params().with_epsilon(0.25)).len(), 4);
        // No token reaches it, so the best one alone stays.
        let above = f64::from_bits(0.25f64.to_bits() + 1);
        assert_eq!(kept(&[1.0; 4], &params().with_epsilon(above)), [0]);
        // 1/4 of all, but 1/2 of the two that top-k leaves.
        assert_eq!(kept(&[1.0; 4], &params().with_top_k(2).with_epsilon(0.5)), [0, 1]);
        assert_eq!(pick(&[1.0; 4], &params().with_epsilon(0.0), 0.5), (2, None));
    }

    #[test]
    fn d01_e01_e07_greedy_takes_the_first_maximum() {
        for t in [0.0, -0.0] {
            let greedy = params().with_temperature(t).with_top_k(2);
            assert_eq!(pick(&[1.0, 3.0, 2.0], &greedy, 0.99), (1, Some(1)));
            assert_eq!(pick(&[0.0, 1.0, 1.0], &greedy, 0.99), (1, Some(1)));
            assert_eq!(pick(&[-0.0, 0.0], &greedy, 0.99), (0, Some(1)));
        }
        assert_eq!(argmax(&[0.0f32, 1.0, 1.0]), Some(1));
        assert_eq!(argmax(&[-0.0f32, 0.0]), Some(0));
        assert_eq!(argmax(&[f32::NAN, 1.0]), Some(0));
        assert_eq!(argmax(&[0.0, f32::NAN, 1.0]), Some(2));
        assert_eq!(argmax::<f32>(&[]), None);
        // Top-k 1 agrees, although 50 is hot enough for the weights to be equal.
        let hot = params().with_temperature(50.0).with_top_k(1);
        assert_eq!(pick(&[1.0, 1.000_000_1], &hot, 0.0).0, 1);
    }

    #[test]
    fn c_rows_are_checked_in_order() {
        let check = |row: &[f32], u| sample(row, &params(), u).unwrap_err();
        let (nan, inf) = (NotFinite::NaN, NotFinite::PosInf);
        assert_eq!(check(&[], 2.0), Error::RowLength { len: 0 });
        let long = vec![f32::NAN; crate::MAX_VOCAB + 1];
        assert_eq!(check(&long, 2.0), Error::RowLength { len: long.len() });
        let fault = |index, value| Error::NotFinite { index, value };
        assert_eq!(check(&[MASKED, f32::NAN, f32::INFINITY], 2.0), fault(1, nan));
        assert_eq!(check(&[1.0, f32::INFINITY, f32::NAN], 2.0), fault(1, inf));
        assert_eq!(check(&[MASKED; 3], 2.0), Error::NoAllowedToken);
        for u in [1.0, -1e-300, f64::NAN, f64::INFINITY] {
            assert_eq!(check(&[1.0], u), Error::Draw { u: Number(u) });
        }
        assert_eq!(pick(&[1.0], &params(), -0.0), (0, None));
        // Parameters come before the row.
        let error = sample::<f32>(&[], &params().with_top_k(0), 2.0).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "top_k", .. }));
    }

    #[test]
    fn g02_the_draw_never_lands_on_a_token_without_mass() {
        assert_eq!(pick(&[MASKED, 0.0], &params(), 0.0).0, 1);
        let last = 1.0 - f64::EPSILON / 2.0;
        assert_eq!(pick(&[0.0, -40.0], &params(), last).0, 0);
        // u = k/4 on four equal tokens is exactly the start of token k.
        for (k, u) in [0.0, 0.25, 0.5, 0.75].into_iter().enumerate() {
            assert_eq!(pick(&[3.0; 4], &params(), u).0, k as u32);
            if k > 0 {
                // The next draw below is still the token before.
                let below = f64::from_bits(u.to_bits() - 1);
                assert_eq!(pick(&[3.0; 4], &params(), below).0, k as u32 - 1);
            }
        }
    }

    #[test]
    fn extreme_gaps_and_temperatures_stay_finite() {
        let row = [f32::MAX, f32::MIN, 1.0];
        for t in [f32::MIN_POSITIVE, 1.0, f32::MAX] {
            let r = report(&row, &params().with_temperature(t), 0.3, 3).unwrap();
            for a in r.alternatives {
                assert!(a.surprise.is_finite() && a.logprob.is_finite());
            }
        }
    }

    #[test]
    fn reports_by_hand() {
        // Four equal tokens and a masked one; top-k 2, u = 1/2 draws the second.
        let row = [0.0f32, 0.0, MASKED, 0.0, 0.0];
        let r = report(&row, &params().with_top_k(2), 0.5, 3).unwrap();
        let ln4 = 4f64.ln();
        assert_eq!((r.chosen.token, r.kept, r.retained), (1, 2, 0.5));
        assert_eq!((r.chosen.probability, r.chosen.conditional), (0.25, 0.5));
        assert!((r.chosen.surprise - 2.0).abs() < 1e-15 && (r.entropy - 2.0).abs() < 1e-15);
        assert!((r.chosen.logprob + ln4).abs() < 1e-15);
        let list: Vec<_> = r.alternatives.iter().map(|a| (a.token, a.conditional)).collect();
        assert_eq!(list, [(0, 0.5), (1, 0.5), (3, 0.0)]);

        // The drawn one is added when the best don't hold it; a token without mass is reported.
        let row = [0.0f32, -1.0, -40.0];
        let r = report(&row, &params(), 0.9, 1).unwrap();
        let ids = |r: &Report| r.alternatives.iter().map(|a| a.token).collect::<Vec<_>>();
        assert_eq!((ids(&r), r.kept, r.retained), (vec![0, 1], 2, 1.0));
        let r = report(&row, &params(), 0.9, 9).unwrap();
        assert_eq!(ids(&r), [0, 1, 2]);
        let none = r.alternatives[2];
        assert_eq!((none.probability, none.conditional), (0.0, 0.0));
        assert!(none.logprob < -40.0 && none.surprise.is_finite());
    }

    #[test]
    fn greedy_reports_at_temperature_1() {
        let r = report(&[0.0f32, 0.0], &params().with_temperature(0.0), 0.9, 0).unwrap();
        assert_eq!((r.chosen.token, r.kept, r.retained), (0, 1, 0.5));
        assert_eq!((r.chosen.probability, r.chosen.conditional), (0.5, 1.0));
        assert_eq!(r.alternatives, [r.chosen]);
    }

    #[test]
    fn cuts_are_exact() {
        assert_eq!((cut(0.5, 3), cut(0.5, 4), cut(1.0, 3)), (2, 2, 3));
        // 0.1 is above 1/10 in f64, 0.3 below 3/10.
        assert_eq!((cut(0.1, 10), cut(0.3, 10)), (2, 3));
        assert_eq!(cut(1.0, 1 << 63), 1 << 63);
        let below = f64::from_bits(1.0f64.to_bits() - 1);
        assert_eq!(cut(below, 1 << 63), (1 << 63) - (1 << 10));
        assert_eq!(cut(below, 3), 3);
        for tiny in [f64::from_bits(1), f64::MIN_POSITIVE, 1e-40, 2f64.powi(-64)] {
            assert_eq!((cut(tiny, 1), cut(tiny, 1 << 63)), (1, 1));
            assert_eq!((floor_share(tiny, 1), floor_share(tiny, 1 << 63)), (0, 0));
        }
        assert_eq!((cut(0.0, 9), cut(-0.0, 9), floor_share(-0.0, 9)), (0, 0, 0));
        assert_eq!((cut(2f64.powi(-62), 1 << 63), cut(2f64.powi(-63), 1 << 63)), (2, 1));
        assert_eq!((floor_share(0.5, 3), floor_share(below, 3)), (1, 2));
    }

    #[test]
    fn e06_half_precision_rows_widen_first() {
        let row = [10.001f32, 10.002];
        let greedy = params().with_temperature(0.0);
        assert_eq!(sample(&row, &greedy, 0.0).unwrap().token, 1);
        assert_eq!(sample(&row.map(f16::from_f32), &greedy, 0.0).unwrap().token, 0);
        assert_eq!(sample(&row.map(bf16::from_f32), &greedy, 0.0).unwrap().token, 0);
    }

    #[test]
    fn h01_v1_uses_tokens_with_mass_only() {
        let row = [0.7f32.ln(), 0.3f32.ln(), MASKED, MASKED];
        // s = ln(7/3) / ln 2 = 1.222; k = (0.222 * 2^mu / (1 - 4^-0.222))^(1/s): 0.92 for mu = 0,
        // 1.61 for mu = 1.
        let v1 = |mu, u| mirostat_v1(&row, 1.0, mu, 100, u).unwrap();
        assert_eq!((v1(0.0, 0.9).token, v1(0.0, 0.9).kept), (0, 1));
        assert_eq!((v1(1.0, 0.9).token, v1(1.0, 0.9).kept), (1, 2));
        // k = 4 by the clamp, of which two have mass.
        assert_eq!(v1(1e300, 0.0).kept, 2);
        assert_eq!(v1(-1e300, 0.9).kept, 1);
        // One token with mass: k = 1, whatever mu is.
        let one = mirostat_v1(&[MASKED, 1.0, -90.0], 1.0, 1e9, 100, 0.9).unwrap();
        assert_eq!((one.token, one.kept, one.probability), (1, 1, 1.0));
    }

    #[test]
    fn v1_top_k_on_a_power_law() {
        // p_i proportional to i^-2, V = 4, mu = 2: s = 2, k = 2.309 -> 2.
        let row: Vec<f32> = (1..=4).map(|i| -2.0 * (i as f32).ln()).collect();
        let ranked = Ranked::from_logits(&row, 1.0).unwrap();
        let xs: Vec<f64> = ranked.tokens.iter().map(|t| t.x).collect();
        assert!((report::zipf_slope(&xs) - 2.0).abs() < 1e-6);
        let pick = mirostat_v1(&row, 1.0, 2.0, 100, 0.81).unwrap();
        // 1 of 1.25 is .8.
        assert_eq!((pick.token, pick.kept), (1, 2));
        assert!((pick.probability - 0.25 / (1.0 + 0.25 + 1.0 / 9.0 + 1.0 / 16.0)).abs() < 1e-6);
    }

    #[test]
    fn h04_v2_cuts_at_surprise_in_bits() {
        let row = logits(&[0.6, 0.3, 0.1]);
        let v2 = |mu| mirostat_v2(&row, 1.0, mu, 0.99).unwrap();
        assert_eq!((v2(1.5).token, v2(1.5).kept), (0, 1));
        assert_eq!((v2(1.8).token, v2(1.8).kept), (1, 2));
        assert_eq!((v2(1e300).kept, v2(-1e300).kept), (3, 1));
        assert!((v2(1.5).surprise - 0.736_966).abs() < 1e-5);
    }

    #[test]
    fn weights_as_input() {
        // Ratios 1 : 1/2 : 1/4 : 0, exact masses.
        let row = [1.0, 0.0, 2.0, 0.5];
        let v2 = |mu, u| mirostat_v2_weights(&row, mu, u).unwrap();
        // S = 7/4: surprises log2(7/4) = .807, 1.807, 2.807.
        assert_eq!((v2(0.0, 0.99).token, v2(0.0, 0.99).kept), (2, 1));
        assert_eq!((v2(1.81, 0.99).token, v2(1.81, 0.99).kept), (0, 2));
        assert_eq!((v2(3.0, 0.99).token, v2(3.0, 0.99).kept), (3, 3));
        assert_eq!(v2(3.0, 0.99).probability, 1.0 / 7.0);
        assert!((v2(3.0, 0.99).surprise - 7f64.log2()).abs() < 1e-12);
        let v1 = mirostat_v1_weights(&[0.5, 0.5, 0.0], -1e9, 2, 0.99).unwrap();
        assert_eq!((v1.token, v1.kept), (0, 1));
    }

    #[test]
    fn weights_are_checked_in_order() {
        let check = |row: &[f32]| mirostat_v2_weights(row, 5.0, 2.0).unwrap_err();
        let negative = |index, v| Error::NegativeWeight { index, value: Number(v) };
        let not_finite = |index, value| Error::NotFinite { index, value };
        assert_eq!(check(&[]), Error::RowLength { len: 0 });
        assert_eq!(check(&[0.0, -1.0, f32::NAN]), negative(1, -1.0));
        assert_eq!(check(&[0.0, MASKED]), negative(1, f64::NEG_INFINITY));
        assert_eq!(check(&[f32::NAN, -1.0]), not_finite(0, NotFinite::NaN));
        assert_eq!(check(&[1.0, f32::INFINITY, -1.0]), not_finite(1, NotFinite::PosInf));
        assert_eq!(check(&[0.0, -0.0]), Error::NoAllowedToken);
        assert_eq!(check(&[1.0]), Error::Draw { u: Number(2.0) });
        let error = mirostat_v1_weights(&[], f64::NAN, 1, 2.0).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "mu", .. }));
        let error = mirostat_v1_weights(&[], 1.0, 1, 2.0).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "m", .. }));
        let error = mirostat_v2(&[1.0f32], 0.0, 1.0, 0.5).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "temperature", .. }));
    }

    #[test]
    fn counterparts_of_the_kernels() {
        let row = [-0.0f32, -0.1, MASKED, -1.0, -0.0];
        assert_eq!(max(&row).unwrap().to_bits(), 0);
        assert_eq!(max::<f32>(&[]), Ok(MASKED));
        assert_eq!(weights(&row, 0.0, 1.0)[2], 0.0);
        let masses: Vec<u64> = weights(&row, 0.0, 1.0).into_iter().map(mass).collect();
        assert_eq!(total_mass(&row, 0.0, 1.0), masses.iter().sum::<u64>());
        let (counts, sums) = exponent_histogram(&row, 0.0, 1.0);
        assert_eq!((&counts[..4], sums[0]), (&[2, 1, 1, 0][..], 2 * ONE));
        assert_eq!(sums[2], masses[3]);
        assert_eq!(at_least(&row, MASKED).len(), 4);
        assert_eq!(at_least(&row, -0.1), [(0, 0.0), (1, -0.1), (4, 0.0)]);
    }
}
