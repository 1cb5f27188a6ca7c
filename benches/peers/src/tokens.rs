//! The crate token-sampling.

use crate::peer::Pick;
use token_sampling::{Rng, SamplerChain};

/// The one draw of a call, as the bits that the crate turns into the same number.
struct Draw(f64);

impl Rng for Draw {
    fn next_u64(&mut self) -> u64 {
        ((self.0 * (1u64 << 53) as f64) as u64) << 11
    }
}

/// A chain; it fills its own list of candidates, 12 bytes a token, whose memory is used again. Resetting it costs nothing
/// and starts Mirostat anew.
pub fn chain(mut chain: SamplerChain) -> Pick {
    Box::new(move |row, u| {
        chain.reset();
        chain.sample(row, &[], &mut Draw(u)).expect("the rows are good")
    })
}
