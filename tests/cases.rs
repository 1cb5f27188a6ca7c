//! What has gone wrong in samplers elsewhere, as small numbers, under the ids of the project's list of cases.
//!
//! Not here, because this crate has no such stage or has it elsewhere:
//! - B10, B15, B19: verification of drafted tokens, XTC, a `min_keep` option. None of them exists here.
//! - B14, B16 as far as they need a chain of stages in free order; what they say of a fixed order is here.
//! - C13's and C14's flush-to-zero modes: the contract names the default floating-point environment.
//! - D07: temperature by entropy doesn't exist here.
//! - F: masks, bias and penalties come before sampling, in a module with tests of its own.
//! - G05, G06: noise per token (Gumbel, exponential race). A draw here is one number; what they demand of masked tokens
//!   and of the ends of the range is tested under their ids.
//! - H: Mirostat has its own tests.
//! - I07, I09: speculative acceptance doesn't exist here. I04 holds by type: `Draws::new` takes a seed.

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use half::{bf16, f16};
use sampling::*;
use sortless::kernels::{Scale, mass};
use sortless::{
    Batch, Draws, Error, Level, NotFinite, Number, Report, Rows, Sampler, SamplingParams, Scratch,
    reference,
};
use std::collections::HashSet;
use support::*;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// Logits of probabilities.
fn ln(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln() as f32).collect()
}

/// Logits whose weights are powers of two, exactly.
fn halvings(exponents: &[i32]) -> Vec<f32> {
    exponents.iter().map(|&e| -(e as f32) * core::f32::consts::LN_2).collect()
}

fn report<E: Make>(row: &[E], params: SamplingParams, u: f64) -> Report {
    let sorted = sort(row, &params);
    Check::new().report(row, &sorted, &params, u, row.len(), E::NAME)
}

fn token<E: Make>(row: &[E], params: SamplingParams, u: f64) -> u32 {
    Check::new().pick(row, &sort(row, &params), &params, u, E::NAME).token
}

/// The kept ids, in the order of the rank.
fn kept<E: Make>(row: &[E], params: SamplingParams) -> Vec<u32> {
    let report = report(row, params, 0.0);
    let kept = report.alternatives.iter().filter(|a| a.conditional > 0.0);
    let kept: Vec<u32> = kept.map(|a| a.token).collect();
    assert_eq!(kept.len(), report.kept as usize);
    kept
}

fn top_p(p: f64) -> SamplingParams {
    SamplingParams::new().with_top_p(p)
}

/// What every level says of a row.
fn fault<E: Make>(row: &[E], params: SamplingParams, u: f64) -> Error {
    let want = reference::sample(row, &params, u).unwrap_err();
    let mut scratch = Scratch::new();
    for level in levels() {
        let sampler = sampler(&params, level);
        assert_eq!(sampler.sample(row, u, &mut scratch).as_ref(), Err(&want));
        let mut report = Report::default();
        assert_eq!(sampler.report(row, u, 3, &mut scratch, &mut report).as_ref(), Err(&want));
        assert_eq!(report, Report::default());
    }
    want
}

fn normals(v: usize, sigma: f64, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..v).map(|_| (sigma * random.normal()) as f32).collect()
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

// A: the nucleus.

#[test]
fn a01_the_smallest_set_that_reaches_p() {
    assert_eq!(kept(&ln(&[0.4, 0.3, 0.2, 0.1]), top_p(0.6)), [0, 1]);
    assert_eq!(kept(&ln(&[0.55, 0.45]), top_p(0.9)), [0, 1]);
}

#[test]
fn a02_no_extra_token_when_the_sum_equals_p() {
    let row = halvings(&[1, 2, 3, 3]);
    assert_eq!(kept(&row, top_p(0.75)), [0, 1]);
    assert_eq!(kept(&row, top_p(0.75f64.next_up())), [0, 1, 2]);
    assert_eq!(kept(&row, top_p(0.5)), [0]);
    assert_eq!(kept(&row, top_p(0.875)), [0, 1, 2]);
    assert_eq!(kept(&convert::<f16>(&equal(4, 1.0)), top_p(0.75)), [0, 1, 2]);
    assert_eq!(kept(&halvings(&[2, 4, 4, 1]), top_p(0.75)), [3, 0]);
    assert_eq!(kept(&halvings(&[2, 3, 3, 1]), top_p(0.75)), [3, 0]);
}

#[test]
fn a03_p_is_never_one_minus_p() {
    assert_eq!(kept(&halvings(&[1, 2, 3, 3]), top_p(0.75)), [0, 1]);
    // Not dyadic: the masses decide, in integers, from the top.
    let row = ln(&[0.5, 0.3, 0.1, 0.1]);
    let scale = Scale::new(row[0], 1.0).unwrap();
    let masses: Vec<u128> = row.iter().map(|&l| u128::from(mass(scale.weight(l)))).collect();
    // 0.8 as f64 is 3602879701896397 / 2^52.
    let (a, total) = (3_602_879_701_896_397u128, masses.iter().sum::<u128>());
    let mut sum = 0;
    let reaches = masses.iter().position(|m| {
        sum += m;
        sum << 52 >= a * total
    });
    assert_eq!(kept(&row, top_p(0.8)).len(), reaches.unwrap() + 1);
    // Clear of the boundary there is no question.
    assert_eq!(kept(&row, top_p(0.7999)), [0, 1]);
}

#[test]
fn a05_a_tiny_p_keeps_the_argmax() {
    fn check<E: Make>() {
        let row: Vec<E> = convert(&normals(4096, 1.0, 5));
        let best = reference::argmax(&row).unwrap() as u32;
        for p in [1e-8, 1e-7, 1e-4, 1e-3, f64::MIN_POSITIVE, f64::from_bits(1)] {
            for u in [0.0, 0.5, LAST] {
                assert_eq!(token(&row, top_p(p), u), best);
            }
            assert_eq!(report(&row, top_p(p), 0.5).kept, 1);
        }
    }
    check::<f32>();
    check::<f16>();
    check::<bf16>();
}

#[test]
fn a06_p_just_under_one_has_an_end() {
    for seed in 0..20 {
        let row = normals(32_000, 1.0, seed);
        let params = top_p(0.9999999);
        let sorted = sort(&row, &params);
        let mut check = Check::new();
        for u in [0.0, LAST] {
            let pick = check.pick(&row, &sorted, &params, u, seed);
            assert!((1..=32_000).contains(&pick.kept.unwrap()) && pick.token < 32_000);
        }
    }
    assert_eq!(kept(&equal(12, 3.0), top_p(0.99999999)).len(), 12);
    assert_eq!(kept(&equal(12, 3.0), top_p(LAST)).len(), 12);
}

#[test]
fn a08_p_one_is_the_unfiltered_path() {
    for (_, row) in shapes::<f32>(700, 8) {
        let plain = SamplingParams::new();
        for u in [0.0, 0.25, 0.75, LAST] {
            assert_eq!(bits(&report(&row, top_p(1.0), u)), bits(&report(&row, plain, u)));
        }
        let with_mass = sort(&row, &plain).kept(&plain).unwrap().len();
        assert_eq!(report(&row, top_p(1.0), 0.0).kept as usize, with_mass);
        let pick = Sampler::top_p(1.0).unwrap().sample(&row, 0.5, &mut Scratch::new());
        assert_eq!(pick.unwrap().kept, None);
    }
    assert_eq!(token(&[1.0f32, 1.0, 1.0], top_p(1.0), 0.5), 1);
}

#[test]
fn a09_p_towards_zero_is_the_argmax_and_p_zero_is_refused() {
    let row = [0.0f32, 3.0, 1.0];
    assert_eq!(token(&row, top_p(f64::from_bits(1)), LAST), 1);
    assert!(matches!(Sampler::top_p(0.0), Err(Error::Parameter { name: "top_p", .. })));
}

#[test]
fn a10_p_zero_is_neither_off_nor_greedy() {
    for p in [0.0, -0.0, -0.1, 1.0f64.next_up(), 2.0, f64::NAN, f64::INFINITY] {
        let error = Sampler::top_p(p).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("top_p") && text.contains("off"), "{text}");
        let Error::Parameter { value, .. } = error else { panic!("{error:?}") };
        assert_eq!(value, Number(p));
        assert!(reference::sample(&[2.0f32, 0.0], &top_p(p), 0.95).is_err());
    }
    assert_eq!(token(&[2.0f32, 0.0], top_p(1e-300), 0.95), 0);
}

#[test]
fn a11_p_is_relative_to_what_top_k_left() {
    let mut row = ln(&[0.15, 0.14]);
    row.extend(ln(&[0.0071; 100]));
    assert_eq!(kept(&row, top_p(0.8).with_top_k(1)), [0]);
    // Of the two: 0.15 / 0.29 is over a half.
    assert_eq!(kept(&row, top_p(0.5).with_top_k(2)), [0]);
    assert_eq!(kept(&row, top_p(0.6).with_top_k(2)), [0, 1]);
}

#[test]
fn a14_temperature_comes_first() {
    let row = [2.0f32, 1.0, 0.0, -1.0];
    assert_eq!(kept(&row, top_p(0.8).with_temperature(2.0)), [0, 1, 2]);
    assert_eq!(kept(&row, top_p(0.8)), [0, 1]);
    let report = report(&row, top_p(0.8).with_temperature(2.0), 0.0);
    for (a, p) in report.alternatives.iter().zip([0.455, 0.276, 0.167, 0.102]) {
        close(a.probability, p, 5e-4);
    }
}

#[test]
fn a15_ids_survive_the_order() {
    assert_eq!(kept(&[1.0f32, 3.0, 2.0], top_p(0.5)), [1]);
    assert_eq!(kept(&[1.0f32, 3.0, 2.0], top_p(0.8)), [1, 2]);
}

#[test]
fn a16_probabilities_are_summed_not_their_logs() {
    let row = [-0.22f32, -1.61];
    assert_eq!(kept(&row, top_p(0.9)), [0, 1]);
    assert_eq!(kept(&row, top_p(0.5)), [0]);
}

#[test]
fn a18_reported_probabilities_are_of_one_normalisation() {
    let row = normals(50, 2.0, 18);
    let report = report(&row, top_p(0.95), 0.7);
    close(report.alternatives.iter().map(|a| a.probability).sum(), 1.0, 1e-12);
    close(report.alternatives.iter().map(|a| a.conditional).sum(), 1.0, 1e-12);
    for a in report.alternatives.iter().filter(|a| a.conditional > 0.0) {
        close(a.conditional * report.retained, a.probability, 1e-12);
    }
    assert!(report.retained >= 0.95 && report.retained < 1.0);
}

#[test]
fn a19_half_precision_rows_don_t_stall_a_sum() {
    fn check<E: Make>() {
        let row: Vec<E> = convert(&normals(131_072, 3.0, 19));
        let params = top_p(0.9);
        let pick = Check::new().pick(&row, &sort(&row, &params), &params, LAST, E::NAME);
        // The true nucleus, by an f64 softmax.
        let mut weights: Vec<f64> = row.iter().map(|l| f64::from(l.to_f32()).exp()).collect();
        weights.sort_by(|a, b| b.total_cmp(a));
        let cut = 0.9 * weights.iter().sum::<f64>();
        let mut sum = 0.0;
        let n = weights.iter().take_while(|&&w| {
            let before = sum;
            sum += w;
            before < cut
        });
        let (got, n) = (f64::from(pick.kept.unwrap()), n.count() as f64);
        assert!((got - n).abs() <= 1e-4 * n, "{got} {n}");
    }
    check::<f32>();
    check::<f16>();
    check::<bf16>();
}

// B: other filters.

#[test]
fn b01_top_k_zero_is_refused() {
    let error = Sampler::top_k(0).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "top_k", value: Number(0.0), .. }));
    assert!(error.to_string().contains("off"), "{error}");
}

#[test]
fn b02_top_k_of_the_vocabulary_or_more_is_off() {
    let row = [1.0f32, 3.0, 2.0];
    for k in [3, 4, 100_000, u32::MAX] {
        let params = SamplingParams::new().with_top_k(k);
        assert_eq!(kept(&row, params), [1, 2, 0]);
        let pick = sampler(&params, Level::best()).sample(&row, LAST, &mut Scratch::new());
        assert_eq!(pick.map(|p| (p.token, p.kept)), Ok((0, None)));
    }
}

#[test]
fn b03_top_k_one_keeps_one() {
    assert_eq!(kept(&[0.8f32, 0.7], SamplingParams::new().with_top_k(1)), [0]);
    let row = normals(5000, 1.0, 3);
    for k in [1, 2, 63, 64, 65, 128, 500, 513, 4999] {
        assert_eq!(kept(&row, SamplingParams::new().with_top_k(k)).len(), k as usize);
    }
}

#[test]
fn b04_top_k_keeps_ids() {
    assert_eq!(kept(&ln(&[0.1, 0.7, 0.2]), SamplingParams::new().with_top_k(1)), [1]);
}

#[test]
fn b06_top_k_agrees_with_argmax_on_random_rows() {
    for seed in 0..30 {
        let row: Vec<f16> = convert(&normals(32_768, 3.0, seed));
        let best = reference::argmax(&row).unwrap() as u32;
        let params = SamplingParams::new().with_top_k(1);
        assert_eq!(token(&row, params, 0.9), best);
        // The k best are the first k of a plain sort.
        let mut order: Vec<u32> = (0..32_768).collect();
        order.sort_by(|&a, &b| {
            let value = |id: u32| row[id as usize].to_f32();
            value(b).partial_cmp(&value(a)).unwrap().then(a.cmp(&b))
        });
        if seed < 3 {
            assert_eq!(kept(&row, SamplingParams::new().with_top_k(256)), order[..256]);
        }
    }
}

#[test]
fn b07_min_p_is_a_share_of_the_best_probability() {
    assert_eq!(kept(&[5.0f32, 4.9, 1.0], SamplingParams::new().with_min_p(0.1)), [0, 1]);
    // Also where all logits are negative, and exactly at the share.
    assert_eq!(kept(&[-5.0f32, -5.1, -9.0], SamplingParams::new().with_min_p(0.1)), [0, 1]);
    let row = halvings(&[0, 1, 2, 3]);
    assert_eq!(kept(&row, SamplingParams::new().with_min_p(0.25)), [0, 1, 2]);
    assert_eq!(kept(&row, SamplingParams::new().with_min_p(0.25f64.next_up())), [0, 1]);
}

#[test]
fn b09_min_p_comes_after_temperature() {
    let row = [0.0f32, -2.5];
    let min_p = SamplingParams::new().with_min_p(0.05);
    assert_eq!(kept(&row, min_p), [0, 1]);
    assert_eq!(kept(&row, min_p.with_temperature(0.5)), [0]);
    // The report shows the probability that the filter saw.
    let report = report(&row, min_p.with_temperature(0.5), 0.0);
    close(report.alternatives[1].probability, 0.0067, 5e-5);
}

#[test]
fn b11_typical_may_drop_the_argmax() {
    let row = ln(&[0.6, 0.3, 0.1]);
    let typical = |p| SamplingParams::new().with_typical_p(p);
    assert_eq!(kept(&row, typical(0.2)), [1]);
    assert_eq!(token(&row, typical(0.2), LAST), 1);
    let report = report(&row, typical(0.2), 0.0);
    close(report.entropy, 0.89795 / core::f64::consts::LN_2, 1e-4);
    // 0.306, then 0.387, then 1.405: the order of the draw.
    let order = sort(&row, &typical(1.0)).kept(&typical(1.0)).unwrap();
    assert_eq!(order.iter().map(|t| t.0).collect::<Vec<_>>(), [1, 0, 2]);
    assert_eq!(
        [0.0, 0.29, 0.31, 0.89, 0.91].map(|u| token(&row, typical(1.0), u)),
        [1, 1, 0, 0, 2]
    );
}

#[test]
fn b12_typical_with_masked_tokens() {
    let row = [1.0f32, 0.0, -INF];
    let typical = |p| SamplingParams::new().with_typical_p(p);
    assert_eq!(kept(&row, typical(1.0)), [0, 1]);
    assert_eq!(kept(&row, typical(0.5)), [0]);
    let report = report(&row, typical(1.0), LAST);
    close(report.entropy, 0.5822 / core::f64::consts::LN_2, 1e-4);
    assert_eq!(report.alternatives.len(), 2);
    assert_eq!(report.chosen.token, 1);
}

#[test]
fn b14_typical_leaves_no_stale_order() {
    // Kept as [1, 0] in its own order; alternatives stay ranked, and epsilon after it still finds the best of them.
    let row = ln(&[0.6, 0.3, 0.1]);
    let params = SamplingParams::new().with_typical_p(0.85);
    assert_eq!(kept(&row, params), [0, 1]);
    assert_eq!(token(&row, params, 0.0), 1);
    assert_eq!(kept(&row, params.with_epsilon(0.99)), [0]);
    // Everything typical, as cold as can be: the argmax.
    let cold = SamplingParams::new().with_typical_p(1.0).with_temperature(f32::MIN_POSITIVE);
    for u in [0.0, LAST] {
        assert_eq!(token(&row, cold, u), 0);
    }
}

#[test]
fn b16_temperature_zero_is_greedy_whatever_the_filters_are() {
    let row = ln(&[0.3, 0.6, 0.1]);
    for zero in [0.0, -0.0] {
        let all = at(zero).with_top_k(2).with_top_p(0.5).with_min_p(0.1);
        let all = all.with_typical_p(0.2).with_epsilon(0.3);
        assert_eq!(token(&row, all, LAST), 1);
        assert_eq!(kept(&row, all), [1]);
    }
}

#[test]
fn b20_filters_leave_at_least_one_token() {
    let harshest = SamplingParams::new().with_top_p(f64::from_bits(1)).with_min_p(1.0);
    let harshest = harshest.with_typical_p(f64::from_bits(1)).with_epsilon(LAST);
    for (_, row) in shapes::<f32>(900, 20) {
        let best = reference::argmax(&row).unwrap() as u32;
        for k in [1, 3, 5000] {
            assert_eq!(kept(&row, harshest.with_top_k(k)), [best]);
        }
        for alone in [
            SamplingParams::new().with_min_p(1.0),
            SamplingParams::new().with_epsilon(LAST),
            SamplingParams::new().with_typical_p(f64::from_bits(1)),
        ] {
            assert!(report(&row, alone, LAST).kept >= 1);
        }
    }
}

// C: not finite, and bad parameters.

#[test]
fn c01_nan_or_inf_is_an_error_that_names_the_index() {
    for (index, bad) in [(1, NAN), (0, NAN), (2, NAN), (3, NAN), (1, INF), (3, INF)] {
        let mut row = vec![1.0f32, 0.0, 3.0, 2.0];
        row[index] = bad;
        let value = if bad.is_nan() { NotFinite::NaN } else { NotFinite::PosInf };
        assert_eq!(fault(&row, top_p(0.9), 0.5), Error::NotFinite { index, value });
        let half: Vec<f16> = convert(&row);
        assert_eq!(fault(&half, top_p(0.9), 0.5), Error::NotFinite { index, value });
        let brain: Vec<bf16> = convert(&row);
        assert_eq!(fault(&brain, at(0.0), 0.5), Error::NotFinite { index, value });
    }
}

#[test]
fn c02_nan_in_first_place_is_not_token_zero() {
    let error = Error::NotFinite { index: 0, value: NotFinite::NaN };
    assert_eq!(fault(&[NAN, 1.0], SamplingParams::new(), 0.5), error);
    assert_eq!(fault(&[NAN, 1.0], at(0.0), 0.5), error);
    assert_eq!(fault(&[-NAN, 1.0], at(0.0), 0.5), error);
}

#[test]
fn c03_each_fault_has_its_error() {
    let params = SamplingParams::new();
    let error = |index, value| Error::NotFinite { index, value };
    assert_eq!(fault(&[NAN, 1.0], params, 0.5), error(0, NotFinite::NaN));
    assert_eq!(fault(&[1.0, INF], params, 0.5), error(1, NotFinite::PosInf));
    assert_eq!(fault(&[-INF, -INF], params, 0.5), Error::NoAllowedToken);
    assert_eq!(fault::<f32>(&[], params, 0.5), Error::RowLength { len: 0 });
}

#[test]
fn c05_all_masked_is_an_error_of_its_own() {
    for v in [1, 3, 128, 4097] {
        let row = vec![-INF; v];
        for params in [at(0.0), at(1.0), top_p(0.9), SamplingParams::new().with_typical_p(0.5)] {
            assert_eq!(fault(&row, params, 0.5), Error::NoAllowedToken);
            assert_eq!(fault(&convert::<f16>(&row), params, 0.5), Error::NoAllowedToken);
            assert_eq!(fault(&convert::<bf16>(&row), params, 0.5), Error::NoAllowedToken);
        }
    }
}

#[test]
fn c06_a_row_of_nan_is_reported() {
    for params in [at(0.0), SamplingParams::new().with_top_k(20)] {
        for u in [0.1, 0.9] {
            let error = fault(&vec![NAN; 300], params, u);
            assert_eq!(error, Error::NotFinite { index: 0, value: NotFinite::NaN });
        }
    }
}

#[test]
fn c07_an_id_is_always_inside_the_row() {
    for v in [1000, 8191, 8192, 8193] {
        let error = fault(&vec![NAN; v], top_p(0.9), 0.5);
        assert_eq!(error, Error::NotFinite { index: 0, value: NotFinite::NaN });
        for u in [0.0, LAST] {
            assert!((token(&equal(v, 1.0), SamplingParams::new(), u) as usize) < v);
        }
    }
}

#[test]
fn c09_a_bad_row_leaves_its_neighbours_alone() {
    let good = normals(100, 1.0, 9);
    let bad = vec![NAN; 100];
    let rows = [&good[..], &bad, &good, &bad, &good];
    let draws = [0.3; 5];
    for mut batch in [Batch::new(), Batch::serial()] {
        let picks =
            batch.sample(&Rows::slices(&rows), &[Sampler::top_p(0.9).unwrap()], &draws).unwrap();
        let want = token(&good, top_p(0.9), 0.3);
        for (i, pick) in picks.iter().enumerate() {
            assert_eq!(pick.as_ref().ok().map(|p| p.token), (i % 2 == 0).then_some(want));
        }
    }
}

#[test]
fn c10_a_sum_can_t_hide_a_fault() {
    // Sums to NaN, to +inf, or to nothing at all, elsewhere.
    assert!(matches!(fault(&[NAN, NAN], at(1.0), 0.0), Error::NotFinite { index: 0, .. }));
    assert!(matches!(fault(&[INF, -INF], at(1.0), 0.0), Error::NotFinite { index: 0, .. }));
    assert_eq!(token(&[f32::MAX, f32::MAX], at(1.0), LAST), 1);
    assert_eq!(token(&[f32::MIN, f32::MIN], at(1.0), LAST), 1);
}

#[test]
fn c12_bad_parameters_can_t_slip_through() {
    let temperatures = [NAN, INF, -INF, -1.0, f32::MIN_POSITIVE.next_down(), -f32::MIN_POSITIVE];
    for t in temperatures {
        let error = Sampler::temperature(t).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "temperature", .. }), "{error:?}");
    }
    let out = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-9, 1.0f64.next_up()];
    for p in out {
        let made = [
            ("top_p", Sampler::top_p(p)),
            ("min_p", Sampler::min_p(p)),
            ("typical_p", Sampler::typical(p)),
            ("epsilon", Sampler::epsilon(p)),
        ];
        for (want, result) in made {
            let Err(Error::Parameter { name, value, .. }) = result else { panic!("{want} {p}") };
            assert_eq!((name, value), (want, Number(p)));
        }
    }
}

#[test]
fn c13_the_maximum_is_subtracted() {
    for row in [[-200.0f32, -201.0], [89.0, 88.0], [3e38, 3e38 - 1e31]] {
        let report = report(&row, at(1.0), 0.0);
        let x = row[1] - row[0];
        let want = 1.0 / (1.0 + f64::from(x).exp());
        close(report.chosen.probability, want, 1e-6);
    }
    let report = report(&[-200.0f32, -201.0], at(1.0), 0.0);
    close(report.chosen.probability, 0.731, 1e-3);
    close(report.alternatives[1].probability, 0.269, 1e-3);
}

#[test]
fn c14_a_gap_that_underflows() {
    // A weight of half of 2^-43 or less has no mass, wherever the exponentials underflow on other machines.
    for gap in [31.0f32, 87.4, 88.0, 103.0, 104.0, 1000.0] {
        let row = [0.0, -gap];
        assert_eq!(kept(&row, at(1.0)), [0]);
        assert_eq!(token(&row, at(1.0), LAST), 0);
        let report = report(&row, at(1.0), 0.0);
        assert_eq!(report.chosen.probability, 1.0);
        assert_eq!(report.alternatives[1].probability, 0.0);
        close(report.alternatives[1].logprob, -f64::from(gap), 1e-9);
    }
    assert_eq!(kept(&[0.0f32, -30.0], at(1.0)), [0, 1]);
}

// D: temperature.

#[test]
fn d01_temperature_zero_is_the_argmax() {
    for u in [0.0, 0.5, LAST] {
        assert_eq!(token(&[1.0f32, 3.0, 2.0], at(0.0), u), 1);
        assert_eq!(token(&[3.0f32, 1.0, 3.0], at(0.0), u), 0);
    }
}

#[test]
fn d02_a_negative_temperature_is_an_error() {
    for t in [-1.0, -f32::MIN_POSITIVE, -1e-40] {
        assert!(matches!(
            Sampler::temperature(t),
            Err(Error::Parameter { name: "temperature", .. })
        ));
    }
}

#[test]
fn d03_a_tiny_temperature_overflows_nothing() {
    let row: Vec<f16> = convert(&[2.875, 11.0625]);
    for t in [1e-4, 1e-5, 1e-30, f32::MIN_POSITIVE] {
        for u in [0.0, LAST] {
            assert_eq!(token(&row, at(t), u), 1);
            assert_eq!(token(&[-100.0f32, 20.0], at(t), u), 1);
            assert_eq!(token(&[0.0f32, 400.0], at(t), u), 1);
            assert_eq!(token(&[f32::MIN, f32::MAX], at(t), u), 1);
        }
        let report = report(&[0.0f32, 400.0], at(t), 0.0);
        assert_eq!(report.chosen.probability, 1.0);
        assert!(report.alternatives[1].logprob.is_finite());
    }
    assert!(Sampler::temperature(1e-40).is_err());
}

#[test]
fn d04_temperature_divides_logits() {
    close(report(&[2.0f32, 0.0], at(2.0), 0.0).chosen.probability, 0.7311, 5e-5);
    close(report(&[2.0f32, 0.0], at(1.0), 0.0).chosen.probability, 0.8808, 5e-5);
}

#[test]
fn d05_log_probabilities_are_logits_too() {
    let total = (2.0f64.exp() + 1.0).ln();
    let row = [(2.0 - total) as f32, -total as f32];
    close(report(&row, at(2.0), 0.0).chosen.probability, 0.7311, 5e-5);
}

#[test]
fn d06_a_row_is_never_changed() {
    let row = normals(3000, 2.0, 6);
    let before = row.clone();
    let first = report(&row, at(0.5).with_top_p(0.9), 0.4);
    assert_eq!(report(&row, at(0.5).with_top_p(0.9), 0.4), first);
    assert_eq!(row, before);
}

#[test]
fn d08_alternatives_are_the_best_tokens_whatever_the_rule() {
    let row = [0.0f32, 1.0, 5.0, 3.0, 4.0, 2.0];
    for params in [at(0.0), at(1.0), top_p(0.3), SamplingParams::new().with_top_k(1)] {
        let mut report = Report::default();
        let sampler = sampler(&params, Level::best());
        sampler.report(&row, 0.0, 3, &mut Scratch::new(), &mut report).unwrap();
        assert_eq!(report.alternatives.iter().map(|a| a.token).collect::<Vec<_>>(), [2, 4, 3]);
    }
}

// E: ties.

#[test]
fn e01_the_first_maximum_wins() {
    for params in [at(0.0), at(1.0).with_top_k(1), top_p(1e-9)] {
        assert_eq!(token(&[0.0f32, 1.0, 1.0], params, LAST), 1);
        assert_eq!(token(&[2.0f32; 17], params, LAST), 0);
        // Ties across lanes, groups and blocks.
        for (first, second) in [(5, 6), (5, 20), (5, 21), (127, 128), (1, 4000), (130, 131)] {
            let mut row = equal(4096, 0.0);
            (row[first], row[second]) = (9.0, 9.0);
            assert_eq!(token(&row, params, LAST), first as u32);
        }
    }
}

#[test]
fn e02_an_exact_tie_is_the_same_tie_everywhere() {
    let mut row = normals(32_000, 0.01, 2);
    for l in &mut row {
        *l -= 10.0;
    }
    (row[16_939], row[22_420]) = (-1.060_634_3, -1.060_634_3);
    for level in levels() {
        let mut scratch = Scratch::new();
        for params in [at(0.0), at(1e-4), at(1e-4).with_top_k(1)] {
            let pick = sampler(&params, level).sample(&row, 0.0, &mut scratch).unwrap();
            assert_eq!(pick.token, 16_939);
        }
    }
    // Cold, both are drawn, half and half.
    assert_eq!(token(&row, at(1e-4), 0.49), 16_939);
    assert_eq!(token(&row, at(1e-4), 0.5), 22_420);
}

#[test]
fn e06_storage_makes_ties() {
    let row = [10.001f32, 10.002];
    assert_eq!(token(&row, at(0.0), 0.0), 1);
    assert_eq!(token(&convert::<f16>(&row), at(0.0), 0.0), 0);
    assert_eq!(token(&convert::<bf16>(&row), at(0.0), 0.0), 0);
}

#[test]
fn e07_the_zeros_are_equal() {
    for row in [[-0.0f32, 0.0], [0.0, -0.0]] {
        for params in [at(0.0), SamplingParams::new().with_top_k(1), top_p(0.5)] {
            assert_eq!(token(&row, params, 0.9), 0);
            assert_eq!(token(&convert::<f16>(&row), params, 0.9), 0);
            assert_eq!(token(&convert::<bf16>(&row), params, 0.9), 0);
        }
        assert_eq!(report(&row, at(1.0), 0.9).chosen.probability, 0.5);
    }
}

#[test]
fn e08_only_minus_infinity_is_masked() {
    assert_eq!(token(&[-3.0f32, -INF], SamplingParams::new().with_top_k(1), 0.5), 0);
    assert_eq!(token(&[-INF, -5.0], SamplingParams::new().with_top_k(1), 0.5), 1);
    assert_eq!(token(&[-3.0f32, 1e-10], SamplingParams::new().with_top_k(1), 0.5), 1);
    assert_eq!(report(&[-INF, f32::MIN], at(1.0), 0.0).chosen.token, 1);
}

#[test]
fn e09_the_order_of_the_draw_is_the_rank() {
    let row = [1.0f32, 2.0, 1.0, 2.0];
    let walk: Vec<u32> = (0..1000).map(|i| token(&row, at(1.0), f64::from(i) / 1000.0)).collect();
    let mut order = walk.clone();
    order.dedup();
    assert_eq!(order, [1, 3, 0, 2]);
}

#[test]
fn e10_the_gap_of_the_two_best_is_in_the_report() {
    let report = report(&[1.0f32, 1.0 + f32::EPSILON, 0.0], at(1.0), 0.0);
    let gap = report.alternatives[0].logprob - report.alternatives[1].logprob;
    close(gap, f64::from(f32::EPSILON), 1e-12);
    assert_eq!(report.alternatives[0].token, 1);
}

// G: the draw.

#[test]
fn g01_what_was_cut_is_never_drawn() {
    let row = normals(2000, 2.0, 1);
    let params = SamplingParams::new().with_top_k(40);
    let allowed: HashSet<u32> = kept(&row, params).into_iter().collect();
    assert_eq!(allowed.len(), 40);
    let mut draws = Draws::new(1, 0);
    let mut scratch = Scratch::new();
    for level in levels() {
        let sampler = sampler(&params, level);
        for _ in 0..20_000 {
            let pick = sampler.sample(&row, draws.next_draw(), &mut scratch).unwrap();
            assert!(allowed.contains(&pick.token));
        }
    }
}

#[test]
fn g02_a_draw_of_zero_skips_what_has_no_mass() {
    assert_eq!(token(&[-INF, 0.0], at(1.0), 0.0), 1);
    assert_eq!(token(&[-50.0f32, 0.0], at(1.0), 0.0), 1);
    assert_eq!(token(&[-INF, 0.0, 0.0], at(1.0), 0.5), 2);
    assert_eq!(token(&[-INF, 0.0, 0.0], at(1.0), 0.5f64.next_down()), 1);
}

#[test]
fn g04_a_draw_of_one_is_an_error() {
    assert_eq!(fault(&[0.0f32, -INF], at(1.0), 1.0), Error::Draw { u: Number(1.0) });
    assert_eq!(token(&[0.0f32, -INF], at(1.0), LAST), 0);
    assert_eq!(token(&[0.0f32, 0.0, -INF], at(1.0), LAST), 1);
    // An f32 uniform that rounded up to 1.
    let rounded = f64::from((1.0 - 2f64.powi(-26)) as f32);
    assert_eq!(fault(&[0.0f32], at(0.0), rounded), Error::Draw { u: Number(1.0) });
}

#[test]
fn g05_masked_tokens_are_never_drawn() {
    let mut row = normals(1000, 1.0, 5);
    for l in row.iter_mut().step_by(2) {
        *l = -INF;
    }
    for params in [at(1.0), at(50.0), top_p(0.99), SamplingParams::new().with_typical_p(1.0)] {
        for u in [0.0, f64::from_bits(1), 0.5, LAST] {
            assert_eq!(token(&row, params, u) % 2, 1);
        }
    }
}

#[test]
fn g06_the_smallest_draws_are_ordinary() {
    let row = normals(1000, 1.0, 6);
    let best = reference::argmax(&row).unwrap() as u32;
    for u in [0.0, -0.0, f64::from_bits(1), f64::MIN_POSITIVE, 1e-300, 2f64.powi(-53)] {
        assert_eq!(token(&row, at(1.0), u), best);
    }
}

#[test]
fn g08_vocabularies_above_65536() {
    for v in [65_535, 65_536, 65_537, 131_073, 151_936].into_iter().filter(|&v| v <= longest_row())
    {
        let mut row = equal(v, 0.0);
        let last = v as u32 - 1;
        assert_eq!(token(&row, at(1.0), LAST), last);
        assert_eq!(token(&row, at(1.0), 0.5), (v as u32 - v as u32 % 2) / 2);
        row[v - 1] = 30.0;
        for params in [at(0.0), at(1.0), top_p(0.9), SamplingParams::new().with_top_k(1)] {
            assert_eq!(token(&row, params, 0.5), last);
        }
        let half: Vec<f16> = convert(&row);
        assert_eq!(token(&half, at(0.0), 0.5), last);
    }
}

#[test]
fn g10_draws_of_a_stream_advance() {
    let row = equal(1000, 0.0);
    let mut draws = Draws::new(10, 0);
    let sampler = Sampler::temperature(1.0).unwrap();
    let mut scratch = Scratch::new();
    let tokens: HashSet<u32> = (0..100)
        .map(|_| sampler.sample(&row, draws.next_draw(), &mut scratch).unwrap().token)
        .collect();
    assert!(tokens.len() > 80);
}

// I: batches.

#[test]
fn i01_a_row_depends_on_nothing_but_itself() {
    let rows: Vec<Vec<f32>> = (0..6).map(|i| normals(500 + i, 2.0, i as u64)).collect();
    let slices: Vec<&[f32]> = rows.iter().map(|r| &r[..]).collect();
    let samplers: Vec<Sampler> =
        (0..6).map(|i| sampler(&at(0.5 + i as f32 / 4.0).with_top_p(0.9), Level::best())).collect();
    let draws: Vec<f64> = (0..6).map(|row| sortless::rng::uniform(4, row, 17)).collect();
    let mut batch = Batch::new();
    let all = batch.sample(&Rows::slices(&slices), &samplers, &draws).unwrap();
    for i in 0..6 {
        let one =
            batch.sample(&Rows::slices(&slices[i..=i]), &samplers[i..=i], &draws[i..=i]).unwrap();
        assert_eq!(one[0], all[i]);
    }
}

#[test]
fn i03_seeds_give_different_texts_and_a_seed_repeats() {
    let row = equal(50_000, 0.0);
    let text = |seed| {
        let mut draws = Draws::new(seed, 0);
        let sampler = Sampler::temperature(1.0).unwrap();
        let mut scratch = Scratch::new();
        [(); 10].map(|()| sampler.sample(&row, draws.next_draw(), &mut scratch).unwrap().token)
    };
    let texts: HashSet<_> = (0..5).map(text).collect();
    assert_eq!(texts.len(), 5);
    assert_eq!(text(3), text(3));
}

#[test]
fn i05_draft_and_verifier_take_streams_of_their_own() {
    let row = equal(50_000, 0.0);
    let sampler = Sampler::temperature(1.0).unwrap();
    let mut scratch = Scratch::new();
    let (mut draft, mut verifier) = (Draws::new(1, 0), Draws::new(1, 1));
    let same = (0..100).filter(|_| {
        let mut next = |d: &mut Draws| sampler.sample(&row, d.next_draw(), &mut scratch).unwrap();
        next(&mut draft) == next(&mut verifier)
    });
    assert!(same.count() < 5);
}

#[test]
fn i08_near_equals_are_all_drawn() {
    let row = [1.0f32, 1.001, 0.999];
    let sampler = Sampler::temperature(1.0).unwrap();
    let mut scratch = Scratch::new();
    let tokens: HashSet<u32> = (0..300)
        .map(|seed| {
            sampler.sample(&row, Draws::new(seed, 0).next_draw(), &mut scratch).unwrap().token
        })
        .collect();
    assert_eq!(tokens.len(), 3);
}

// J: half precision.

#[test]
fn j02_bf16_doesn_t_stall() {
    let row: Vec<bf16> = convert(&equal(512, 1.0));
    let report = report(&row, at(1.0), LAST);
    assert_eq!(report.chosen.token, 511);
    assert!(report.alternatives.iter().all(|a| a.probability == 1.0 / 512.0));
    assert_eq!(kept(&row, top_p(0.75)).len(), 384);
}

#[test]
fn j04_parameters_keep_their_precision() {
    fn check<E: Make>() {
        let row: Vec<E> = convert(&equal(10_000, 2.0));
        // 9,493 with p rounded to bf16.
        let params = top_p(0.95);
        let pick = Check::new().pick(&row, &sort(&row, &params), &params, 0.0, E::NAME);
        assert_eq!(pick.kept, Some(9500));
        // min_p 0.7 is e^-0.3567; as bf16 it would be 0.69922.
        let row: Vec<E> = convert(&[0.0, -0.357]);
        let (limit, x) = (0.7f64.ln(), f64::from(row[1].to_f32()));
        let n = kept(&row, SamplingParams::new().with_min_p(0.7)).len();
        assert_eq!(n, 1 + usize::from(x >= limit));
        // T: 1.1 isn't 1.1015625.
        let report = report(&row, at(1.1), 0.0);
        close(report.chosen.probability, 1.0 / (1.0 + (x / f64::from(1.1f32)).exp()), 1e-6);
    }
    check::<f32>();
    check::<f16>();
    check::<bf16>();
}

// L: reports.

#[test]
fn l01_alternatives_are_of_the_full_distribution() {
    let row = normals(40, 0.5, 1);
    let mut report = Report::default();
    let sampler = sampler(&top_p(f64::MIN_POSITIVE), Level::best());
    sampler.report(&row, 0.5, 5, &mut Scratch::new(), &mut report).unwrap();
    assert_eq!((report.kept, report.alternatives.len()), (1, 5));
    assert!(report.chosen.logprob < 0.0 && report.chosen.conditional == 1.0);
    assert!(report.alternatives[1..].iter().all(|a| a.probability > 0.0 && a.conditional == 0.0));
}

#[test]
fn l02_log_probabilities_don_t_depend_on_the_filters() {
    let row = normals(60, 1.0, 2);
    let plain = report(&row, at(0.8), 0.0);
    for params in [
        at(0.8).with_top_p(0.5),
        at(0.8).with_top_k(3),
        at(0.8).with_min_p(0.2).with_epsilon(0.01),
        at(0.8).with_typical_p(0.6),
    ] {
        let filtered = report(&row, params, 0.0);
        assert_eq!(filtered.entropy, plain.entropy);
        for (a, b) in filtered.alternatives.iter().zip(&plain.alternatives) {
            let numbers = |a: &sortless::Alternative| (a.token, a.logprob, a.probability);
            assert_eq!(numbers(a), numbers(b));
        }
    }
}

#[test]
fn l03_every_reported_number_is_finite() {
    for vocab in [1, 2, 17, 300] {
        for (name, row) in shapes::<f32>(vocab, 3) {
            for params in [at(0.0), at(1.0), at(f32::MIN_POSITIVE), at(f32::MAX).with_top_p(0.5)] {
                let report = report(&row, params, 0.5);
                let numbers = |a: &sortless::Alternative| {
                    [a.probability, a.conditional, a.surprise, a.logprob]
                };
                let mut all: Vec<f64> = report.alternatives.iter().flat_map(numbers).collect();
                all.extend(numbers(&report.chosen));
                all.extend([report.entropy, report.retained]);
                assert!(all.iter().all(|v| v.is_finite()), "{name}, {vocab}, {params:?}");
                assert!(report.entropy >= 0.0);
                // Masked tokens are not listed: -inf has no place in JSON.
                assert!(report.alternatives.iter().all(|a| row[a.token as usize] > -INF));
            }
        }
    }
}
