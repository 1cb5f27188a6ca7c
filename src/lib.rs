//! Exact, deterministic token sampling from a row of logits, without sorting the vocabulary.

mod element;
mod error;
pub mod kernels;
mod level;
mod params;
mod pick;
mod report;
pub mod rng;

pub use element::Element;
pub use error::{Error, NotFinite, Number};
pub use level::Level;
pub use params::SamplingParams;
pub use pick::{Alternative, Pick, Report};
pub use rng::Draws;

/// The longest row, `2^20` tokens: the sum of that many masses still fits 64 bits.
pub const MAX_VOCAB: usize = 1 << 20;
