//! sortless as a contestant, and the sets that it keeps.

use crate::peer::{Pick, Rule};
use sortless::mirostat::{Config, Session, Version};
use sortless::{Sampler, SamplingParams, Scratch, reference};

/// Mirostat's target surprise in bits.
pub const TAU: f32 = 3.0;
/// Its learning rate.
pub const ETA: f32 = 0.1;

/// sortless's side of a decision.
pub enum Ours {
    Sampler(SamplingParams),
    /// Every call is a generation's first step, so that all contestants cut at the same `mu`, 2 tau. Later ones would
    /// not: most peers feed back the surprise under the kept set, sortless that under the row.
    Mirostat(Version),
}

impl Ours {
    /// The contestant.
    pub fn pick(&self) -> Pick {
        let level = crate::common::level();
        let mut scratch = Scratch::new();
        match *self {
            Self::Sampler(params) => {
                let sampler = Sampler::new(params).expect("the decisions are in range");
                let sampler = sampler.with_level(level);
                Box::new(move |row, u| {
                    sampler.sample(&*row, u, &mut scratch).expect("the rows are good").token
                })
            }
            Self::Mirostat(version) => {
                let mut session = mirostat(version, 0.0).with_level(level);
                Box::new(move |row, u| {
                    session.reset();
                    session.sample(&*row, u, &mut scratch).expect("the rows are good").token
                })
            }
        }
    }

    /// The token that the plain reference picks.
    pub fn reference(&self, row: &[f32], u: f64) -> u32 {
        match self {
            Self::Sampler(params) => {
                reference::sample(row, params, u).expect("the rows are good").token
            }
            Self::Mirostat(version) => {
                let config = Config::new(f64::from(TAU)).expect("in range");
                let pick = match version {
                    Version::V1 => {
                        reference::mirostat_v1(row, 1.0, config.initial_mu(), config.m(), u)
                    }
                    Version::V2 => reference::mirostat_v2(row, 1.0, config.initial_mu(), u),
                };
                pick.expect("the rows are good").token
            }
        }
    }
}

/// A generation that begins; `slack` is added to its first `mu`.
fn mirostat(version: Version, slack: f64) -> Session {
    let config = Config::new(f64::from(TAU)).and_then(|c| c.with_eta(f64::from(ETA)));
    let config = config.and_then(|c| c.with_initial_mu(c.initial_mu() + slack));
    Session::new(config.expect("in range"), version)
}

/// The tokens that a rule allows, sorted. With `slack`, also those that a cut a little further out would keep: peers
/// add up f32s, so theirs is not exactly where it should be.
pub fn kept(rule: &Rule, row: &[f32], slack: bool) -> Vec<u32> {
    match rule {
        Rule::Best => {
            let best = row.iter().copied().fold(f32::MIN, f32::max);
            (0..).zip(row).filter(|&(_, &l)| l == best).map(|(id, _)| id).collect()
        }
        Rule::Kept(all) => {
            let mut sets = all.iter().map(|params| {
                let params = if slack { further(params) } else { *params };
                let sorted = reference::Sorted::new(row, &params).expect("the rows are good");
                let kept = sorted.kept(&params).expect("the rows are good");
                let mut ids: Vec<u32> = kept.into_iter().map(|(id, _)| id).collect();
                ids.sort_unstable();
                ids
            });
            let mut set = sets.next().expect("a rule has parameters");
            for other in sets {
                set.retain(|id| other.binary_search(id).is_ok());
            }
            set
        }
        Rule::Mirostat(version) => {
            let session = mirostat(*version, if slack { 0.05 } else { 0.0 });
            let set = session.candidates(row, &mut Scratch::new()).expect("the rows are good");
            let mut ids = set.ids().to_vec();
            ids.sort_unstable();
            ids
        }
    }
}

/// The same cuts, a thousandth further out.
fn further(params: &SamplingParams) -> SamplingParams {
    let mut params = *params;
    for share in [&mut params.top_p, &mut params.typical_p] {
        *share = share.map(|p| (p * 1.001).min(1.0));
    }
    params.min_p = params.min_p.map(|p| p * 0.999);
    params
}
