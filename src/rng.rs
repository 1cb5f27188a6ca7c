//! Counter-based uniforms: `(seed, stream, step) -> u`.
//!
//! A draw is a function of three numbers and of nothing else: no other row, no call before it, no global state. So a
//! row's draws can be taken in any order, on any thread, again after a rewind, and by any implementation of ChaCha8.
//!
//! [`ALGORITHM`] names the recipe: ChaCha8 (Bernstein's layout: 64-bit block counter, 64-bit nonce) with the seed as
//! little-endian u64 in the key's bytes 0 to 7 and zeros in the other 24, and the stream as the nonce, also
//! little-endian. Step `n` takes the keystream's 32-bit words `2n` (low half) and `2n + 1` (high half) as a 64-bit
//! word, and `u = (word >> 11) * 2^-53`.
//!
//! | seed | stream | step | u * 2^53 |
//! |---|---|---|---|
//! | 0 | 0 | 0 | `0x1ac80bf125fde0` |
//! | 0 | 0 | 1 | `0x1434a123fd170b` |
//! | 42 | 7 | 1000 | `0x053393ff8e89e6` |
//! | 2^64 - 1 | 2^64 - 1 | 2^64 - 1 | `0x1c3d22641b5396` |
//!
//! ```
//! let units = |seed, stream, step| (sortless::rng::uniform(seed, stream, step) * 2f64.powi(53)) as u64;
//! assert_eq!(units(0, 0, 0), 0x1ac80bf125fde0);
//! assert_eq!(units(0, 0, 1), 0x1434a123fd170b);
//! assert_eq!(units(42, 7, 1000), 0x053393ff8e89e6);
//! assert_eq!(units(u64::MAX, u64::MAX, u64::MAX), 0x1c3d22641b5396);
//! ```
//!
//! Every `u` is a multiple of `2^-53` from 0 to `1 - 2^-53`, and each is equally likely. It never reaches 1 as an f64;
//! rounded to an f32 it would, so don't.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The recipe's name, for logs and checkpoints. Any change to a draw would change the name.
pub const ALGORITHM: &str = "chacha8-counter-v1";

/// The draw of a step of a stream, in `[0, 1)`.
///
/// Streams of one seed are independent of each other: take one per row, and another one for every other purpose (a
/// draft model and its verifier must not share their noise).
///
/// ```
/// use sortless::rng::uniform;
/// assert_eq!(uniform(1, 2, 3), uniform(1, 2, 3));
/// assert_ne!(uniform(1, 2, 3), uniform(1, 2, 4));
/// ```
pub fn uniform(seed: u64, stream: u64, step: u64) -> f64 {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut words = ChaCha8Rng::from_seed(key);
    words.set_stream(stream);
    words.set_word_pos(2 * u128::from(step));
    unit(words.next_u64())
}

/// A draw from any `rand_core` generator: the upper 53 bits of one u64, times `2^-53`, so in `[0, 1)`.
///
/// ```
/// use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
/// let mut rng = ChaCha8Rng::from_seed([0; 32]);
/// assert_eq!(sortless::rng::from_rng(&mut rng), sortless::rng::uniform(0, 0, 0));
/// ```
#[cfg(feature = "rand")]
pub fn from_rng<R: rand_core::Rng + ?Sized>(rng: &mut R) -> f64 {
    unit(rng.next_u64())
}

#[inline]
fn unit(word: u64) -> f64 {
    const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
    (word >> 11) as f64 * UNIT
}

/// A row's draws, in order: [`uniform`] with a step that counts up.
///
/// Three numbers, so it copies, compares, checkpoints and rewinds for nothing. There is no default seed: the caller
/// chooses one and can name it afterwards.
///
/// ```
/// use sortless::Draws;
/// let mut draws = Draws::new(1234, 0);
/// let first = [draws.next_draw(), draws.next_draw()];
/// assert_eq!(draws.step(), 2);
/// draws.seek(0);
/// assert_eq!([draws.next_draw(), draws.next_draw()], first);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draws {
    seed: u64,
    stream: u64,
    step: u64,
}

impl Draws {
    /// The draws of a stream, from step 0.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { seed, stream, step: 0 }
    }

    /// The next draw. After `2^64` steps the stream begins again.
    pub fn next_draw(&mut self) -> f64 {
        let u = self.peek();
        self.step = self.step.wrapping_add(1);
        u
    }

    /// What [`next_draw`](Self::next_draw) will give. For callers who move on only once the row was good.
    pub fn peek(&self) -> f64 {
        uniform(self.seed, self.stream, self.step)
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream id.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// The step of the next draw.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Goes to a step, back or ahead.
    pub fn seek(&mut self, step: u64) {
        self.step = step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// ChaCha8's block function, written from its specification.
    fn chacha8_block(seed: u64, stream: u64, block: u64) -> [u32; 16] {
        let mut start = [0u32; 16];
        start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (at, value) in [(4, seed), (12, block), (14, stream)] {
            start[at] = value as u32;
            start[at + 1] = (value >> 32) as u32;
        }
        let mut x = start;
        let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
            for (rotate_d, rotate_b) in [(16, 12), (8, 7)] {
                x[a] = x[a].wrapping_add(x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(rotate_d);
                x[c] = x[c].wrapping_add(x[d]);
                x[b] = (x[b] ^ x[c]).rotate_left(rotate_b);
            }
        };
        for _ in 0..4 {
            for i in 0..4 {
                quarter(i, i + 4, i + 8, i + 12);
            }
            for i in 0..4 {
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
            }
        }
        core::array::from_fn(|i| x[i].wrapping_add(start[i]))
    }

    fn expected(seed: u64, stream: u64, step: u64) -> f64 {
        let words = chacha8_block(seed, stream, step / 8);
        let at = (step % 8) as usize * 2;
        let word = u64::from(words[at + 1]) << 32 | u64::from(words[at]);
        (word >> 11) as f64 / 9_007_199_254_740_992.0
    }

    #[test]
    fn the_test_s_own_chacha8_gives_the_published_keystream() {
        // ChaCha8 with a 256-bit key, all zero, and a zero nonce.
        let bytes: Vec<u8> =
            chacha8_block(0, 0, 0).into_iter().flat_map(u32::to_le_bytes).collect();
        let published = [
            0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6, 0x7f, 0x5b, 0xb8, 0xe8, 0x1f, 0x09,
            0xa5, 0xa1, 0x2c, 0x84, 0x0e, 0xc3, 0xce, 0x9a, 0x7f, 0x3b, 0x18, 0x1b, 0xe1, 0x88,
            0xef, 0x71, 0x1a, 0x1e,
        ];
        assert_eq!(bytes[..32], published);
    }

    #[test]
    fn draws_are_chacha8_s_by_an_independent_implementation() {
        let ids = [0, 1, 7, 42, 0x0123_4567_89ab_cdef, 1 << 32, u64::MAX];
        let steps = (0..200).chain([1000, 1 << 31, (1 << 32) + 5, 1 << 35, u64::MAX - 8, u64::MAX]);
        for step in steps {
            for seed in ids {
                for stream in ids {
                    assert_eq!(
                        uniform(seed, stream, step),
                        expected(seed, stream, step),
                        "({seed}, {stream}, {step})"
                    );
                }
            }
        }
    }

    #[test]
    fn g04_a_draw_never_reaches_one() {
        assert_eq!(unit(u64::MAX), 1.0 - 2f64.powi(-53));
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(unit(0), 0.0);
        assert_eq!(unit(2047), 0.0);
        assert_eq!(unit(2048), 2f64.powi(-53));
    }

    #[test]
    fn g10_the_counter_advances() {
        let mut draws = Draws::new(5, 0);
        let seen: HashSet<u64> = (0..100).map(|_| draws.next_draw().to_bits()).collect();
        assert_eq!(seen.len(), 100);
        assert_eq!(draws.step(), 100);
    }

    #[test]
    fn i01_a_row_s_draws_do_not_depend_on_its_neighbours() {
        let alone = |stream| {
            let mut draws = Draws::new(9, stream);
            [(); 20].map(|()| draws.next_draw())
        };
        let mut rows: Vec<Draws> = (0..6).map(|stream| Draws::new(9, stream)).collect();
        let mut mixed = vec![Vec::new(); 6];
        for step in 0..20 {
            for i in 0..6 {
                // Another order in every round, and a neighbour that draws twice as often.
                let row = (i * 5 + step) % 6;
                mixed[row].push(rows[row].next_draw());
            }
            Draws::new(9, 6).next_draw();
            uniform(1, 1, 1);
        }
        for (stream, got) in mixed.iter().enumerate() {
            assert_eq!(got[..], alone(stream as u64), "stream {stream}");
        }
    }

    #[test]
    fn i03_seeds_differ_and_one_seed_repeats() {
        let draws = |seed| {
            let mut draws = Draws::new(seed, 0);
            [(); 8].map(|()| draws.next_draw().to_bits())
        };
        let outputs: HashSet<_> = (0..5).map(draws).collect();
        assert_eq!(outputs.len(), 5);
        assert_eq!(draws(3), draws(3));
    }

    #[test]
    fn i05_streams_share_no_noise() {
        let draws: HashSet<u64> = (0..2)
            .flat_map(|stream| (0..1000).map(move |step| uniform(1, stream, step).to_bits()))
            .collect();
        assert_eq!(draws.len(), 2000);
        // Seed and stream are not interchangeable either.
        assert_ne!(uniform(1, 2, 0), uniform(2, 1, 0));
    }

    #[test]
    fn seeking_rewinds_and_skips() {
        let mut draws = Draws::new(11, 3);
        let all: Vec<f64> = (0..40).map(|_| draws.next_draw()).collect();
        for step in [39, 0, 17, 16, 15, 8, 7] {
            draws.seek(step as u64);
            assert_eq!(draws.peek(), all[step]);
            assert_eq!(draws.step(), step as u64);
            assert_eq!(draws.next_draw(), all[step]);
            assert_eq!(draws.step(), step as u64 + 1);
        }
        assert_eq!((draws.seed(), draws.stream()), (11, 3));
        draws.seek(u64::MAX);
        draws.next_draw();
        assert_eq!(draws, Draws::new(11, 3));
    }

    #[test]
    fn draws_are_uniform_enough() {
        // 100,000 draws in 100 bins: chi-squared with 99 degrees of freedom; 180 is beyond 6 sigma.
        let mut bins = [0f64; 100];
        for step in 0..100_000 {
            bins[(uniform(2024, 1, step) * 100.0) as usize] += 1.0;
        }
        let chi: f64 = bins.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum();
        assert!((40.0..180.0).contains(&chi), "{chi}");
    }

    #[cfg(feature = "rand")]
    #[test]
    fn any_generator_gives_a_draw_below_one() {
        struct Constant(u64);
        impl rand_core::TryRng for Constant {
            type Error = core::convert::Infallible;
            fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
                Ok(self.0 as u32)
            }
            fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
                Ok(self.0)
            }
            fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
                bytes.fill(self.0 as u8);
                Ok(())
            }
        }
        assert_eq!(from_rng(&mut Constant(u64::MAX)), 1.0 - 2f64.powi(-53));
        assert_eq!(from_rng(&mut Constant(0)), 0.0);
        let dynamic: &mut dyn rand_core::Rng = &mut Constant(1 << 63);
        assert_eq!(from_rng(dynamic), 0.5);
    }
}
