//! Exact, deterministic token sampling from a row of logits, without sorting the vocabulary.

#![forbid(unsafe_code)]

mod batch;
mod element;
mod error;
mod filter;
#[doc(hidden)]
pub mod floors;
mod fraction;
mod full;
mod head;
pub mod kernels;
mod level;
#[doc(hidden)]
pub mod oracle;
mod params;
mod pick;
mod rank;
pub mod reference;
mod report;
mod ring;
pub mod rng;
mod row;
mod sampler;
mod select;

pub use batch::{Batch, Rows};
pub use element::Element;
pub use error::{Error, NotFinite, Number};
pub use level::Level;
pub use params::SamplingParams;
pub use pick::{Alternative, Pick, Report};
pub use rng::Draws;
#[doc(hidden)]
pub use sampler::{Path, Paths};
pub use sampler::{Sampler, Scratch};

/// The longest row, `2^20` tokens: the sum of that many masses still fits 64 bits.
pub const MAX_VOCAB: usize = 1 << 20;
