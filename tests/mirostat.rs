//! Mirostat against the reference, against an independent implementation, and as a controller.

#[path = "mirostat/control.rs"]
mod control;
#[path = "mirostat/generation.rs"]
mod generation;
#[path = "mirostat/rules.rs"]
mod rules;
#[path = "mirostat/sessions.rs"]
mod sessions;
mod support;

use half::{bf16, f16};
use sortless::mirostat::{Config, Session, Step, Version};
use sortless::{Draws, Element, Path, PreparedRow, Scratch, reference};
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
