//! Mirostat against the reference, against an independent implementation, and as a controller.

mod support;

use half::{bf16, f16};
use sortless::mirostat::{
    Config, Generate, Session, SessionBatch, State, Step, Stop, StopCause, SurpriseWindow,
    TraceAccumulator, Version,
};
use sortless::{Draws, Element, Error, Path, PreparedRow, Rows, Scratch, reference};
use std::ops::ControlFlow;
use support::*;

const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

fn config(tau: f64) -> Config {
    Config::new(tau).unwrap()
}

fn session(tau: f64, version: Version) -> Session {
    Session::new(config(tau), version)
}

/// A step as the reference makes it.
fn expected<E: Element>(session: &Session, row: &[E], u: f64) -> Step {
    let (config, mu) = (session.config(), session.mu());
    let pick = match session.version() {
        Version::V1 => reference::mirostat_v1(row, config.temperature(), mu, config.m(), u),
        Version::V2 => reference::mirostat_v2(row, config.temperature(), mu, u),
    };
    step_of(config, mu, pick.unwrap())
}

fn expected_weights(session: &Session, row: &[f32], u: f64) -> Step {
    let (config, mu) = (session.config(), session.mu());
    let pick = match session.version() {
        Version::V1 => reference::mirostat_v1_weights(row, mu, config.m(), u),
        Version::V2 => reference::mirostat_v2_weights(row, mu, u),
    };
    step_of(config, mu, pick.unwrap())
}

fn step_of(config: &Config, mu: f64, pick: reference::MirostatPick) -> Step {
    let mut step = Step::default();
    step.token = pick.token;
    step.kept = pick.kept;
    step.probability = pick.probability;
    step.surprise = pick.surprise;
    step.mu_before = mu;
    step.mu_after = mu - config.eta() * (pick.surprise - config.tau());
    step
}

/// Every number to the bit: `==` on floats would let -0 pass for 0.
fn bits(step: &Step) -> [u64; 6] {
    [
        u64::from(step.token),
        u64::from(step.kept),
        step.probability.to_bits(),
        step.surprise.to_bits(),
        step.mu_before.to_bits(),
        step.mu_after.to_bits(),
    ]
}

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

/// Logits whose probabilities are proportional to `i^-s`, best first.
fn zipf(v: usize, s: f64) -> Vec<f32> {
    (1..=v).map(|i| (-s * libm::log(i as f64)) as f32).collect()
}

fn steps_equal_the_reference<E: Make>() {
    let mut random = Random::new(11);
    let mut count = 0u64;
    for (v, rounds) in [(1, 4), (2, 4), (37, 4), (600, 3), (5000, 2), (20_000, 1)] {
        for (name, row) in shapes::<E>(v, v as u64) {
            for version in VERSIONS {
                for round in 0..rounds {
                    let tau = [0.3, 3.0, 7.0, 12.0][(round + random.below(4)) % 4];
                    let temperature = [1.0, 0.7, 4.0][random.below(3)];
                    let m = [100, 2, 700][random.below(3)];
                    let config = config(tau).with_temperature(temperature).unwrap();
                    let config = config.with_m(m).unwrap().with_eta(0.4).unwrap();
                    // Four steps of feedback, so that mu is nothing round.
                    let mut expect = Session::new(config, version);
                    let mut sessions: Vec<Session> =
                        levels().into_iter().map(|l| expect.fork().with_level(l)).collect();
                    let mut prepared = expect.fork();
                    let ranked = PreparedRow::from_logits_at(&row, temperature).unwrap();
                    let mut scratch = Scratch::new();
                    let mut full = Scratch::new();
                    full.start_at(Path::Full);
                    for u in [0.0, random.unit(), random.unit(), 1.0 - f64::EPSILON / 2.0] {
                        let want = bits(&expected(&expect, &row, u));
                        let what = format!("{} {name} {v} {config:?} {version:?} {u}", E::NAME);
                        for s in &mut sessions {
                            let other = s.fork().sample(&row, u, &mut full).unwrap();
                            assert_eq!(bits(&other), want, "{what} full");
                            let got = s.sample(&row, u, &mut scratch).unwrap();
                            assert_eq!(bits(&got), want, "{what} {}", s.config().tau());
                            count += 1;
                        }
                        let got = prepared.sample_prepared(&ranked, u, &mut scratch).unwrap();
                        assert_eq!(bits(&got), want, "{what} prepared");
                        expect = prepared.clone();
                    }
                }
            }
        }
    }
    assert!(count > 2000, "{count}");
}

#[test]
fn f32_steps_equal_the_reference() {
    steps_equal_the_reference::<f32>();
}

#[test]
fn f16_steps_equal_the_reference() {
    steps_equal_the_reference::<f16>();
}

#[test]
fn bf16_steps_equal_the_reference() {
    steps_equal_the_reference::<bf16>();
}

#[test]
fn real_rows_equal_the_reference_over_thousands_of_steps() {
    let rows = whisper().f16;
    let mut scratch = Scratch::new();
    let rounds = if longest_row() > 100_000 { 1200 } else { 60 };
    for version in VERSIONS {
        for tau in [0.5, 2.0] {
            let mut session = session(tau, version);
            let mut draws = Draws::new(7, 0);
            for i in 0..rounds / 2 {
                let (row, u) = (&rows[i % rows.len()], draws.next_draw());
                let want = bits(&expected(&session, row, u));
                let got = session.sample(row, u, &mut scratch).unwrap();
                assert_eq!(bits(&got), want, "{version:?} {tau} step {i}");
            }
        }
    }
}

/// A row of weights of some shape, with zeros and ties.
fn weight_rows(v: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut random = Random::new(seed);
    let positive = |l: f32| if l > f32::MIN { l.exp() } else { 0.0 };
    let mut rows: Vec<Vec<f32>> = shapes::<f32>(v, seed)
        .into_iter()
        .filter(|(name, _)| *name != "huge range")
        .map(|(_, row)| row.into_iter().map(positive).collect())
        .collect();
    // All exponents, subnormal weights among them.
    let bits = |b: u64| f32::from_bits((b >> 33) as u32).min(f32::MAX);
    rows.push(
        (0..v).map(|_| bits(random.bits())).map(|w| if w.is_nan() { 1.0 } else { w }).collect(),
    );
    rows.push((0..v).map(|i| if i % 3 == 0 { 0.0 } else { (i % 7) as f32 }).collect());
    rows.retain(|row| row.iter().any(|&w| w > 0.0));
    rows
}

#[test]
fn weights_equal_the_reference() {
    let mut random = Random::new(5);
    let mut scratch = Scratch::new();
    for v in [1, 2, 37, 600, 5000] {
        for row in weight_rows(v, v as u64) {
            let ranked = PreparedRow::from_weights(&row).unwrap();
            for version in VERSIONS {
                for tau in [0.3, 3.0, 9.0] {
                    let config = config(tau).with_m(50).unwrap();
                    let mut session = Session::new(config, version);
                    for _ in 0..4 {
                        let u = random.unit();
                        let want = bits(&expected_weights(&session, &row, u));
                        let before = session.fork();
                        let other =
                            session.fork().sample_prepared(&ranked, u, &mut scratch).unwrap();
                        let got = session.sample_weights(&row, u, &mut scratch).unwrap();
                        assert_eq!(bits(&got), want, "{v} {tau} {version:?}");
                        assert_eq!(bits(&other), want, "{v} {tau} {version:?} prepared");
                        let mut seen = before.fork();
                        let got = seen.observe_weights(&row, got.token, &mut scratch).unwrap();
                        assert_eq!(bits(&got), want);
                        assert_eq!(
                            before.preview_weights(&row, &mut scratch),
                            before.preview_prepared(&ranked, &mut scratch)
                        );
                        assert_eq!(
                            before.candidates_weights(&row, &mut scratch),
                            before.candidates_prepared(&ranked, &mut scratch)
                        );
                    }
                }
            }
        }
    }
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

#[test]
fn a_target_out_of_reach_only_makes_mu_drift() {
    // Below the best token's 2.85 bits, and above any entropy that 50 tokens can have.
    let row = zipf(50_000, 1.1);
    let best = PreparedRow::from_logits(&row).unwrap();
    assert!((best.surprise(0).unwrap().unwrap() - 2.85).abs() < 0.01);
    for version in VERSIONS {
        let small = zipf(50, 1.1);
        for (row, tau, steps) in [(&row, 2.0, 20_000), (&small, 8.0, 1_000_000)] {
            let row = PreparedRow::from_logits(row).unwrap();
            let mut session = session(tau, version);
            let mut scratch = Scratch::new();
            let mut draws = Random::new(9);
            for _ in 0..steps {
                session.sample_prepared(&row, draws.unit(), &mut scratch).unwrap();
            }
            let (mu, drift) = (session.mu(), 0.1 * f64::from(steps) * 8.0);
            say(format_args!("{version:?} tau {tau}: mu {mu} after {steps} steps"));
            assert!(mu.is_finite() && mu.abs() < drift, "{mu}");
            assert!(if tau < 2.85 { mu < 0.0 } else { mu > 1000.0 }, "{mu}");
            let step = session.sample_prepared(&row, 0.999, &mut scratch).unwrap();
            assert_eq!(step.kept, if tau < 2.85 { 1 } else { 50 });
        }
    }
}

#[test]
fn odd_rows_are_sampleable() {
    let mut scratch = Scratch::new();
    for version in VERSIONS {
        for u in [0.0, 0.4, 0.999] {
            let mut s = session(3.0, version);
            let flat = s.sample(&[0.0f32; 1000], u, &mut scratch).unwrap();
            assert!((flat.surprise - 1000f64.log2()).abs() < 1e-9);
            let far = session(3.0, version).sample(&[1000.0f32, 999.0, -1000.0], u, &mut scratch);
            let far = far.unwrap();
            assert!(far.token < 2 && far.kept <= 2, "{far:?}");
            let one = session(3.0, version).sample(&[-7.5f32], u, &mut scratch).unwrap();
            assert_eq!((one.token, one.surprise, one.probability, one.kept), (0, 0.0, 1.0, 1));
            assert_eq!(one.surprise.to_bits(), 0);
        }
    }
}

fn logits_of(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|p| libm::log(*p) as f32).collect()
}

#[test]
fn h01_tokens_without_probability_take_no_part_in_the_slope() {
    let mut scratch = Scratch::new();
    for masked in [0, 1, 2, 200] {
        let mut row = logits_of(&[0.7, 0.3]);
        row.extend(vec![f32::NEG_INFINITY; masked]);
        let mut s = session(1.0, Version::V1);
        let step = s.sample(&row, 0.9, &mut scratch).unwrap();
        assert!(step.mu_after.is_finite() && step.kept <= 2, "{masked}: {step:?}");
        let weights = [&[0.7f32, 0.3][..], &vec![0.0; masked]].concat();
        let step = session(1.0, Version::V1).sample_weights(&weights, 0.9, &mut scratch).unwrap();
        assert!(step.mu_after.is_finite() && step.kept <= 2, "{masked}: {step:?}");
    }
    // Fewer than two: k = 1.
    let row = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY];
    let mut s =
        Session::from_state(config(1.0), Version::V1, State { mu: 50.0, steps: 0 }).unwrap();
    assert_eq!(s.sample(&row, 0.9, &mut scratch).unwrap().kept, 1);
}

#[test]
fn h04_everything_is_in_bits() {
    let mut scratch = Scratch::new();
    let row = logits_of(&[0.6, 0.3, 0.1]);
    let config = config(1.0).with_initial_mu(1.5).unwrap();
    let mut s = Session::new(config, Version::V2);
    // Nats would keep two tokens.
    let step = s.sample(&row, 0.99, &mut scratch).unwrap();
    assert_eq!((step.token, step.kept), (0, 1));
    assert!((step.surprise - 0.736_965_6).abs() < 1e-6);
    // With e^mu for 2^mu, k would be 43.
    let zipf = zipf(32_000, 1.1);
    let mut s = Session::from_state(config, Version::V1, State { mu: 6.0, steps: 0 }).unwrap();
    assert_eq!(s.sample(&zipf, 0.5, &mut scratch).unwrap().kept, 8);
}

#[test]
fn h05_mu_is_each_sequence_s_own_and_stays() {
    // tau 5, eta 0.1, mu 10, surprise 2: 10.3. Four equal tokens have 2 bits each.
    let mut scratch = Scratch::new();
    let mut s = session(5.0, Version::V2);
    let other = s.fork();
    let step = s.sample(&[0.0f32; 4], 0.5, &mut scratch).unwrap();
    assert_eq!((step.mu_before, step.surprise), (10.0, 2.0));
    assert!((step.mu_after - 10.3).abs() < 1e-12);
    assert_eq!(s.sample(&[0.0f32; 4], 0.5, &mut scratch).unwrap().mu_before, step.mu_after);
    assert_eq!((other.mu(), other.steps()), (10.0, 0));
    assert_eq!(s.steps(), 2);
    s.reset();
    assert_eq!(s, other);
}

#[test]
fn h08_one_draw_a_step() {
    let mut scratch = Scratch::new();
    for version in VERSIONS {
        let mut draws = Draws::new(5, 0);
        let mut s = session(2.0, version);
        for step in 1..=50 {
            s.sample_with(&llm(300, step), || draws.next_draw(), &mut scratch).unwrap();
            assert_eq!(draws.step(), step);
        }
    }
}

#[test]
fn known_values() {
    let mut scratch = Scratch::new();
    // Exponent 2 over 4 tokens and mu = 2: k = 2.
    let at = |version, mu| {
        let config = config(1.0).with_initial_mu(mu).unwrap();
        Session::new(config, version)
    };
    assert_eq!(at(Version::V1, 2.0).sample(&zipf(4, 2.0), 0.0, &mut scratch).unwrap().kept, 2);
    // The limit at s = 1: 6.17 rounds to 6.
    assert_eq!(at(Version::V1, 6.0).sample(&zipf(32_000, 1.0), 0.0, &mut scratch).unwrap().kept, 6);
}

#[test]
fn the_best_token_stays_alone_even_if_others_are_as_good() {
    let mut s = Session::from_state(config(1.0), Version::V2, State { mu: 0.5, steps: 3 }).unwrap();
    let step = s.sample(&[1.0f32, 3.0, 3.0, 3.0], 0.99, &mut Scratch::new()).unwrap();
    assert_eq!((step.token, step.kept), (1, 1));
}

#[test]
fn errors_leave_the_session_untouched_and_come_in_order() {
    let mut scratch = Scratch::new();
    let nan = f32::NAN;
    let masked = f32::NEG_INFINITY;
    for version in VERSIONS {
        let mut s = session(2.0, version);
        s.sample(&[1.0f32, 2.0], 0.3, &mut scratch).unwrap();
        let before = s.clone();
        let mut refused = |row: &[f32], u: f64| {
            let error = s.sample(row, u, &mut scratch).unwrap_err();
            assert_eq!(s, before);
            error
        };
        assert_eq!(refused(&[], 2.0), Error::RowLength { len: 0 });
        assert!(matches!(refused(&[0.0, nan], 2.0), Error::NotFinite { index: 1, .. }));
        assert_eq!(refused(&[masked; 3], 2.0), Error::NoAllowedToken);
        for u in [1.0, -0.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(refused(&[1.0, 2.0], u), Error::Draw { .. }));
        }
        let mut refused = |row: &[f32], u: f64| {
            let error = s.sample_weights(row, u, &mut scratch).unwrap_err();
            assert_eq!(s, before);
            error
        };
        assert_eq!(refused(&[], 2.0), Error::RowLength { len: 0 });
        assert!(matches!(refused(&[1.0, nan, -1.0], 2.0), Error::NotFinite { index: 1, .. }));
        assert!(matches!(refused(&[1.0, -1.0, nan], 2.0), Error::NegativeWeight { index: 1, .. }));
        assert!(matches!(refused(&[masked, 1.0], 2.0), Error::NegativeWeight { index: 0, .. }));
        assert_eq!(refused(&[0.0, -0.0], 2.0), Error::NoAllowedToken);
        assert!(matches!(refused(&[1.0], 1.0), Error::Draw { .. }));

        // Not a draw is consumed by a bad row.
        for row in [&[nan][..], &[masked], &[]] {
            let drawn = s.sample_with(row, || unreachable!(), &mut scratch);
            assert!(drawn.is_err());
            assert!(s.observe(row, 0, &mut scratch).is_err());
            assert!(s.preview(row, &mut scratch).is_err());
            assert!(s.candidates(row, &mut scratch).is_err());
        }
        assert!(s.sample_weights_with(&[0.0], || unreachable!(), &mut scratch).is_err());
        assert_eq!(
            s.observe(&[1.0f32, 2.0], 2, &mut scratch),
            Err(Error::TokenId { id: 2, len: 2 })
        );
        assert_eq!(s.observe(&[1.0f32, masked], 1, &mut scratch), Err(Error::NotKept { id: 1 }));
        assert_eq!(s, before);

        // A mu beyond the floats.
        let config = config(1.0).with_eta(f64::MAX).unwrap();
        let mut wild = Session::new(config, version);
        let error = wild.sample(&[0.0f32; 100_000], 0.5, &mut scratch).unwrap_err();
        assert!(matches!(error, Error::Mu { .. }), "{error:?}");
        assert_eq!(wild, Session::new(config, version));
    }
}

#[test]
fn parameters_are_checked() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX] {
        assert!(Config::new(bad).is_err(), "{bad}");
    }
    let good = config(3.0);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(good.with_eta(bad).is_err(), "{bad}");
        assert!(good.with_initial_mu(bad).is_err() || bad == 0.0);
    }
    assert!(good.with_m(1).is_err() && good.with_m(2).is_ok());
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE / 2.0] {
        assert!(good.with_temperature(bad).is_err(), "{bad}");
    }
    for mu in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(Session::from_state(good, Version::V1, State { mu, steps: 0 }).is_err());
    }
    // A temperature applies to logits alone.
    let warm = good.with_temperature(2.0).unwrap();
    let mut s = Session::new(warm, Version::V2);
    let mut scratch = Scratch::new();
    assert!(matches!(
        s.sample_weights(&[1.0], 0.0, &mut scratch),
        Err(Error::Parameter { name: "temperature", .. })
    ));
    let cold = PreparedRow::from_logits(&[1.0f32]).unwrap();
    assert!(matches!(s.sample_prepared(&cold, 0.0, &mut scratch), Err(Error::Mismatch { .. })));
    let fits = PreparedRow::from_logits_at(&[1.0f32], 2.0).unwrap();
    assert!(s.sample_prepared(&fits, 0.0, &mut scratch).is_ok());
}

#[test]
fn checkpoints_fit_their_config_and_version_only() {
    let mut scratch = Scratch::new();
    let row = llm(500, 4);
    let mut s = session(2.0, Version::V2);
    s.sample(&row, 0.4, &mut scratch).unwrap();
    let saved = s.checkpoint();
    assert_eq!(saved.state(), s.state());
    let after: Vec<Step> = [0.1, 0.9].map(|u| s.sample(&row, u, &mut scratch).unwrap()).to_vec();
    s.restore(&saved).unwrap();
    let mut fork = s.fork();
    let mut again = Session::from_state(*s.config(), s.version(), saved.state()).unwrap();
    for (u, step) in [0.1, 0.9].into_iter().zip(&after) {
        assert_eq!(s.sample(&row, u, &mut scratch).unwrap(), *step);
        assert_eq!(again.sample(&row, u, &mut scratch).unwrap(), *step);
    }
    assert_eq!(fork.steps(), 1);
    assert_eq!(fork.sample(&row, 0.1, &mut scratch).unwrap(), after[0]);

    let before = session(2.5, Version::V2);
    let mut other = before.clone();
    assert!(matches!(other.restore(&saved), Err(Error::Mismatch { .. })));
    assert_eq!(other, before);
    let mut v1 = session(2.0, Version::V1);
    assert!(matches!(v1.restore(&saved), Err(Error::Mismatch { .. })));
}

#[test]
fn candidates_are_what_a_step_draws_from() {
    let mut scratch = Scratch::new();
    let mut random = Random::new(2);
    for (name, row) in shapes::<f32>(3000, 8) {
        let ranked = PreparedRow::from_logits(&row).unwrap();
        for version in VERSIONS {
            let s = session(4.0, version);
            let set = s.candidates(&row, &mut scratch).unwrap();
            assert_eq!(set, s.candidates_prepared(&ranked, &mut scratch).unwrap(), "{name}");
            assert_eq!(set.mu(), s.mu());
            let preview = s.preview(&row, &mut scratch).unwrap();
            assert_eq!(preview, s.preview_prepared(&ranked, &mut scratch).unwrap(), "{name}");
            assert_eq!((preview.vocabulary, preview.kept as usize), (3000, set.len()));
            assert_eq!((preview.retained, preview.mu), (set.retained(), s.mu()));
            let mut mean = 0.0;
            for (i, &id) in set.ids().iter().enumerate() {
                assert_eq!(set.probabilities()[i], ranked.probability(id).unwrap());
                mean += set.conditional_probabilities()[i] * ranked.surprise(id).unwrap().unwrap();
            }
            assert!(
                (mean - preview.expected_surprise).abs() < 1e-4 * mean.abs().max(1.0),
                "{name} {mean} {preview:?}"
            );
            assert!((set.conditional_probabilities().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(set.ids().iter().copied().eq(ranked.ranking().take(set.len())));
            for _ in 0..10 {
                let u = random.unit();
                let token = set.draw(u).unwrap();
                assert_eq!(ranked.draw_prefix(set.len(), u), Ok(token));
                let step = s.fork().sample(&row, u, &mut scratch).unwrap();
                let mut seen = s.fork();
                assert_eq!(seen.observe(&row, token, &mut scratch).unwrap(), step);
                assert_eq!(s.fork().observe_prepared(&ranked, token, &mut scratch).unwrap(), step);
                let place = set.position(token).unwrap();
                assert_eq!(set.ids()[place], token);
                assert_eq!(set.probability(token), Some(step.probability));
                assert_eq!(
                    set.conditional_probability(token),
                    Some(set.conditional_probabilities()[place])
                );
            }
            // All others are refused.
            let mut s = s;
            for id in 0..3000 {
                if set.position(id).is_none() && random.below(40) == 0 {
                    let refused = s.observe(&row, id, &mut scratch);
                    assert_eq!(refused, Err(Error::NotKept { id }));
                }
            }
            assert!(set.draw(1.0).is_err());
        }
    }
}

#[test]
fn replays_stop_at_an_error_and_atomic_ones_go_back() {
    let mut scratch = Scratch::new();
    let mut rows: Vec<Vec<f32>> = (0..5).map(|seed| llm(400, seed)).collect();
    let draws = [0.1, 0.8, 0.5, 0.3, 0.9];
    let slices: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let mut one = session(2.0, Version::V1);
    let all = one.fork().replay(&Rows::slices(&slices), &draws, &mut scratch).unwrap();
    let mut by_hand = one.fork();
    for ((row, u), step) in slices.iter().zip(draws).zip(&all) {
        assert_eq!(by_hand.sample(row, u, &mut scratch).unwrap(), *step);
    }
    assert_eq!(
        one.fork().replay_atomic(&Rows::slices(&slices), &draws, &mut scratch).unwrap(),
        all
    );

    rows[3][17] = f32::NAN;
    let slices: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let before = one.clone();
    let error = one.replay_atomic(&Rows::slices(&slices), &draws, &mut scratch).unwrap_err();
    assert!(matches!(&error, Error::Row { row: 3, .. }), "{error}");
    assert_eq!(one, before);
    let stopped = one.replay(&Rows::slices(&slices), &draws, &mut scratch).unwrap_err();
    assert_eq!((&stopped.steps[..], &stopped.error), (&all[..3], &error));
    assert_eq!((one.steps(), one.mu()), (3, all[2].mu_after));
    let short = one.replay(&Rows::slices(&slices), &draws[1..], &mut scratch).unwrap_err();
    assert!(matches!(short.error, Error::Shape { .. }) && one.steps() == 3);
}

#[test]
fn batches_are_their_rows_in_any_order() {
    let mut scratch = Scratch::new();
    let rows: Vec<Vec<f32>> = (0..40).map(|i| llm(300 + i, i as u64)).collect();
    let sessions: Vec<Session> =
        (0..40).map(|i| session(1.0 + i as f64 / 10.0, VERSIONS[i % 2])).collect();
    let draws: Vec<f64> = (0..40).map(|i| f64::from(i) / 40.0).collect();
    let alone: Vec<Step> = (0..40)
        .map(|i| sessions[i].fork().sample(&rows[i], draws[i], &mut scratch).unwrap())
        .collect();
    let mut order: Vec<usize> = (0..40).collect();
    let mut random = Random::new(1);
    for round in 0..6 {
        let mut batch = if round % 2 == 0 { SessionBatch::new() } else { SessionBatch::serial() };
        for i in (1..40).rev() {
            order.swap(i, random.below(i + 1));
        }
        let slices: Vec<&[f32]> = order.iter().map(|&i| rows[i].as_slice()).collect();
        let us: Vec<f64> = order.iter().map(|&i| draws[i]).collect();
        let mut own: Vec<Session> = order.iter().map(|&i| sessions[i].fork()).collect();
        let mut refs: Vec<&mut Session> = own.iter_mut().collect();
        let steps = batch.sample(&Rows::slices(&slices), &mut refs, &us).unwrap();
        for (place, &i) in order.iter().enumerate() {
            assert_eq!(steps[place], Ok(alone[i]));
            assert_eq!(own[place].mu(), alone[i].mu_after);
        }
    }
}

#[test]
fn atomic_batches_restore_every_session() {
    let mut rows: Vec<Vec<f32>> = (0..8).map(|i| llm(300, i)).collect();
    let mut sessions: Vec<Session> = (0..8).map(|i| session(2.0, VERSIONS[i % 2])).collect();
    let mut batch = SessionBatch::new();
    let mut steps = vec![Step::default(); 8];
    let draws = [0.5; 8];
    let before = sessions.clone();
    rows[5][0] = f32::INFINITY;
    {
        let slices: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let result = batch.sample_all(&Rows::slices(&slices), &mut sessions, &draws, &mut steps);
        assert!(matches!(result, Err(Error::Row { row: 5, .. })), "{result:?}");
        assert_eq!(sessions, before);
        assert_eq!(steps, vec![Step::default(); 8]);
        // Without the promise, all but that row move.
        let each = batch.sample(&Rows::slices(&slices), &mut sessions, &draws).unwrap();
        assert!(each.iter().enumerate().all(|(i, s)| s.is_ok() == (i != 5)));
        assert!(sessions.iter().enumerate().all(|(i, s)| s.steps() == u64::from(i != 5)));
    }
    rows[5][0] = 0.0;
    let slices: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    sessions.clone_from(&before);
    batch.sample_all(&Rows::slices(&slices), &mut sessions, &draws, &mut steps).unwrap();
    assert!(sessions.iter().zip(&steps).all(|(s, step)| s.mu() == step.mu_after));
    let short = batch.sample_all(&Rows::slices(&slices), &mut sessions[1..], &draws, &mut steps);
    assert!(matches!(short, Err(Error::Shape { .. })));
    let short = batch.sample_all(&Rows::slices(&slices), &mut sessions, &draws, &mut steps[1..]);
    assert!(matches!(short, Err(Error::Shape { .. })));
    assert!(sessions.iter().all(|s| s.steps() == 1));
}

/// After n comes n + 1, in a row of 10; a row fails when the text is that long.
fn counter(fails_at: usize) -> impl FnMut(&[u32], &mut Vec<f32>) -> Result<(), String> {
    move |text, row| {
        row.clear();
        row.resize(10, 0.0);
        row[(text.last().unwrap() + 1) as usize % 10] = 30.0;
        match text.len() {
            len if len == fails_at => Err("no more".to_owned()),
            len if len == fails_at + 100 => {
                row[4] = f32::NAN;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn generation_ends_for_a_reason() {
    let mut scratch = Scratch::new();
    let start = || (session(0.5, Version::V2), Draws::new(1, 0));
    let (mut s, mut draws) = start();
    let done = Generate::new(4)
        .with_steps()
        .run(&mut s, || draws.next_draw(), counter(999), &[7, 2], &mut scratch)
        .unwrap();
    assert_eq!((&done.tokens[..], done.stop), (&[3, 4, 5, 6][..], Stop::Limit));
    assert_eq!((done.steps.len(), draws.step(), s.steps()), (4, 4, 4));

    // End token and limit at once, and end token and observer at once.
    let (mut s, mut draws) = start();
    let done = Generate::new(2)
        .with_end_token(4)
        .observe(
            &mut s,
            || draws.next_draw(),
            counter(999),
            &[2],
            &mut scratch,
            |step| {
                if step.token == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )
        .unwrap();
    assert_eq!((&done.tokens[..], done.stop), (&[3, 4][..], Stop::EndToken));
    assert!(done.steps.is_empty());
    let (mut s, mut draws) = start();
    let mut seen = Vec::new();
    let done = Generate::new(1)
        .observe(
            &mut s,
            || draws.next_draw(),
            counter(999),
            &[2],
            &mut scratch,
            |step| {
                seen.push(step.token);
                ControlFlow::Break(())
            },
        )
        .unwrap();
    assert_eq!((done.stop, seen), (Stop::Observer, vec![3]));
    let (mut s, _) = start();
    let none = Generate::new(0).run(&mut s, || unreachable!(), counter(1), &[2], &mut scratch);
    assert_eq!(none.unwrap().stop, Stop::Limit);
}

#[test]
fn a_generation_that_breaks_keeps_what_succeeded() {
    let mut scratch = Scratch::new();
    for (fails_at, prompt) in [(3, vec![1]), (0, vec![1; 98])] {
        let (mut s, mut draws) = (session(0.5, Version::V2), Draws::new(1, 0));
        let error = Generate::new(10)
            .with_steps()
            .run(&mut s, || draws.next_draw(), counter(fails_at), &prompt, &mut scratch)
            .unwrap_err();
        assert_eq!(error.tokens, [2, 3]);
        assert_eq!((error.steps.len(), s.steps(), draws.step()), (2, 2, 2));
        match (&error.cause, fails_at) {
            (StopCause::Model(text), 3) => assert_eq!(text, "no more"),
            (StopCause::Sample(Error::NotFinite { index: 4, .. }), 0) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn traces_by_hand() {
    let mut steps = [Step::default(); 5];
    for (step, (surprise, kept)) in
        steps.iter_mut().zip([(1.0, 5), (2.0, 1), (4.0, 9), (3.0, 2), (5.0, 3)])
    {
        (step.surprise, step.kept, step.mu_after) = (surprise, kept, surprise + 10.0);
    }
    let mut trace = TraceAccumulator::new(3.0).unwrap();
    assert_eq!(trace.summary(), None);
    trace.extend(steps);
    let summary = trace.summary().unwrap();
    assert_eq!((summary.count, summary.mean_surprise, summary.mean_kept), (5, 3.0, 4.0));
    assert_eq!((summary.mean_absolute_error, summary.final_mu), (1.2, 15.0));
    let spread = sortless::mirostat::Spread::of(&steps).unwrap();
    assert_eq!((spread.min, spread.max, spread.variance), (1.0, 5.0, 2.0));
    // Lower ranks: index floor(0.9 * 4) = 3.
    assert_eq!((spread.median, spread.p90), (3.0, 4.0));
    assert_eq!((spread.kept_min, spread.kept_max), (1, 9));
    assert_eq!(sortless::mirostat::Spread::of(&steps[..4]).unwrap().median, 2.0);
    assert_eq!(sortless::mirostat::Spread::of(&[]), None);
    let surprises = || steps.iter().map(|s| s.surprise);
    let rolling = sortless::mirostat::rolling_mean(surprises(), 2).unwrap();
    assert_eq!(rolling.collect::<Vec<_>>(), [1.0, 1.5, 3.0, 3.5, 4.0]);
    let running = sortless::mirostat::running_mean(surprises());
    assert_eq!(running.collect::<Vec<_>>(), [1.0, 1.5, 7.0 / 3.0, 2.5, 3.0]);
    assert_eq!(sortless::mirostat::perplexity(surprises()), Some(8.0));
    assert_eq!(sortless::mirostat::perplexity([]), None);
    assert!(sortless::mirostat::rolling_mean(surprises(), 0).is_err());
    let mut window = SurpriseWindow::new(2).unwrap();
    steps.iter().for_each(|s| window.push_step(s));
    assert_eq!((window.mean(), window.len(), window.capacity()), (Some(4.0), 2, 2));
    window.clear();
    assert!(window.is_empty() && window.mean().is_none());
    assert!(SurpriseWindow::new(0).is_err() && TraceAccumulator::new(f64::NAN).is_err());
}
