//! What is decided, and by whom.

use crate::ours::{ETA, Ours, TAU};
use crate::peer::{Peer, Rule};
use crate::{llm, plain, tokens};
use argminmax::ArgMinMax;
use llm_samplers::prelude as ls;
use sortless::SamplingParams;
use sortless::mirostat::Version;
use token_sampling as ts;

/// A decision with its contestants.
pub struct Decision {
    pub name: &'static str,
    pub ours: Ours,
    pub peers: Vec<Peer>,
}

/// Every decision, for rows of this length.
pub fn decisions(vocab: usize) -> Vec<Decision> {
    #[allow(unused_mut)]
    let mut all = vec![
        greedy(),
        top_k_top_p(),
        top_p(),
        min_p(),
        draw(),
        typical(),
        mirostat_v2(),
        mirostat_v1(vocab),
    ];
    #[cfg(feature = "candle")]
    for decision in &mut all {
        decision.peers.extend(crate::candle::peer(decision.name));
    }
    #[cfg(feature = "llama")]
    for decision in &mut all {
        decision.peers.push(crate::llama::peer(decision.name, vocab));
    }
    all
}

/// The names that the optional peers' sides are found by.
pub const GREEDY: &str = "greedy";
pub const TOP_K_TOP_P: &str = "T 0.8, top-k 40, top-p 0.95";
pub const TOP_P: &str = "top-p 0.9 at T 0.7";
pub const MIN_P: &str = "min-p 0.05";
pub const DRAW: &str = "draw at T 0.8";
pub const TYPICAL: &str = "typical 0.95";
pub const MIROSTAT_V2: &str = "Mirostat v2, tau 3";
pub const MIROSTAT_V1: &str = "Mirostat v1, tau 3";

/// Parameters at a temperature.
pub fn at(temperature: f32) -> SamplingParams {
    SamplingParams::new().with_temperature(temperature)
}

/// A peer that keeps exactly what sortless keeps.
fn keeps(params: SamplingParams) -> Rule {
    Rule::Kept(vec![params])
}

fn chain() -> ls::SamplerChain {
    ls::SamplerChain::new()
}

fn greedy() -> Decision {
    Decision {
        name: GREEDY,
        ours: Ours::Sampler(at(0.0)),
        peers: vec![
            Peer::same("argminmax", Rule::Best, Box::new(|row, _| (&*row).argmax() as u32)),
            Peer::same("llm-samplers", Rule::Best, llm::chain(chain() + ls::SampleGreedy::new())),
            Peer::same(
                "token-sampling",
                Rule::Best,
                tokens::chain(ts::SamplerChain::new().push(ts::Greedy)),
            ),
        ],
    }
}

fn top_k_top_p() -> Decision {
    let (k, p, t) = (40, 0.95, 0.8);
    let params = at(t).with_top_k(k).with_top_p(p);
    let llm_chain = || {
        let chain = chain() + ls::SampleTemperature::new(t) + ls::SampleTopK::new(k as usize, 1);
        chain + ls::SampleTopP::new(p as f32, 1) + ls::SampleRandDistrib::new()
    };
    let stages = ts::SamplerChain::new()
        .push(ts::Temperature { t })
        .push(ts::TopK { k: k as i32 })
        .push(ts::TopP { p: p as f32, min_keep: 1 })
        .push(ts::Dist);
    Decision {
        name: TOP_K_TOP_P,
        ours: Ours::Sampler(params),
        peers: vec![
            Peer::new("llm-samplers", keeps(params), llm::chain(llm_chain())),
            Peer::new("llm-samplers, list of 40", keeps(params), llm::cut(llm_chain(), k as usize)),
            Peer::same("token-sampling", keeps(params), tokens::chain(stages)),
        ],
    }
}

fn top_p() -> Decision {
    let (p, t) = (0.9, 0.7);
    let params = at(t).with_top_p(p);
    let llm_chain = chain()
        + ls::SampleTemperature::new(t)
        + ls::SampleTopP::new(p as f32, 1)
        + ls::SampleRandDistrib::new();
    let stages = ts::SamplerChain::new()
        .push(ts::Temperature { t })
        .push(ts::TopP { p: p as f32, min_keep: 1 })
        .push(ts::Dist);
    Decision {
        name: TOP_P,
        ours: Ours::Sampler(params),
        peers: vec![
            Peer::same("sort_unstable_by", keeps(params), plain::top_p(t, p)),
            Peer::new("llm-samplers", keeps(params), llm::chain(llm_chain)),
            Peer::same("token-sampling", keeps(params), tokens::chain(stages)),
        ],
    }
}

fn min_p() -> Decision {
    let p = 0.05;
    let params = at(1.0).with_min_p(p);
    let stages = ts::SamplerChain::new();
    let stages = stages.push(ts::MinP { p: p as f32, min_keep: 1 }).push(ts::Dist);
    let llm_chain = chain() + ls::SampleMinP::new(p as f32, 1) + ls::SampleRandDistrib::new();
    Decision {
        name: MIN_P,
        ours: Ours::Sampler(params),
        peers: vec![
            Peer::new("llm-samplers", keeps(params), llm::chain(llm_chain)),
            Peer::new("token-sampling", keeps(params), tokens::chain(stages)),
        ],
    }
}

/// Without a filter every token with mass is kept, so that there is little to check.
fn draw() -> Decision {
    let t = 0.8;
    let params = at(t);
    let stages = ts::SamplerChain::new().push(ts::Temperature { t }).push(ts::Dist);
    let llm_chain = chain() + ls::SampleTemperature::new(t) + ls::SampleRandDistrib::new();
    Decision {
        name: DRAW,
        ours: Ours::Sampler(params),
        peers: vec![
            Peer::new("llm-samplers", keeps(params), llm::chain(llm_chain)),
            Peer::new("token-sampling", keeps(params), tokens::chain(stages)),
        ],
    }
}

fn typical() -> Decision {
    let p = 0.95;
    let params = at(1.0).with_typical_p(p);
    let stages = ts::SamplerChain::new();
    let stages = stages.push(ts::Typical { p: p as f32, min_keep: 1 }).push(ts::Dist);
    let llm_chain =
        chain() + ls::SampleLocallyTypical::new(p as f32, 1) + ls::SampleRandDistrib::new();
    Decision {
        name: TYPICAL,
        ours: Ours::Sampler(params),
        peers: vec![
            Peer::new("llm-samplers", keeps(params), llm::chain(llm_chain)),
            Peer::new("token-sampling", keeps(params), tokens::chain(stages)),
        ],
    }
}

fn mirostat_v2() -> Decision {
    let rule = Rule::Mirostat(Version::V2);
    let stages = ts::SamplerChain::new().push(ts::MirostatV2::new(TAU, ETA));
    Decision {
        name: MIROSTAT_V2,
        ours: Ours::Mirostat(Version::V2),
        peers: vec![
            Peer::new("llm-samplers", rule.clone(), llm::mirostat_v2()),
            Peer::same("token-sampling", rule, tokens::chain(stages)),
        ],
    }
}

/// Without llm-samplers: its `k` comes from another formula.
fn mirostat_v1(vocab: usize) -> Decision {
    let mut stage = ts::MirostatV1::new(vocab as u32);
    (stage.tau, stage.eta) = (TAU, ETA);
    let stages = tokens::chain(ts::SamplerChain::new().push(stage));
    Decision {
        name: MIROSTAT_V1,
        ours: Ours::Mirostat(Version::V1),
        peers: vec![Peer::same("token-sampling", Rule::Mirostat(Version::V1), stages)],
    }
}
