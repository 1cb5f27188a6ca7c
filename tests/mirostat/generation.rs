//! The generation loop and what is said about its steps.

use super::*;
use sortless::Error;
use sortless::mirostat::{Generate, Stop, StopCause, SurpriseWindow, TraceAccumulator};
use std::ops::ControlFlow;

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
            (StopCause::Model(text), 3) => {
                assert_eq!(text, "no more");
                assert_eq!(error.to_string(), "after 2 tokens: the model: no more");
            }
            (StopCause::Sample(cause @ Error::NotFinite { index: 4, .. }), 0) => {
                assert_eq!(error.to_string(), format!("after 2 tokens: {cause}"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_error_of_a_model_is_the_source() {
    let model = |_: &[u32], _: &mut Vec<f32>| Err(Error::NoAllowedToken);
    let mut s = session(0.5, Version::V2);
    let error = Generate::new(1).run(&mut s, || 0.5, model, &[], &mut Scratch::new()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, Error::NoAllowedToken.to_string());
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
    assert!(!window.is_empty());
    window.clear();
    assert!(window.is_empty() && window.mean().is_none());
    assert!(SurpriseWindow::new(0).is_err() && TraceAccumulator::new(f64::NAN).is_err());
}
