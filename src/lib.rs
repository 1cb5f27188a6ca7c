//! Exact, deterministic token sampling from a row of logits, without sorting the vocabulary.
//!
//! A [`Sampler`] turns a row of `f32`, `f16` or `bf16` logits and a draw `u` into a token: greedy, temperature, top-k,
//! top-p, min-p, epsilon, typical, or any combination of them ([`SamplingParams`]). [`Batch`] does it for many rows,
//! [`Draws`] makes draws that can be replayed, [`mirostat`] holds the surprise of a text near a target, and
//! [`reference`](mod@reference) is the rule as plain code. Two promises:
//!
//! 1. **Exact.** The token is the one that a plain full sort picks: every row, every parameter, every draw.
//! 2. **The same everywhere.** The same logits, parameters and draw give the same token and the same report, bit for
//!    bit, on every instruction set, lane width, thread count, batch size and row order.
//!
//! ```
//! use sortless::{Draws, Report, Sampler, SamplingParams, Scratch};
//!
//! let sampler = Sampler::new(SamplingParams::new().with_temperature(0.7).with_top_k(2))?;
//! let logits = [1.0f32, 4.0, f32::NEG_INFINITY, 3.5]; // -inf is a masked token
//! let mut draws = Draws::new(2024, 0);
//! let mut scratch = Scratch::new(); // reuse it: a warm one allocates nothing
//!
//! let pick = sampler.sample(&logits, draws.peek(), &mut scratch)?;
//! assert_eq!(pick.kept, Some(2));
//!
//! let mut report = Report::default();
//! sampler.report(&logits, draws.next_draw(), 2, &mut scratch, &mut report)?;
//! assert_eq!(report.chosen.token, pick.token);
//! assert_eq!(report.alternatives[0].token, 1);
//! # Ok::<(), sortless::Error>(())
//! ```
//!
//! # Why the results are the same
//!
//! A token's weight is `E((l - max) / T)`, where `E` is this crate's own exp; its mass is that weight in units of `2^-43`,
//! rounded to an integer ([`kernels::weight`], [`kernels::mass`]). Every cut and every draw compares exact sums of masses
//! along the rank: larger logits first, equal ones by token id. Integer sums have no order, so none can change a result.
//!
//! `E` is monotone, exactly 1 at 0 and exactly 0 below [`kernels::CUT_OFF`], and has the same bits on every level. Its
//! largest error over every f32 in `[-69, 0]` is 0.990942 ULP (measured by `tests/weight.rs`, which runs all of them).
//! Reported logs come from the `libm` crate: another version of it could change their last bits, but no sampler's token.
//! (Mirostat's feedback is made of such logs.)
//! All of this holds in Rust's default floating-point environment.
//!
//! # How a decision is made
//!
//! 1. One pass finds the maximum, the largest logit of each block, and anything that is not finite.
//! 2. The best tokens are collected and sorted; where these and bounds from the block maxima settle it, that was all.
//! 3. Else a cheap pass with a proven error, over the blocks that weigh most and then over the others, brackets the total
//!    mass, and if both ends agree, they decide.
//! 4. Else an exact pass gives the total mass.
//! 5. Where that goes deeper than the best tokens, a count of tokens over a grid of logits, or of a sample of them, says where
//!    to look, an exact pass gives the masses above those places, and only the tokens there are selected from.
//!
//! # Kernels
//!
//! The passes over a row are public in [`kernels`]: [`max`](kernels::max), [`argmax_first`](kernels::argmax_first),
//! [`exp_weights`](kernels::exp_weights) and [`exp_mass`](kernels::exp_mass), [`collect`](kernels::collect),
//! [`exponent_histogram`](kernels::exponent_histogram).
//!
//! # Levels
//!
//! | level | needs | in CI |
//! |---|---|---|
//! | `avx512` | x86-64-v4, feature `avx512` | compiled; run only where the CPU has it |
//! | `avx2` | x86-64-v3 | run |
//! | `neon` | aarch64 | run, emulated |
//! | `simd128` | wasm32 built with `-C target-feature=+simd128` | run |
//! | `scalar` | nothing | run |
//!
//! The best one is chosen at run time; [`Level`] lists them and forces one, for tests and benchmarks.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `rayon` | yes | batches that spread over threads; without it a batch runs on the calling thread |
//! | `rand` | no | `rng::from_rng`: draws from any `rand_core` generator |
//! | `avx512` | no | the AVX-512 level |
//! | `serde` | no | `Serialize` and `Deserialize` for Mirostat's configuration, state and steps |
//! | `json` | no | Mirostat as JSON requests and responses |
//! | `cli` | no | the `sortless` command |
//!
//! # Errors
//!
//! Nothing here panics on any input. [`Error`] says what is wrong with a row, a draw or a parameter; after it nothing has
//! moved, and in a batch the other rows have their results.
#![cfg_attr(doctest, doc = "\n# The README")]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod batch;
pub mod diagnostics;
mod distribution;
mod element;
mod error;
mod filter;
#[doc(hidden)]
pub mod floors;
mod fraction;
mod full;
mod head;
#[cfg(feature = "json")]
pub mod json;
pub mod kernels;
mod level;
mod measure;
pub mod mirostat;
#[doc(hidden)]
pub mod oracle;
mod params;
mod park_miller;
mod paths;
mod pick;
mod prepared;
pub mod process;
#[doc(hidden)]
pub mod property;
mod rank;
pub mod reference;
mod report;
mod ring;
pub mod rng;
mod row;
mod sampler;
mod select;
#[doc(hidden)]
pub mod shapes;
mod sketch;
mod source;
mod total;
mod weighing;
mod weights;

pub use batch::{Batch, Rows};
pub use distribution::{draw_from, normalize_weights, probabilities, surprise};
pub use element::Element;
pub use error::{Error, NotFinite, Number};
pub use level::Level;
pub use params::SamplingParams;
pub use park_miller::ParkMiller;
#[doc(hidden)]
pub use paths::{Path, Paths};
pub use pick::{Alternative, Pick, Report};
pub use prepared::PreparedRow;
pub use rng::Draws;
pub use sampler::{Sampler, Scratch};

/// The longest row, `2^20` tokens: the sum of that many masses still fits 64 bits.
pub const MAX_VOCAB: usize = 1 << 20;
