//! Rows by shape: the ones that the tests, the benchmarks and the command-line tool share.
//!
//! Not a part of the interface. A row is a function of shape, length and seed, the same on every machine.

/// SplitMix64: small, and the same numbers everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence by its seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In `0..n`, for small n (the bias is far below what could be seen); 0 for none.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Normal(0, 1), by Box and Muller. libm, not the platform's functions, so that golden values hold everywhere.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }
}

/// What a language model's row looks like: a Normal(0, 2.5) bulk and up to 30 tokens at `18 - 1.2 ln(rank)`, in
/// random places.
pub fn llm(v: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut row: Vec<f32> = (0..v).map(|_| (2.5 * random.normal()) as f32).collect();
    for rank in 1..=30.min(v) {
        row[random.below(v)] = (18.0 - 1.2 * libm::log(rank as f64)) as f32;
    }
    row
}

/// Normal(0, 1): most of the vocabulary matters.
pub fn flat(v: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..v).map(|_| random.normal() as f32).collect()
}

/// As `llm`, rounded to steps of 1/8: many ties.
pub fn ties(v: usize, seed: u64) -> Vec<f32> {
    let step = |l: f32| (l * 8.0).round() / 8.0;
    llm(v, seed).into_iter().map(step).collect()
}

/// One value everywhere.
pub fn equal(v: usize, value: f32) -> Vec<f32> {
    vec![value; v]
}

/// That many peaks (at most as many as there are tokens) of 20 in random places, over -100.
pub fn plateau(v: usize, peaks: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut row = vec![-100.0; v];
    let mut left = peaks.min(v);
    while left > 0 {
        let place = &mut row[random.below(v)];
        left -= usize::from(*place < 0.0);
        *place = 20.0;
    }
    row
}

/// As `llm`, with about half of the tokens masked; the last one never is.
pub fn half_masked(v: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(!seed);
    let mut row = llm(v, seed);
    let last = v.saturating_sub(1);
    for l in row.iter_mut().take(last) {
        if random.below(2) == 0 {
            *l = f32::NEG_INFINITY;
        }
    }
    row
}
