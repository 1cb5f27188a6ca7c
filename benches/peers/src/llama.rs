//! llama.cpp's samplers, through the raw bindings of llama-cpp-sys-2.

use crate::decisions::{
    DRAW, GREEDY, MIN_P, MIROSTAT_V1, MIROSTAT_V2, TOP_K_TOP_P, TOP_P, TYPICAL, at,
};
use crate::ours::{ETA, TAU};
use crate::peer::{Peer, Pick, Rule};
use llama_cpp_sys_2 as sys;
use sortless::mirostat::Version;

/// How many tokens Mirostat v1 fits its law to: sortless's default.
const M: i32 = 100;
const SEED: u32 = 1;

/// llama.cpp's side of the decision of this name.
pub fn peer(decision: &str, vocab: usize) -> Peer {
    let kept = |params| Rule::Kept(vec![params]);
    let (rule, pick) = match decision {
        GREEDY => (Rule::Best, chain(vec![greedy()])),
        // In its own order: the temperature is last, so the nucleus is that of temperature 1.
        TOP_K_TOP_P => (
            kept(at(1.0).with_top_k(40).with_top_p(0.95)),
            chain(vec![top_k(40), top_p(0.95), temp(0.8), dist()]),
        ),
        // Here the temperature is first, so that the nucleus is the same as everyone's.
        TOP_P => (kept(at(0.7).with_top_p(0.9)), chain(vec![temp(0.7), top_p(0.9), dist()])),
        MIN_P => (kept(at(1.0).with_min_p(0.05)), chain(vec![min_p(0.05), dist()])),
        DRAW => (kept(at(0.8)), chain(vec![temp(0.8), dist()])),
        TYPICAL => (kept(at(1.0).with_typical_p(0.95)), chain(vec![typical(0.95), dist()])),
        MIROSTAT_V2 => (Rule::Mirostat(Version::V2), first_step(mirostat_v2)),
        MIROSTAT_V1 => {
            let vocab = i32::try_from(vocab).expect("a row's length");
            (Rule::Mirostat(Version::V1), first_step(move |seed| mirostat_v1(vocab, seed)))
        }
        _ => panic!("llama.cpp has no side of {decision:?} here"),
    };
    let new = if decision == GREEDY { Peer::same } else { Peer::new };
    new("llama.cpp", rule, pick)
}

/// A sampler or a chain of them, not null, and nobody else's.
pub struct Stage(*mut sys::llama_sampler);

impl Stage {
    fn new(sampler: *mut sys::llama_sampler) -> Self {
        assert!(!sampler.is_null(), "llama.cpp made no sampler");
        Self(sampler)
    }

    /// Runs it on an array, and gives the token that it selected.
    fn apply(&mut self, array: &mut Array, row: &[f32]) -> u32 {
        array.fill(row);
        let mut cur = sys::llama_token_data_array {
            data: array.0.as_mut_ptr(),
            size: array.0.len(),
            selected: -1,
            sorted: false,
        };
        // SAFETY: the sampler is alive, since it is freed only when `self` is dropped, and `&mut self` keeps other threads
        // out. `data` points to `size` entries that were all written, that `array` owns for the whole call and that nobody
        // else looks at; the array isn't sorted, and says so.
        unsafe { sys::llama_sampler_apply(self.0, &mut cur) };
        let selected = usize::try_from(cur.selected).expect("the last sampler selects");
        assert!(selected < cur.size, "the selected entry is not in the array");
        // SAFETY: samplers leave `data` pointing to `size` initialised entries (in our buffer, or in one that the sampler
        // owns, which lives as long as `self`), and `selected` was checked to be one of them.
        unsafe { (*cur.data.add(selected)).id as u32 }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // SAFETY: the sampler is ours (`chain` forgets those that it gave away), is not null, and nothing uses it after.
        unsafe { sys::llama_sampler_free(self.0) }
    }
}

/// What the samplers work on: 12 bytes a token, whose memory is used again, as llama.cpp itself does.
#[derive(Default)]
pub struct Array(Vec<sys::llama_token_data>);

impl Array {
    /// Fills it from a row. An engine does that for each token, whatever the samplers.
    pub fn fill(&mut self, row: &[f32]) {
        let entry = |(id, &logit)| sys::llama_token_data { id, logit, p: 0.0 };
        self.0.clear();
        self.0.extend((0..).zip(row).map(entry));
    }
}

/// Stages in order.
fn chain(stages: Vec<Stage>) -> Pick {
    // SAFETY: it only returns a struct.
    let mut params = unsafe { sys::llama_sampler_chain_default_params() };
    params.no_perf = true;
    // SAFETY: the parameters are complete; the result is checked.
    let mut chain = Stage::new(unsafe { sys::llama_sampler_chain_init(params) });
    for stage in stages {
        // SAFETY: both are alive and not null. The chain takes the stage over and will free it, so that it is forgotten
        // here, and it is in no other chain.
        unsafe { sys::llama_sampler_chain_add(chain.0, stage.0) };
        std::mem::forget(stage);
    }
    let mut array = Array::default();
    Box::new(move |row, _| chain.apply(&mut array, row))
}

/// Mirostat's first step: a new sampler for each call, with a seed of its own. (A reset would seed its generator again with
/// the old one.) That takes a few microseconds of milliseconds.
fn first_step(make: impl Fn(u32) -> Stage + 'static) -> Pick {
    let mut array = Array::default();
    let mut seed = SEED;
    Box::new(move |row, _| {
        seed += 1;
        make(seed).apply(&mut array, row)
    })
}

// SAFETY, of all below: these functions take numbers alone, of any value, and return a sampler that is the caller's.
// `Stage` checks that it is not null.

fn greedy() -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_greedy() })
}

fn dist() -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_dist(SEED) })
}

fn temp(t: f32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_temp(t) })
}

fn top_k(k: i32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_top_k(k) })
}

fn top_p(p: f32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_top_p(p, 1) })
}

fn min_p(p: f32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_min_p(p, 1) })
}

fn typical(p: f32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_typical(p, 1) })
}

fn mirostat_v1(vocab: i32, seed: u32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_mirostat(vocab, seed, TAU, ETA, M) })
}

fn mirostat_v2(seed: u32) -> Stage {
    // SAFETY: see above.
    Stage::new(unsafe { sys::llama_sampler_init_mirostat_v2(seed, TAU, ETA) })
}
