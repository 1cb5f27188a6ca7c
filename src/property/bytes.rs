//! Reads a case off a byte string. Any string gives a case: past its end everything is zero, and zero always chooses the
//! plainest thing, so shorter strings are simpler cases.

/// The rest of a byte string.
#[derive(Clone, Debug)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn u8(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        match n {
            0..=1 => 0,
            2..=0x100 => usize::from(self.u8()) % n,
            0x101..=0x1_0000 => usize::from(self.u16()) % n,
            _ => self.u32() as usize % n,
        }
    }

    /// One of a list that is not empty.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Whether something happens that does so `n` times in 256.
    pub fn chance(&mut self, n: u8) -> bool {
        self.u8() > u8::MAX - n
    }

    /// A few steps up or down.
    pub fn step(&mut self) -> i32 {
        self.of(&[0, 0, -1, 1, 0, -1, 1, 2, -2, 3, -3])
    }
}

/// A stretch of pseudorandom numbers out of one seed (SplitMix64): long rows out of few bytes.
#[derive(Clone, Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.u64() % n.max(1) as u64) as usize
    }
}

/// The f32 that lies `steps` floats above this one (below, if negative).
pub(super) fn step_f32(mut value: f32, steps: i32) -> f32 {
    for _ in 0..steps.unsigned_abs() {
        value = if steps > 0 { value.next_up() } else { value.next_down() };
    }
    value
}

/// The f64 that lies `steps` floats above this one (below, if negative).
pub(super) fn step_f64(mut value: f64, steps: i32) -> f64 {
    for _ in 0..steps.unsigned_abs() {
        value = if steps > 0 { value.next_up() } else { value.next_down() };
    }
    value
}
