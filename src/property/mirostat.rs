//! Mirostat: steps of a session, in every form that a step has, against the reference and the feedback formula.

use super::bytes::{Bytes, step_f64};
use super::on_threads;
use super::params::{change, temperature};
use super::row::{Frame, Make, length, row, show};
use crate::batch::Rows;
use crate::element::Element;
use crate::error::{Error, Number};
use crate::level::Level;
use crate::mirostat::{Config, Session, SessionBatch, State, Step, Version};
use crate::prepared::PreparedRow;
use crate::reference::{self, MirostatPick};
use crate::report;
use crate::sampler::Scratch;
use half::{bf16, f16};

/// Checks Mirostat sessions on the case that these bytes say.
///
/// # Errors
/// The case in full, and what is wrong with it.
pub fn mirostat(bytes: &[u8]) -> Result<(), String> {
    let kinds = [
        |b: &mut Bytes<'_>| generation::<f32>(b, false),
        |b: &mut Bytes<'_>| generation::<f16>(b, false),
        |b: &mut Bytes<'_>| generation::<bf16>(b, false),
        |b: &mut Bytes<'_>| generation::<f32>(b, true),
    ];
    super::check(bytes, kinds)
}

/// A row of logits or of weights.
enum Input<E> {
    Logits(Vec<E>),
    Weights(Vec<f32>),
}

impl<E: Make> Input<E> {
    fn len(&self) -> usize {
        match self {
            Self::Logits(row) => row.len(),
            Self::Weights(row) => row.len(),
        }
    }

    fn reference(&self, session: &Session, mu: f64, u: f64) -> Result<MirostatPick, Error> {
        let (t, m) = (session.config().temperature(), session.config().m());
        match (self, session.version()) {
            (Self::Logits(row), Version::V1) => reference::mirostat_v1(row, t, mu, m, u),
            (Self::Logits(row), Version::V2) => reference::mirostat_v2(row, t, mu, u),
            (Self::Weights(row), Version::V1) => reference::mirostat_v1_weights(row, mu, m, u),
            (Self::Weights(row), Version::V2) => reference::mirostat_v2_weights(row, mu, u),
        }
    }

    fn sample(&self, session: &mut Session, u: f64, s: &mut Scratch) -> Result<Step, Error> {
        match self {
            Self::Logits(row) => session.sample(row, u, s),
            Self::Weights(row) => session.sample_weights(row, u, s),
        }
    }

    fn observe(&self, session: &mut Session, id: u32, s: &mut Scratch) -> Result<Step, Error> {
        match self {
            Self::Logits(row) => session.observe(row, id, s),
            Self::Weights(row) => session.observe_weights(row, id, s),
        }
    }

    fn prepared(&self, session: &Session) -> Result<PreparedRow, Error> {
        match self {
            Self::Logits(row) => PreparedRow::from_logits_at(row, session.config().temperature()),
            Self::Weights(row) => PreparedRow::from_weights(row),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Logits(row) => show(row),
            Self::Weights(row) => format!("weights: {}", show(row)),
        }
    }
}

fn generation<E: Make>(b: &mut Bytes<'_>, weights: bool) -> Result<(), String> {
    let version = b.of(&[Version::V2, Version::V1]);
    // What a config refuses is a matter for its own tests.
    let temperature = match temperature(b) {
        _ if weights => 1.0,
        t if t.is_normal() && t > 0.0 => t,
        _ => 1.0,
    };
    let config = Config::new(b.of(&[1.5, 3.0, 0.1, 8.0, 1e-300, 1e307]))
        .and_then(|c| c.with_eta(b.of(&[0.1, 1.0, 1e-9, 1e300, 50.0])))
        .and_then(|c| c.with_m(b.of(&[100, 2, 3, 10, 64, 65, 600, usize::MAX])))
        .and_then(|c| c.with_temperature(temperature))
        .map_err(|error| error.to_string())?;
    let frame = Frame::read(b, temperature);
    let mut session = Session::new(config, version);
    let mut used = Scratch::new();
    for _ in 0..1 + b.below(4) {
        let len = length(b, super::LONGEST);
        let row = row::<E>(b, frame, len);
        let input = if weights { as_weights(b, &row) } else { Input::Logits(row) };
        if b.chance(200) {
            let mu = mu(b, &input, &session);
            let state = State { mu, steps: b.of(&[0, 7, u64::MAX]) };
            session = Session::from_state(config, version, state).map_err(|e| e.to_string())?;
        }
        let u = draw(b, &input, &session);
        let case = || format!("{session:?}, u = {u:?}, {}", input.show());
        session = step(&input, &session, u, &mut used, b)
            .map_err(|what| format!("{what}; {}", case()))?;
    }
    Ok(())
}

/// Weights with the row's ties and edges: its exps, or its values as they are, here and there with a sign.
fn as_weights<E: Make>(b: &mut Bytes<'_>, row: &[E]) -> Input<E> {
    let scale = b.of(&[1.0f32, 1e-38, 3e38, 1e-3, 0.0]);
    let exps = b.chance(160);
    let negative = b.chance(10);
    let max = reference::max(row).unwrap_or(0.0).max(f32::MIN);
    let exp = reference::weights(row, max, 1.0);
    let weight = |(v, w): (&E, f32)| match v.to_f32() {
        l if l.is_nan() || l == f32::INFINITY => l,
        l if l == f32::NEG_INFINITY => 0.0,
        l if negative => l,
        l => {
            if exps {
                w * scale
            } else {
                l.abs()
            }
        }
    };
    Input::Weights(row.iter().zip(exp).map(weight).collect())
}

/// A mu: any, or the surprise of a token at which the kept set changes, or beside it.
fn mu<E: Make>(b: &mut Bytes<'_>, input: &Input<E>, session: &Session) -> f64 {
    match b.below(8) {
        0 => 3.0,
        1 => b.of(&[0.0, -5.0, 1e300, -1e300, 60.0, 5e-324, -0.0]),
        2 => f64::from(b.u16()) / 2048.0,
        n => {
            // A token that comes out at some draw, with everything kept or only what mu = 4 keeps.
            let u = f64::from(b.u16()) / 65536.0;
            let mu = if n % 2 == 0 { 1e6 } else { 4.0 };
            let surprise = input.reference(session, mu, u).map_or(2.0, |pick| pick.surprise);
            step_f64(surprise, b.step())
        }
    }
}

fn draw<E: Make>(b: &mut Bytes<'_>, input: &Input<E>, session: &Session) -> f64 {
    let last = 1.0 - f64::EPSILON / 2.0;
    match b.below(8) {
        0 => b.of(&[0.5, 0.0, last, 5e-324]),
        1 if b.chance(60) => b.of(&[1.0, -1.0, f64::NAN]),
        2..=4 if input.len() <= 200 => {
            let token = |u| input.reference(session, session.mu(), u).ok().map(|pick| pick.token);
            step_f64(change(b, 0.0, last, token), b.step()).clamp(0.0, last)
        }
        _ => (b.u64() >> 11) as f64 / (1u64 << 53) as f64,
    }
}

fn expect<T: PartialEq + core::fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, not {want:?}")) }
}

/// Every bit of a step: `==` takes zeros of both signs for the same.
fn bits(step: &Result<Step, Error>) -> Result<([u64; 4], u32, u32), Error> {
    let numbers = |s: &Step| [s.probability, s.surprise, s.mu_before, s.mu_after].map(f64::to_bits);
    step.as_ref().map(|s| (numbers(s), s.token, s.kept)).map_err(Clone::clone)
}

/// One step, in every way that there is; gives the session after it.
fn step<E: Make>(
    input: &Input<E>,
    session: &Session,
    u: f64,
    used: &mut Scratch,
    b: &mut Bytes<'_>,
) -> Result<Session, String> {
    let (config, mu) = (session.config(), session.mu());
    let want = input.reference(session, mu, u).and_then(|pick| {
        let mu_after = report::next_mu(mu, config.eta(), pick.surprise, config.tau());
        let MirostatPick { token, kept, probability, surprise, .. } = pick;
        if !mu_after.is_finite() {
            return Err(Error::Mu { mu: Number(mu_after) });
        }
        Ok(Step { token, probability, surprise, kept, mu_before: mu, mu_after })
    });
    // Where the session goes: forward by the step, or nowhere.
    let state = match &want {
        Ok(step) => State { mu: step.mu_after, steps: session.steps().saturating_add(1) },
        Err(_) => session.state(),
    };
    let check = |what: &str, got: Result<Step, Error>, after: &Session| {
        if bits(&got) != bits(&want) {
            return Err(format!("{what}: {got:?}, not {want:?}"));
        }
        expect(&format!("state after {what}"), &after.state(), &state)
    };
    for level in Level::tested() {
        for (memory, scratch) in [("fresh", &mut Scratch::new()), ("used", &mut *used)] {
            let mut other = session.fork().with_level(level);
            let got = input.sample(&mut other, u, scratch);
            check(&format!("{level}, {memory} memory"), got, &other)?;
        }
    }
    if let Ok(step) = &want {
        let mut other = session.fork();
        check("observe", input.observe(&mut other, step.token, used), &other)?;
        let prepared = input.prepared(session).map_err(|e| format!("prepared: {e:?}"))?;
        let mut other = session.fork();
        check("prepared", other.sample_prepared(&prepared, u, used), &other)?;
        let mut other = session.fork();
        let got = other.observe_prepared(&prepared, step.token, used);
        check("observe prepared", got, &other)?;
        expect("with mass", &prepared.with_mass(), &prepared.ranking().len())?;
        let set = session.candidates_prepared(&prepared, used);
        let set = set.map_err(|e| format!("candidates: {e:?}"))?;
        expect("candidates", &(set.len(), set.draw(u)), &(step.kept as usize, Ok(step.token)))?;
        expect("their mu", &set.mu().to_bits(), &session.mu().to_bits())?;
        let place = set.ids().iter().position(|&id| id == step.token).unwrap_or(usize::MAX);
        expect("position", &set.position(step.token), &Some(place))?;
        let found = (set.probability(step.token), set.conditional_probability(step.token));
        let conditional = set.conditional_probabilities().get(place).copied();
        expect("shares", &found, &(Some(step.probability), conditional))?;
        expect("share of the row", &prepared.probability(step.token), &Ok(step.probability))?;
        expect("vocabulary", &prepared.vocabulary(), &input.len())?;
        let drawn = prepared.draw_prefix(step.kept as usize, u);
        expect("a draw from the prefix", &drawn, &Ok(step.token))?;
        let preview = session.preview_prepared(&prepared, used);
        let preview = preview.map_err(|e| format!("preview: {e:?}"))?;
        let counts = (preview.vocabulary, preview.kept, preview.retained.to_bits());
        expect("preview", &counts, &(input.len(), step.kept, set.retained().to_bits()))?;
        // A sum of rounded products, where the preview has an integer one.
        let surprise = |id| prepared.surprise(id).ok().flatten().unwrap_or(f64::NAN);
        let surprises = set.ids().iter().map(|&id| surprise(id));
        let mean = surprises.zip(set.conditional_probabilities()).map(|(s, p)| s * p).sum::<f64>();
        if (preview.expected_surprise - mean).abs() > 1e-4 * mean.max(1.0) || mean.is_nan() {
            return Err(format!("expected surprise: {preview:?}, not {mean:?}"));
        }
        // A token outside the set, if there is one, moves nothing.
        let id = b.below(input.len()) as u32;
        let mut other = session.fork();
        if set.position(id).is_none() {
            let got = input.observe(&mut other, id, used);
            expect("observing another", &got.map(|_| ()), &Err(Error::NotKept { id }))?;
            expect("state after that", &other.state(), &session.state())?;
        }
    }
    if let Input::Logits(row) = input {
        batch(row, session, u, &want, &state, b.below(5))?;
    }
    let mut after = session.fork();
    let _ = input.sample(&mut after, u, used);
    Ok(after)
}

/// The same step of two sessions, beside one that fails; then all or nothing.
fn batch<E: Element>(
    row: &[E],
    session: &Session,
    u: f64,
    want: &Result<Step, Error>,
    state: &State,
    threads: usize,
) -> Result<(), String> {
    let rows: [&[E]; 3] = [row, &[], row];
    let rows = Rows::slices(&rows);
    let mut sessions = vec![session.clone(); 3];
    let got = on_threads(threads, || SessionBatch::new().sample(&rows, &mut sessions, &[u; 3]));
    let got = got.map_err(|e| format!("batch: {e:?}"))?;
    expect("batch", &bits(&got[0]), &bits(want))?;
    expect("batch", &bits(&got[2]), &bits(want))?;
    expect("batch, empty row", &got[1], &Err(Error::RowLength { len: 0 }))?;
    let states: Vec<State> = sessions.iter().map(Session::state).collect();
    expect("states after a batch", &states, &vec![*state, session.state(), *state])?;

    let mut sessions = vec![session.clone(); 3];
    let mut steps = [Step::default(); 3];
    let got = SessionBatch::serial().sample_all(&rows, &mut sessions, &[u; 3], &mut steps);
    let failed = if want.is_err() { 0 } else { 1 };
    let row_of = |error: &Error| matches!(error, Error::Row { row, .. } if *row == failed);
    if !got.as_ref().is_err_and(row_of) {
        return Err(format!("sample_all: {got:?}, not the error of row {failed}"));
    }
    let moved = sessions.iter().any(|s| s.state() != session.state());
    expect("after sample_all", &(steps, moved), &([Step::default(); 3], false))
}
