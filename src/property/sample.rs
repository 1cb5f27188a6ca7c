//! Samplers: one row, every level, every path.

use super::bytes::{Bytes, Random};
use super::params;
use super::row::{Frame, Make, length, row, show};
use crate::element::Element;
use crate::error::Error;
use crate::level::Level;
use crate::params::SamplingParams;
use crate::paths::{Path, Paths};
use crate::pick::{Alternative, Pick, Report};
use crate::reference;
use crate::sampler::{Sampler, Scratch};
use half::{bf16, f16};

const PATHS: [Path; 4] = [Path::Bounds, Path::Cheap, Path::Exact, Path::Full];

/// Checks the samplers on the case that these bytes say.
///
/// # Errors
/// The case in full, and what is wrong with it.
pub fn samplers(bytes: &[u8]) -> Result<(), String> {
    super::check(bytes, [case::<f32>, case::<f16>, case::<bf16>])
}

fn case<E: Make>(b: &mut Bytes<'_>) -> Result<(), String> {
    let temperature = params::temperature(b);
    let frame = Frame::read(b, temperature);
    let len = length(b, super::LONGEST);
    let row = row::<E>(b, frame, len);
    let params = params::params(b, temperature, &row);
    let mut scratch = Scratch::new();
    // A long row's time is better spent on another row.
    let mut draws = if row.len() > 4096 { 1 } else { 1 + b.below(3) };
    while draws > 0 {
        let u = params::draw(b, &row, &params);
        let alternatives = b.of(&[0, 1, 2, 5, 64, 65, 200, usize::MAX]);
        check(&row, &params, u, alternatives, &mut scratch)?;
        draws -= 1;
    }
    Ok(())
}

/// One decision: on every level, from every path on, with memory that has seen other rows and with fresh one.
pub(super) fn check<E: Make>(
    row: &[E],
    params: &SamplingParams,
    u: f64,
    alternatives: usize,
    used: &mut Scratch,
) -> Result<(), String> {
    let pick = reference::sample(row, params, u);
    let report = reference::report(row, params, u, alternatives);
    let case = || format!("{params:?}, u = {u:?}, {alternatives} alternatives, {}", show(row));
    let sampler = match Sampler::new(*params) {
        Ok(sampler) => sampler,
        Err(error) if pick.as_ref() == Err(&error) => return Ok(()),
        Err(error) => return Err(format!("refused: {error:?}; reference: {pick:?}; {}", case())),
    };
    if let Err(what) = consistent(row, &pick, &report) {
        return Err(format!("the reference itself: {what}: {pick:?}, {report:?}; {}", case()));
    }
    for level in Level::tested() {
        let sampler = sampler.with_level(level);
        let mut fresh = Scratch::new();
        for (scratch, memory) in [(&mut fresh, "fresh"), (&mut *used, "used")] {
            for path in PATHS {
                scratch.start_at(path);
                let got = sampler.sample(row, u, scratch);
                if got != pick {
                    return Err(format!(
                        "{level}, from {path:?}, {memory} memory: {got:?}, not {pick:?}; {}",
                        case()
                    ));
                }
            }
            // A report has the exact total, so only two ways are left.
            for path in [Path::Bounds, Path::Full] {
                scratch.start_at(path);
                let before = sentinel();
                let mut got = before.clone();
                let outcome = sampler.report(row, u, alternatives, scratch, &mut got);
                let same = match (&outcome, &report) {
                    (Ok(()), Ok(want)) => bits(&got) == bits(want),
                    (Err(a), Err(b)) => a == b && bits(&got) == bits(&before),
                    _ => false,
                };
                if !same {
                    return Err(format!(
                        "{level}, report from {path:?}, {memory} memory: {outcome:?} {got:?}, \
                         not {report:?}; {}",
                        case()
                    ));
                }
            }
            scratch.start_at(Path::Bounds);
        }
    }
    Ok(())
}

/// What must hold of any right answer, whoever gives it.
fn consistent<E: Element>(
    row: &[E],
    pick: &Result<Pick, Error>,
    report: &Result<Report, Error>,
) -> Result<(), &'static str> {
    let (pick, report) = match (pick, report) {
        (Ok(pick), Ok(report)) => (pick, report),
        (Err(a), Err(b)) if a == b => return Ok(()),
        _ => return Err("pick and report disagree about the error"),
    };
    let holds = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
    let chosen = &report.chosen;
    let token = row.get(pick.token as usize).map(|v| v.to_f32());
    holds(token.is_some_and(|l| l > f32::NEG_INFINITY), "a token that is masked or outside")?;
    holds(pick.token == chosen.token, "pick and report disagree about the token")?;
    holds(pick.kept.is_none_or(|n| n == report.kept), "and about the count")?;
    holds((1..=row.len()).contains(&(report.kept as usize)), "the count is impossible")?;
    holds(chosen.probability > 0.0 && chosen.conditional >= chosen.probability, "probability")?;
    holds(report.retained > 0.0 && report.retained <= 1.0, "retained")?;
    holds(report.entropy >= 0.0 && report.entropy.is_finite(), "entropy")?;
    let finite = |t: &Alternative| t.surprise.is_finite() && t.logprob.is_finite();
    holds(report.alternatives.iter().all(finite), "a report that is not finite")
}

/// A report that nothing computes.
fn sentinel() -> Report {
    let chosen = Alternative {
        token: u32::MAX,
        probability: -1.0,
        conditional: f64::NAN,
        surprise: -0.0,
        logprob: 7.0,
    };
    let alternatives = vec![chosen; 3];
    Report { chosen, kept: 77, retained: -3.0, entropy: -4.0, alternatives }
}

/// Every bit of a report: `==` takes zeros of both signs for the same and NaN for different.
pub(super) fn bits(report: &Report) -> Vec<u64> {
    let one = |t: &Alternative| {
        let numbers = [t.probability, t.conditional, t.surprise, t.logprob].map(f64::to_bits);
        [u64::from(t.token), numbers[0], numbers[1], numbers[2], numbers[3]]
    };
    let numbers = [report.kept.into(), report.retained.to_bits(), report.entropy.to_bits()];
    let list = report.alternatives.iter().flat_map(one);
    numbers.into_iter().chain(one(&report.chosen)).chain(list).collect()
}

/// Checks long rows with draws so near to a boundary that bounds on the total mass can't always decide; gives the
/// number of decisions by each path.
///
/// # Errors
/// As [`samplers`].
pub fn gaps(bytes: &[u8]) -> Result<Paths, String> {
    super::check(bytes, [gap_case::<f32>, gap_case::<f16>, gap_case::<bf16>])
}

fn gap_case<E: Make>(b: &mut Bytes<'_>) -> Result<Paths, String> {
    let temperature = b.of(&[1.0, 0.7, 0.3, 2.0]);
    let len = 1025 + b.below(40_000.min(super::LONGEST));
    let (best, depth) = (20.0, b.of(&[12.0, 9.0, 6.0, 16.0, 3.0, 0.0]));
    // A few good tokens over a mass of bad ones, whose total the block maxima bound loosely.
    let mut random = Random(b.u64());
    let tail = b.of(&[1.0, 4.0, 0.01]);
    let mut row: Vec<E> = (0..len)
        .map(|_| E::make(best - temperature * (depth + tail * random.unit()) as f32))
        .collect();
    for _ in 0..b.below(40) {
        let at = random.below(len);
        row[at] = E::make(best - temperature * (random.unit() * 4.0) as f32);
    }
    row[random.below(len)] = E::make(best);

    let params = SamplingParams::new().with_temperature(temperature);
    let alive = params::Alive::new(&row, &params);
    let mut paths = Paths::default();
    let (mut used, mut natural) = (Scratch::new(), Scratch::new());
    for _ in 0..4 {
        // From far outside the bounds' width (a few parts in a thousand or more without a pass over the row, 2^-14 with
        // the cheap one) to exactly on the boundary.
        let width = b.of(&[0.0, 1e-2, 1e-3, 1e-4, 2f64.powi(-15), 1e-5, 1e-9, 1e-16]);
        let width = if b.chance(128) { width } else { -width };
        let share = alive.prefix_share(b) * (1.0 + width);
        let share = share.clamp(1e-9, 1.0 - f64::EPSILON / 2.0);
        let (params, u) = match b.below(4) {
            0 | 1 => (params, share),
            2 => (params.with_top_p(share), f64::from(b.u8()) / 256.0),
            _ => (params.with_epsilon(share), f64::from(b.u8()) / 256.0),
        };
        check(&row, &params, u, 2, &mut used)?;
        let sampler = Sampler::new(params).map_err(|error| error.to_string())?;
        // Agreement has been checked; this one counts.
        let _ = sampler.sample(&row, u, &mut natural);
    }
    let found = natural.paths();
    paths.bounds += found.bounds;
    paths.cheap += found.cheap;
    paths.exact += found.exact;
    paths.full += found.full;
    Ok(paths)
}
