//! Mirostat, versions 1 and 2: sampling that holds the surprise of the text near a target (Basu et al., "Mirostat: A
//! neural text decoding algorithm that directly controls perplexity", ICLR 2021).
//!
//! A [`Session`] holds the feedback state of one generation, `mu`. Each step keeps the tokens that `mu` allows, draws
//! one and moves `mu` by the difference of the drawn token's surprise from the target:
//!
//! ```text
//! mu <- mu - eta * (surprise - tau)
//! ```
//!
//! Everything is in bits. Surprise is that of the token under the row's full distribution, before anything is dropped.
//!
//! * [`Version::V2`] keeps the tokens with at most `mu` bits of surprise. The best token always stays.
//! * [`Version::V1`] estimates the exponent of a Zipf law from the `m` best tokens, finds the `k` for which that law gives a surprise of
//!   `mu` bits, and keeps the `k` best tokens. (The paper's own script then adds 1 to `k`; this crate doesn't.)
//!
//! Steps are exact and the same everywhere, as all of this crate's decisions: a session that is given the same rows and
//! the same draws gives the same tokens and the same `mu`, bit for bit.
//!
//! # What it can reach
//!
//! A target is reached where the rows allow it: not below the surprise of their best tokens, not above their entropy. Beyond
//! that `mu` drifts, down or up by about `eta` times the gap a step, and each step is greedy or a plain draw from all tokens.
//! That is harmless: `mu` stays finite for longer than any generation lasts. But when the rows change, it has all the way to
//! come back, by `eta` times the gap that there is then. [`Session::reset`] starts anew.
//!
//! ```
//! use sortless::Scratch;
//! use sortless::mirostat::{Config, Session, Version};
//! let mut session = Session::new(Config::new(1.5)?, Version::V2);
//! let step = session.sample(&[2.0f32, 1.0, 0.5, f32::NEG_INFINITY], 0.7, &mut Scratch::new())?;
//! assert_eq!((step.token, step.kept, step.mu_before), (1, 3, 3.0));
//! assert_eq!(session.mu(), 3.0 - 0.1 * (step.surprise - 1.5));
//! # Ok::<(), sortless::Error>(())
//! ```

mod batch;
mod candidates;
mod config;
mod generate;
mod observe;
mod preview;
mod replay;
mod rule;
mod sample;
mod session;
mod state;
mod step;
mod trace;

pub use batch::SessionBatch;
pub use candidates::Candidates;
pub use config::{Config, Version};
pub use generate::{Generate, GenerateError, Generated, Stop, StopCause};
pub use preview::Preview;
pub use replay::ReplayError;
pub use session::Session;
pub use state::{Checkpoint, State};
pub use step::Step;
pub use trace::{
    Spread, SurpriseWindow, TraceAccumulator, TraceSummary, perplexity, rolling_mean, running_mean,
};

pub(crate) use rule::zipf_exponent;
