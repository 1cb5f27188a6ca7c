//! What the tests of the samplers share: comparison with the reference, boundaries, parameter sets.
#![allow(dead_code)]

use super::support::{Random, levels};
use sortless::reference::Sorted;
use sortless::{
    Alternative, Element, Level, Path, Paths, Pick, Report, Sampler, SamplingParams, Scratch,
};
use std::fmt::Debug;

/// The largest draw below 1.
pub const LAST: f64 = 1.0 - f64::EPSILON / 2.0;

/// The paths that a decision can be forced to start at.
pub const STARTS: [Path; 4] = [Path::Bounds, Path::Cheap, Path::Exact, Path::Full];

/// Parameters at a temperature, all filters off.
pub fn at(temperature: f32) -> SamplingParams {
    SamplingParams::new().with_temperature(temperature)
}

pub fn sampler(params: &SamplingParams, level: Level) -> Sampler {
    match Sampler::new(*params) {
        Ok(sampler) => sampler.with_level(level),
        Err(error) => panic!("{params:?}: {error}"),
    }
}

/// A report with its numbers as bits.
pub fn bits(report: &Report) -> (Vec<[u64; 5]>, u32, u64, u64) {
    let numbers = |a: &Alternative| {
        let floats = [a.probability, a.conditional, a.surprise, a.logprob].map(f64::to_bits);
        [u64::from(a.token), floats[0], floats[1], floats[2], floats[3]]
    };
    let tokens = core::iter::once(&report.chosen).chain(&report.alternatives);
    (
        tokens.map(numbers).collect(),
        report.kept,
        report.retained.to_bits(),
        report.entropy.to_bits(),
    )
}

/// Compares the samplers with the reference, on every level and path.
pub struct Check {
    pub levels: Vec<Level>,
    /// For each level and start.
    scratch: Vec<[Scratch; 4]>,
    report: Report,
    pub decisions: u64,
}

impl Default for Check {
    fn default() -> Self {
        Self::new()
    }
}

impl Check {
    pub fn new() -> Self {
        let levels = levels();
        let scratch = levels.iter().map(|_| {
            STARTS.map(|start| {
                let mut scratch = Scratch::new();
                scratch.start_at(start);
                scratch
            })
        });
        Self { scratch: scratch.collect(), levels, report: Report::default(), decisions: 0 }
    }

    /// One pick: on every level, from every start. Returns it.
    pub fn pick<E: Element>(
        &mut self,
        row: &[E],
        sorted: &Sorted,
        params: &SamplingParams,
        u: f64,
        name: impl Debug,
    ) -> Pick {
        let want = sorted.sample(params, u).unwrap();
        for (&level, scratch) in self.levels.iter().zip(&mut self.scratch) {
            let sampler = sampler(params, level);
            for (start, scratch) in STARTS.iter().zip(scratch) {
                let got = sampler.sample(row, u, scratch);
                self.decisions += 1;
                assert_eq!(
                    got,
                    Ok(want),
                    "{name:?}, {} tokens, {level}, {start:?}: {params:?}, u = {u:?}",
                    row.len()
                );
            }
        }
        want
    }

    /// One pick and its report.
    pub fn report<E: Element>(
        &mut self,
        row: &[E],
        sorted: &Sorted,
        params: &SamplingParams,
        u: f64,
        alternatives: usize,
        name: impl Debug,
    ) -> Report {
        let pick = self.pick(row, sorted, params, u, &name);
        let want = sorted.report(params, u, alternatives).unwrap();
        let want_bits = bits(&want);
        assert_eq!(want.chosen.token, pick.token);
        for (&level, scratch) in self.levels.iter().zip(&mut self.scratch) {
            let sampler = sampler(params, level);
            // A report knows the total, so all starts before the exact one are the same to it.
            for (start, scratch) in STARTS.iter().zip(scratch).skip(2) {
                let report = &mut self.report;
                let result = sampler.report(row, u, alternatives, scratch, report);
                self.decisions += 1;
                assert!(
                    result.is_ok() && bits(report) == want_bits,
                    "{name:?}, {} tokens, {level}, {start:?}: {params:?}, u = {u:?}\n\
                     got {result:?} {report:?}\nnot {want:?}",
                    row.len()
                );
            }
        }
        want
    }

    /// What decided where nothing was forced, for each level.
    pub fn paths(&self) -> Vec<(Level, Paths)> {
        let free = self.scratch.iter().map(|starts| starts[0].paths());
        self.levels.iter().copied().zip(free).collect()
    }
}

pub fn sort<E: Element>(row: &[E], params: &SamplingParams) -> Sorted {
    Sorted::new(row, params).unwrap()
}

/// Shares of the kept mass on, just below and just above the boundary after the `n`-th kept token.
pub fn boundary(kept: &[(u32, u64)], n: usize) -> [f64; 3] {
    let sum = |tokens: &[(u32, u64)]| tokens.iter().map(|t| t.1).sum::<u64>();
    let share = sum(&kept[..n.min(kept.len())]) as f64 / sum(kept) as f64;
    [share, share.next_down(), share.next_up()]
}

/// Draws at the ends, on boundaries of the kept set, and anywhere.
pub fn draws(
    kept: &[(u32, u64)],
    boundaries: usize,
    others: usize,
    random: &mut Random,
) -> Vec<f64> {
    let mut draws = vec![0.0, LAST];
    for i in 0..boundaries {
        // The first boundary, the last, then any; half of them near the front, where the mass is.
        let n = match i {
            0 => 1,
            1 => kept.len() - 1,
            _ if i % 2 == 0 => 1 + random.below(kept.len().min(8)),
            _ => 1 + random.below(kept.len()),
        };
        draws.extend(boundary(kept, n).into_iter().filter(|u| (0.0..1.0).contains(u)));
    }
    draws.extend((0..others).map(|_| random.unit()));
    draws
}

/// One of `choices`.
pub fn one<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len())]
}

/// A share in (0, 1]: ordinary, tiny, or nearly 1.
pub fn any_share(random: &mut Random) -> f64 {
    let unit = 1.0 - random.unit();
    match random.below(6) {
        0 => one(random, &[1e-8, 1e-3, 0.5, 0.9, 0.95, 0.99, 1.0 - 1e-7, LAST, 1.0]),
        1 => unit * 1e-3,
        2 => 10f64.powf(-8.0 * random.unit()),
        3 => 1.0 - unit * 1e-4,
        _ => unit,
    }
}

/// Any parameters: 0 to 5 filters at any temperature in 0.01 to 50, or greedy.
pub fn any_params(random: &mut Random, vocab: usize) -> SamplingParams {
    let temperature = match random.below(8) {
        0 => one(random, &[0.01, 0.1, 0.5, 0.7, 1.0, 1.5, 2.0, 10.0, 50.0]),
        1 if random.below(4) == 0 => 0.0,
        _ => (0.01 * 5000f64.powf(random.unit())) as f32,
    };
    let mut params = at(temperature);
    let mut on = || random.below(3) == 0;
    let (k, p, min_p, typical, epsilon) = (on(), on(), on(), on(), on());
    if k {
        let most = one(random, &[1, 2, 5, 64, 100, 1000, vocab, vocab + 2]);
        params = params.with_top_k(1 + random.below(most) as u32);
    }
    if p {
        params = params.with_top_p(any_share(random));
    }
    if min_p {
        let share = any_share(random);
        params = params.with_min_p(if random.below(10) == 0 { 0.0 } else { share });
    }
    if typical {
        params = params.with_typical_p(any_share(random));
    }
    if epsilon {
        // Small ones, too: they keep more than any head holds.
        let small = 10f64.powf(-12.0 * random.unit());
        let share = if random.below(2) == 0 { any_share(random) } else { small };
        params = params.with_epsilon(if share < 1.0 { share } else { 0.0 });
    }
    params
}
