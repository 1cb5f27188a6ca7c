//! What a caller does to logits before sampling: masks, biases, penalties, temperature.
//!
//! Plain functions over a row of `f32` logits, in place. A masked token is `-inf` and stays masked whatever comes. After any
//! error the row is what it was before. None of them checks the row for NaN or +inf: the sampler does.
//!
//! Each costs what its list or mask holds; only dense masks, dense biases, temperature and allow-lists, which write every token,
//! go over the whole row. Those that need to know an id again keep a [`Tally`], whose memory is reused.
//!
//! Order matters: masks go first, so that no later truncation can leave only forbidden tokens, and penalties before a temperature.
//! [`apply`] runs several in a row, all or none, and [`apply_batch`] does so for many rows.
//!
//! ```
//! use sortless::process::{Tally, block, repetition_penalty};
//! let (mut row, mut tally) = ([2.0f32, -2.0, 1.0, 0.5], Tally::new());
//! repetition_penalty(&mut row, &[1, 0, 1], 1.5, &mut tally)?;
//! assert_eq!(row, [2.0 / 1.5, -3.0, 1.0, 0.5]);
//! block(&mut row, &[2, 2], &mut tally)?;
//! assert_eq!(row[2], f32::NEG_INFINITY);
//! # Ok::<(), sortless::Error>(())
//! ```

mod bias;
mod mask;
mod ops;
mod penalty;
mod tally;
mod temperature;

pub use bias::{bias, sparse_bias};
pub use mask::{allow, block, mask, packed_mask};
pub use ops::{Op, apply, apply_batch};
pub use penalty::{presence_frequency_penalty, repetition_penalty};
pub use tally::Tally;
pub use temperature::temperature;

/// A masked token's logit.
const MASKED: f32 = f32::NEG_INFINITY;
