//! As a controller: against an independent implementation, and whether the surprise goes where it should.

use super::*;
use sortless::diagnostics::Diagnostics;
use sortless::mirostat::TraceAccumulator;
use sortless::{Sampler, SamplingParams};

/// The real rows, as f32.
fn real_rows() -> Vec<Vec<f32>> {
    let rows = whisper().f16.into_iter();
    rows.map(|row| row.iter().map(|v| v.to_f32()).collect()).collect()
}

/// The real rows that leave a target of 0.5 bits within reach: all but those whose best token has over 1.5 bits. The committed rows have
/// more than their share of flat ones; over all of them even the best tokens' mean surprise is 0.59 bits.
fn feasible_rows() -> Vec<Vec<f32>> {
    let best = |row: &Vec<f32>| {
        let row = PreparedRow::from_logits(row).unwrap();
        row.surprise(row.ranking().next().unwrap()).unwrap().unwrap()
    };
    real_rows().into_iter().filter(|row| best(row) < 1.5).collect()
}

/// Mirostat in plain f64: its own softmax with the platform's exp, its own sort, nothing of the crate.
struct Plain {
    mu: f64,
    tau: f64,
    eta: f64,
    m: usize,
    version: Version,
}

struct PlainStep {
    token: u32,
    surprise: f64,
    /// Whether the draw or the cut is too near to a boundary for floats to tell.
    doubt: bool,
}

impl Plain {
    fn step(&mut self, row: &[f32], u: f64) -> PlainStep {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut tokens: Vec<(usize, f64)> = (0..row.len())
            .filter(|&i| row[i] > f32::NEG_INFINITY)
            .map(|i| (i, f64::from(row[i]) - f64::from(max)))
            .collect();
        tokens.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
        let total: f64 = tokens.iter().map(|t| t.1.exp()).sum();
        let surprise = |x: f64| (total.ln() - x) / 2f64.ln();
        let mut doubt = false;
        let kept = match self.version {
            Version::V2 => {
                let near = |s: f64| (s - self.mu).abs() <= 1e-6 * self.mu.abs().max(1.0);
                doubt |= tokens.iter().any(|t| near(surprise(t.1)));
                tokens.iter().filter(|t| surprise(t.1) <= self.mu).count().max(1)
            }
            Version::V1 => {
                let (mut tb, mut tt) = (0.0, 0.0);
                let mass = |x: &(usize, f64)| x.1 > -44.0 * 2f64.ln();
                let head: Vec<_> = tokens.iter().filter(|t| mass(t)).take(self.m).collect();
                for (i, pair) in head.windows(2).enumerate() {
                    let t = ((i + 2) as f64 / (i + 1) as f64).ln();
                    tb += t * (pair[0].1 - pair[1].1);
                    tt += t * t;
                }
                let s = (tb / tt).max(1e-6);
                let v = row.len() as f64;
                let k = if head.len() < 2 {
                    1.0
                } else {
                    let e = s - 1.0;
                    ((e * self.mu.exp2()) / (1.0 - v.powf(-e))).powf(1.0 / s)
                };
                // Halves are where rounding turns.
                doubt |= (k.fract() - 0.5).abs() <= 1e-6 * k.max(1.0);
                k.round().clamp(1.0, v) as usize
            }
        };
        let kept = &tokens[..kept.min(tokens.len())];
        let mass: f64 = kept.iter().map(|t| t.1.exp()).sum();
        let (mut sum, mut drawn) = (0.0, None);
        for t in kept {
            sum += t.1.exp() / mass;
            doubt |= (sum - u).abs() <= 1e-6;
            if drawn.is_none() && sum > u {
                drawn = Some(t);
            }
        }
        let (id, x) = *drawn.unwrap_or(&kept[kept.len() - 1]);
        let surprise = surprise(x);
        self.mu -= self.eta * (surprise - self.tau);
        PlainStep { token: id as u32, surprise, doubt }
    }
}

#[test]
fn an_independent_implementation_agrees() {
    let real = real_rows();
    let mut scratch = Scratch::new();
    let steps = if longest_row() > 100_000 { 10_000 } else { 300 };
    for version in VERSIONS {
        let (mut agreed, mut doubts) = (0, 0);
        for (rows, tau, steps) in [
            (
                vec![zipf(2000, 1.1), llm(3000, 1), ties(1000, 2), half_masked(2000, 3)],
                3.0,
                steps * 9 / 10,
            ),
            (real.clone(), 1.0, steps / 10),
        ] {
            let mut plain = Plain { mu: 2.0 * tau, tau, eta: 0.1, m: 100, version };
            let mut session = session(tau, version);
            let mut draws = Draws::new(3, 3);
            for i in 0..steps {
                let (row, u) = (&rows[i % rows.len()], draws.next_draw());
                let got = session.sample(row, u, &mut scratch).unwrap();
                let want = plain.step(row, u);
                if got.token == want.token {
                    let apart = (got.mu_after - plain.mu).abs();
                    assert!(apart < 1e-6, "{version:?} step {i}: mu {apart} apart");
                    assert!((got.surprise - want.surprise).abs() < 1e-5);
                    agreed += 1;
                } else {
                    assert!(want.doubt, "{version:?} step {i}: {got:?}, not {}", want.token);
                    doubts += 1;
                }
                // A doubt may part the two; and float errors must not build up over the steps.
                plain.mu = session.mu();
            }
        }
        say(format_args!("{version:?}: {agreed} steps agree, {doubts} in doubt"));
        assert!(doubts * 100 <= agreed, "{doubts}");
    }
}

/// The mean surprise of many steps.
fn mean_surprise(rows: &[Vec<f32>], tau: f64, version: Version, steps: usize) -> f64 {
    let rows: Vec<PreparedRow> =
        rows.iter().map(|r| PreparedRow::from_logits(r).unwrap()).collect();
    let mut session = session(tau, version);
    let mut draws = Draws::new(1, 0);
    let mut trace = TraceAccumulator::new(tau).unwrap();
    let mut scratch = Scratch::new();
    for i in 0..steps {
        let row = &rows[i % rows.len()];
        trace.push(&session.sample_prepared(row, draws.next_draw(), &mut scratch).unwrap());
    }
    assert!(session.mu().is_finite());
    trace.summary().unwrap().mean_surprise
}

#[test]
fn mean_surprise_on_a_zipf_row_is_within_two_percent() {
    let rows = [zipf(50_000, 1.1)];
    for version in VERSIONS {
        for tau in [3.0, 4.0, 5.0] {
            let mean = mean_surprise(&rows, tau, version, 2000);
            let off = mean / tau - 1.0;
            say(format_args!("zipf {version:?} tau {tau}: {mean:.4} ({:+.2}%)", off * 100.0));
            assert!(off.abs() < 0.02, "{version:?} {tau}: {mean}");
        }
    }
}

#[test]
fn mean_surprise_on_real_rows_is_within_two_percent() {
    let rows = feasible_rows();
    assert!(rows.len() >= 20, "{}", rows.len());
    for version in VERSIONS {
        for tau in [0.5, 1.0] {
            let mean = mean_surprise(&rows, tau, version, 10_000);
            let off = mean / tau - 1.0;
            say(format_args!("real {version:?} tau {tau}: {mean:.4} ({:+.2}%)", off * 100.0));
            assert!(off.abs() < 0.02, "{version:?} {tau}: {mean}");
        }
    }
}

/// The token and how many are kept, as `Sampler` picks them.
fn plain_pick(params: SamplingParams, row: &[f32], u: f64, scratch: &mut Scratch) -> (u32, u32) {
    let pick = Sampler::new(params).unwrap().sample(row, u, scratch).unwrap();
    let masked = row.iter().filter(|&&l| l == f32::NEG_INFINITY).count();
    (pick.token, pick.kept.unwrap_or((row.len() - masked) as u32))
}

/// Surprise in bits of the best token, and entropy.
fn reach(row: &[f32]) -> (f64, f64) {
    let mut scratch = Scratch::new();
    let mut row = Diagnostics::new(row, &mut scratch).unwrap();
    (row.expected_surprise(1).unwrap(), row.entropy().unwrap())
}

#[test]
fn a_target_out_of_reach_only_makes_mu_drift() {
    const STEPS: u32 = 1_000_000;
    // Few tokens, so that a step is cheap: the best one has 1.9 bits, and all together can have 5.7.
    let row = zipf(50, 1.1);
    let ranked = PreparedRow::from_logits(&row).unwrap();
    let (best, entropy) = reach(&row);
    assert!(best > 1.5 && entropy < 6.0, "{best} {entropy}");
    let mut scratch = Scratch::new();
    for version in VERSIONS {
        // The second is what a draw has on average where mu keeps nothing out.
        for (tau, surprise) in [(1.0, best), (8.0, entropy)] {
            let mut session = session(tau, version);
            let mut draws = Random::new(9);
            for _ in 0..STEPS {
                session.sample_prepared(&ranked, draws.unit(), &mut scratch).unwrap();
            }
            let (mu, eta) = (session.mu(), session.config().eta());
            say(format_args!("{version:?} tau {tau}: mu {mu} after {STEPS} steps"));
            // Eta times the gap a step, but for the first few.
            let drift = f64::from(STEPS) * eta * (tau - surprise);
            assert!((mu / drift - 1.0).abs() < 0.01, "{mu}, not about {drift}");
            // Only the best token, or a plain draw.
            let (tau_is_low, plain) = (tau < surprise, SamplingParams::new());
            let like = if tau_is_low { plain.with_temperature(0.0) } else { plain };
            for u in [0.0, 0.4, 0.999] {
                let step = session.fork().sample(&row, u, &mut scratch).unwrap();
                assert_eq!((step.token, step.kept), plain_pick(like, &row, u, &mut scratch));
            }
        }
    }
}

#[test]
fn coming_back_takes_the_whole_way_unless_it_is_reset() {
    let (flat, peaked) = (vec![0.0f32; 50], zipf(50, 1.1));
    let (best, entropy) = reach(&peaked);
    let (tau, eta, mut scratch) = (3.0, 0.1, Scratch::new());
    assert!(best < tau && tau < entropy);
    for version in VERSIONS {
        // Every token of the flat row has 5.6 bits.
        let mut session = session(tau, version);
        let mut draws = Random::new(4);
        for _ in 0..10_000 {
            session.sample(&flat, draws.unit(), &mut scratch).unwrap();
        }
        let far = -session.mu();
        assert!((far / (10_000.0 * eta * (50f64.log2() - tau)) - 1.0).abs() < 0.01, "{far}");
        let mut anew = session.fork();
        anew.reset();
        let mut kept = || session.sample(&peaked, draws.unit(), &mut scratch).unwrap().kept;
        let steps = (0..100_000).take_while(|_| kept() == 1).count();
        let least = far / (eta * (tau - best));
        let off = steps as f64 / least - 1.0;
        say(format_args!("{version:?}: back after {steps} steps, at least {least:.0}"));
        assert!((0.0..0.01).contains(&off), "{steps} steps, not about {least}");
        let mut trace = TraceAccumulator::new(tau).unwrap();
        trace.extend((0..2000).map(|_| anew.sample(&peaked, draws.unit(), &mut scratch).unwrap()));
        let mean = trace.summary().unwrap().mean_surprise;
        assert!((mean / tau - 1.0).abs() < 0.02, "{version:?}: {mean}");
    }
}

#[test]
fn three_bits_are_out_of_reach_on_the_real_rows() {
    let (tau, steps) = (3.0, 20_000);
    let rows = real_rows();
    let ranked: Vec<_> = rows.iter().map(|row| PreparedRow::from_logits(row).unwrap()).collect();
    let entropy = rows.iter().map(|row| reach(row).1).sum::<f64>() / rows.len() as f64;
    assert!(entropy < 2.0, "{entropy}");
    let mut scratch = Scratch::new();
    for version in VERSIONS {
        let mut session = session(tau, version);
        let mut draws = Draws::new(2, 0);
        let mut trace = TraceAccumulator::new(tau).unwrap();
        for i in 0..steps {
            let row = &ranked[i % ranked.len()];
            trace.push(&session.sample_prepared(row, draws.next_draw(), &mut scratch).unwrap());
        }
        let (mu, mean) = (session.mu(), trace.summary().unwrap().mean_surprise);
        say(format_args!("real {version:?} tau {tau}: mean {mean:.4} of {entropy:.4}, mu {mu:.0}"));
        // Up by eta times the gap, and what is drawn is a plain draw, whose mean surprise is the entropy.
        assert!((mean / entropy - 1.0).abs() < 0.03, "{mean}");
        let drift = steps as f64 * session.config().eta() * (tau - entropy);
        assert!((mu / drift - 1.0).abs() < 0.03, "{mu}, not about {drift}");
        for row in &rows {
            let u = draws.next_draw();
            let step = session.fork().sample(row, u, &mut scratch).unwrap();
            let (token, _) = plain_pick(SamplingParams::new(), row, u, &mut scratch);
            assert_eq!((step.token, step.mu_before), (token, mu));
        }
    }
}
