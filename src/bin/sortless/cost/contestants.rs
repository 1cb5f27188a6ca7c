//! What takes turns: the samplers, and the plain sort that they are compared with.

use crate::args::Sampler as Name;
use crate::threads::with_scratch;
use sortless::mirostat::{Config, Session, Version};
use sortless::{Element, Level, Sampler, SamplingParams};
use std::cell::RefCell;

/// A call on a row with a draw. What it returns only keeps the work alive.
pub type Call<E> = Box<dyn Fn(&[E], f64) -> u64 + Send + Sync>;

/// The samplers of the command line, but for the sort, which reads f32 rows whatever is measured.
pub fn sampler<E: Element>(name: Name, level: Level) -> Result<Option<Call<E>>, sortless::Error> {
    let at = |t| SamplingParams::new().with_temperature(t);
    let params = match name {
        Name::Greedy => at(0.0),
        Name::Temperature => at(0.8),
        Name::TopK => at(1.0).with_top_k(50),
        Name::TopP => at(0.7).with_top_p(0.9),
        Name::MinP => at(1.0).with_min_p(0.05),
        Name::Epsilon => at(1.0).with_epsilon(3e-4),
        Name::Typical => at(1.0).with_typical_p(0.95),
        Name::MirostatV1 => return mirostat(Version::V1, level).map(Some),
        Name::MirostatV2 => return mirostat(Version::V2, level).map(Some),
        Name::SortTopP => return Ok(None),
    };
    let sampler = Sampler::new(params)?.with_level(level);
    Ok(Some(Box::new(move |row, u| {
        let pick = with_scratch(|scratch| sampler.sample(row, u, scratch));
        pick.map_or(0, |pick| u64::from(pick.token))
    })))
}

/// A step of a new session: its cost hardly depends on the state.
fn mirostat<E: Element>(version: Version, level: Level) -> Result<Call<E>, sortless::Error> {
    let session = Session::new(Config::new(3.0)?, version).with_level(level);
    Ok(Box::new(move |row, u| {
        let step = with_scratch(|scratch| session.fork().sample(row, u, scratch));
        step.map_or(0, |step| u64::from(step.token))
    }))
}

/// Top-p 0.9 at temperature 0.7 as it is usually written: softmax, full sort of (id, logit, probability), cumulative sum.
pub fn sort_top_p(row: &[f32], u: f64) -> u64 {
    #[derive(Clone, Copy)]
    struct Token {
        id: u32,
        logit: f32,
        p: f32,
    }
    thread_local! {
        static TOKENS: RefCell<Vec<Token>> = const { RefCell::new(Vec::new()) };
    }
    TOKENS.with_borrow_mut(|tokens| {
        tokens.clear();
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0f32;
        tokens.extend(row.iter().zip(0..).map(|(&logit, id)| {
            let p = ((logit - max) / 0.7).exp();
            sum += p;
            Token { id, logit, p }
        }));
        tokens.sort_unstable_by(|a, b| b.logit.total_cmp(&a.logit));
        let mut kept = 0.0f32;
        let count = tokens.iter().take_while(|t| {
            let more = kept < 0.9 * sum;
            kept += if more { t.p } else { 0.0 };
            more
        });
        let count = count.count();
        let mut left = u as f32 * kept;
        let drawn = tokens[..count].iter().find(|t| {
            left -= t.p;
            left < 0.0
        });
        drawn.or(tokens.first()).map_or(0, |t| u64::from(t.id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sortless::{Scratch, shapes};

    #[test]
    fn the_sort_does_the_same_work() {
        let row = shapes::llm(5000, 3);
        let params = SamplingParams::new().with_temperature(0.7).with_top_p(0.9);
        let sampler = Sampler::new(params).unwrap();
        for u in [0.0, 0.11, 0.37, 0.52, 0.77, 0.93] {
            let pick = sampler.sample(&row, u, &mut Scratch::new()).unwrap();
            assert_eq!(sort_top_p(&row, u), u64::from(pick.token), "{u}");
        }
        assert_eq!(sort_top_p(&[1.0], 0.5), 0);
    }
}
