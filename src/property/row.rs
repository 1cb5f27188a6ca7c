//! Rows that are hard on purpose.

use super::bytes::{Bytes, Random, step_f32};
use crate::element::Element;
use core::fmt::Debug;
use half::{bf16, f16};

/// An element type that rows can be made in.
pub(super) trait Make: Element + Debug {
    const NAME: &'static str;

    /// The nearest value.
    fn make(value: f32) -> Self;

    /// The value with these bits, the low ones.
    fn pattern(bits: u32) -> Self;

    fn bits(self) -> u32;
}

impl Make for f32 {
    const NAME: &'static str = "f32";

    fn make(value: f32) -> Self {
        value
    }

    fn pattern(bits: u32) -> Self {
        Self::from_bits(bits)
    }

    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Make for f16 {
    const NAME: &'static str = "f16";

    fn make(value: f32) -> Self {
        Self::from_f32(value)
    }

    fn pattern(bits: u32) -> Self {
        Self::from_bits(bits as u16)
    }

    fn bits(self) -> u32 {
        u32::from(self.to_bits())
    }
}

impl Make for bf16 {
    const NAME: &'static str = "bf16";

    fn make(value: f32) -> Self {
        Self::from_f32(value)
    }

    fn pattern(bits: u32) -> Self {
        Self::from_bits(bits as u16)
    }

    fn bits(self) -> u32 {
        u32::from(self.to_bits())
    }
}

/// Where a row's values lie: its maximum, unless something in it is larger, and the temperature it was made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub max: f32,
    pub temperature: f32,
}

impl Frame {
    pub fn read(b: &mut Bytes<'_>, temperature: f32) -> Self {
        // Greedy has no scale of its own.
        let temperature = if temperature.is_normal() { temperature.abs() } else { 1.0 };
        let max = match b.below(14) {
            0..=3 => 0.0,
            4 => 10.0,
            5 => 25.375,
            6 => -900.0,
            7 => -0.0,
            8 => b.of(&[f32::MAX, f32::MIN, 65504.0, -65504.0, 3.3e38]),
            9 => b.of(&[f32::MIN_POSITIVE, 1e-40, -1e-40, f32::from_bits(1), 6e-8]),
            10 => f32::from(b.u8()) - 128.0,
            11 => b.of(&[4096.0, 2839.0, -2840.0, 1e6]),
            12 => temperature * 20.0,
            _ => f32::from_bits(b.u32()),
        };
        let max = if max.is_finite() { max } else { 1.0 };
        Self { max, temperature }
    }

    /// The logit whose exponent argument is nearest to `x`, as far as floats go.
    fn logit(&self, x: f64) -> f32 {
        (f64::from(self.max) + x * f64::from(self.temperature)) as f32
    }

    /// The argument, read off, of a logit that lies on an edge of the code.
    fn edge(b: &mut Bytes<'_>) -> f64 {
        use core::f64::consts::LN_2;
        match b.below(6) {
            // Powers of two: exponents, and at 44 the mass floor.
            0 => -(b.below(46) as f64) * LN_2,
            1 => -44.0 * LN_2,
            2 => -43.0 * LN_2,
            // The cut-off of the weight function.
            3 => f64::from(crate::kernels::CUT_OFF),
            // Steps inside a power of two.
            4 => {
                let mantissa = 1.0 + b.below(32) as f64 / 32.0;
                libm::log(mantissa) - (1 + b.below(44)) as f64 * LN_2
            }
            _ => 0.0,
        }
    }
}

/// The length of a row: around lanes (16), batches and blocks (128), and where the samplers change their way (1024, as
/// many blocks as a head has tokens, 64 and 512).
pub(super) fn length(b: &mut Bytes<'_>, longest: usize) -> usize {
    let near = |n: usize, b: &mut Bytes<'_>| n.saturating_add_signed(b.step() as isize);
    let len = match b.u8() {
        0..=79 => 1 + b.below(24),
        80..=109 => near(16 * (1 + b.below(12)), b),
        110..=159 => near(128 * (1 + b.below(12)), b),
        160..=199 => near(1024, b),
        200..=229 => near(2048 * (1 + b.below(2)), b),
        230..=243 => near(128 * 64, b),
        244..=250 => 1 + b.below(12_000),
        // Rarely: one of these takes the time of a thousand short ones.
        251 => near(128 * 512, b),
        252 => 1 + b.below(70_000),
        253..=255 => 0,
    };
    len.min(longest)
}

/// A row of this length, in pieces of different kinds.
pub(super) fn row<E: Make>(b: &mut Bytes<'_>, frame: Frame, len: usize) -> Vec<E> {
    let mut row: Vec<E> = Vec::with_capacity(len);
    while row.len() < len {
        let left = len - row.len();
        let last = b.is_empty();
        let n = match b.below(8) {
            // Nothing more to read, or so it is to be: the rest in one piece.
            _ if last => left,
            0..=2 => 1,
            3 => 1 + b.below(16),
            4 => 1 + b.below(300),
            5 => 128,
            6 => 1 + left / 2,
            _ => left,
        };
        piece(b, frame, n.min(left), &mut row);
    }
    let Some(end) = len.checked_sub(1) else { return row };
    // The frame holds only if its maximum is there.
    if b.chance(190) {
        let at = [0, end, b.below(len), len / 2][b.below(4)];
        row[at] = E::make(frame.max);
    }
    // A few swaps, so that order and position have nothing to do with each other.
    if b.chance(100) {
        let mut random = Random(b.u64());
        for i in (1..len).rev() {
            row.swap(i, random.below(i + 1));
        }
    }
    if b.chance(14) {
        for _ in 0..1 + b.below(3) {
            let at = [0, end, b.below(len), b.below(len)][b.below(4)];
            row[at] = match b.below(4) {
                0 => E::make(f32::NAN),
                1 => E::make(f32::INFINITY),
                2 => E::make(-f32::NAN),
                // Signalling and quiet NaN with any payload, or whatever else these bits are.
                _ => E::pattern(b.of(&[0x7f80_7c01, 0xff80_fc01, 0x7fc0_7f81, 0xffff_ffff])),
            };
        }
    }
    row
}

fn piece<E: Make>(b: &mut Bytes<'_>, frame: Frame, n: usize, row: &mut Vec<E>) {
    let spread = |b: &mut Bytes<'_>| b.of(&[1.0, 5.0, 30.0, 1e-3, 75.0, 1e-6, 45.0]);
    match b.below(14) {
        // Ties at an even distance from the maximum.
        0 => {
            let value = E::make(frame.logit(-f64::from(b.u8()) / 4.0));
            row.extend(core::iter::repeat_n(value, n));
        }
        // Masked.
        1 => row.extend(core::iter::repeat_n(E::MASKED, n)),
        // Flat noise below the maximum.
        2 => {
            let (spread, mut random) = (spread(b), Random(b.u64()));
            row.extend((0..n).map(|_| E::make(frame.logit(-spread * random.unit()))));
        }
        // Noise that thins out toward the maximum, as in a real row.
        3 => {
            let (spread, mut random) = (spread(b), Random(b.u64()));
            let mut value = || E::make(frame.logit(spread * libm::log(random.unit() + 1e-9)));
            row.extend((0..n).map(|_| value()));
        }
        // Neighbours: weights one unit in the last place apart, equal ones from different logits.
        4 => {
            let x = if b.chance(128) { Frame::edge(b) } else { -f64::from(b.u8()) / 16.0 };
            let (mut value, down) = (frame.logit(x), b.chance(128));
            for _ in 0..n {
                row.push(E::make(value));
                value = if down { value.next_down() } else { value.next_up() };
                value = value.clamp(f32::MIN, f32::MAX);
            }
        }
        // On an edge, or just beside it.
        5 | 6 => {
            let value = frame.logit(Frame::edge(b));
            for _ in 0..n {
                let steps = b.step();
                row.push(E::make(step_f32(value, steps)));
            }
        }
        // Zeros of both signs, which are equal.
        7 => {
            let mut random = Random(b.u64());
            let mut zero = || E::make(if random.u64() & 1 == 0 { 0.0 } else { -0.0 });
            row.extend((0..n).map(|_| zero()));
        }
        // Ties with what is there already.
        8 if !row.is_empty() => {
            let start = b.below(row.len());
            for i in 0..n {
                row.push(row[start + i % (row.len() - start)]);
            }
        }
        // Few values, many ties.
        9 => {
            let mut random = Random(b.u64());
            let values = [0.0, -0.1, -0.5, -1.0, -3.0, -30.0].map(|x| E::make(frame.logit(x)));
            row.extend((0..n).map(|_| values[random.below(values.len())]));
        }
        // Any finite bits.
        10 => {
            let mut random = Random(b.u64());
            for _ in 0..n {
                let value = E::pattern(random.u64() as u32);
                row.push(if value.fault().is_none() { value } else { E::MASKED });
            }
        }
        // Values one by one.
        11 => {
            for _ in 0..n {
                row.push(E::make(frame.logit(-f64::from(b.u16()) / 1024.0)));
            }
        }
        // Masked by a finite number, as engines do.
        12 => {
            let value = E::make(b.of(&[-1000.0, -1e9, f32::MIN]));
            let value = if value.fault().is_none() { value } else { E::MASKED };
            row.extend(core::iter::repeat_n(value, n));
        }
        // A peak with a long flat tail below it.
        _ => {
            let (depth, mut random) = (f64::from(b.u8()) / 8.0, Random(b.u64()));
            row.extend((0..n).map(|_| E::make(frame.logit(-depth - random.unit()))));
        }
    }
}

/// A row's values in full where it is short, else enough to make it again together with the bytes.
pub(super) fn show<E: Make>(row: &[E]) -> String {
    let shown = row.len().min(80);
    let values: Vec<String> =
        row[..shown].iter().map(|v| format!("{:?}={:#x}", v.to_f32(), v.bits())).collect();
    let more = if shown < row.len() { ", ..." } else { "" };
    format!("{} row of {}: [{}{more}]", E::NAME, row.len(), values.join(", "))
}
