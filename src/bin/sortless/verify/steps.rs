//! Mirostat's steps, three times: by the library, by the reference, by the oracle.

use super::compare::{BadRow, Difference, Found, Tally, judge};
use crate::args::Sessions;
use crate::record::ErrorRecord;
use crate::rows::{Row, RowError};
use crate::threads::with_scratch;
use rayon::prelude::*;
use sortless::mirostat::{Session, State, Step, Version};
use sortless::reference::{self, MirostatPick};
use sortless::{Element, Error, Level, Number, Path, oracle};

/// The sessions that go over the rows, one for each draw of a row.
pub struct Generations<'a> {
    sessions: Vec<Session>,
    fresh: Session,
    each_row_anew: bool,
    levels: &'a [Level],
}

impl<'a> Generations<'a> {
    pub fn new(session: &Session, whose: Sessions, levels: &'a [Level], draws: usize) -> Self {
        Self {
            sessions: vec![session.fork(); draws],
            fresh: session.fork(),
            each_row_anew: whose == Sessions::PerRow,
            levels,
        }
    }

    /// The next rows.
    pub fn rows<E: Element>(&mut self, rows: &[Row<E>]) -> Tally {
        if self.each_row_anew {
            let anew = |row: &Row<E>| {
                let mut sessions = vec![self.fresh.fork(); row.draws.len()];
                steps(&mut sessions, self.levels, row)
            };
            let found: Vec<Tally> = rows.par_iter().map(anew).collect();
            return found.into_iter().collect();
        }
        rows.iter().map(|row| steps(&mut self.sessions, self.levels, row)).collect()
    }
}

/// A step of each session over one row.
fn steps<E: Element>(sessions: &mut [Session], levels: &[Level], row: &Row<E>) -> Tally {
    let mut tally = Tally { rows: 1, ..Tally::default() };
    match row.check() {
        Ok(logits) => {
            let draws = sessions.par_iter_mut().zip(&row.draws).enumerate();
            let advance = |(draw, (session, &u)): (usize, (&mut Session, &f64))| {
                let (tally, next) = step(session, levels, row.index, draw, logits, u);
                // By the reference's word, so that one difference doesn't make the rest differ.
                if let Some(next) = next {
                    *session = next;
                }
                tally
            };
            let found: Vec<Tally> = draws.map(advance).collect();
            tally.add(found.into_iter().collect());
        }
        Err(error) => {
            tally.first_refused = Some(BadRow { row: row.index, error: ErrorRecord::from(&error) })
        }
    }
    tally.refused = u64::from(tally.first_refused.is_some());
    tally
}

/// One step, and the session after it.
pub fn step<E: Element>(
    session: &Session,
    levels: &[Level],
    row: u64,
    draw: usize,
    logits: &[E],
    u: f64,
) -> (Tally, Option<Session>) {
    let mut tally = Tally { decisions: 1, ..Tally::default() };
    let config = session.config();
    let (version, temperature, mu, m) =
        (session.version(), config.temperature(), session.mu(), config.m());
    let picked = match version {
        Version::V1 => reference::mirostat_v1(logits, temperature, mu, m, u),
        Version::V2 => reference::mirostat_v2(logits, temperature, mu, u),
    };
    let expected = picked.and_then(|pick| Expected::new(session, pick));
    if let Err(error) = &expected {
        let error = ErrorRecord::from(&RowError::Library(error.clone()));
        tally.first_refused = Some(BadRow { row, error });
    }
    let differs = |level: Level, path: Path, expected, found| Difference {
        row,
        draw,
        u,
        parameters: describe(session),
        level: level.to_string(),
        path: format!("{path:?}").to_lowercase(),
        against: "reference",
        expected,
        found,
    };
    for &level in levels {
        for path in [Path::Bounds, Path::Full] {
            let mut mine = session.fork().with_level(level);
            let found = with_scratch(|scratch| {
                scratch.start_at(path);
                let found = mine.sample(logits, u, scratch);
                scratch.start_at(Path::default());
                found
            });
            tally.comparisons += 1;
            if !same(&found, &expected, session, &mine) && tally.first.is_none() {
                tally.reference = 1;
                let expected = match &expected {
                    Ok(expected) => expected.found(),
                    Err(error) => Found::error(error),
                };
                let found = match &found {
                    Ok(step) => found_step(step),
                    Err(error) => Found::error(error),
                };
                tally.first = Some(differs(level, path, expected, found));
            }
        }
    }
    let verdict = match version {
        Version::V1 => oracle::mirostat_v1(logits, temperature, mu, m, u),
        Version::V2 => oracle::mirostat_v2(logits, temperature, mu, u),
    };
    // The oracle knows nothing of feedback that leaves the finite numbers.
    if !matches!(expected, Err(Error::Mu { .. })) {
        let decided = expected.as_ref().ok().map(|e| e.pick.token);
        judge(&mut tally, verdict, decided, |wanted| {
            let found = decided.map_or(Found::Refused, Found::Token);
            Difference { against: "oracle", ..differs(Level::best(), Path::Full, wanted, found) }
        });
    }
    let next = expected.ok().and_then(|expected| {
        let state = State { mu: expected.mu_after, steps: session.steps() + 1 };
        Session::from_state(*config, version, state).ok()
    });
    (tally, next)
}

/// The reference's decision, and the feedback, written a second time.
struct Expected {
    pick: MirostatPick,
    mu_after: f64,
}

impl Expected {
    fn new(session: &Session, pick: MirostatPick) -> Result<Self, Error> {
        let config = session.config();
        let mu_after = session.mu() - config.eta() * (pick.surprise - config.tau());
        if !mu_after.is_finite() {
            return Err(Error::Mu { mu: Number(mu_after) });
        }
        Ok(Self { pick, mu_after })
    }

    fn found(&self) -> Found {
        let MirostatPick { token, kept, probability, surprise, .. } = self.pick;
        Found::Step { token, kept, probability, surprise_bits: surprise, mu_after: self.mu_after }
    }
}

fn found_step(step: &Step) -> Found {
    let Step { token, kept, probability, surprise, mu_after, .. } = *step;
    Found::Step { token, kept, probability, surprise_bits: surprise, mu_after }
}

/// Equal in every bit that is reported, and in what the session becomes.
fn same(
    found: &Result<Step, Error>,
    expected: &Result<Expected, Error>,
    before: &Session,
    after: &Session,
) -> bool {
    match (found, expected) {
        (Ok(step), Ok(expected)) => {
            let pick = &expected.pick;
            let mine = [step.probability, step.surprise, step.mu_before, step.mu_after, after.mu()];
            let mu = expected.mu_after;
            let theirs = [pick.probability, pick.surprise, before.mu(), mu, mu];
            (step.token, step.kept) == (pick.token, pick.kept)
                && mine.map(f64::to_bits) == theirs.map(f64::to_bits)
                && after.steps() == before.steps() + 1
        }
        (Err(error), Err(expected)) => error == expected && after.state() == before.state(),
        _ => false,
    }
}

fn describe(session: &Session) -> String {
    let config = session.config();
    format!(
        "--mirostat {:?} --temperature {:?} --tau {:?} --eta {:?} --m {}, at mu {:?} after {} steps",
        session.version(),
        config.temperature(),
        config.tau(),
        config.eta(),
        config.m(),
        session.mu(),
        session.steps()
    )
}
