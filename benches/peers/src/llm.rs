//! The crate llm-samplers.

use crate::ours::{ETA, TAU};
use crate::peer::Pick;
use llm_samplers::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The row as its list of logits: 12 bytes a token, allocated anew, since a chain may cut it short.
pub fn logits(row: &[f32]) -> Logits {
    Logits::try_from_iter(row.iter().copied()).expect("the rows are good")
}

fn resources() -> SimpleSamplerResources {
    SimpleSamplerResources::new(Some(Box::new(StdRng::seed_from_u64(1))), None)
}

/// A chain over what `load` makes of the row.
fn run(mut chain: SamplerChain, load: impl Fn(&[f32]) -> Logits + 'static) -> Pick {
    let mut resources = resources();
    Box::new(move |row, _| {
        let token = chain.sample_token(&mut resources, &mut load(row));
        token.expect("the rows are good").expect("the chain ends with a pick")
    })
}

/// A chain over the whole row.
pub fn chain(chain: SamplerChain) -> Pick {
    run(chain, logits)
}

/// A chain over the `k` best, which the crate can select while it builds the list.
pub fn cut(chain: SamplerChain, k: usize) -> Pick {
    let load = move |row: &[f32]| Logits::try_from_iter_top_k(row.iter().copied(), k);
    run(chain, move |row| load(row).expect("the rows are good"))
}

/// Mirostat's first step: a new state for each call.
pub fn mirostat_v2() -> Pick {
    let mut resources = resources();
    Box::new(move |row, _| {
        let mut sampler = SampleMirostat2::new(TAU, ETA);
        let token = sampler.sample_token(&mut resources, &mut logits(row));
        token.expect("the rows are good").expect("it ends with a pick")
    })
}
