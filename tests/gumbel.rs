//! 13 shapes of 248,320 tokens, 4 temperatures, 4 nuclei: what a known C sampler tests itself on.

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use sampling::*;
use sortless::oracle::{self, Verdict};
use sortless::{Draws, SamplingParams, Scratch};
use support::*;

const VOCAB: usize = 248_320;
const TRIALS: usize = 13;
/// One trial has its logits rounded to steps of 1/2, one has 50 equal peaks.
const QUANTISED: usize = 6;
const PEAKS: usize = 11;

/// A Gumbel-like tail and 25 raised peaks, higher with every trial.
fn row(trial: usize) -> Vec<f32> {
    let mut random = Random::new(1000 + trial as u64);
    let mut unit = || (random.unit() + 1e-12).min(1.0 - 1e-12);
    let tail = |u: f64| -2.0 * libm::log(-libm::log(u));
    let mut row: Vec<f32> = (0..VOCAB).map(|_| tail(unit()) as f32).collect();
    let mut random = Random::new(2000 + trial as u64);
    for i in 0..25 {
        let raise = 2.5 * (2 + trial) as f64 * (1.0 - f64::from(i) / 30.0);
        row[random.below(VOCAB)] += raise as f32;
    }
    if trial == QUANTISED {
        row.iter_mut().for_each(|l| *l = (*l * 2.0).round() / 2.0);
    }
    if trial == PEAKS {
        for _ in 0..50 {
            row[random.below(VOCAB)] = 30.0;
        }
    }
    row
}

#[test]
fn thirteen_shapes() {
    if longest_row() < VOCAB {
        return say(format_args!("left out here"));
    }
    let mut check = Check::new();
    let (mut sure, mut in_doubt) = (0, 0);
    for trial in 0..TRIALS {
        let row = row(trial);
        for (t, temperature) in [0.2, 0.7, 1.0, 2.0].into_iter().enumerate() {
            let plain = at(temperature);
            let sorted = sort(&row, &plain);
            for (n, p) in [0.3, 0.9, 0.99, 1.0].into_iter().enumerate() {
                let params = plain.with_top_p(p);
                let name = (trial, temperature, p);
                combination(&mut check, &row, &sorted, &params, name);
                // The independent check sorts anew each time, so only here and there.
                if (trial + t + n) % 8 == 0 {
                    let u = sortless::rng::uniform(99, trial as u64, n as u64);
                    let token = sorted.sample(&params, u).unwrap().token;
                    match oracle::sample(&row, &params, u) {
                        Verdict::Token(t) => {
                            assert_eq!(t, token, "{name:?}");
                            sure += 1;
                        }
                        Verdict::InDoubt(_) => in_doubt += 1,
                        Verdict::Refused => panic!("{name:?}"),
                    }
                }
            }
        }
    }
    say(format_args!("oracle sure {sure}, in doubt {in_doubt}"));
    assert!(in_doubt * 4 < sure);
    for (level, paths) in check.paths() {
        say(format_args!("{level}: {paths:?}"));
        let each = [paths.bounds, paths.cheap, paths.exact, paths.full];
        assert!(each.iter().all(|&n| n > 0), "{paths:?}");
    }
}

/// 6 draws at the ends, on a boundary and between on every path; a report; 20 draws of one stream.
fn combination(
    check: &mut Check,
    row: &[f32],
    sorted: &sortless::reference::Sorted,
    params: &SamplingParams,
    name: (usize, f32, f64),
) {
    let kept = sorted.kept(params).unwrap();
    let total: u64 = kept.iter().map(|t| t.1).sum();
    // The reference's draw, without its lists built anew.
    let token = |u: f64| {
        let target = ((u * 2f64.powi(60)) as u128 * u128::from(total)) >> 60;
        let mut sum = 0;
        kept.iter().find(|t| {
            sum += u128::from(t.1);
            sum > target
        })
    };
    let [on, below, _] = boundary(&kept, 1 + kept.len() / 3);
    let ends = [0.0, LAST, on.min(LAST), below, 0.5];
    for u in ends {
        check.pick(row, sorted, params, u, name);
    }
    check.report(row, sorted, params, 0.9, 10, name);

    let mut draws = Draws::new(7, name.0 as u64);
    let samplers: Vec<_> = check.levels.iter().map(|&level| sampler(params, level)).collect();
    let mut scratch = Scratch::new();
    for _ in 0..20 {
        // A multiple of 2^-53, so that the integers above are exact.
        let u = draws.next_draw();
        let want = token(u).unwrap().0;
        for sampler in &samplers {
            let pick = sampler.sample(row, u, &mut scratch).unwrap();
            let count = (name.2 < 1.0).then_some(kept.len() as u32);
            assert_eq!((pick.token, pick.kept), (want, count), "{name:?}, u = {u:?}");
        }
    }
}
