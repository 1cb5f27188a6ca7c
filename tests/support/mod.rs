//! What the integration tests share: levels, element types, a generator, row shapes, the real rows.
#![allow(dead_code)]

use half::{bf16, f16};
use sortless::{Element, Level};
use std::fmt;
use std::io::{BufReader, Write};
use std::sync::Once;

/// The levels to test: all that this machine has, or the one that `SORTLESS_LEVEL` names. Which ones they are is
/// printed once a test binary.
pub fn levels() -> Vec<Level> {
    let levels = match Level::from_env() {
        Ok(Some(level)) => vec![level],
        Ok(None) => Level::tested().collect(),
        Err(error) => panic!("{error}"),
    };
    static PRINTED: Once = Once::new();
    PRINTED.call_once(|| {
        let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
        say(format_args!("levels: {}", names.join(", ")));
    });
    levels
}

/// Prints a line to stderr that is seen without `--nocapture`, too.
pub fn say(line: fmt::Arguments) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Rows longer than this are left out where code runs under emulation, unless `SORTLESS_FULL` is set.
pub fn longest_row() -> usize {
    let full = std::env::var_os("SORTLESS_FULL").is_some_and(|v| !v.is_empty());
    if cfg!(target_arch = "x86_64") || full { sortless::MAX_VOCAB } else { 16_384 }
}

/// An element type that tests can make from f32 (rounded to nearest) and from bits.
pub trait Make: Element {
    const NAME: &'static str;
    fn make(value: f32) -> Self;
    /// The element with these bits; the low 16 for the half types.
    fn from_pattern(bits: u32) -> Self;
}

impl Make for f32 {
    const NAME: &'static str = "f32";
    fn make(value: f32) -> Self {
        value
    }
    fn from_pattern(bits: u32) -> Self {
        f32::from_bits(bits)
    }
}

impl Make for f16 {
    const NAME: &'static str = "f16";
    fn make(value: f32) -> Self {
        f16::from_f32(value)
    }
    fn from_pattern(bits: u32) -> Self {
        f16::from_bits(bits as u16)
    }
}

impl Make for bf16 {
    const NAME: &'static str = "bf16";
    fn make(value: f32) -> Self {
        bf16::from_f32(value)
    }
    fn from_pattern(bits: u32) -> Self {
        bf16::from_bits(bits as u16)
    }
}

/// A row in another element type, each logit rounded to nearest.
pub fn convert<E: Make>(row: &[f32]) -> Vec<E> {
    row.iter().map(|&v| E::make(v)).collect()
}

pub use sortless::shapes::{Random, equal, flat, half_masked, llm, plateau, ties};

/// One peak of 20 over -100.
pub fn spike(v: usize, seed: u64) -> Vec<f32> {
    plateau(v, 1, seed)
}

/// `-(i mod 83) / 3`: every value again and again.
pub fn repeated_tail(v: usize) -> Vec<f32> {
    (0..v).map(|i| -((i % 83) as f32) / 3.0).collect()
}

/// Only one token is allowed.
pub fn one_token(v: usize, seed: u64) -> Vec<f32> {
    few_tokens(v, &[-3.5], seed)
}

/// Only two tokens are allowed.
pub fn two_tokens(v: usize, seed: u64) -> Vec<f32> {
    few_tokens(v, &[1.25, 0.75], seed)
}

fn few_tokens(v: usize, logits: &[f32], seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut row = vec![f32::NEG_INFINITY; v];
    for &logit in logits.iter().take(v) {
        let mut place = random.below(v);
        while row[place] != f32::NEG_INFINITY {
            place = (place + 1) % v;
        }
        row[place] = logit;
    }
    row
}

/// Magnitudes from the smallest to the largest that E has, of both signs, with both zeros and masked tokens.
pub fn huge_range<E: Make>(v: usize, seed: u64) -> Vec<E> {
    let mut random = Random::new(seed);
    let pattern = |bits: u64| E::from_pattern((bits >> 32) as u32);
    let mut row = Vec::with_capacity(v);
    while row.len() < v {
        let value = pattern(random.bits());
        let wide = value.to_f32();
        if !wide.is_nan() && wide != f32::INFINITY {
            row.push(value);
        }
    }
    row
}

/// Every shape by its name, at one length, in one element type.
pub fn shapes<E: Make>(v: usize, seed: u64) -> Vec<(&'static str, Vec<E>)> {
    let mut rows: Vec<(&'static str, Vec<E>)> = [
        ("llm", llm(v, seed)),
        ("flat", flat(v, seed)),
        ("ties", ties(v, seed)),
        ("equal", equal(v, 1.5)),
        ("spike", spike(v, seed)),
        ("plateau", plateau(v, 50, seed)),
        ("repeated tail", repeated_tail(v)),
        ("half masked", half_masked(v, seed)),
        ("one token", one_token(v, seed)),
        ("two tokens", two_tokens(v, seed)),
    ]
    .into_iter()
    .map(|(name, row)| (name, convert(&row)))
    .collect();
    rows.push(("huge range", huge_range(v, seed)));
    rows
}

/// The real rows of `tests/data`, see the README there.
pub struct Whisper {
    pub vocab: usize,
    pub f16: Vec<Vec<f16>>,
    pub f32: Vec<Vec<f32>>,
    /// For each f32 row, the index of the f16 row that it rounds to.
    pub twins: Vec<usize>,
    /// The engine's greedy token for each f16 row, where one was recorded.
    pub greedy: Vec<Option<usize>>,
    /// Each f16 row's number in the original dump.
    pub original_rows: Vec<usize>,
    pub suppress_ids: Vec<usize>,
}

/// Loads them.
pub fn whisper() -> Whisper {
    let json: serde_json::Value = serde_json::from_reader(open("whisper.json")).unwrap();
    let integers = |key: &str| -> Vec<i64> {
        let list = json[key].as_array().expect(key);
        list.iter().map(|v| v.as_i64().expect(key)).collect()
    };
    let indices = |key: &str| -> Vec<usize> {
        let list = integers(key).into_iter();
        list.map(|v| usize::try_from(v).expect(key)).collect()
    };
    let greedy = integers("engine_greedy_token");
    Whisper {
        vocab: json["vocab"].as_u64().unwrap() as usize,
        f16: npy_rows("whisper_f16.npy"),
        f32: npy_rows("whisper_f32.npy"),
        twins: indices("f32_rows_are_f16_rows"),
        greedy: greedy.iter().map(|&t| usize::try_from(t).ok()).collect(),
        original_rows: indices("original_rows"),
        suppress_ids: indices("suppress_ids"),
    }
}

/// A token that is the end of text, which is what the rows without a recorded token say.
pub const END_OF_TEXT: usize = 50_256;

fn open(name: &str) -> BufReader<std::fs::File> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    match std::fs::File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) => panic!("{path}: {error}"),
    }
}

fn npy_rows<E: npyz::Deserialize + Clone>(name: &str) -> Vec<Vec<E>> {
    let file = npyz::NpyFile::new(open(name)).unwrap();
    let &[_, width] = file.shape() else {
        panic!("{name}: not a matrix");
    };
    assert_eq!(file.order(), npyz::Order::C, "{name}");
    let values: Vec<E> = file.into_vec().unwrap();
    let rows = values.chunks_exact(width as usize);
    rows.map(<[E]>::to_vec).collect()
}
