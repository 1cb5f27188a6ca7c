//! candle-transformers' `LogitsProcessor`.

use crate::decisions::{DRAW, GREEDY, TOP_K_TOP_P, TOP_P, at};
use crate::peer::{Peer, Rule};
use candle_core::{Device, Tensor};
use candle_transformers::generation::{LogitsProcessor, Sampling};

/// candle's side of the decision of this name, where it has that decision.
pub fn peer(decision: &str) -> Option<Peer> {
    let (rule, sampling) = match decision {
        GREEDY => (Rule::Best, Sampling::ArgMax),
        // Its nucleus is a share of the whole row's mass, not of what top-k left: both cuts, each on its own.
        TOP_K_TOP_P => (
            Rule::Kept(vec![at(0.8).with_top_k(40), at(0.8).with_top_p(0.95)]),
            Sampling::TopKThenTopP { k: 40, p: 0.95, temperature: 0.8 },
        ),
        TOP_P => {
            (Rule::Kept(vec![at(0.7).with_top_p(0.9)]), Sampling::TopP { p: 0.9, temperature: 0.7 })
        }
        DRAW => (Rule::Kept(vec![at(0.8)]), Sampling::All { temperature: 0.8 }),
        _ => return None,
    };
    let new = if decision == GREEDY { Peer::same } else { Peer::new };
    let mut processor = LogitsProcessor::from_sampling(1, sampling);
    let pick = move |row: &mut [f32], _| processor.sample(&tensor(row)).expect("a good row");
    Some(new("candle", rule, Box::new(pick)))
}

/// The row as its tensor: one copy. An engine on candle has the tensor already.
pub fn tensor(row: &[f32]) -> Tensor {
    Tensor::from_slice(row, row.len(), &Device::Cpu).expect("a row is a vector")
}
