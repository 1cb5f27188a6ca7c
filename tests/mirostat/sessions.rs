//! What a session can do besides a step: checkpoints, candidates, replays, batches.

use super::*;
use sortless::mirostat::SessionBatch;
use sortless::{Error, Rows};

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
            for u in [1.0, -0.1, f64::NAN] {
                assert!(matches!(set.draw(u), Err(Error::Draw { .. })), "{u}");
            }
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
    assert_eq!(stopped.to_string(), format!("after 3 steps: {error}"));
    assert_eq!(std::error::Error::source(&stopped).unwrap().to_string(), error.to_string());
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
