//! Decodes a batch of rows, each with its own sampling parameters, and measures tokens per second:
//!
//! ```text
//! cargo run --release --example batch_decode                      the real rows of tests/data, then synthetic ones
//! cargo run --release --example batch_decode -- --rows FILE.npy   your own: one row or a matrix of f16 or f32 logits
//! ```
//!
//! `--bf16` takes a file of u16 as bf16 bits. The variable `SORTLESS_LEVEL` forces an instruction set. Exit codes: 0; 1 if
//! a row couldn't be decoded; 2 if the file, an argument or the level can't be used.

// The same reader as the command's, of which this uses a part.
#[allow(dead_code)]
#[path = "../src/bin/sortless/npy.rs"]
mod npy;

use half::{bf16, f16};
use npy::{Array, Decode, Kind, Layout, Wanted};
use sortless::{Batch, Element, Error, Level, MAX_VOCAB, Pick, Report, Rows, Sampler};
use sortless::{SamplingParams, rng};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: batch_decode [--rows FILE.npy [--bf16]]";
/// The draws' seed: row i takes step 0 of stream i.
const SEED: u64 = 2024;
/// Where the real rows are.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const SYNTHETIC_VOCABS: [usize; 2] = [151_936, 250_000];
const SYNTHETIC_ROWS: usize = 32;
/// The least time that a measurement takes.
const MEASURED: Duration = Duration::from_millis(300);

enum Failure {
    /// The reader of the output went away.
    Closed,
    /// One line for stderr.
    Told(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Told(format!("can't write: {error}")),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Told(text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error.to_string())
    }
}

fn main() -> ExitCode {
    match run(&mut io::stdout().lock()) {
        Ok(0) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("batch_decode: {failed} row(s) could not be decoded");
            ExitCode::from(1)
        }
        Err(Failure::Told(text)) => {
            eprintln!("batch_decode: {text}");
            ExitCode::from(2)
        }
    }
}

/// Does all of it; the number of rows that failed.
fn run(out: &mut impl Write) -> Result<usize, Failure> {
    let mut file = None;
    let mut wanted = Wanted::Floats;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--rows") => {
                let path = arguments.next().ok_or(format!("--rows needs a file; {USAGE}"))?;
                let path = path.into_string();
                file = Some(path.map_err(|p| format!("{}: not UTF-8", p.display()))?);
            }
            Some("--bf16") => wanted = Wanted::Bf16,
            Some("--help" | "-h") => {
                writeln!(out, "{USAGE}")?;
                return Ok(0);
            }
            _ => Err(format!("unknown argument {}; {USAGE}", argument.display()))?,
        }
    }
    let level = Level::from_env()?.unwrap_or_default();
    let Some(file) = file else {
        if wanted == Wanted::Bf16 {
            Err(format!("--bf16 is about --rows; {USAGE}"))?;
        }
        return everything(out, level);
    };
    let array = Array::open(&file, wanted, Layout::Rows)?;
    match array.kind() {
        Kind::F16 => decode::<f16>(out, array, level),
        Kind::Bf16 => decode::<bf16>(out, array, level),
        Kind::F32 => decode::<f32>(out, array, level),
        Kind::F64 | Kind::Bool => Err(Failure::Told(format!(
            "{file}: holds {}, not f16 or f32; numpy's astype('float32') converts it",
            array.kind().name()
        ))),
    }
}

/// The real rows, then rows of larger vocabularies.
fn everything(out: &mut impl Write, level: Level) -> Result<usize, Failure> {
    let real = |name: &str| {
        let open = Array::open(&format!("{DATA}/{name}"), Wanted::Floats, Layout::Rows);
        open.map_err(|e| {
            format!("{e} (the real rows are in the repository, not in the package; try --rows)")
        })
    };
    let mut failed = decode::<f16>(out, real("whisper_f16.npy")?, level)?;
    failed += decode::<f32>(out, real("whisper_f32.npy")?, level)?;
    for vocab in SYNTHETIC_VOCABS {
        let data: Vec<f32> = (0..SYNTHETIC_ROWS).flat_map(|i| synthetic(vocab, i as u64)).collect();
        writeln!(out, "{SYNTHETIC_ROWS} synthetic rows of {} f32 logits", grouped(vocab))?;
        speed(out, &Rows::matrix(&data, SYNTHETIC_ROWS, vocab, vocab)?, level)?;
    }
    Ok(failed)
}

/// Decodes an array's rows as one batch, prints a line for each, and measures; the number of rows that failed.
fn decode<E: Decode>(
    out: &mut impl Write,
    mut array: Array,
    level: Level,
) -> Result<usize, Failure> {
    if array.width() > MAX_VOCAB as u64 {
        let (name, width) = (array.name(), array.width());
        Err(format!("{name}: rows of {width} tokens; {MAX_VOCAB} are allowed"))?;
    }
    let (count, vocab, kind) = (array.rows() as usize, array.width() as usize, array.kind());
    let mut data: Vec<E> = Vec::new();
    while let Some(row) = array.next(vocab)? {
        E::decode(&row, &mut data, &|_| true);
    }
    let rows = Rows::matrix(&data, count, vocab, vocab)?;
    let (samplers, draws) = parameters(count, level);

    let mut reports = vec![Ok(Report::default()); count];
    Batch::new().report_into(&rows, &samplers, &draws, 0, &mut reports)?;
    let name = Path::new(array.name()).file_name().unwrap_or_default().display();
    let kind = kind.name();
    writeln!(out, "{name}: {count} row(s) of {} {kind} logits\n", grouped(vocab))?;
    writeln!(
        out,
        "{:>4}  {:<26} {:>7} {:>7} {:>12} {:>14}",
        "row", "sampling", "token", "kept", "probability", "surprise, bits"
    )?;
    for (i, (report, sampler)) in reports.iter().zip(&samplers).enumerate() {
        let sampling = Shown(*sampler.params()).to_string();
        match report {
            Ok(Report { chosen, kept, .. }) => writeln!(
                out,
                "{i:>4}  {sampling:<26} {:>7} {kept:>7} {:>12.6} {:>14.4}",
                chosen.token, chosen.probability, chosen.surprise
            )?,
            Err(error) => writeln!(out, "{i:>4}  {sampling:<26} {error}")?,
        }
    }
    writeln!(out)?;
    speed(out, &rows, level)?;
    Ok(reports.iter().filter(|r| r.is_err()).count())
}

/// Row i's sampler and draw. All kinds of samplers, in turn.
fn parameters(rows: usize, level: Level) -> (Vec<Sampler>, Vec<f64>) {
    let at = |t| SamplingParams::new().with_temperature(t);
    let kinds = [
        at(0.7).with_top_p(0.9),
        at(0.0),
        at(0.8).with_top_k(40).with_top_p(0.95),
        at(1.0),
        at(1.2).with_min_p(0.05),
        at(1.0).with_top_k(50),
        at(1.0).with_typical_p(0.95),
        at(1.5).with_epsilon(0.0003),
    ];
    let sampler = |i: usize| {
        let sampler = Sampler::new(kinds[i % kinds.len()]);
        sampler.unwrap_or(Sampler::greedy()).with_level(level)
    };
    ((0..rows).map(sampler).collect(), (0..rows as u64).map(|i| rng::uniform(SEED, i, 0)).collect())
}

/// A sampler's parameters in a few words.
struct Shown(SamplingParams);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.0;
        if params.is_greedy() {
            return f.write_str("greedy");
        }
        write!(f, "T {}", params.temperature)?;
        if let Some(k) = params.top_k {
            write!(f, ", top-k {k}")?;
        }
        let shares = [
            ("top-p", params.top_p),
            ("min-p", params.min_p),
            ("typical", params.typical_p),
            ("epsilon", params.epsilon),
        ];
        for (name, share) in shares {
            if let Some(share) = share {
                write!(f, ", {name} {share}")?;
            }
        }
        Ok(())
    }
}

/// Prints tokens per second for the light pick, on one thread and on all.
fn speed<E: Element>(
    out: &mut impl Write,
    rows: &Rows<'_, E>,
    level: Level,
) -> Result<(), Failure> {
    let (samplers, draws) = parameters(rows.len(), level);
    let mut batches = vec![(1, Batch::serial())];
    #[cfg(feature = "rayon")]
    if rayon::current_num_threads() > 1 {
        batches.push((rayon::current_num_threads(), Batch::new()));
    }
    for (threads, batch) in &mut batches {
        let mut picks: Vec<Result<Pick, Error>> = vec![Err(Error::NoAllowedToken); rows.len()];
        // The first pass warms up.
        batch.sample_into(rows, &samplers, &draws, &mut picks)?;
        let tokens = picks.iter().filter(|p| p.is_ok()).count();
        let (start, mut passes) = (Instant::now(), 0);
        while start.elapsed() < MEASURED {
            batch.sample_into(rows, &samplers, &draws, &mut picks)?;
            passes += 1;
        }
        let rate = (passes * tokens) as f64 / start.elapsed().as_secs_f64();
        let threads = if *threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        writeln!(out, "{threads:>10}, {level}: {:>9} tokens/s", grouped(rate.round() as usize))?;
    }
    if cfg!(not(feature = "rayon")) {
        writeln!(out, "{:>10}  (one thread only: built without the feature `rayon`)", "")?;
    }
    writeln!(out)?;
    Ok(())
}

/// What a language model's row looks like: a bell-shaped bulk and a few tokens far above it.
fn synthetic(vocab: usize, row: u64) -> Vec<f32> {
    let mut state = row << 32 | vocab as u64;
    let mut bits = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // The sum of four uniforms has the deviation 1 / sqrt(3).
    let bell = |word: u64| {
        let quarters = [word, word >> 16, word >> 32, word >> 48];
        quarters.iter().map(|&q| (q & 0xffff) as f32 / 65_536.0 - 0.5).sum::<f32>()
    };
    let mut logits: Vec<f32> = (0..vocab).map(|_| 4.3 * bell(bits())).collect();
    for rank in 1..=30 {
        let place = bits() % vocab as u64;
        logits[place as usize] = 18.0 - 1.2 * (rank as f32).ln();
    }
    logits
}

/// A number with commas between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
