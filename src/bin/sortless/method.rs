//! How tokens are picked: by a stateless sampler, or by Mirostat sessions.

use crate::args::{Mirostat, Params, Sessions};
use crate::failure::Failure;
use crate::record::{AlternativeRecord, Decision};
use crate::rows::{Row, RowError};
use crate::threads::with_scratch;
use rayon::prelude::*;
use sortless::kernels::Scale;
use sortless::mirostat::{Candidates, Config, Session, Step, Version};
use sortless::{Element, Error, Level, Report, Sampler, SamplingParams, Scratch};

/// The default target surprise in bits.
const TAU: f64 = 3.0;

/// Picks tokens.
pub enum Method {
    Stateless(Sampler),
    /// One session that takes all rows as its steps, or one to begin each row with.
    Mirostat {
        session: Session,
        sessions: Sessions,
        level: Level,
    },
}

impl Method {
    /// What the arguments say, checked.
    pub fn new(params: &Params, level: Level) -> Result<Self, Failure> {
        let Some(version) = params.mirostat else {
            return Ok(Self::Stateless(Sampler::new(params.stateless())?.with_level(level)));
        };
        if params.temperature == 0.0 {
            return Err(Failure::new("--mirostat draws: it needs a --temperature above 0"));
        }
        let mut config =
            Config::new(params.tau.unwrap_or(TAU))?.with_temperature(params.temperature)?;
        if let Some(eta) = params.eta {
            config = config.with_eta(eta)?;
        }
        if let Some(m) = params.m {
            config = config.with_m(m)?;
        }
        let version = match version {
            Mirostat::V1 => Version::V1,
            Mirostat::V2 => Version::V2,
        };
        let session = Session::new(config, version).with_level(level);
        let sessions = params.sessions.unwrap_or(Sessions::One);
        Ok(Self::Mirostat { session, sessions, level })
    }

    /// A decision for each row, by its first draw.
    pub fn decide<E: Element>(
        &mut self,
        rows: &[Row<E>],
        logprobs: Option<usize>,
    ) -> Vec<Result<Decision, RowError>> {
        match self {
            Self::Stateless(sampler) => {
                rows.par_iter().map(|row| stateless(sampler, row, logprobs)).collect()
            }
            &mut Self::Mirostat { ref mut session, sessions, level } => match sessions {
                Sessions::One => rows.iter().map(|r| step(session, level, r, logprobs)).collect(),
                Sessions::PerRow => {
                    let step = |r| step(&mut session.fork(), level, r, logprobs);
                    rows.par_iter().map(step).collect()
                }
            },
        }
    }
}

fn first_draw<E>(row: &Row<E>) -> f64 {
    row.draws.first().copied().unwrap_or(f64::NAN)
}

fn stateless<E: Element>(
    sampler: &Sampler,
    row: &Row<E>,
    logprobs: Option<usize>,
) -> Result<Decision, RowError> {
    let (logits, u, mut report) = (row.check()?, first_draw(row), Report::default());
    with_scratch(|s| sampler.report(logits, u, logprobs.unwrap_or(0), s, &mut report))?;
    Ok(Decision::new(&report, logprobs.is_some()))
}

fn step<E: Element>(
    session: &mut Session,
    level: Level,
    row: &Row<E>,
    logprobs: Option<usize>,
) -> Result<Decision, RowError> {
    let (logits, u) = (row.check()?, first_draw(row));
    with_scratch(|scratch| {
        let set = session.candidates(logits, scratch)?;
        let step = session.sample(logits, u, scratch)?;
        let sampler = whole_row(session.config().temperature(), level)?;
        Ok(describe(&sampler, logits, &set, &step, logprobs, scratch)?)
    })
}

/// What reports on the distribution that a step's numbers belong to.
fn whole_row(temperature: f32, level: Level) -> Result<Sampler, Error> {
    let sampler = Sampler::new(SamplingParams::new().with_temperature(temperature))?;
    Ok(sampler.with_level(level))
}

/// A step tells what its feedback needs; the rest is added here: the share of the kept set, the log-probability, and
/// the best tokens.
fn describe<E: Element>(
    sampler: &Sampler,
    logits: &[E],
    set: &Candidates,
    step: &Step,
    logprobs: Option<usize>,
    scratch: &mut Scratch,
) -> Result<Decision, Error> {
    let mut report = Report::default();
    sampler.report(logits, 0.0, logprobs.unwrap_or(0).max(1), scratch, &mut report)?;

    let Step { token, kept, probability, surprise, mu_before, mu_after, .. } = *step;
    // The best token's is -L, since its x is 0. The lowest f32 stands for an x that overflows, as it does in reports.
    let best = report.alternatives.first().copied().unwrap_or_default();
    let logit = |token: u32| logits.get(token as usize).map_or(f32::NAN, |l| l.to_f32());
    let x = Scale::new(logit(best.token), sampler.params().temperature)?.argument(logit(token));
    let logprob = f64::from(x).max(f64::from(f32::MIN)) + best.logprob;
    let conditional = |token| set.conditional_probability(token).unwrap_or(0.0);

    let mut decision = Decision {
        token,
        kept,
        probability,
        conditional: conditional(token),
        surprise_bits: surprise,
        logprob,
        mu_before: Some(mu_before),
        mu_after: Some(mu_after),
        alternatives: Vec::new(),
    };
    if let Some(count) = logprobs {
        // The report's own draw may stand behind the best ones.
        let list = report.alternatives.iter().take(count);
        decision.alternatives.extend(list.map(|a| AlternativeRecord {
            conditional: conditional(a.token),
            ..AlternativeRecord::from(a)
        }));
        if decision.alternatives.iter().all(|a| a.token != token) {
            let conditional = decision.conditional;
            decision.alternatives.push(AlternativeRecord {
                token,
                probability,
                conditional,
                surprise_bits: surprise,
                logprob,
            });
        }
    }
    Ok(decision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sortless::shapes;

    /// What is put together here must be what the library itself would report.
    #[test]
    fn a_steps_numbers_are_those_of_a_report() {
        for seed in 0..20 {
            let mut row = shapes::half_masked(500, seed);
            row[3] = -1e38;
            let temperature = 0.3 + seed as f32 * 0.1;
            let config = Config::new(2.0).unwrap().with_temperature(temperature).unwrap();
            let mut session = Session::new(config, Version::V2);
            let draws = vec![seed as f64 / 20.0];
            let row = Row { index: 0, logits: row, fault: None, draws };
            let decision = step(&mut session, Level::best(), &row, Some(4)).unwrap();

            let params = SamplingParams::new().with_temperature(temperature);
            let sampler = Sampler::new(params).unwrap();
            let mut report = Report::default();
            sampler.report(&row.logits, 0.0, 500, &mut Scratch::new(), &mut report).unwrap();
            let known = |token| report.alternatives.iter().find(|a| a.token == token).unwrap();
            assert_eq!(decision.logprob.to_bits(), known(decision.token).logprob.to_bits());
            assert_eq!(decision.surprise_bits, known(decision.token).surprise);
            assert!(decision.alternatives.iter().any(|a| a.token == decision.token));
            assert!((4..=5).contains(&decision.alternatives.len()));
            for a in &decision.alternatives {
                let known = known(a.token);
                assert_eq!((a.probability, a.logprob), (known.probability, known.logprob));
                assert!(a.conditional == 0.0 || a.conditional >= a.probability);
            }
        }
    }
}
