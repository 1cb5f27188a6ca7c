//! What is done to logits before sampling.

mod support;

use sortless::process::*;
use sortless::{Error, NotFinite, Sampler, SamplingParams, Scratch};
use support::*;

const MASKED: f32 = f32::NEG_INFINITY;

/// Runs `f` on a copy of a row; after an error the copy must be what it was.
fn on<T: Into<Vec<f32>>>(
    row: T,
    f: impl FnOnce(&mut [f32], &mut Tally) -> Result<(), Error>,
) -> Result<Vec<f32>, Error> {
    let before: Vec<f32> = row.into();
    let mut row = before.clone();
    let result = f(&mut row, &mut Tally::new());
    if result.is_err() {
        let bits = |row: &[f32]| row.iter().map(|l| l.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&row), bits(&before), "touched after {result:?}");
    }
    result.map(|()| row)
}

fn repetition(row: &[f32], history: &[u32], penalty: f32) -> Result<Vec<f32>, Error> {
    on(row, |row, tally| repetition_penalty(row, history, penalty, tally))
}

fn counts(row: &[f32], history: &[u32], presence: f32, frequency: f32) -> Result<Vec<f32>, Error> {
    on(row, |row, tally| presence_frequency_penalty(row, history, presence, frequency, tally))
}

fn near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a - b).abs() < 1e-3)
}

#[test]
fn f01_a_negative_logit_is_multiplied() {
    let got = repetition(&[-2.0, 0.0, MASKED, 3.0, -0.0], &[0, 1, 2, 3, 4], 1.5).unwrap();
    assert_eq!(got, [-3.0, 0.0, MASKED, 2.0, 0.0]);
}

#[test]
fn f02_a_token_is_penalized_once() {
    let got = repetition(&[4.0, 1.0], &[0; 20], 1.1).unwrap();
    assert!(near(&got, &[3.636, 1.0]), "{got:?}");
    // Presence once, frequency each time.
    assert_eq!(counts(&[4.0, 1.0], &[0; 20], 0.5, 0.25).unwrap(), [-1.5, 1.0]);
    // A tally that was used before remembers nothing.
    let mut tally = Tally::new();
    for _ in 0..3 {
        let mut row = [4.0f32, 1.0];
        presence_frequency_penalty(&mut row, &[0, 1, 0], 1.0, 1.0, &mut tally).unwrap();
        assert_eq!(row, [1.0, -1.0]);
    }
}

#[test]
fn f04_ids_outside_the_row_are_errors() {
    let outside = |id| Err(Error::TokenId { id, len: 4 });
    let row = [1.0f32; 4];
    let minus_200 = -200i32 as u32;
    assert_eq!(repetition(&row, &[1, 4, minus_200], 1.5), outside(4));
    assert_eq!(repetition(&row, &[1, minus_200], 1.5), outside(minus_200));
    assert_eq!(counts(&row, &[3, 4], 1.0, 1.0), outside(4));
    assert_eq!(on(row, |row, tally| allow(row, &[0, 4], tally)), outside(4));
    assert_eq!(on(row, |row, tally| block(row, &[0, 4], tally)), outside(4));
    assert_eq!(on(row, |row, tally| sparse_bias(row, &[(0, 1.0), (9, 1.0)], tally)), outside(9));
}

#[test]
fn f05_biases_ban_but_are_never_infinite_or_nan() {
    let sparse = |biases: &[(u32, f32)]| on([1.0; 4], |row, tally| sparse_bias(row, biases, tally));
    assert_eq!(sparse(&[(4, 1.0)]), Err(Error::TokenId { id: 4, len: 4 }));
    assert_eq!(sparse(&[(1, MASKED), (2, -0.5)]), Ok(vec![1.0, MASKED, 0.5, 1.0]));
    let bad = |id, value| Err(Error::Bias { id, value });
    assert_eq!(sparse(&[(0, 1.0), (3, f32::INFINITY)]), bad(3, NotFinite::PosInf));
    assert_eq!(sparse(&[(0, 1.0), (2, f32::NAN)]), bad(2, NotFinite::NaN));
    assert_eq!(sparse(&[(0, 1.0), (0, 2.0)]), Err(Error::RepeatedId { id: 0 }));
    let all: Vec<(u32, f32)> = (0..4).map(|id| (id, MASKED)).collect();
    assert_eq!(sparse(&all), Err(Error::NoAllowedToken));

    let dense = |biases: &[f32]| on([1.0, MASKED, 3.0], |row, _| bias(row, biases));
    assert_eq!(dense(&[0.5, 9.0, MASKED]), Ok(vec![1.5, MASKED, MASKED]));
    assert_eq!(dense(&[0.5, f32::INFINITY, 0.0]), bad(1, NotFinite::PosInf));
    assert_eq!(dense(&[f32::NAN, 0.0, 0.0]), bad(0, NotFinite::NaN));
    assert_eq!(dense(&[MASKED, 5.0, MASKED]), Err(Error::NoAllowedToken));
    assert!(matches!(dense(&[0.0; 2]), Err(Error::Shape { expected: 3, found: 2, .. })));
}

#[test]
fn a_sum_that_overflows_is_an_error_not_a_mask() {
    let huge = f32::MAX;
    for (logit, bias_of_it) in [(huge, huge), (-huge, -huge)] {
        let sparse = on([0.0, logit], |row, tally| sparse_bias(row, &[(1, bias_of_it)], tally));
        assert_eq!(sparse, Err(Error::Overflow { id: 1 }));
        let dense = on([0.0, logit], |row, _| bias(row, &[1.0, bias_of_it]));
        assert_eq!(dense, Err(Error::Overflow { id: 1 }));
        assert_eq!(
            counts(&[0.0, logit], &[0, 1], -bias_of_it, 0.0),
            Err(Error::Overflow { id: 1 })
        );
    }
    assert_eq!(repetition(&[0.0, -huge], &[0, 1], 2.0), Err(Error::Overflow { id: 1 }));
}

#[test]
fn f06_f07_the_caller_s_slice_is_the_history() {
    // The last three of it.
    let history = [7u32, 7, 7, 1, 2, 3];
    let got = repetition(&[2.0; 8], &history[history.len() - 3..], 2.0).unwrap();
    assert_eq!(got, [2.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
    // The repetition penalty over prompt and output, the others over the output.
    let text = [5u32, 5, 9];
    let mut row = [2.0f32; 10];
    let ops = [
        Op::RepetitionPenalty { history: &text, penalty: 2.0 },
        Op::PresenceFrequencyPenalty { history: &text[2..], presence: 0.5, frequency: 0.25 },
    ];
    apply(&mut row, &ops, &mut Tally::new()).unwrap();
    assert_eq!((row[5], row[9], row[0]), (1.0, 0.25, 2.0));
}

#[test]
fn f08_a_row_does_not_depend_on_its_place_in_the_batch() {
    let rows: Vec<Vec<f32>> = (0..30).map(|i| llm(200 + i, i as u64)).collect();
    let histories: Vec<Vec<u32>> =
        (0..30).map(|i| (0..i as u32 * 3).map(|t| t * 7 % 200).collect()).collect();
    let ops: Vec<[Op; 3]> = (0..30)
        .map(|i| {
            let history = &histories[i][..];
            [
                Op::RepetitionPenalty { history, penalty: 1.3 },
                Op::PresenceFrequencyPenalty { history, presence: 0.1, frequency: 0.2 },
                Op::Temperature(0.5 + i as f32),
            ]
        })
        .collect();
    let alone: Vec<Vec<f32>> = (0..30)
        .map(|i| on(&rows[i][..], |row, tally| apply(row, &ops[i], tally)).unwrap())
        .collect();
    let mut order: Vec<usize> = (0..30).collect();
    let mut random = Random::new(3);
    for _ in 0..5 {
        for i in (1..30).rev() {
            order.swap(i, random.below(i + 1));
        }
        let mut copies: Vec<Vec<f32>> = order.iter().map(|&i| rows[i].clone()).collect();
        let mut slices: Vec<&mut [f32]> = copies.iter_mut().map(Vec::as_mut_slice).collect();
        let lists: Vec<&[Op]> = order.iter().map(|&i| &ops[i][..]).collect();
        let results = apply_batch(&mut slices, &lists).unwrap();
        assert!(results.iter().all(Result::is_ok));
        for (copy, &i) in copies.iter().zip(&order) {
            assert_eq!(copy, &alone[i]);
        }
    }
}

#[test]
fn a_batch_s_errors_stay_in_their_rows() {
    let (mut a, mut b, mut c) = ([1.0f32, 2.0], [3.0f32, 4.0], [5.0f32, 6.0]);
    let good = [Op::Bias(&[1.0, 1.0]), Op::Block(&[0])];
    let bad = [Op::Bias(&[1.0, 1.0]), Op::Block(&[0, 1])];
    let lists: [&[Op]; 3] = [&good, &bad, &good];
    let results = apply_batch(&mut [&mut a, &mut b, &mut c], &lists).unwrap();
    assert_eq!(results, [Ok(()), Err(Error::NoAllowedToken), Ok(())]);
    // The first of the two things done to the row in the middle is undone.
    assert_eq!((a, b, c), ([MASKED, 3.0], [3.0, 4.0], [MASKED, 7.0]));
    let shape = apply_batch(&mut [&mut a, &mut b], &[&good, &good, &good]);
    assert!(matches!(shape, Err(Error::Shape { .. })));
    assert!(apply_batch(&mut [], &[]).unwrap().is_empty());
}

#[test]
fn f10_masks_go_first_and_an_empty_rest_is_its_own_error() {
    let mut scratch = Scratch::new();
    let sampler = Sampler::new(SamplingParams::new().with_top_k(2)).unwrap();
    let row = on([5.0, 4.0, 1.0], |row, tally| allow(row, &[2], tally)).unwrap();
    assert_eq!(sampler.sample(&row, 0.9, &mut scratch).unwrap().token, 2);
    // After a truncation the mask finds nothing left.
    let cut = [5.0, 4.0, MASKED];
    assert_eq!(on(cut, |row, tally| allow(row, &[2], tally)), Err(Error::NoAllowedToken));
    assert_eq!(on(cut, |row, _| mask(row, &[false, false, true])), Err(Error::NoAllowedToken));
    assert_eq!(on(cut, |row, _| packed_mask(row, &[4])), Err(Error::NoAllowedToken));
    assert_eq!(on(cut, |row, tally| block(row, &[0, 1, 0], tally)), Err(Error::NoAllowedToken));
    assert_eq!(on(cut, |row, tally| allow(row, &[], tally)), Err(Error::NoAllowedToken));
}

#[test]
fn masks_of_every_kind_agree() {
    let mut random = Random::new(6);
    for v in [1, 2, 31, 32, 33, 64, 100, 1000] {
        let row = half_masked(v, v as u64);
        for _ in 0..8 {
            let allowed: Vec<bool> = (0..v).map(|_| random.below(3) == 0).collect();
            let list: Vec<u32> = (0..v as u32).filter(|&i| allowed[i as usize]).collect();
            let rest: Vec<u32> = (0..v as u32).filter(|&i| !allowed[i as usize]).collect();
            // Repeated ids are one.
            let (twice, rest) = ([&list[..], &list].concat(), [&rest[..], &rest].concat());
            let mut words = vec![0u32; v.div_ceil(32)];
            for &id in &list {
                words[id as usize / 32] |= 1 << (id % 32);
            }
            let dense = on(&row[..], |row, _| mask(row, &allowed));
            assert_eq!(on(&row[..], |row, tally| allow(row, &twice, tally)), dense);
            assert_eq!(on(&row[..], |row, tally| block(row, &rest, tally)), dense);
            assert_eq!(on(&row[..], |row, _| packed_mask(row, &words)), dense);
            // Bits beyond the row don't matter, a shorter mask forbids the rest.
            words.push(u32::MAX);
            if v % 32 != 0 {
                words[v / 32] |= u32::MAX << (v % 32);
            }
            assert_eq!(on(&row[..], |row, _| packed_mask(row, &words)), dense);
            let short = v / 32 / 2;
            let cut: Vec<bool> = (0..v).map(|i| allowed[i] && i < short * 32).collect();
            let want = on(&row[..], |row, _| mask(row, &cut));
            assert_eq!(on(&row[..], |row, _| packed_mask(row, &words[..short])), want);
        }
    }
    assert!(matches!(on([1.0; 3], |row, _| mask(row, &[true; 2])), Err(Error::Shape { .. })));
}

#[test]
fn penalties_are_checked_and_rewards_are_fine() {
    let row = [1.0f32, 2.0];
    for bad in [1f32.next_down(), 0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert!(matches!(repetition(&row, &[0], bad), Err(Error::Parameter { .. })), "{bad}");
    }
    assert_eq!(repetition(&row, &[0, 1], 1.0).unwrap(), row);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(matches!(counts(&row, &[0], bad, 0.0), Err(Error::Parameter { .. })));
        assert!(matches!(counts(&row, &[0], 0.0, bad), Err(Error::Parameter { .. })));
    }
    assert_eq!(counts(&row, &[0, 0], -1.0, -0.5).unwrap(), [3.0, 2.0]);
    assert_eq!(counts(&[MASKED, 2.0], &[0], -1.0, -0.5).unwrap(), [MASKED, 2.0]);
}

#[test]
fn temperature_never_overflows_and_is_the_sampler_s() {
    let scaled = |row: &[f32], t| on(row, |row, _| temperature(row, t));
    assert_eq!(scaled(&[1.0, 3.0, MASKED], 0.5).unwrap(), [-4.0, 0.0, MASKED]);
    let extreme = scaled(&[f32::MAX, f32::MIN, MASKED], f32::MIN_POSITIVE).unwrap();
    assert_eq!(extreme, [0.0, f32::MIN, MASKED]);
    assert!(matches!(scaled(&[f32::NAN, 1.0], 1.0), Err(Error::NotFinite { index: 0, .. })));
    assert_eq!(scaled(&[MASKED], 1.0), Err(Error::NoAllowedToken));
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
        assert!(matches!(scaled(&[1.0], bad), Err(Error::Parameter { .. })), "{bad}");
    }
    let mut scratch = Scratch::new();
    let mut random = Random::new(8);
    for t in [0.1, 0.7, 3.0] {
        let row = llm(3000, 5);
        let cold = scaled(&row, t).unwrap();
        for _ in 0..20 {
            let u = random.unit();
            let direct = Sampler::temperature(t).unwrap().sample(&row, u, &mut scratch);
            assert_eq!(Sampler::temperature(1.0).unwrap().sample(&cold, u, &mut scratch), direct);
        }
    }
}

#[test]
fn empty_and_overlong_rows_are_errors() {
    for len in [0, sortless::MAX_VOCAB + 1] {
        let row = vec![0.0f32; len];
        let want = Err(Error::RowLength { len });
        assert_eq!(on(&row[..], |row, _| mask(row, &[])), want);
        assert_eq!(on(&row[..], |row, _| packed_mask(row, &[])), want);
        assert_eq!(on(&row[..], |row, tally| allow(row, &[], tally)), want);
        assert_eq!(on(&row[..], |row, tally| block(row, &[], tally)), want);
        assert_eq!(on(&row[..], |row, _| bias(row, &[])), want);
        assert_eq!(on(&row[..], |row, tally| sparse_bias(row, &[], tally)), want);
        assert_eq!(on(&row[..], |row, _| temperature(row, 1.0)), want);
        assert_eq!(repetition(&row, &[], 1.5), want);
        assert_eq!(counts(&row, &[], 1.0, 1.0), want);
    }
}

#[test]
fn a_history_of_a_million_tokens_costs_its_length() {
    let mut random = Random::new(1);
    let v = 151_936;
    let history: Vec<u32> = (0..1_000_000).map(|_| random.below(v) as u32).collect();
    let (mut row, mut tally) = (llm(v, 2), Tally::new());
    let start = std::time::Instant::now();
    for _ in 0..10 {
        repetition_penalty(&mut row, &history, 1.01, &mut tally).unwrap();
        presence_frequency_penalty(&mut row, &history, 0.1, 0.01, &mut tally).unwrap();
    }
    let each = start.elapsed() / 20;
    say(format_args!("a penalty over 10^6 tokens of history: {each:?}"));
    // A search of the history per vocabulary id would be 10^11 comparisons.
    assert!(each.as_millis() < 500, "{each:?}");
    // A short history does not pay for the vocabulary.
    let start = std::time::Instant::now();
    for _ in 0..1000 {
        repetition_penalty(&mut row, &history[..10], 1.0, &mut tally).unwrap();
    }
    let each = start.elapsed() / 1000;
    say(format_args!("a penalty over 10 tokens of history: {each:?}"));
    assert!(each.as_micros() < 50, "{each:?}");
}
