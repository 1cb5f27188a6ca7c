//! The samplers against the reference: token, kept count and every reported bit, on every level and path.

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use half::{bf16, f16};
use sampling::*;
use sortless::kernels::{Scale, collect, mass};
use sortless::oracle::{self, Verdict};
use sortless::{Level, Paths, Sampler, SamplingParams, Scratch};
use support::*;

/// The oracle's verdicts on what the reference decided.
#[derive(Default)]
struct Verdicts {
    sure: usize,
    in_doubt: usize,
}

impl Verdicts {
    fn ask<E: Make>(&mut self, row: &[E], params: &SamplingParams, u: f64, token: u32) {
        match oracle::sample(row, params, u) {
            Verdict::Token(t) => {
                assert_eq!(t, token, "the oracle on {params:?}, u = {u:?}, {} tokens", row.len());
                self.sure += 1;
            }
            Verdict::InDoubt(_) => self.in_doubt += 1,
            Verdict::Refused => panic!("the oracle refuses {params:?}, u = {u:?}"),
        }
    }

    /// Draws that aim at no boundary are rarely in doubt.
    fn settle(&self, name: &str) {
        say(format_args!("{name}: oracle sure {}, in doubt {}", self.sure, self.in_doubt));
        assert!(self.sure > 0 && self.in_doubt * 20 < self.sure, "{name}");
    }
}

/// Random parameters on every shape of a length, with draws at the ends, on boundaries and anywhere.
fn grid<E: Make>(check: &mut Check, vocab: usize, sets: usize, seed: u64, verdicts: &mut Verdicts) {
    // Parameters of each shape's own: a rule that few sets can break is met by some shape.
    let mut random = Random::new(seed ^ vocab as u64);
    for (name, row) in shapes::<E>(vocab, seed) {
        for set in 0..sets {
            let mut params = any_params(&mut random, vocab);
            let sorted = sort(&row, &params);
            // Cuts on boundaries of the rank, too.
            if set % 4 == 3 && params.top_p.is_some() {
                params.top_p = None;
                params.typical_p = None;
                params.epsilon = None;
                params.min_p = None;
                let ranked = sorted.kept(&params).unwrap();
                let n = 1 + random.below(ranked.len());
                params.top_p = Some(one(&mut random, &boundary(&ranked, n)).min(1.0));
            }
            let kept = sorted.kept(&params).unwrap();
            let name = (name, E::NAME, set);
            for (i, u) in draws(&kept, 3, 2, &mut random).into_iter().enumerate() {
                if i % 4 == 3 {
                    let alternatives = one(&mut random, &[0, 1, 5, 40, vocab, vocab + 1]);
                    check.report(&row, &sorted, &params, u, alternatives.min(300), name);
                } else {
                    check.pick(&row, &sorted, &params, u, name);
                }
            }
            if set % 8 == 0 && name.0 != "huge range" {
                let u = random.unit();
                let pick = check.pick(&row, &sorted, &params, u, name);
                verdicts.ask(&row, &params, u, pick.token);
            }
        }
    }
}

/// Decisions of the path that made the fewest.
fn each(paths: Paths) -> u64 {
    paths.bounds.min(paths.cheap).min(paths.exact).min(paths.full)
}

fn grids(check: &mut Check, vocab: usize, sets: usize, seed: u64, verdicts: &mut Verdicts) {
    grid::<f32>(check, vocab, sets, seed, verdicts);
    grid::<f16>(check, vocab, sets, seed + 1, verdicts);
    grid::<bf16>(check, vocab, sets, seed + 2, verdicts);
}

#[test]
fn every_short_row() {
    let (mut check, mut verdicts) = (Check::new(), Verdicts::default());
    for vocab in 1..=40 {
        grids(&mut check, vocab, 16, 100 * vocab as u64, &mut verdicts);
    }
    verdicts.settle("1 to 40 tokens");
}

#[test]
fn rows_around_block_sizes() {
    let (mut check, mut verdicts) = (Check::new(), Verdicts::default());
    for vocab in [127, 128, 129, 255, 256, 257] {
        grids(&mut check, vocab, 40, vocab as u64, &mut verdicts);
    }
    verdicts.settle("around block sizes");
}

#[test]
fn rows_around_the_longest_that_is_sorted_whole() {
    let (mut check, mut verdicts) = (Check::new(), Verdicts::default());
    for vocab in [1023, 1024, 1025, 1026] {
        grids(&mut check, vocab, 40, vocab as u64, &mut verdicts);
    }
    verdicts.settle("around 1024 tokens");
}

#[test]
fn rows_of_4096_on_every_path() {
    let (mut check, mut verdicts) = (Check::new(), Verdicts::default());
    grids(&mut check, 4096, 50, 4096, &mut verdicts);
    verdicts.settle("4096 tokens");
    for (level, paths) in check.paths() {
        say(format_args!("4096 tokens, {level}: {paths:?}"));
        assert!(each(paths) > 50, "{paths:?}");
    }
}

#[test]
fn long_rows() {
    let vocab = longest_row().min(151_936);
    let (mut check, mut verdicts) = (Check::new(), Verdicts::default());
    grid::<f32>(&mut check, vocab, 2, 1, &mut verdicts);
    grid::<f16>(&mut check, vocab, 1, 2, &mut verdicts);
}

#[test]
fn real_rows() {
    let data = whisper();
    if data.vocab > longest_row() {
        return say(format_args!("real rows: left out here"));
    }
    let (mut check, mut verdicts) = (Check::new(), Verdicts::default());
    let mut random = Random::new(8);
    for (i, row) in data.f16.iter().enumerate() {
        real_row(&mut check, row, i, &mut random, &mut verdicts);
    }
    for (i, row) in data.f32.iter().enumerate() {
        real_row(&mut check, row, i, &mut random, &mut verdicts);
        real_row(&mut check, &convert::<bf16>(row), i, &mut random, &mut verdicts);
    }
    verdicts.settle("real rows");
    for (level, paths) in check.paths() {
        say(format_args!("real rows, {level}: {paths:?}"));
        assert!(each(paths) > 0, "{paths:?}");
    }
}

fn real_row<E: Make>(
    check: &mut Check,
    row: &[E],
    index: usize,
    random: &mut Random,
    verdicts: &mut Verdicts,
) {
    let temperatures = [0.01f32, 0.2, 0.7, 1.0, 2.0, 50.0];
    for t in 0..2 {
        let temperature = temperatures[(index + 3 * t) % temperatures.len()];
        let plain = at(temperature);
        let sorted = sort(row, &plain);
        let mut sets = vec![
            plain,
            plain.with_top_k(40).with_top_p(0.95).with_min_p(0.05),
            plain.with_top_p(one(random, &[1e-8, 1e-3, 0.3, 0.9, 0.99, 0.9999999, 1.0])),
        ];
        for _ in 0..5 {
            let mut params = any_params(random, row.len());
            params.temperature = temperature;
            sets.push(params);
        }
        for params in sets {
            let kept = sorted.kept(&params).unwrap();
            let name = ("real row", E::NAME, index);
            for u in draws(&kept, 2, 1, random) {
                check.pick(row, &sorted, &params, u, name);
            }
            let u = random.unit();
            let report = check.report(row, &sorted, &params, u, 10, name);
            if random.below(6) == 0 {
                verdicts.ask(row, &params, u, report.chosen.token);
            }
        }
    }
}

#[test]
fn the_engine_s_greedy_tokens_come_out() {
    let data = whisper();
    assert!(data.f16.len() >= 24 && data.f32.len() >= 5);
    assert!(data.greedy.iter().any(Option::is_none));
    let mut scratch = Scratch::new();
    for level in levels() {
        let greedy = Sampler::greedy().with_level(level);
        for (row, want) in data.f16.iter().zip(&data.greedy) {
            let want = want.unwrap_or(END_OF_TEXT) as u32;
            let pick = greedy.sample(row, LAST, &mut scratch).unwrap();
            assert_eq!((pick.token, pick.kept), (want, Some(1)));
            // At a low temperature, and with one token to choose from, the draw can't matter.
            for params in [at(1e-4), at(2.0).with_top_k(1), at(0.5).with_top_p(1e-8)] {
                let pick = sampler(&params, level).sample(row, 0.5, &mut scratch);
                assert_eq!(pick.unwrap().token, want, "{params:?}");
            }
        }
        for (row, &twin) in data.f32.iter().zip(&data.twins) {
            let want = data.greedy[twin].unwrap_or(END_OF_TEXT) as u32;
            assert_eq!(greedy.sample(row, 0.0, &mut scratch).unwrap().token, want);
        }
    }
}

/// A half-precision row gives what the same row as f32 gives, bit for bit.
#[test]
fn half_rows_equal_their_widened_rows() {
    fn same<E: Make>(row: &[E], random: &mut Random, sets: usize) {
        let wide: Vec<f32> = row.iter().map(|v| v.to_f32()).collect();
        let mut scratch = Scratch::new();
        let [mut half_report, mut wide_report] = [(); 2].map(|()| Default::default());
        for level in levels() {
            for _ in 0..sets {
                let sampler = sampler(&any_params(random, row.len()), level);
                let u = random.unit();
                let half = sampler.sample(row, u, &mut scratch).unwrap();
                assert_eq!(sampler.sample(&wide, u, &mut scratch).unwrap(), half);
                sampler.report(row, u, 7, &mut scratch, &mut half_report).unwrap();
                sampler.report(&wide, u, 7, &mut scratch, &mut wide_report).unwrap();
                assert_eq!(bits(&half_report), bits(&wide_report), "{sampler:?}, u = {u:?}");
            }
        }
    }
    let mut random = Random::new(16);
    for row in whisper().f16.iter().take(6) {
        same(row, &mut random, 10);
    }
    for vocab in [5, 200, 3000] {
        shapes::<f16>(vocab, 5).iter().for_each(|(_, row)| same(row, &mut random, 40));
        shapes::<bf16>(vocab, 6).iter().for_each(|(_, row)| same(row, &mut random, 40));
    }
}

/// A long row of which the head holds only the largest logits, while others, just below, weigh as much: what is sought by
/// weight reaches beyond the head.
#[test]
fn equal_weights_of_different_logits() {
    let mut check = Check::new();
    // One of the largest in every other block: 64 blocks, as many tokens as a head looks for at first.
    let best = |i| i % 256 == 3;
    let row: Vec<f32> =
        (0..128 * 128).map(|i| if best(i) { 1.0 } else { 1f32.next_down() }).collect();
    // The share of each token, if they all weigh the same: where it is hot they do.
    let share = 1.0 / row.len() as f64;
    for (temperature, kept) in [(50.0, row.len()), (1.0 / 64.0, 64)] {
        let params = at(temperature).with_epsilon(share);
        let sorted = sort(&row, &params);
        assert_eq!(sorted.kept(&params).unwrap().len(), kept);
        for u in [0.0, 0.3, LAST] {
            check.report(&row, &sorted, &params, u, 3, "equal weights");
        }
    }
}

/// Typical sampling's order goes by distance from the mean: many equal tokens on one side of it, others on both.
#[test]
fn a_crowd_on_one_side_of_the_mean() {
    let mut check = Check::new();
    let mut random = Random::new(41);
    for crowd in [-0.5f32, -0.2, 0.0, 0.2, 0.5] {
        // None of the others is near the crowd itself.
        let mut other = || loop {
            let logit = 1.0 - 2.0 * random.unit() as f32;
            if (logit - crowd).abs() > 0.05 {
                break logit;
            }
        };
        let row: Vec<f32> = (0..12_000).map(|i| if i % 2 == 0 { crowd } else { other() }).collect();
        for p in [0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
            let params = SamplingParams::new().with_typical_p(p);
            let sorted = sort(&row, &params);
            for u in [0.0, 0.3, 0.6, 0.9, 0.97, 0.99, 0.999, 0.9999] {
                check.pick(&row, &sorted, &params, u, ("crowd", "f32", (p * 100.0) as usize));
            }
        }
    }
}

/// Rows masked with a finite number, where a few tokens just have no mass: they are in no kept set.
fn masked_by_numbers<E: Make>(check: &mut Check, mask: f32) {
    let mut random = Random::new(30);
    for vocab in [2_048, 4_096, 20_000] {
        for round in 0..24 {
            let mut row = vec![E::make(mask); vocab];
            let start = [vocab - 128, random.below(vocab - 16)][round % 2];
            // Half a unit of mass is at 44 ln 2 = 30.4985 below the best.
            let edge = [-30.5, -30.5, -30.4985, -30.5 + random.unit() as f32 / 16.0][round % 4];
            for (i, logit) in [0.0, -2.0, -3.0, edge, edge, -30.0, edge].into_iter().enumerate() {
                row[start + i] = E::make(logit);
            }
            let base = at(1.0);
            for params in [
                base.with_top_p(0.9),
                base.with_top_p(1.0 - 1e-9),
                base.with_min_p(0.01),
                base.with_epsilon(1e-12),
                base.with_top_k(vocab as u32 / 2),
                base.with_typical_p(0.9),
                base,
            ] {
                let sorted = sort(&row, &params);
                for u in [0.0, 0.5, LAST] {
                    check.report(&row, &sorted, &params, u, 3, "masked by numbers");
                }
            }
        }
    }
}

#[test]
fn tokens_that_just_have_no_mass() {
    let mut check = Check::new();
    masked_by_numbers::<f32>(&mut check, -1000.0);
    masked_by_numbers::<f16>(&mut check, -65504.0);
    masked_by_numbers::<bf16>(&mut check, -1e9);
}

/// Bits as `u16`, viewed in place.
#[test]
fn rows_of_bits() {
    let row = shapes::<f16>(500, 3).swap_remove(0).1;
    let bits: Vec<u16> = row.iter().map(|v| v.to_bits()).collect();
    let viewed: &[f16] = bytemuck::cast_slice(&bits);
    let params = at(0.9).with_top_p(0.9);
    Check::new().report(viewed, &sort(&row, &params), &params, 0.4, 5, "bits");
}

/// The prefix masses of the rank, from the kernels alone: a draw or a cut exactly on one decides as the contract says.
#[test]
fn boundaries_from_the_kernels() {
    let mut scratch = Scratch::new();
    for (name, row) in shapes::<f32>(300, 77) {
        if name == "huge range" {
            continue;
        }
        let mut order: Vec<usize> = (0..row.len()).filter(|&i| row[i].is_finite()).collect();
        order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap().then(a.cmp(&b)));
        for temperature in [0.3, 1.0, 8.0] {
            let scale = Scale::new(row[order[0]], temperature).unwrap();
            let masses = order.iter().map(|&i| mass(scale.weight(row[i])));
            let sums: Vec<u64> = masses
                .filter(|&m| m > 0)
                .scan(0, |sum, m| {
                    *sum += m;
                    Some(*sum)
                })
                .collect();
            let total = *sums.last().unwrap();
            for (j, &sum) in sums.iter().enumerate() {
                let share = sum as f64 / total as f64;
                for p in [share, share.next_down(), share.next_up().min(1.0)] {
                    // ceil and floor of p * total, in integers: p = a / 2^53 here, or finer where it is small.
                    let (a, b) = dyadic(p);
                    let product = u128::from(a) * u128::from(total);
                    let cut = (product + (1u128 << b) - 1) >> b;
                    let kept = sums.iter().position(|&s| u128::from(s) >= cut).unwrap() + 1;
                    for level in levels() {
                        let top_p = sampler(&at(temperature).with_top_p(p), level);
                        let pick = top_p.sample(&row, 0.0, &mut scratch).unwrap();
                        let want = (p < 1.0).then_some(kept as u32);
                        assert_eq!(pick.kept, want, "{name}, T {temperature}, {j}, p = {p:?}");
                        if p < 1.0 {
                            let target = product >> b;
                            let drawn = sums.iter().position(|&s| u128::from(s) > target).unwrap();
                            let plain = sampler(&at(temperature), level);
                            let pick = plain.sample(&row, p, &mut scratch).unwrap();
                            assert_eq!(pick.token as usize, order[drawn], "{name}, u = {p:?}");
                        }
                    }
                }
            }
        }
    }
}

/// `p = a / 2^b`, for `p >= 2^-40`.
fn dyadic(p: f64) -> (u64, u32) {
    let b = 100;
    let scaled = p * 2f64.powi(b);
    let shift = scaled.log2() as i32 - 52;
    ((scaled * 2f64.powi(-shift)) as u64, (b - shift) as u32)
}

/// Every draw of a coarse grid and every k, on small rows with ties.
#[test]
fn every_k_and_a_grid_of_draws() {
    let mut check = Check::new();
    let mut random = Random::new(3);
    for vocab in 1..=12 {
        let row: Vec<f32> = (0..vocab).map(|_| random.below(4) as f32 / 2.0).collect();
        for k in 1..=vocab as u32 + 1 {
            let params = at(0.8).with_top_k(k);
            let sorted = sort(&row, &params);
            for i in 0..64 {
                check.pick(&row, &sorted, &params, f64::from(i) / 64.0, "grid");
            }
        }
    }
}

/// Temperatures at both ends of the normal floats.
#[test]
fn extreme_temperatures() {
    let mut check = Check::new();
    for (name, row) in shapes::<f32>(1500, 5) {
        for temperature in [f32::MIN_POSITIVE, 1e-30, 0.01, 50.0, 1e30, f32::MAX] {
            for params in [
                at(temperature),
                at(temperature).with_top_p(0.9),
                at(temperature).with_typical_p(0.9),
            ] {
                let sorted = sort(&row, &params);
                for u in [0.0, 0.3, LAST] {
                    check.report(&row, &sorted, &params, u, 3, (name, temperature));
                }
            }
        }
    }
}

/// Top-k's best are all that the filters after it look at, however low they cut: within the k best, at the k-th or below it.
#[test]
fn filters_after_top_k_look_no_further() {
    let mut random = Random::new(40);
    let row: Vec<f32> = (0..20_000).map(|_| (random.normal() * 2.0) as f32).collect();
    let few = |i: usize| if i.is_multiple_of(500) { 0.5 } else { f32::NEG_INFINITY };
    let few: Vec<f32> = (0..20_000).map(few).collect();
    let mut check = Check::new();
    for row in [&row, &few] {
        for p in [1e-30, 0.01, 0.3, 0.9] {
            for params in [
                at(1.0).with_top_k(40).with_min_p(p),
                at(0.7).with_top_k(39).with_epsilon(p),
                at(1.0).with_top_k(41).with_typical_p(p).with_top_p(0.999),
            ] {
                let sorted = sort(row, &params);
                check.pick(row, &sorted, &params, 0.7, "filters after top-k");
                let mut scratch = Scratch::new();
                sampler(&params, Level::best()).sample(row, 0.7, &mut scratch).unwrap();
                assert_eq!((scratch.paths().bounds, scratch.paths().full), (1, 0), "{params:?}");
            }
        }
    }
}

/// A table of a known sampler at V = 4,096, T = 0.7, p = 0.9.
mod table {
    use super::*;

    const V: usize = 4096;

    fn params() -> SamplingParams {
        at(0.7).with_top_p(0.9)
    }

    /// The kept count, the same for all draws, on every level and path.
    fn kept(row: &[f32]) -> u32 {
        let mut check = Check::new();
        let sorted = sort(row, &params());
        let counts = [0.0, 0.5, LAST].map(|u| {
            let pick = check.pick(row, &sorted, &params(), u, "table");
            let report = check.report(row, &sorted, &params(), u, 60, "table");
            assert_eq!(pick.kept, Some(report.kept));
            report.kept
        });
        assert!(counts.iter().all(|&n| n == counts[0]));
        counts[0]
    }

    /// How many tokens reach the logit of the last kept one: all that a selection has to look at.
    fn collected(row: &[f32]) -> usize {
        let last = sort(row, &params()).kept(&params()).unwrap().pop().unwrap();
        let mut found = Vec::new();
        for level in levels() {
            collect(level, row, row[last.0 as usize], &mut found).unwrap();
        }
        found.len()
    }

    #[test]
    fn all_equal_keeps_3687() {
        let row = equal(V, -2.5);
        assert_eq!(kept(&row), 3687); // ceil(0.9 * 4096)
        let mut scratch = Scratch::new();
        for level in levels() {
            let sampler = sampler(&params(), level);
            for (u, token) in [(0.0, 0), (LAST, 3686)] {
                assert_eq!(sampler.sample(&row, u, &mut scratch).unwrap().token, token);
            }
        }
    }

    #[test]
    fn a_spike_collects_one() {
        let row = spike(V, 9);
        assert_eq!((kept(&row), collected(&row)), (1, 1));
    }

    #[test]
    fn fifty_peaks_collect_fifty() {
        let row = plateau(V, 50, 9);
        // 0.9 as f64 is a little more than nine tenths, so 45 of 50 don't reach it.
        assert_eq!((kept(&row), collected(&row)), (46, 50));
    }

    #[test]
    fn a_repeated_tail_collects_at_most_300() {
        let row = repeated_tail(V);
        let (kept, collected) = (kept(&row), collected(&row));
        assert!((1..=300).contains(&kept) && collected <= 300, "{kept} {collected}");
    }
}

/// Hot rows that reach down to the end of the floats, where the middle of a step may be infinite.
#[test]
fn typical_rows_at_the_end_of_the_floats() {
    let mut check = Check::new();
    let mut random = Random::new(43);
    let mut rows: Vec<(f32, Vec<f32>)> = vec![
        (3e38, (0..4096).map(|i| f32::MIN * (((i % 1000) as f32 + 0.7) / 1022.0)).collect()),
        (3e38, (0..4096).map(|_| f32::MIN * random.unit() as f32).collect()),
        (1.2e37, {
            let low = |i: usize| f32::MIN * (0.5 + ((i % 500) as f32 + 0.7) / 1022.0);
            let high = |i: usize| f32::MIN * ((0.6 + i as f32 / 40960.0) / 1022.0);
            (0..4096).map(|i| if i % 100 == 0 { high(i) } else { low(i) }).collect()
        }),
    ];
    for (_, row) in &mut rows {
        (row[0], row[16]) = (0.0, f32::MIN);
    }
    let low = |i: usize| f32::MIN * (0.9985 * i as f32 / 4096.0);
    let mut row: Vec<f32> =
        (0..4096).map(|i| if i % 16 == 0 { low(i) } else { f32::MIN }).collect();
    row[3200] = f32::MIN * 0.9995;
    rows.push((3e38, row));
    for (temperature, row) in &rows {
        for p in [0.5, 0.9, 1.0] {
            let params = at(*temperature).with_typical_p(p);
            let sorted = sort(row, &params);
            for u in [0.0, 0.4, 0.9, LAST] {
                check.report(row, &sorted, &params, u, 3, ("the end of the floats", p));
            }
        }
    }
}

/// The level that the environment or the machine gives, and forced ones.
#[test]
fn levels_can_be_forced() {
    assert_eq!(Sampler::greedy().level(), Level::best());
    for level in levels() {
        assert_eq!(Sampler::greedy().with_level(level).level(), level);
    }
}
