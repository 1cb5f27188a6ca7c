//! The rules of a step, one by one, and what is refused.

use super::*;
use sortless::Error;
use sortless::mirostat::State;

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

#[test]
fn a_masked_token_of_a_prepared_row_has_no_surprise() {
    let logits = PreparedRow::from_logits(&[1.0, f32::NEG_INFINITY, -50.0]).unwrap();
    let weights = PreparedRow::from_weights(&[1.0, 0.0, 1e-30]).unwrap();
    for row in [logits, weights] {
        assert_eq!((row.probability(1), row.surprise(1)), (Ok(0.0), Ok(None)));
        // Too rare to be drawn, but not masked.
        assert_eq!(row.probability(2), Ok(0.0));
        assert!(row.surprise(2).unwrap().is_some_and(|s| s > 44.0 && s.is_finite()));
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
    let weights = PreparedRow::from_weights(&[1.0]).unwrap();
    for refused in [
        s.sample_weights(&[1.0], 0.0, &mut scratch),
        s.sample_prepared(&weights, 0.0, &mut scratch),
    ] {
        assert!(
            matches!(refused, Err(Error::Parameter { name: "temperature", .. })),
            "{refused:?}"
        );
    }
    let cold = PreparedRow::from_logits(&[1.0f32]).unwrap();
    assert!(matches!(s.sample_prepared(&cold, 0.0, &mut scratch), Err(Error::Mismatch { .. })));
    let fits = PreparedRow::from_logits_at(&[1.0f32], 2.0).unwrap();
    assert!(s.sample_prepared(&fits, 0.0, &mut scratch).is_ok());
}
