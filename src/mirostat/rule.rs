//! Which tokens `mu` lets stay: versions 1 and 2.

use super::config::Version;
use crate::measure::{Facts, Measure};
use crate::rank::{Need, Prefix, Ranked, Seek};
use crate::report;
use crate::source::Lists;

/// The rule of one step: what is sought in the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    V1 { mu: f64, m: u64, vocab: usize, measure: Measure },
    V2(Seek),
}

impl Rule {
    pub fn new(version: Version, mu: f64, m: usize, facts: &Facts) -> Self {
        match version {
            Version::V1 => Self::V1 { mu, m: m as u64, vocab: facts.vocab, measure: facts.measure },
            Version::V2 => Self::V2(facts.seek_surprise(mu)),
        }
    }

    /// What [`kept`](Self::kept) will seek first.
    pub fn first(&self) -> Seek {
        match self {
            Self::V1 { m, .. } => Seek::Count(*m),
            Self::V2(seek) => *seek,
        }
    }

    /// The tokens that stay.
    pub fn kept(&self, ranked: &mut dyn Ranked, lists: &mut Lists) -> Result<Prefix, Need> {
        match *self {
            Self::V1 { mu, m, vocab, measure } => {
                let k = match zipf_exponent(ranked, m, measure, lists)? {
                    None => 1,
                    Some(slope) => report::mirostat_k(slope, mu, vocab),
                };
                ranked.seek(Seek::Count(k as u64))
            }
            Self::V2(seek) => ranked.seek(seek),
        }
    }
}

/// The exponent of the Zipf law through the `m` best tokens with mass; `None` if there are fewer than two.
pub(crate) fn zipf_exponent(
    ranked: &mut dyn Ranked,
    m: u64,
    measure: Measure,
    lists: &mut Lists,
) -> Result<Option<f64>, Need> {
    let Lists { tokens, arguments } = lists;
    let best = ranked.seek(Seek::Count(m))?;
    ranked.ranked(&best, tokens)?;
    arguments.clear();
    arguments.extend(tokens.iter().map(|t| measure.argument(t.logit())));
    Ok((arguments.len() >= 2).then(|| report::zipf_slope(arguments)))
}
