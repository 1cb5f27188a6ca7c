//! The law of what comes out: each sampler's tokens, drawn with [`Draws`], against probabilities computed here in plain
//! f64, and streams of draws against each other.
//!
//! Seeds are fixed, so a run fails always or never. Each single test of a hypothesis is held to a false-alarm rate of
//! [`ALARM`]: of a million right implementations, or seeds, one would fail it. There are fewer than 150 of them here.

use sortless::rng::uniform;
use sortless::{Draws, Sampler, SamplingParams, Scratch};

/// The false-alarm rate of one test, and the standard normal quantile that belongs to it (one side).
const ALARM: f64 = 1e-6;
const QUANTILE: f64 = 4.753_424;

/// The quantile of the chi-square distribution at `1 - ALARM` (Wilson and Hilferty; up to 7% too large at 3 degrees
/// of freedom, less with more).
fn limit(freedom: usize) -> f64 {
    let k = freedom as f64;
    k * (1.0 - 2.0 / (9.0 * k) + QUANTILE * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

/// Chi-square of counts against a law; bins that expect fewer than ten are put together. With its degrees of freedom.
fn chi_square(counts: &[u64], law: &[f64]) -> (f64, usize) {
    let n: u64 = counts.iter().sum();
    let (mut chi, mut bins) = (0.0, 0usize);
    let mut rare = (0.0, 0.0);
    for (&count, &p) in counts.iter().zip(law) {
        let (count, expected) = (count as f64, n as f64 * p);
        if p == 0.0 {
            assert_eq!(count, 0.0, "a token came out that can't");
        } else if expected < 10.0 {
            rare = (rare.0 + count, rare.1 + expected);
        } else {
            chi += (count - expected).powi(2) / expected;
            bins += 1;
        }
    }
    if rare.1 >= 10.0 {
        chi += (rare.0 - rare.1).powi(2) / rare.1;
        bins += 1;
    }
    (chi, bins - 1)
}

#[test]
fn the_limits_are_those_of_the_tables() {
    // Chi-square quantiles at 1 - 1e-6. Too large a limit alarms less often than stated.
    for (freedom, quantile) in [(3, 30.665), (10, 46.863), (30, 82.044), (143, 238.218)] {
        let ratio: f64 = limit(freedom) / quantile;
        assert!((1.0..1.08).contains(&ratio), "{freedom}: {} for {quantile}", limit(freedom));
    }
    const { assert!(ALARM == 1e-6) };
}

/// Forty tokens: a few good ones, ties, masked ones, a tail.
fn row() -> Vec<f32> {
    (0..40)
        .map(|i| match i % 8 {
            7 => f32::NEG_INFINITY,
            0 => 1.5,
            j => 3.0 - 0.11 * i as f32 - 0.3 * j as f32,
        })
        .collect()
}

/// The softmax, in row order.
fn softmax(row: &[f32], temperature: f64) -> Vec<f64> {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = row.iter().map(|&l| (f64::from(l - max) / temperature).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

/// The law over the first tokens, in an order, that `keep` wants: it is given the token's probability, and the sum
/// before it.
fn kept(
    probabilities: &[f64],
    order: &[usize],
    keep: impl Fn(usize, f64, f64) -> bool,
) -> Vec<f64> {
    let mut law = vec![0.0; probabilities.len()];
    let mut before = 0.0;
    for (n, &i) in order.iter().enumerate() {
        let p = probabilities[i];
        if p > 0.0 && keep(n, p, before) {
            law[i] = p;
        }
        before += p;
    }
    let total: f64 = law.iter().sum();
    law.into_iter().map(|p| p / total).collect()
}

fn ranked(probabilities: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    order
}

/// Tokens by surprise's distance from the entropy. Ties of the test's rows are exact, so a stable sort is by id.
fn typical_order(probabilities: &[f64]) -> Vec<usize> {
    let surprise = |p: f64| -p.ln();
    let entropy: f64 = probabilities.iter().filter(|p| **p > 0.0).map(|&p| p * surprise(p)).sum();
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.retain(|&i| probabilities[i] > 0.0);
    let distance = |i: usize| (surprise(probabilities[i]) - entropy).abs();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    order
}

/// Every sampler with its law.
fn samplers(row: &[f32]) -> Vec<(&'static str, SamplingParams, Vec<f64>)> {
    let plain = SamplingParams::new();
    let one = softmax(row, 1.0);
    let rank = ranked(&one);
    let best = one[rank[0]];
    let cool = softmax(row, 0.6);
    let after_k = kept(&one, &rank, |n, _, _| n < 12);
    vec![
        ("temperature 1", plain, one.clone()),
        ("temperature 0.6", plain.with_temperature(0.6), cool.clone()),
        ("temperature 3", plain.with_temperature(3.0), softmax(row, 3.0)),
        ("top-k", plain.with_top_k(7), kept(&one, &rank, |n, _, _| n < 7)),
        ("top-p", plain.with_top_p(0.8), kept(&one, &rank, |_, _, before| before < 0.8)),
        (
            "top-p at 0.6",
            plain.with_temperature(0.6).with_top_p(0.7),
            kept(&cool, &ranked(&cool), |_, _, before| before < 0.7),
        ),
        ("min-p", plain.with_min_p(0.2), kept(&one, &rank, |_, p, _| p >= 0.2 * best)),
        ("epsilon", plain.with_epsilon(0.02), kept(&one, &rank, |_, p, _| p >= 0.02)),
        (
            "typical",
            plain.with_typical_p(0.6),
            kept(&one, &typical_order(&one), |_, _, before| before < 0.6),
        ),
        (
            "top-k, then top-p",
            plain.with_top_k(12).with_top_p(0.75),
            kept(&after_k, &ranked(&after_k), |_, _, before| before < 0.75),
        ),
    ]
}

/// Counts of tokens; every draw from its own step, rows from two streams in turn.
fn counts(params: SamplingParams, row: &[f32], n: usize) -> Vec<u64> {
    let sampler = Sampler::new(params).unwrap();
    let mut scratch = Scratch::new();
    let mut streams = [Draws::new(2024, 0), Draws::new(2024, 1)];
    let mut counts = vec![0; row.len()];
    for i in 0..n {
        let u = streams[i % 2].next_draw();
        counts[sampler.sample(row, u, &mut scratch).unwrap().token as usize] += 1;
    }
    counts
}

#[test]
fn each_sampler_has_its_law() {
    let row = row();
    for (name, params, law) in samplers(&row) {
        let (chi, freedom) = chi_square(&counts(params, &row, 200_000), &law);
        println!("{name}: chi-square {chi:.1} with {freedom} degrees, limit {:.1}", limit(freedom));
        assert!(freedom >= 3, "{name}");
        assert!(chi < limit(freedom), "{name}: {chi} with {freedom} degrees of freedom");
    }
}

/// The test would notice: the law of a temperature that is 5% off is rejected.
#[test]
fn a_law_that_is_slightly_off_is_rejected() {
    let row = row();
    let (chi, freedom) =
        chi_square(&counts(SamplingParams::new(), &row, 200_000), &softmax(&row, 1.05));
    assert!(chi > limit(freedom), "{chi} with {freedom} degrees of freedom");
}

/// Long rows take other ways to a decision; tokens are put together in a hundred bins of equal length, by id.
#[test]
fn long_rows_have_their_law() {
    let plain = SamplingParams::new();
    let mut state = 1u64;
    let flat: Vec<f32> = (0..5000)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1 << 23) as f32
        })
        .collect();
    let peaked: Vec<f32> =
        flat.iter().enumerate().map(|(i, l)| l - (i % 977) as f32 / 4.0).collect();
    for (shape, row) in [("flat", &flat), ("peaked", &peaked)] {
        let one = softmax(row, 1.0);
        let rank = ranked(&one);
        let cases = [
            ("temperature", plain, one.clone()),
            ("top-p", plain.with_top_p(0.9), kept(&one, &rank, |_, _, before| before < 0.9)),
            ("top-k", plain.with_top_k(50), kept(&one, &rank, |n, _, _| n < 50)),
        ];
        for (name, params, law) in cases {
            let counts = counts(params, row, 20_000);
            let counts: Vec<u64> = counts.chunks(50).map(|bin| bin.iter().sum()).collect();
            let law: Vec<f64> = law.chunks(50).map(|bin| bin.iter().sum()).collect();
            let (chi, freedom) = chi_square(&counts, &law);
            assert!(chi < limit(freedom), "{shape}, {name}: {chi} with {freedom} degrees");
        }
    }
}

/// Two sequences of draws: neither their correlation nor their joint distribution says that they know of each other.
fn independent(name: &str, n: usize, pair: impl Fn(u64) -> (f64, f64)) {
    const SIDE: usize = 12;
    let mut product = 0.0;
    let mut cells = vec![0u64; SIDE * SIDE];
    let mut equal_bits = 0u64;
    for i in 0..n as u64 {
        let (x, y) = pair(i);
        product += (x - 0.5) * (y - 0.5);
        cells[(x * SIDE as f64) as usize * SIDE + (y * SIDE as f64) as usize] += 1;
        let word = |u: f64| (u * (1u64 << 53) as f64) as u64;
        equal_bits += u64::from(53 - (word(x) ^ word(y)).count_ones());
    }
    let n = n as f64;
    // A product of two independent centred uniforms has the variance 1/144.
    let z = product * 12.0 / n.sqrt();
    assert!(z.abs() < QUANTILE + 0.15, "{name}: correlation {z} sigmas");
    // The 53 bits agree in half of all places.
    let z = (equal_bits as f64 - 26.5 * n) / (53.0 * n / 4.0).sqrt();
    assert!(z.abs() < QUANTILE + 0.15, "{name}: bits agree, {z} sigmas");
    let law = vec![1.0 / (SIDE * SIDE) as f64; SIDE * SIDE];
    let (chi, freedom) = chi_square(&cells, &law);
    assert!(chi < limit(freedom), "{name}: {chi} with {freedom} degrees");
}

#[test]
fn neighbouring_steps_streams_and_seeds_share_nothing() {
    const N: usize = 50_000;
    for (seed, stream) in [(0, 0), (42, 7), (u64::MAX - 1, 1 << 32), (1, 1)] {
        let at = format!("seed {seed}, stream {stream}");
        let u = |seed, stream, step| uniform(seed, stream, step);
        independent(&format!("{at}, next step"), N, |i| {
            (u(seed, stream, 2 * i), u(seed, stream, 2 * i + 1))
        });
        independent(&format!("{at}, next stream"), N, |i| {
            (u(seed, stream, i), u(seed, stream + 1, i))
        });
        independent(&format!("{at}, next seed"), N, |i| {
            (u(seed, stream, i), u(seed + 1, stream, i))
        });
        // The rows of a batch at one step.
        independent(&format!("{at}, rows at one step"), N, |i| {
            (u(seed, stream + 2 * i, 3), u(seed, stream + 2 * i + 1, 3))
        });
        independent(&format!("{at}, seeds at one step"), N, |i| {
            (u(seed / 4 + 2 * i, stream, 3), u(seed / 4 + 2 * i + 1, stream, 3))
        });
        // Seed and stream in each other's place.
        independent(&format!("{at}, swapped"), N, |i| {
            (u(seed / 2 + 1 + i, stream, 0), u(stream, seed / 2 + 1 + i, 0))
        });
    }
}
