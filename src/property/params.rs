//! Parameters and draws, many of them computed to sit exactly on a boundary of the row at hand.

use super::bytes::{Bytes, step_f64};
use super::row::Make;
use crate::kernels::mass;
use crate::params::SamplingParams;
use crate::reference;

/// A temperature: ordinary ones, extremes, greedy, and now and then one that is refused.
pub(super) fn temperature(b: &mut Bytes<'_>) -> f32 {
    match b.below(16) {
        0..=5 => 1.0,
        6 => 0.7,
        7 => b.of(&[2.0, 0.5, 0.25]),
        8 => b.of(&[0.05, 50.0, 1.25, 0.1]),
        9 => b.of(&[f32::MIN_POSITIVE, f32::MAX, 1e-30, 1e30]),
        10 => b.of(&[0.0, -0.0]),
        11 => f32::from_bits(b.u32() & 0x7fff_ffff | 0x0080_0000),
        12 => 0.01 + f32::from(b.u16()) / 8192.0,
        13 => b.of(&[1.0, f32::NAN, -1.0, 1e-40, f32::INFINITY, -f32::MIN_POSITIVE]),
        _ => 0.9,
    }
}

/// What is left of a row after some filters, best first; empty if the row is refused.
pub(super) struct Alive {
    masses: Vec<u64>,
    weights: Vec<f32>,
}

impl Alive {
    pub fn new<E: Make>(row: &[E], params: &SamplingParams) -> Self {
        let mut alive = Self { masses: Vec::new(), weights: Vec::new() };
        let Ok(report) = reference::report(row, params, 0.0, row.len()) else { return alive };
        let Ok(max) = reference::max(row) else { return alive };
        let temperature = if params.is_greedy() { 1.0 } else { params.temperature };
        let weights = reference::weights(row, max, temperature);
        for t in report.alternatives.iter().filter(|t| t.conditional > 0.0) {
            let weight = weights[t.token as usize];
            alive.weights.push(weight);
            alive.masses.push(mass(weight));
        }
        alive
    }

    fn total(&self) -> u64 {
        self.masses.iter().sum()
    }

    fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }

    /// The share of a prefix: exactly a boundary, as far as an f64 can be.
    pub fn prefix_share(&self, b: &mut Bytes<'_>) -> f64 {
        // Short prefixes are where the decisions lie; sometimes any.
        let n = self.masses.len();
        let len = if b.chance(128) { 1 + b.below(n) } else { 1 + b.below(n.min(8)) };
        let sum: u64 = self.masses[..len].iter().sum();
        sum as f64 / self.total() as f64
    }
}

/// Filters in their order, each made from what the ones before it leave.
pub(super) fn params<E: Make>(b: &mut Bytes<'_>, temperature: f32, row: &[E]) -> SamplingParams {
    let mut params = SamplingParams::new().with_temperature(temperature);
    let on = match b.below(10) {
        0 => 0,
        n @ 1..=5 => 1 << (n - 1),
        _ => b.u8() & 31,
    };
    if on & 1 != 0 {
        let n = row.len() as u32;
        let k = match b.below(8) {
            0 => 1,
            1 => 1 + b.below(20) as u32,
            2 => b.of(&[40, 50, 64, 63, 65, 511, 512, 513]),
            3 => n.saturating_add_signed(b.step()),
            4 => 1 + b.below(row.len()) as u32,
            5 => (n / 128).saturating_add_signed(b.step()).max(1),
            6 => b.of(&[u32::MAX, 1 << 20, 1, 2]),
            _ => b.u8().into(),
        };
        params.top_k = Some(k);
    }
    if on & 2 != 0 {
        let alive = Alive::new(row, &params);
        params.top_p = Some(share(b, &alive, |b, alive| alive.prefix_share(b)));
    }
    if on & 4 != 0 {
        let alive = Alive::new(row, &params);
        params.min_p = Some(share(b, &alive, |b, alive| {
            f64::from(b.of(&alive.weights)) / f64::from(alive.weights[0])
        }));
    }
    if on & 8 != 0 {
        let alive = Alive::new(row, &params);
        params.typical_p = Some(match row.len() {
            // The order is its own: where the count of kept tokens changes is found by bisection.
            0..=200 if b.chance(100) => step_f64(
                change(b, f64::MIN_POSITIVE, 1.0, |p| {
                    let params = params.with_typical_p(p);
                    reference::sample(row, &params, 0.0).ok().and_then(|pick| pick.kept)
                }),
                b.step(),
            ),
            _ => share(b, &alive, |b, alive| alive.prefix_share(b)),
        });
    }
    if on & 16 != 0 {
        let alive = Alive::new(row, &params);
        params.epsilon =
            Some(share(b, &alive, |b, alive| b.of(&alive.masses) as f64 / alive.total() as f64));
    }
    params
}

/// A share: an ordinary one, an extreme one, a refused one, or one on the boundary that the closure computes.
fn share(
    b: &mut Bytes<'_>,
    alive: &Alive,
    boundary: impl Fn(&mut Bytes<'_>, &Alive) -> f64,
) -> f64 {
    match b.below(12) {
        0 => 0.9,
        1 => b.of(&[0.95, 0.5, 0.1, 0.99, 0.05, 0.01, 0.999_999]),
        2 => b.of(&[1.0, 1.0 - f64::EPSILON / 2.0, 0.0, 1e-7]),
        3 => b.of(&[5e-324, f64::MIN_POSITIVE, 1e-60, 1e-13, 2f64.powi(-43), 2f64.powi(-63)]),
        4 if b.chance(60) => b.of(&[-0.0, 1.0f64.next_up(), -0.1, f64::NAN, f64::INFINITY, 2.0]),
        4 | 5 => (f64::from(b.u16()) + 1.0) / 65536.0,
        _ if alive.is_empty() => 0.75,
        _ => {
            let edge = boundary(b, alive);
            // A boundary of 1 has no valid neighbour above; that one stays in.
            let near = step_f64(edge, b.step());
            if (0.0..=1.0).contains(&near) { near } else { edge }
        }
    }
}

/// A draw: any, an end, a refused one, or one on a boundary between two tokens.
pub(super) fn draw<E: Make>(b: &mut Bytes<'_>, row: &[E], params: &SamplingParams) -> f64 {
    match b.below(12) {
        0 => 0.5,
        1 => b.of(&[0.0, -0.0, 1.0 - f64::EPSILON / 2.0, 5e-324, 1e-40, 0.999_999_999]),
        2 if b.chance(60) => b.of(&[1.0, -5e-324, f64::NAN, f64::INFINITY, -1.0, 2.0]),
        2..=4 => (b.u64() >> 11) as f64 / (1u64 << 53) as f64,
        5 if row.len() <= 200 => {
            let last = 1.0 - f64::EPSILON / 2.0;
            let edge = change(b, 0.0, last, |u| {
                reference::sample(row, params, u).ok().map(|pick| pick.token)
            });
            step_f64(edge, b.step()).clamp(0.0, last)
        }
        _ => {
            let alive = Alive::new(row, params);
            if alive.is_empty() {
                return 0.25;
            }
            let edge = step_f64(alive.prefix_share(b), b.step());
            edge.clamp(0.0, 1.0 - f64::EPSILON / 2.0)
        }
    }
}

/// A number in `low..=high`, both positive, where `f` changes, found by bisection between its values at two places.
pub(super) fn change<T: PartialEq>(
    b: &mut Bytes<'_>,
    low: f64,
    high: f64,
    f: impl Fn(f64) -> T,
) -> f64 {
    let start = low + (high - low) * f64::from(b.u8()) / 256.0;
    let (mut low, mut high) = (start.to_bits(), high.to_bits());
    let first = f(start);
    while high.saturating_sub(low) > 1 {
        let middle = low + (high - low) / 2;
        if f(f64::from_bits(middle)) == first { low = middle } else { high = middle }
    }
    f64::from_bits(high)
}
