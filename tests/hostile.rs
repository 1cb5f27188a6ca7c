//! Whatever comes in, a typed error goes out, the same from the samplers and the reference, and nothing has moved.

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use half::{bf16, f16};
use sampling::*;
use sortless::{
    Error, Level, MAX_VOCAB, NotFinite, Number, Report, Sampler, SamplingParams, Scratch, reference,
};
use support::*;

/// The error on every level, from picks and reports, which is the reference's.
fn error<E: Make>(row: &[E], params: SamplingParams, u: f64) -> Error {
    let want = reference::sample(row, &params, u).unwrap_err();
    assert_eq!(reference::report(row, &params, u, 3), Err(want.clone()));
    let mut report = Report::default();
    report.kept = 77;
    let before = report.clone();
    for level in levels() {
        let sampler = sampler(&params, level);
        let mut scratch = Scratch::new();
        let paths = scratch.paths();
        assert_eq!(sampler.sample(row, u, &mut scratch), Err(want.clone()), "{level}");
        assert_eq!(
            sampler.report(row, u, 3, &mut scratch, &mut report),
            Err(want.clone()),
            "{level}"
        );
        assert_eq!((&report, scratch.paths()), (&before, paths));
    }
    want
}

fn plain() -> SamplingParams {
    SamplingParams::new()
}

#[test]
fn the_shortest_and_the_longest_rows() {
    assert_eq!(error::<f32>(&[], plain(), 0.0), Error::RowLength { len: 0 });
    let mut scratch = Scratch::new();
    let mut report = Report::default();
    let sets = [
        plain(),
        at(0.0),
        plain().with_top_p(0.9),
        plain().with_top_k(1),
        plain().with_min_p(1.0),
        plain().with_typical_p(0.1),
        plain().with_epsilon(0.9),
    ];
    for params in sets {
        for level in levels() {
            let sampler = sampler(&params, level);
            for value in [f32::MIN, -0.0, 1e-45, 5.0, f32::MAX] {
                sampler.report(&[value], LAST, 5, &mut scratch, &mut report).unwrap();
                assert_eq!((report.chosen.token, report.kept), (0, 1));
                assert_eq!((report.chosen.probability, report.entropy.to_bits()), (1.0, 0));
                assert_eq!(report.chosen.logprob.to_bits(), 0);
                assert_eq!(report.alternatives.len(), 1);
            }
        }
    }
    if longest_row() < MAX_VOCAB {
        return say(format_args!("the longest rows: left out here"));
    }
    let long = vec![f16::ONE; MAX_VOCAB + 1];
    assert_eq!(error(&long, plain(), 0.0), Error::RowLength { len: MAX_VOCAB + 1 });
    let longest = &long[..MAX_VOCAB];
    for level in levels() {
        // The total mass is 2^63, the most there is.
        let pick = sampler(&plain(), level).sample(longest, LAST, &mut scratch).unwrap();
        assert_eq!(pick.token as usize, MAX_VOCAB - 1);
        for (p, kept) in [(0.75, 3 * MAX_VOCAB / 4), (LAST, MAX_VOCAB), (1e-8, 1)] {
            let params = plain().with_top_p(p);
            let pick = sampler(&params, level).sample(longest, 0.0, &mut scratch).unwrap();
            assert_eq!(pick.kept, Some(kept as u32));
        }
        let all = sampler(&plain(), level);
        all.report(longest, 0.5, 0, &mut scratch, &mut report).unwrap();
        assert_eq!((report.chosen.token as usize, report.entropy), (MAX_VOCAB / 2, 20.0));
    }
}

#[test]
fn parameters_outside_their_ranges() {
    let floats = [
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        -f64::from_bits(1),
        0.0,
        -0.0,
        f64::from_bits(1),
        0.5,
        1.0f64.next_down(),
        1.0,
        1.0f64.next_up(),
        40.0,
        f64::MAX,
    ];
    type With = fn(SamplingParams, f64) -> SamplingParams;
    type New = fn(f64) -> Result<Sampler, Error>;
    type Valid = fn(f64) -> bool;
    let filters: [(&str, With, New, Valid); 4] = [
        ("top_p", SamplingParams::with_top_p, Sampler::top_p, |p| p > 0.0 && p <= 1.0),
        ("min_p", SamplingParams::with_min_p, Sampler::min_p, |p| (0.0..=1.0).contains(&p)),
        ("typical_p", SamplingParams::with_typical_p, Sampler::typical, |p| p > 0.0 && p <= 1.0),
        ("epsilon", SamplingParams::with_epsilon, Sampler::epsilon, |p| (0.0..1.0).contains(&p)),
    ];
    for (name, with, new, valid) in filters {
        for value in floats {
            // Checked at temperature 0, too, where it wouldn't matter.
            for params in [with(plain(), value), with(at(0.0), value)] {
                let results = [Sampler::new(params), new(value)];
                let picked = reference::sample(&[0.0f32], &params, 0.0);
                assert_eq!(picked.is_ok(), valid(value), "{name} {value}");
                for result in results {
                    match result {
                        Ok(_) => assert!(valid(value), "{name} {value}"),
                        Err(error) => {
                            assert!(!valid(value), "{name} {value}");
                            assert_eq!(picked, Err(error.clone()));
                            names_it(&error, name, value);
                            assert!(error.to_string().contains("to switch the filter off"));
                        }
                    }
                }
            }
        }
    }
    for result in [Sampler::top_k(0), Sampler::new(at(0.0).with_top_k(0))] {
        let error = result.unwrap_err();
        names_it(&error, "top_k", 0.0);
        assert!(error.to_string().contains("to switch the filter off"));
    }
    for k in [1, u32::MAX] {
        assert!(Sampler::top_k(k).is_ok());
    }
}

fn names_it(error: &Error, want: &str, bad: f64) {
    let Error::Parameter { name, value, .. } = error else { panic!("{error:?}") };
    assert_eq!((*name, *value), (want, Number(bad)));
    assert!(error.to_string().contains(want), "{error}");
}

#[test]
fn temperatures_outside_their_range() {
    let tiny = f32::MIN_POSITIVE;
    let bad = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -1.0,
        -tiny,
        tiny.next_down(),
        f32::from_bits(1),
        f32::MIN,
    ];
    for t in bad {
        for result in [Sampler::temperature(t), Sampler::new(at(t).with_top_p(0.5))] {
            names_it(&result.unwrap_err(), "temperature", f64::from(t));
        }
    }
    for t in [tiny, 1.0, f32::MAX, 0.0, -0.0] {
        assert!(Sampler::temperature(t).is_ok(), "{t}");
    }
}

#[test]
fn the_first_bad_parameter_is_named() {
    let all_bad = at(-1.0)
        .with_top_k(0)
        .with_top_p(f64::NAN)
        .with_min_p(2.0)
        .with_typical_p(0.0)
        .with_epsilon(1.0);
    let name = |params: SamplingParams| match Sampler::new(params) {
        Err(Error::Parameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(all_bad), "temperature");
    let mut params = all_bad.with_temperature(1.0);
    for (want, fix) in [
        ("top_k", (|p| p.with_top_k(1)) as fn(SamplingParams) -> SamplingParams),
        ("top_p", |p| p.with_top_p(1.0)),
        ("min_p", |p| p.with_min_p(0.0)),
        ("typical_p", |p| p.with_typical_p(1.0)),
        ("epsilon", |p| p.with_epsilon(0.0)),
    ] {
        assert_eq!(name(params), want);
        params = fix(params);
    }
    assert!(Sampler::new(params).is_ok());
}

#[test]
fn draws_outside_their_range() {
    let row = [0.0f32, 1.0, 2.0];
    let bad = [
        f64::NAN,
        -f64::NAN,
        1.0,
        1.0f64.next_up(),
        -1.0,
        -f64::from_bits(1),
        2.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for u in bad {
        // Greedy refuses it, too: the same calls are good at every temperature.
        for params in [plain(), at(0.0), plain().with_top_p(0.5), plain().with_typical_p(0.5)] {
            assert_eq!(error(&row, params, u), Error::Draw { u: Number(u) });
        }
    }
    let mut check = Check::new();
    for u in [-0.0, 0.0, f64::from_bits(1), f64::MIN_POSITIVE, LAST] {
        check.pick(&row, &sort(&row, &plain()), &plain(), u, "good draws");
    }
}

/// A fault in every position of rows around multiples of the lanes and blocks: the lowest one is named.
#[test]
fn the_lowest_fault_is_named_wherever_it_is() {
    fn check<E: Make>() {
        let faults = [
            (E::make(f32::NAN), NotFinite::NaN),
            (E::make(-f32::NAN), NotFinite::NaN),
            (E::make(f32::INFINITY), NotFinite::PosInf),
        ];
        let mut scratch = Scratch::new();
        let levels: Vec<Sampler> = levels().into_iter().map(|l| sampler(&plain(), l)).collect();
        let lengths = [1, 2, 7, 15, 16, 17, 31, 32, 33, 127, 128, 129, 255, 256, 257, 300];
        for len in lengths {
            let good: Vec<E> = convert(&flat(len, 1));
            for i in 0..len {
                for (bad, value) in faults {
                    let mut row = good.clone();
                    row[i] = bad;
                    let want = Error::NotFinite { index: i, value };
                    let mut refused = |row: &[E]| {
                        for sampler in &levels {
                            assert_eq!(
                                sampler.sample(row, 0.5, &mut scratch),
                                Err(want.clone()),
                                "{} x {len}",
                                E::NAME
                            );
                        }
                    };
                    refused(&row);
                    assert_eq!(reference::sample(&row, &plain(), 0.5), Err(want.clone()));
                    // Others after it, of both kinds, and masked tokens before it.
                    for (j, (worse, _)) in (i + 1..len).zip(faults.iter().cycle()) {
                        row[j] = *worse;
                    }
                    row[..i].fill(E::MASKED);
                    refused(&row);
                }
            }
        }
    }
    check::<f32>();
    check::<f16>();
    check::<bf16>();
}

/// Every NaN there is, among the half types.
#[test]
fn every_not_finite_pattern_is_refused() {
    fn check<E: Make>() {
        let mut scratch = Scratch::new();
        let greedy = Sampler::greedy();
        for bits in 0..=u32::from(u16::MAX) {
            let mut row = [E::make(0.0); 20];
            row[17] = E::from_pattern(bits);
            let value = row[17].to_f32();
            for level in levels() {
                let picked = greedy.with_level(level).sample(&row, 0.0, &mut scratch);
                let good = !value.is_nan() && value != f32::INFINITY;
                assert_eq!(picked.is_ok(), good, "{} {bits:#x} {level}", E::NAME);
                if good {
                    assert_eq!(picked.unwrap().token, if value > 0.0 { 17 } else { 0 });
                }
            }
        }
    }
    check::<f16>();
    check::<bf16>();
}

#[test]
fn faults_come_in_their_order() {
    let bad_draw = 1.5;
    // Length before values before masks before the draw.
    assert_eq!(error::<f32>(&[], plain(), bad_draw), Error::RowLength { len: 0 });
    let too_long = vec![bf16::NAN; MAX_VOCAB + 1];
    assert_eq!(error(&too_long, plain(), bad_draw), Error::RowLength { len: MAX_VOCAB + 1 });
    let masked = f32::NEG_INFINITY;
    let nan = [masked, masked, f32::NAN];
    let fault = Error::NotFinite { index: 2, value: NotFinite::NaN };
    assert_eq!(error(&nan, plain(), bad_draw), fault);
    assert_eq!(error(&[masked; 3], plain(), bad_draw), Error::NoAllowedToken);
    assert_eq!(error(&[masked, 0.0], plain(), bad_draw), Error::Draw { u: Number(1.5) });
}

/// After an error the scratch is as good as new.
#[test]
fn errors_leave_no_trace() {
    let good = llm(5000, 3);
    let mut bad = good.clone();
    bad[4000] = f32::NAN;
    let params = at(0.8).with_top_p(0.9);
    for level in levels() {
        let sampler = sampler(&params, level);
        let want = sampler.sample(&good, 0.6, &mut Scratch::new());
        let mut scratch = Scratch::new();
        for _ in 0..3 {
            assert!(sampler.sample(&bad, 0.6, &mut scratch).is_err());
            assert!(sampler.sample(&good, 1.0, &mut scratch).is_err());
            assert!(sampler.sample::<f32>(&[], 0.6, &mut scratch).is_err());
            assert_eq!(sampler.sample(&good, 0.6, &mut scratch), want);
        }
    }
}

/// A report asked for more alternatives than there are, and for none.
#[test]
fn any_number_of_alternatives() {
    let mut check = Check::new();
    for (name, row) in shapes::<f32>(300, 6) {
        for params in [plain(), plain().with_top_p(0.5), at(0.0)] {
            let sorted = sort(&row, &params);
            for n in [0, 1, 2, 3, 4, 299, 300, 301, usize::MAX] {
                let report = check.report(&row, &sorted, &params, 0.9, n, name);
                assert!(report.alternatives.len() <= 300);
                let mut ids: Vec<u32> = report.alternatives.iter().map(|a| a.token).collect();
                assert!(ids.contains(&report.chosen.token));
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), report.alternatives.len());
            }
        }
    }
    assert_eq!(Level::available().last(), Some(Level::SCALAR));
}
