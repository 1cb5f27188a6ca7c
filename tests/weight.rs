//! The proof of the weight function: not samples, but every f32 from the cut-off to zero, on every level.
//!
//! Where code runs under emulation (not x86-64), and where `SORTLESS_WEIGHT_STRIDE` says so, only every n-th float.

mod support;

use sortless::Level;
use sortless::kernels::{CUT_OFF, ONE, Scale, exp_mass, exp_weights, mass, weight};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use support::say;

const CHUNK: u32 = 1 << 16;

/// How far an f64 computed by libm's `exp` can be from the true value, relative: under 1 ULP, taken as 2.
const LIBM_ERROR: f64 = 2.0 * f64::EPSILON;

/// 1, or the stride that the environment or the machine asks for. A prime, so that it meets every low-bit pattern.
fn stride() -> u32 {
    match std::env::var("SORTLESS_WEIGHT_STRIDE") {
        Ok(text) if !text.is_empty() => text.parse().expect("SORTLESS_WEIGHT_STRIDE: a number"),
        _ if cfg!(target_arch = "x86_64") => 1,
        _ => 4001,
    }
}

/// Calls `work` with the numbers of all chunks, shared out over the threads that there are, each with its own state.
fn for_chunks<T: Default + Send>(chunks: u32, work: impl Fn(&mut T, u32) + Sync) -> Vec<T> {
    let next = AtomicU32::new(0);
    let worker = || {
        let mut state = T::default();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return state;
            }
            work(&mut state, chunk);
        }
    };
    if cfg!(target_family = "wasm") {
        return vec![worker()];
    }
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    })
}

/// The mass of a weight by integer arithmetic on its bits: `w * 2^43`, ties to even.
fn integer_mass(w: f32) -> u64 {
    let bits = w.to_bits();
    let significand = u64::from(bits & 0x7f_ffff | 0x80_0000);
    // w = significand * 2^(exponent - 150); weights are normal or 0.
    let shift = (bits >> 23) as i32 - 150 + 43;
    if bits == 0 || shift < -25 {
        0
    } else if shift >= 0 {
        significand << shift
    } else {
        let down = -shift as u32;
        let floor = significand >> down;
        let rest = significand & ((1 << down) - 1);
        let half = 1 << (down - 1);
        floor + u64::from(rest > half || (rest == half && floor & 1 == 1))
    }
}

/// A sum of two f64, for values with more bits than one holds.
type Double = (f64, f64);

fn two_sum(a: f64, b: f64) -> Double {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

fn times((a, a_low): Double, b: f64) -> Double {
    let high = a * b;
    two_sum(high, a.mul_add(b, -high) + a_low * b)
}

fn product(a: Double, (b, b_low): Double) -> Double {
    let (high, low) = times(a, b);
    two_sum(high, low + a.0 * b_low)
}

fn plus(a: Double, b: f64) -> Double {
    let (high, low) = two_sum(a.0, b);
    two_sum(high, low + a.1)
}

fn over((a, a_low): Double, b: f64) -> Double {
    let high = a / b;
    let rest = (-high).mul_add(b, a) + a_low;
    two_sum(high, rest / b)
}

/// e^x to about 100 bits, by its series: it judges the hard cases, and libm.
fn exp_double(x: f32) -> Double {
    const LN_2: Double = (core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
    let x = f64::from(x);
    let n = (x / LN_2.0).round();
    let (high, low) = times(LN_2, -n);
    let (sum, error) = two_sum(x, high);
    let r = two_sum(sum, error + low);
    let mut e = (1.0, 0.0);
    for i in (1..=28).rev() {
        e = plus(product(over(e, f64::from(i)), r), 1.0);
    }
    let scale = f64::from_bits(((1023 + n as i64) as u64) << 52);
    (e.0 * scale, e.1 * scale)
}

/// The ULP of an f32 in the binade of a positive f64, and its inverse.
fn ulp(value: f64) -> (f64, f64) {
    let exponent = (value.to_bits() >> 52) as i64 - 1023;
    let two = |e: i64| f64::from_bits(((1023 + e) as u64) << 52);
    (two(exponent - 23), two(23 - exponent))
}

/// The distance of `w` from the true e^x, in ULP.
fn exact_error(x: f32, w: f32) -> f64 {
    let (high, low) = exp_double(x);
    ((f64::from(w) - high) - low).abs() * ulp(high).1
}

#[derive(Default)]
struct Found {
    values: u64,
    /// The largest error in ULP, and where.
    worst: (f64, f32),
    /// Weights that aren't the correctly rounded ones.
    not_nearest: u64,
    /// Weights for which libm's error could hide whether they are; the series decided these.
    hard: u64,
    buffers: Buffers,
}

/// A thread's chunk; kept from one to the next, since fresh memory costs more than the kernels do.
#[derive(Default)]
struct Buffers {
    row: Vec<f32>,
    weights: Vec<f32>,
    other: Vec<f32>,
}

impl Buffers {
    fn fill(&mut self, row: impl Iterator<Item = f32>) {
        self.row.clear();
        self.row.extend(row);
        for weights in [&mut self.weights, &mut self.other] {
            weights.clear();
            weights.resize(self.row.len(), -1.0);
        }
    }
}

/// The weights of the row by every level, which must agree in every bit; and their total mass.
fn weights_of_all_levels(levels: &[Level], buffers: &mut Buffers) -> u64 {
    let Buffers { row, weights, other } = buffers;
    let scale = Scale::new(0.0, 1.0).unwrap();
    let total = exp_weights(levels[0], row, scale, weights).unwrap();
    assert_eq!(exp_mass(levels[0], row, scale), Ok(total), "{}", levels[0]);
    for &level in &levels[1..] {
        assert_eq!(exp_weights(level, row, scale, other), Ok(total), "{level}");
        assert_eq!(exp_mass(level, row, scale), Ok(total), "{level}");
        let differ = (0..row.len()).find(|&i| weights[i].to_bits() != other[i].to_bits());
        assert_eq!(differ.map(|i| row[i]), None, "{level} and {} differ at x", levels[0]);
    }
    total
}

#[test]
fn every_weight_from_the_cut_off_to_zero() {
    let levels = support::levels();
    let stride = stride();
    let started = Instant::now();
    // By ascending bits: x falls from -0 to the cut-off.
    let (first, last) = ((-0.0f32).to_bits(), CUT_OFF.to_bits());
    let steps = (last - first) / stride + 1;
    let x_of = |step: u32| f32::from_bits(first + step * stride);

    let parts = for_chunks(steps.div_ceil(CHUNK), |found: &mut Found, chunk| {
        let start = chunk * CHUNK;
        let Found { values, worst, not_nearest, hard, buffers } = found;
        buffers.fill((start..steps.min(start + CHUNK)).map(x_of));
        let total = weights_of_all_levels(&levels, buffers);

        // The weight of the last x of the chunk before.
        let mut before = start.checked_sub(1).map_or(1.0, |step| weight(x_of(step)));
        let mut masses = 0;
        for (&x, &w) in buffers.row.iter().zip(&buffers.weights) {
            assert!(w <= before, "a step down: E({x:e}) = {w:e}");
            assert!(w.is_normal() && w <= 1.0, "E({x:e}) = {w:e}");
            assert_eq!(weight(x).to_bits(), w.to_bits(), "E({x:e})");
            before = w;
            let q = integer_mass(w);
            assert_eq!(mass(w), q, "the mass of {w:e}");
            masses += q;

            let truth = libm::exp(f64::from(x));
            let (unit, per_unit) = ulp(truth);
            let error = (f64::from(w) - truth).abs() * per_unit;
            let margin = truth * LIBM_ERROR / unit;
            let nearest = if (error - 0.5).abs() <= margin {
                *hard += 1;
                exact_error(x, w) <= 0.5
            } else {
                error < 0.5
            };
            *not_nearest += u64::from(!nearest);
            if error > worst.0 {
                *worst = (error, x);
            }
        }
        assert_eq!(masses, total);
        *values += buffers.row.len() as u64;
    });

    let mut found = Found::default();
    for part in parts {
        found.values += part.values;
        found.not_nearest += part.not_nearest;
        found.hard += part.hard;
        if part.worst.0 > found.worst.0 {
            found.worst = part.worst;
        }
    }
    let (error, x) = found.worst;
    let exact = exact_error(x, weight(x));
    say(format_args!(
        "weight: {} values, stride {stride}: largest error {exact:.6} ULP at x = {x:?}; {} ({:.4}%) not correctly \
         rounded ({} hard cases); {:.1} s",
        found.values,
        found.not_nearest,
        found.not_nearest as f64 * 100.0 / found.values as f64,
        found.hard,
        started.elapsed().as_secs_f64()
    ));
    assert_eq!(found.values, u64::from(steps));
    assert!((error - exact).abs() < 1e-7, "libm says {error}, the series {exact}");
    assert!(error + 1e-7 < 1.0, "{error} ULP at {x:e}");
}

#[test]
fn below_the_cut_off_and_for_nan_it_is_zero() {
    let levels = support::levels();
    // Nothing is computed here, so a part of them does.
    let stride = stride().max(13);
    // By ascending bits: from just below the cut-off down to -inf.
    let (first, last) = (CUT_OFF.to_bits() + 1, f32::NEG_INFINITY.to_bits());
    let steps = (last - first) / stride + 1;
    for_chunks(steps.div_ceil(CHUNK), |buffers: &mut Buffers, chunk| {
        let start = chunk * CHUNK;
        let strided = start..steps.min(start + CHUNK);
        let bits = strided.map(|step| first + step * stride).chain([first, last]);
        buffers.fill(bits.map(f32::from_bits));
        assert_eq!(weights_of_all_levels(&levels, buffers), 0);
        for (&x, w) in buffers.row.iter().zip(&buffers.weights) {
            assert_eq!((w.to_bits(), weight(x).to_bits()), (0, 0), "E({x:e})");
        }
    });
    // The kernels refuse rows with NaN; the function itself is 0 there.
    for bits in (1..=0x7f_ffff).step_by(997).chain([0x7f_ffff]) {
        for sign in [0, 1 << 31] {
            let nan = f32::from_bits(0x7f80_0000 | sign | bits);
            assert_eq!(weight(nan).to_bits(), 0, "{:#x}", nan.to_bits());
        }
    }
}

#[test]
fn at_zero_it_is_one_and_at_the_cut_off_it_is_not_yet_zero() {
    let levels = support::levels();
    let mut buffers = Buffers::default();
    buffers.fill([0.0, -0.0, CUT_OFF].into_iter());
    let total = weights_of_all_levels(&levels, &mut buffers);
    let weights = buffers.weights;
    assert_eq!(weights[..2], [1.0, 1.0]);
    assert_eq!(total, 2 * ONE);
    assert!((-100.0..-99.0).contains(&f64::from(weights[2]).log2()), "{:e}", weights[2]);
    for x in [0.0, -0.0, CUT_OFF, CUT_OFF.next_down()] {
        assert_eq!(weight(x) == 0.0, x < CUT_OFF);
    }
    assert_eq!([weight(0.0), weight(-0.0)], [1.0, 1.0]);
}

#[test]
fn the_judges_are_right() {
    // e^x to 32 digits as two f64, by Python's decimal module.
    for (x, want) in [
        (-1.0, (0.36787944117144233, -1.2428753672788363e-17)),
        (-0.5, (0.6065306597126334, -6.593178415491414e-19)),
        (-13.25, (1.7603463121561693e-06, -4.4477459694426395e-23)),
        (-69.0, (1.0806392777072785e-30, 6.225836066421075e-48)),
    ] {
        let (high, low) = exp_double(x);
        assert_eq!(high, want.0, "e^{x}");
        assert!((low - want.1).abs() <= high * 1e-30, "e^{x}: {low:e}, not {:e}", want.1);
    }
    // libm's exp stays within 1 f64 ULP of the series.
    let mut worst = 0.0f64;
    for bits in ((-0.0f32).to_bits()..=CUT_OFF.to_bits()).step_by(50_021) {
        let x = f32::from_bits(bits);
        let (high, low) = exp_double(x);
        let error = ((libm::exp(f64::from(x)) - high) - low).abs() / high;
        worst = worst.max(error);
    }
    assert!(worst < LIBM_ERROR / 2.0, "{worst:e}");
    // The integer masses: half a unit to even, one and a half up, and the two ends.
    for (w, q) in [
        (1.0, ONE),
        (0.0, 0),
        (2f32.powi(-43), 1),
        (2f32.powi(-44), 0),
        (2f32.powi(-44).next_up(), 1),
        (1.5 * 2f32.powi(-43), 2),
        (2.5 * 2f32.powi(-43), 2),
        (2f32.powi(-20) + 2f32.powi(-43), 1 << 23 | 1),
        (CUT_OFF.exp(), 0),
    ] {
        assert_eq!((integer_mass(w), mass(w)), (q, q), "{w:e}");
    }
}
