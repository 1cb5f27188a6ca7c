//! Everything there is in a small world: tiny rows over six logits with every sampler and every pair of filters, and
//! every f16 and bf16 value in a row, against the reference.

mod support;

use half::{bf16, f16};
use sortless::kernels::mass;
use sortless::{Element, Level, Path, Report, Sampler, SamplingParams, Scratch, reference};
use std::collections::BTreeSet;
use support::{Make, levels};

/// Masked; as good as weightless beside the others, and with the smallest mass there is beside a maximum of 0; two that
/// are neighbours; zero; and one more.
const LOGITS: [f32; 6] =
    [f32::NEG_INFINITY, -29.8, 0.0, f32::from_bits(1.0f32.to_bits() - 1), 1.0, 2.5];

/// Every row of `len` of these logits.
fn rows(len: usize) -> impl Iterator<Item = Vec<f32>> {
    (0..LOGITS.len().pow(len as u32)).map(move |mut n| {
        let mut digit = || {
            let logit = LOGITS[n % LOGITS.len()];
            n /= LOGITS.len();
            logit
        };
        (0..len).map(|_| digit()).collect()
    })
}

/// Each share, if `fine` with the f64 below and above it, as far as they satisfy `valid`, and some more.
fn grid(
    shares: impl Iterator<Item = f64>,
    fine: bool,
    more: &[f64],
    valid: impl Fn(f64) -> bool,
) -> Vec<f64> {
    let beside = |p: f64| if fine { [p.next_down(), p, p.next_up()] } else { [p; 3] };
    let near = shares.flat_map(beside);
    let bits: BTreeSet<u64> =
        near.chain(more.iter().copied()).filter(|&p| valid(p)).map(f64::to_bits).collect();
    bits.into_iter().map(f64::from_bits).collect()
}

/// The grids of a row: where its decisions change, exactly, and one f64 to either side.
struct Grids {
    draws: Vec<f64>,
    /// Setters of one filter each, by filter.
    filters: [Vec<SamplingParams>; 5],
}

impl Grids {
    /// `fine`: with the f64 beside each boundary of a filter, not of the draw alone.
    fn new(row: &[f32], temperature: f32, fine: bool) -> Self {
        let max = reference::max(row).unwrap();
        let mut weights = reference::weights(row, max.max(f32::MIN), temperature);
        weights.retain(|&w| mass(w) > 0);
        weights.sort_by(|a, b| b.total_cmp(a));
        let total: u64 = weights.iter().map(|&w| mass(w)).sum();
        let mut sum = 0;
        let prefixes: Vec<f64> = weights
            .iter()
            .map(|&w| {
                sum += mass(w);
                sum as f64 / total as f64
            })
            .collect();
        let prefixes = || prefixes.iter().copied();
        let plain = SamplingParams::new().with_temperature(temperature);
        let share = |p: f64| p > 0.0 && p <= 1.0;
        let p = grid(prefixes(), fine, &[1.0, 0.3], share);
        let min_p = grid(weights.iter().map(|&w| f64::from(w)), fine, &[0.0, 1.0], |p| p <= 1.0);
        let epsilon =
            grid(weights.iter().map(|&w| mass(w) as f64 / total as f64), fine, &[0.0], |p| p < 1.0);
        Self {
            draws: grid(prefixes(), true, &[0.0, 0.5, 1.0f64.next_down()], |u| {
                (0.0..1.0).contains(&u)
            }),
            filters: [
                (1..=4).map(|k| plain.with_top_k(k)).collect(),
                p.iter().map(|&p| plain.with_top_p(p)).collect(),
                min_p.iter().map(|&p| plain.with_min_p(p)).collect(),
                p.iter().map(|&p| plain.with_typical_p(p)).collect(),
                epsilon.iter().map(|&p| plain.with_epsilon(p)).collect(),
            ],
        }
    }

    fn all(&self) -> impl Iterator<Item = &SamplingParams> {
        self.filters.iter().flatten()
    }

    /// Every pair of two filters.
    fn pairs(&self) -> impl Iterator<Item = SamplingParams> {
        let both = |a: &SamplingParams, b: &SamplingParams| {
            let mut both = *a;
            both.top_k = a.top_k.or(b.top_k);
            both.top_p = a.top_p.or(b.top_p);
            both.min_p = a.min_p.or(b.min_p);
            both.typical_p = a.typical_p.or(b.typical_p);
            both.epsilon = a.epsilon.or(b.epsilon);
            both
        };
        (0..5).flat_map(move |i| {
            let seconds = self.filters[i + 1..].iter().flatten();
            seconds.flat_map(move |b| self.filters[i].iter().map(move |a| both(a, b)))
        })
    }
}

/// What decisions run with: every level, and on the best one every fifth from the whole row, too.
struct Ways {
    levels: Vec<Level>,
    head: Scratch,
    full: Scratch,
    decisions: u64,
}

impl Ways {
    fn new() -> Self {
        let mut full = Scratch::new();
        full.start_at(Path::Full);
        Self { levels: levels(), head: Scratch::new(), full, decisions: 0 }
    }

    fn check<E: Element>(&mut self, row: &[E], params: &SamplingParams, u: f64) {
        let want = reference::sample(row, params, u);
        let sampler = Sampler::new(*params).unwrap();
        for (i, &level) in self.levels.iter().enumerate() {
            let sampler = sampler.with_level(level);
            let got = sampler.sample(row, u, &mut self.head);
            assert_eq!(got, want, "{level} {row:?} {params:?} u = {u:?}");
            // That costs a hundred times what so short a row is worth.
            if i == 0 && self.decisions.is_multiple_of(5) {
                let got = sampler.sample(row, u, &mut self.full);
                assert_eq!(got, want, "{level}, full, {row:?} {params:?} u = {u:?}");
            }
        }
        self.decisions += 1;
    }

    /// Numbers that are equal and print the same have the same bits.
    fn check_report<E: Element>(&mut self, row: &[E], params: &SamplingParams, u: f64) {
        let want = reference::report(row, params, u, row.len());
        for &level in &self.levels {
            let sampler = Sampler::new(*params).unwrap().with_level(level);
            for scratch in [&mut self.head, &mut self.full] {
                let mut report = Report::default();
                let got = sampler.report(row, u, row.len(), scratch, &mut report).map(|()| report);
                assert_eq!(format!("{got:?}"), format!("{want:?}"), "{level} {row:?} {params:?}");
            }
        }
    }
}

fn tiny(len: usize) {
    let mut ways = Ways::new();
    for row in rows(len) {
        let plain = SamplingParams::new();
        if row.iter().all(|&l| l == f32::NEG_INFINITY) {
            ways.check(&row, &plain, 0.5);
            continue;
        }
        ways.check(&row, &plain.with_temperature(0.0), 0.5);
        for temperature in [1.0, 0.37] {
            let plain = plain.with_temperature(temperature);
            let grids = Grids::new(&row, temperature, true);
            for &u in &grids.draws {
                ways.check(&row, &plain, u);
                for params in grids.all() {
                    ways.check(&row, params, u);
                }
            }
            for params in grids.all() {
                ways.check_report(&row, params, grids.draws[grids.draws.len() / 2]);
            }
        }
        let grids = Grids::new(&row, 1.0, len < 4);
        for params in grids.pairs() {
            for &u in &grids.draws {
                ways.check(&row, &params, u);
            }
        }
    }
    println!("{len} tokens: {} decisions", ways.decisions);
}

#[test]
fn every_row_of_one_two_and_three() {
    (1..=3).for_each(tiny);
}

/// Cuts of pairs stand on their boundaries alone here, and draws beside them too.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_row_of_four() {
    tiny(4);
}

/// Some of each sampler.
fn some_params() -> [SamplingParams; 7] {
    let plain = SamplingParams::new();
    [
        plain,
        plain.with_temperature(0.0),
        plain.with_top_k(2),
        plain.with_top_p(0.9),
        plain.with_min_p(0.1),
        plain.with_typical_p(0.6),
        plain.with_epsilon(0.2),
    ]
}

/// Each pattern beside two ordinary values.
fn each_pattern<E: Make>() {
    let mut ways = Ways::new();
    for bits in 0..=u32::from(u16::MAX) {
        let row = [E::make(-2.0), E::from_pattern(bits), E::make(1.0)];
        for params in some_params() {
            ways.check(&row, &params, 0.6);
        }
        ways.check_report(&row, &SamplingParams::new().with_top_p(0.9), 0.3);
    }
}

/// All patterns that are numbers in one row, in an order that has nothing to do with their values.
fn all_patterns<E: Make>() {
    let numbers: Vec<E> = (0..=u32::from(u16::MAX))
        .map(|i| E::from_pattern(i.wrapping_mul(40_503) & 0xffff))
        .filter(|v| !v.to_f32().is_nan() && v.to_f32() != f32::INFINITY)
        .collect();
    let mut ways = Ways::new();
    // The half of f16 whose largest is 65504, the whole of bf16; peaked and flat.
    for temperature in [1.0, 300.0, 40_000.0, 1e36, f32::MAX] {
        for params in some_params() {
            let temperature = if params.is_greedy() { 0.0 } else { temperature };
            let params = params.with_temperature(temperature);
            for u in [0.0, 0.37, 1.0f64.next_down()] {
                ways.check(&numbers, &params, u);
            }
            ways.check_report(&numbers[..9000], &params, 0.7);
        }
    }
}

#[test]
fn every_f16_pattern() {
    each_pattern::<f16>();
    all_patterns::<f16>();
}

#[test]
fn every_bf16_pattern() {
    each_pattern::<bf16>();
    all_patterns::<bf16>();
}
