//! Diagnostics against sums over a sorted list, and against the samplers.

mod support;

use sortless::diagnostics::Diagnostics;
use sortless::mirostat::{Config, Session, State, Version};
use sortless::{Error, Path, PreparedRow, Report, Sampler, SamplingParams, Scratch};
use support::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2e-5 * b.abs().max(1.0)
}

/// Best first: id and probability, in plain f64.
fn softmax(row: &[f32]) -> Vec<(u32, f64)> {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut tokens: Vec<(u32, f64)> =
        (0..).zip(row).map(|(id, &l)| (id, (f64::from(l) - f64::from(max)).exp())).collect();
    tokens.sort_by(|a, b| {
        row[b.0 as usize].partial_cmp(&row[a.0 as usize]).unwrap().then(a.0.cmp(&b.0))
    });
    let total: f64 = tokens.iter().map(|t| t.1).sum();
    tokens.iter().map(|t| (t.0, t.1 / total)).filter(|t| t.1 > 1e-20).collect()
}

#[test]
fn prefix_numbers_are_sums_over_the_sorted_list() {
    for (name, row) in [("llm", llm(5000, 1)), ("flat", flat(3000, 2)), ("ties", ties(2000, 3))] {
        let sorted = softmax(&row);
        let ranked = PreparedRow::from_logits(&row).unwrap();
        let (mut a, mut b, mut c) = (Scratch::new(), Scratch::new(), Scratch::new());
        c.start_at(Path::Full);
        let mut all = [
            Diagnostics::new(&row, &mut a).unwrap(),
            Diagnostics::from_prepared(&ranked, &mut b),
            Diagnostics::new(&row, &mut c).unwrap(),
        ];
        let surprise = |p: f64| -p.log2();
        for d in &mut all {
            let entropy: f64 = sorted.iter().map(|t| t.1 * surprise(t.1)).sum();
            assert!(near(d.entropy().unwrap(), entropy), "{name}");
            for n in [1, 2, 10, 100, 700, 4000] {
                let prefix = &sorted[..n.min(sorted.len())];
                let mass: f64 = prefix.iter().map(|t| t.1).sum();
                let mean = prefix.iter().map(|t| t.1 * surprise(t.1)).sum::<f64>() / mass;
                let square = |t: &(u32, f64)| t.1 * (surprise(t.1) - mean).powi(2);
                let variance = prefix.iter().map(square).sum::<f64>() / mass;
                let own: f64 = prefix.iter().map(|t| t.1 / mass * surprise(t.1 / mass)).sum();
                let log = |t: &(u32, f64)| t.1 / mass * ((t.1 / mass) / t.1).log2();
                let kl: f64 = prefix.iter().map(log).sum();
                assert!(near(d.prefix_mass(n).unwrap(), mass), "{name} {n}");
                assert!(near(d.expected_surprise(n).unwrap(), mean), "{name} {n}");
                assert!(near(d.surprise_variance(n).unwrap(), variance), "{name} {n}");
                assert!(near(d.prefix_entropy(n).unwrap(), own), "{name} {n}");
                assert!(near(d.prefix_kl(n).unwrap(), kl), "{name} {n}");
                let ids: Vec<u32> = prefix.iter().map(|t| t.0).collect();
                assert_eq!(d.top(n).unwrap(), ids, "{name} {n}");
            }
            assert!(d.ranking().unwrap().into_iter().eq(ranked.ranking()));
            assert!(d.top(0).unwrap().is_empty());
            assert!(matches!(d.prefix_mass(0), Err(Error::Parameter { .. })));
            assert!(matches!(d.expected_surprise(0), Err(Error::Parameter { .. })));
        }
    }
}

#[test]
fn sizes_are_what_the_samplers_keep() {
    let mut scratch = Scratch::new();
    let (mut one, mut two) = (Scratch::new(), Scratch::new());
    for (name, row) in shapes::<f32>(3000, 4) {
        let ranked = PreparedRow::from_logits(&row).unwrap();
        let mut both = [
            Diagnostics::new(&row, &mut one).unwrap(),
            Diagnostics::from_prepared(&ranked, &mut two),
        ];
        for d in &mut both {
            let mut kept = |params| {
                let mut report = Report::default();
                Sampler::new(params)
                    .unwrap()
                    .report(&row, 0.5, 0, &mut scratch, &mut report)
                    .unwrap();
                (report.kept as usize, report.entropy)
            };
            let new = SamplingParams::new;
            for p in [0.01, 0.5, 0.9, 0.999, 1.0] {
                assert_eq!(d.top_p_len(p).unwrap(), kept(new().with_top_p(p)).0, "{name} {p}");
                assert_eq!(d.min_p_len(p).unwrap(), kept(new().with_min_p(p)).0, "{name} {p}");
                assert_eq!(
                    d.typical_len(p).unwrap(),
                    kept(new().with_typical_p(p)).0,
                    "{name} {p}"
                );
                let e = p / 10.0;
                assert_eq!(d.epsilon_len(e).unwrap(), kept(new().with_epsilon(e)).0, "{name} {e}");
            }
            assert_eq!(d.entropy().unwrap(), kept(new()).1, "{name}");
            let order = d.typical_order().unwrap();
            assert_eq!(order.len(), ranked.with_mass(), "{name}");
            let typical = Sampler::typical(0.7).unwrap().sample(&row, 0.0, &mut scratch).unwrap();
            assert_eq!(order[0], typical.token, "{name}");
            for mu in [-1.0, 0.5, 3.0, 8.0, 100.0] {
                let config = Config::new(1.0).unwrap();
                for version in [Version::V1, Version::V2] {
                    let state = State { mu, steps: 0 };
                    let session = Session::from_state(config, version, state).unwrap();
                    let want = session.preview(&row, &mut scratch).unwrap().kept as usize;
                    let got = match version {
                        Version::V1 => d.estimated_k(mu, 100).unwrap().min(ranked.with_mass()),
                        Version::V2 => d.v2_len(mu).unwrap(),
                    };
                    assert_eq!(got, want, "{name} {mu}");
                }
            }
            for bad in [0.0, 1.5, f64::NAN] {
                assert!(d.top_p_len(bad).is_err() && d.typical_len(bad).is_err());
            }
            assert!(d.v2_len(f64::NAN).is_err() && d.estimated_k(f64::INFINITY, 5).is_err());
            assert!(d.zipf_exponent(1).is_err());
        }
    }
}

#[test]
fn a_power_law_s_exponent_is_found() {
    let row: Vec<f32> = (1..=1000).map(|i| (-2.0 * libm::log(f64::from(i))) as f32).collect();
    let mut scratch = Scratch::new();
    let mut d = Diagnostics::new(&row, &mut scratch).unwrap();
    assert!((d.zipf_exponent(100).unwrap().unwrap() - 2.0).abs() < 1e-6);
    let mut scratch = Scratch::new();
    let mut one = Diagnostics::new(&[5.0f32, f32::NEG_INFINITY], &mut scratch).unwrap();
    assert_eq!(one.zipf_exponent(100).unwrap(), None);
    assert_eq!(one.estimated_k(50.0, 100).unwrap(), 1);
}

#[test]
fn weights_and_temperatures_have_diagnostics_too() {
    let weights = [0.0f32, 4.0, 2.0, 1.0, 1.0];
    let (mut a, mut b) = (Scratch::new(), Scratch::new());
    let ranked = PreparedRow::from_weights(&weights).unwrap();
    for mut d in [
        Diagnostics::from_weights(&weights, &mut a).unwrap(),
        Diagnostics::from_prepared(&ranked, &mut b),
    ] {
        assert!(near(d.entropy().unwrap(), 1.75));
        assert_eq!(d.ranking().unwrap(), [1, 2, 3, 4]);
        assert_eq!(d.prefix_mass(2).unwrap(), 0.75);
        assert_eq!((d.top_p_len(0.75).unwrap(), d.min_p_len(0.5).unwrap()), (2, 2));
        assert_eq!((d.v2_len(2.0).unwrap(), d.epsilon_len(0.125).unwrap()), (2, 4));
        // 1.75 bits: token 2 (2 bits) is nearest, then 1 (1 bit), then the 3 bits in the order of ids.
        assert_eq!(d.typical_order().unwrap(), [2, 1, 3, 4]);
        assert_eq!(d.typical_len(0.3).unwrap(), 2);
    }
    let row = [1.0f32, 0.0];
    let (mut a, mut b) = (Scratch::new(), Scratch::new());
    let warm = Diagnostics::at(&row, 4.0, &mut a).unwrap().entropy().unwrap();
    assert!(warm > Diagnostics::new(&row, &mut b).unwrap().entropy().unwrap());
    assert!(Diagnostics::at(&row, 0.0, &mut a).is_err());
}

#[test]
fn plain_distributions() {
    let row = llm(1000, 3);
    let ranked = PreparedRow::from_logits(&row).unwrap();
    let mut p = vec![0.0; 1000];
    sortless::probabilities(&row, 1.0, &mut p).unwrap();
    assert!((0..1000).all(|i| p[i as usize] == ranked.probability(i).unwrap()));
    assert!(matches!(sortless::probabilities(&row, 1.0, &mut p[1..]), Err(Error::Shape { .. })));
    assert!(ranked.probability(1000).is_err() && ranked.surprise(1000).is_err());

    // Drawing from the kept list is drawing from the kept set.
    let weights: Vec<f32> = row.iter().map(|l| (l - 18.0).exp()).collect();
    let ranked = PreparedRow::from_weights(&weights).unwrap();
    let ids: Vec<u32> = ranked.ranking().take(40).collect();
    let mut random = Random::new(1);
    for _ in 0..50 {
        let u = random.unit();
        assert_eq!(sortless::draw_from(&weights, &ids, u), ranked.draw_prefix(40, u));
    }
    let draw = sortless::draw_from;
    assert_eq!(draw(&[1.0, 2.0], &[0, 2], 0.5), Err(Error::TokenId { id: 2, len: 2 }));
    assert_eq!(draw(&[1.0, 2.0], &[0, 1, 0], 0.5), Err(Error::RepeatedId { id: 0 }));
    assert_eq!(draw(&[1.0, 0.0], &[1], 0.5), Err(Error::NoAllowedToken));
    assert_eq!(draw(&[1.0, 0.0], &[], 0.5), Err(Error::NoAllowedToken));
    assert!(matches!(draw(&[1.0, 0.0], &[0], 1.0), Err(Error::Draw { .. })));
    assert!(ranked.draw_prefix(0, 0.5).is_err() && ranked.draw_prefix(1, 1.0).is_err());
    for bad in [0.0, -1.0, 1.1, f64::NAN] {
        assert!(sortless::surprise(bad).is_err());
    }
    assert_eq!(sortless::surprise(1.0).unwrap().to_bits(), 0);
}
