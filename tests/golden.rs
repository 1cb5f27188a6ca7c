//! Golden values: a hash of every bit that the kernels and samplers give on fixed rows, the same on every level of every
//! machine. `tests/golden.txt` holds one line for each kernel and for each sampler's grid, in each element type.
//!
//! Rows are made by integer and IEEE arithmetic and by libm alone, or read from `tests/data`, so they are the same
//! everywhere, too. `SORTLESS_GOLDEN=write cargo test --release --test golden` writes the file anew, once all levels agree
//! with each other and the scalar one's decisions with the reference.

mod support;

use half::{bf16, f16};
use sortless::kernels::{
    Candidate, Scale, argmax_first, collect, exp_mass, exp_weights, exponent_histogram, max,
};
use sortless::mirostat::{Config, Session, Step, Version};
use sortless::{
    Alternative, Batch, Error, Level, NotFinite, Pick, Report, Rows, Sampler, SamplingParams,
    Scratch, reference, rng,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;
use support::{Make, Random, say};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");

/// The length of the longest rows. An emulated CPU has to get through all of this within a minute.
const LONG: usize = 16_384;
/// Lengths at which samplers take other ways.
const SHORT: [usize; 4] = [1, 2, 40, 1_100];
/// Lengths of the kernels' rows: all kinds of tails.
const LENGTHS: [usize; 20] = [
    1, 2, 3, 7, 15, 16, 17, 31, 33, 100, 127, 128, 129, 255, 1_000, 4_095, 4_096, 4_097, 16_383,
    LONG,
];
/// For the long rows, where most of the time goes, and for the short ones.
const TEMPERATURES: [f32; 3] = [0.2, 1.0, 3.0];
const MORE_TEMPERATURES: [f32; 6] = [0.01, 0.2, 0.7, 1.0, 3.0, 50.0];
const LARGEST_DRAW: f64 = 1.0 - 1.0 / (1u64 << 53) as f64;
const ALTERNATIVES: usize = 3;

/// FNV-1a with words in place of bytes, and one shift more, which brings high bits down. Each step is a bijection, so one
/// different word is always seen.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 32;
    }

    fn float(&mut self, value: f32) {
        self.word(u64::from(value.to_bits()));
    }

    fn double(&mut self, value: f64) {
        self.word(value.to_bits());
    }

    /// The errors that a row can have.
    fn error(&mut self, error: &Error) {
        let (kind, at) = match error {
            Error::NotFinite { index, value: NotFinite::NaN } => (1, *index),
            Error::NotFinite { index, value: NotFinite::PosInf } => (2, *index),
            Error::NoAllowedToken => (3, 0),
            Error::Parameter { .. } => (4, 0),
            other => panic!("no row here should give {other}"),
        };
        self.word(!kind);
        self.word(at as u64);
    }

    fn pick(&mut self, pick: Pick) {
        self.word(u64::from(pick.token));
        self.word(pick.kept.map_or(u64::MAX, u64::from));
    }

    fn alternative(&mut self, a: &Alternative) {
        self.word(u64::from(a.token));
        for number in [a.probability, a.conditional, a.surprise, a.logprob] {
            self.double(number);
        }
    }

    fn report(&mut self, report: &Report) {
        self.alternative(&report.chosen);
        self.word(u64::from(report.kept));
        self.double(report.retained);
        self.double(report.entropy);
        self.word(report.alternatives.len() as u64);
        report.alternatives.iter().for_each(|a| self.alternative(a));
    }

    fn step(&mut self, step: &Step) {
        self.word(u64::from(step.token));
        self.word(u64::from(step.kept));
        for number in [step.probability, step.surprise, step.mu_before, step.mu_after] {
            self.double(number);
        }
    }
}

/// A part of a line's work by its name, so that two levels that differ can be told where.
type Parts = Vec<(String, Hash)>;

/// A line of the file: a name, and what is hashed for it.
struct Line<'a> {
    name: String,
    parts: Box<dyn Fn(Level) -> Parts + 'a>,
}

impl<'a> Line<'a> {
    fn new(name: String, parts: impl Fn(Level) -> Parts + 'a) -> Self {
        Self { name, parts: Box::new(parts) }
    }
}

/// Every line. New kinds of results get theirs here; then the file is written anew, in which the old ones must not
/// change.
fn lines(inputs: &Inputs) -> Vec<Line<'_>> {
    let mut lines = vec![Line::new("draws".into(), |_| draws())];
    kernel_lines(&mut lines, &inputs.f32);
    kernel_lines(&mut lines, &inputs.f16);
    kernel_lines(&mut lines, &inputs.bf16);
    sampler_lines(&mut lines, &inputs.f32);
    sampler_lines(&mut lines, &inputs.f16);
    sampler_lines(&mut lines, &inputs.bf16);
    mirostat_lines(&mut lines, &inputs.f32);
    mirostat_lines(&mut lines, &inputs.f16);
    mirostat_lines(&mut lines, &inputs.bf16);
    lines
}

struct Inputs {
    f32: Typed<f32>,
    f16: Typed<f16>,
    bf16: Typed<bf16>,
}

/// Rows of one element type, by their names.
struct Typed<E> {
    kernels: Vec<(String, Vec<E>)>,
    long: Vec<(String, Vec<E>)>,
    short: Vec<(String, Vec<E>)>,
}

impl Inputs {
    fn new() -> Self {
        // Of the f32 rows; in f16 they are their twins.
        let real: Vec<Vec<f32>> =
            support::whisper().f32.iter().map(|row| row[..LONG].to_vec()).collect();
        Self { f32: Typed::new(&real), f16: Typed::new(&real), bf16: Typed::new(&real) }
    }
}

impl<E: Make> Typed<E> {
    fn new(real: &[Vec<f32>]) -> Self {
        // The half types take the same ways through shorter rows, but for one.
        let (length, step) = if E::NAME == "f32" { (LONG / 2, 2) } else { (LONG / 4, usize::MAX) };
        let named = |v: usize, seed: u64| {
            let rows = support::shapes::<E>(v, seed).into_iter();
            rows.map(move |(name, row)| (format!("{name}, {v}"), row))
        };
        let mut long: Vec<_> = named(length, 1).collect();
        for (i, row) in real.iter().enumerate().step_by(step) {
            long.push((format!("real {i}, {LONG}"), support::convert(row)));
        }
        let short = SHORT.iter().flat_map(|&v| named(v, 2)).collect();
        let mut kernels = Vec::new();
        for v in LENGTHS {
            kernels.push((format!("llm, {v}"), support::convert(&support::llm(v, 3))));
            kernels.push((format!("huge range, {v}"), support::huge_range(v, 4)));
            kernels.push((format!("half masked, {v}"), {
                support::convert(&support::half_masked(v, 5))
            }));
            kernels.push((format!("patterns, {v}"), patterns(v)));
        }
        kernels.push(("masked, 129".into(), vec![E::MASKED; 129]));
        kernels.extend(long.iter().cloned());
        Self { kernels, long, short }
    }
}

/// Any bits at all: with NaN and infinities in some rows, early, late or nowhere.
fn patterns<E: Make>(v: usize) -> Vec<E> {
    let mut random = Random::new(v as u64);
    (0..v).map(|_| E::from_pattern((random.bits() >> 32) as u32)).collect()
}

fn draws() -> Parts {
    let mut hash = Hash::new();
    for seed in [0, 1, 42, 1 << 32, u64::MAX] {
        for stream in [0, 1, 7, u64::MAX] {
            let mut draws = sortless::Draws::new(seed, stream);
            (0..100).for_each(|_| hash.double(draws.next_draw()));
            for step in [1_000, 1 << 32, u64::MAX] {
                hash.double(rng::uniform(seed, stream, step));
            }
        }
    }
    vec![("all".into(), hash)]
}

/// The kernel lines of one element type.
fn kernel_lines<'a, E: Make>(lines: &mut Vec<Line<'a>>, rows: &'a Typed<E>) {
    let rows = &rows.kernels;
    fn line<'a, E: Make>(
        lines: &mut Vec<Line<'a>>,
        name: &str,
        rows: &'a [(String, Vec<E>)],
        kernel: impl Fn(Level, &[E], &mut Hash) + 'a,
    ) {
        let each = move |level| {
            let part = |(name, row): &(String, Vec<E>)| {
                let mut hash = Hash::new();
                kernel(level, row, &mut hash);
                (name.clone(), hash)
            };
            rows.iter().map(part).collect()
        };
        lines.push(Line::new(format!("kernel {name}, {}", E::NAME), each));
    }
    line(lines, "max", rows, |level, row, hash| match max(level, row) {
        Ok(max) => hash.float(max),
        Err(error) => hash.error(&error),
    });
    line(lines, "argmax_first", rows, |level, row, hash| {
        hash.word(argmax_first(level, row).map_or(u64::MAX, |i| i as u64));
    });
    line(lines, "exp_weights", rows, |level, row, hash| {
        let mut weights = vec![-1.0; row.len()];
        for scale in scales(row) {
            match exp_weights(level, row, scale, &mut weights) {
                Ok(mass) => hash.word(mass),
                Err(error) => hash.error(&error),
            }
            weights.iter().for_each(|&w| hash.float(w));
        }
    });
    line(lines, "exp_mass", rows, |level, row, hash| {
        for scale in scales(row) {
            match exp_mass(level, row, scale) {
                Ok(mass) => hash.word(mass),
                Err(error) => hash.error(&error),
            }
        }
    });
    line(lines, "collect", rows, |level, row, hash| {
        let mut found: Vec<Candidate> = Vec::new();
        let top = plain_max(row);
        for threshold in [top, top - 3.0, top / 2.0, 0.0, -1e-3, f32::MIN, f32::NEG_INFINITY] {
            found.clear();
            match collect(level, row, threshold, &mut found) {
                Ok(()) => hash.word(found.len() as u64),
                Err(error) => hash.error(&error),
            }
            for candidate in &found {
                hash.word(u64::from(candidate.id()));
                hash.float(candidate.logit());
            }
        }
    });
    line(lines, "exponent_histogram", rows, |level, row, hash| {
        for scale in scales(row) {
            match exponent_histogram(level, row, scale) {
                Ok(histogram) => {
                    histogram.counts().iter().for_each(|&n| hash.word(u64::from(n)));
                    histogram.masses().iter().for_each(|&q| hash.word(q));
                }
                Err(error) => hash.error(&error),
            }
        }
    });
}

/// The largest finite logit, or 0.
fn plain_max<E: Make>(row: &[E]) -> f32 {
    let finite = row.iter().map(|l| l.to_f32()).filter(|l| l.is_finite());
    finite.reduce(|a, b| if b > a { b } else { a }).unwrap_or(0.0)
}

fn scales<E: Make>(row: &[E]) -> impl Iterator<Item = Scale> {
    let top = plain_max(row);
    [0.3, 1.0, 7.0].into_iter().map(move |t| Scale::new(top, t).expect("both are in range"))
}

/// Every sampler and the usual combinations, each with several values.
fn grids() -> Vec<(&'static str, Vec<SamplingParams>)> {
    let off = SamplingParams::new();
    let p = off.with_top_p(0.9);
    vec![
        ("greedy", vec![off.with_temperature(0.0)]),
        ("temperature", vec![off]),
        ("top-k", [1, 40, 5_000].map(|k| off.with_top_k(k)).into()),
        ("top-p", [1e-8, 0.3, 0.9, 0.999, 1.0].map(|p| off.with_top_p(p)).into()),
        ("min-p", [1e-4, 0.05, 1.0].map(|p| off.with_min_p(p)).into()),
        ("epsilon", [3e-5, 3e-3].map(|e| off.with_epsilon(e)).into()),
        ("typical", [0.2, 0.95].map(|p| off.with_typical_p(p)).into()),
        ("top-k + top-p", vec![p.with_top_k(50)]),
        ("top-p + min-p", vec![p.with_min_p(0.02)]),
        ("top-k + typical", vec![off.with_top_k(200).with_typical_p(0.9)]),
        (
            "all filters",
            vec![
                off.with_top_k(1_000)
                    .with_top_p(0.98)
                    .with_min_p(1e-3)
                    .with_typical_p(0.97)
                    .with_epsilon(1e-4),
            ],
        ),
    ]
}

/// The sampler lines of one element type: `sample` at two or three draws and `report` for each of a sampler's parameters, rows
/// and temperatures; then a batch of all of them.
fn sampler_lines<'a, E: Make>(lines: &mut Vec<Line<'a>>, rows: &'a Typed<E>) {
    for (name, grid) in grids() {
        let parts = move |level| {
            let mut scratch = Scratch::new();
            let long = rows.long.iter().map(|row| (row, &TEMPERATURES[..]));
            let short = rows.short.iter().map(|row| (row, &MORE_TEMPERATURES[..]));
            let mut part = |i: usize, (name, row): &(String, Vec<E>), temperatures: &[f32]| {
                let mut hash = Hash::new();
                let first_draw = row.len() <= SHORT[3];
                for &params in &grid {
                    let greedy = params.is_greedy();
                    for &t in if greedy { &[0.0][..] } else { temperatures } {
                        let sampler = Sampler::new(params.with_temperature(t));
                        let sampler = sampler.expect("in range").with_level(level);
                        sampled(&sampler, row, i as u64, first_draw, &mut scratch, &mut hash);
                    }
                }
                (name.clone(), hash)
            };
            long.chain(short).enumerate().map(|(i, (row, t))| part(i, row, t)).collect()
        };
        lines.push(Line::new(format!("sampler {name}, {}", E::NAME), parts));
    }
    lines.push(Line::new(format!("batch, {}", E::NAME), |level| batch(level, &rows.long)));
}

fn sampled<E: Make>(
    sampler: &Sampler,
    row: &[E],
    stream: u64,
    first_draw: bool,
    scratch: &mut Scratch,
    hash: &mut Hash,
) {
    let middle = rng::uniform(2024, stream, u64::from(sampler.params().temperature.to_bits()));
    for u in first_draw.then_some(0.0).into_iter().chain([middle, LARGEST_DRAW]) {
        match sampler.sample(row, u, scratch) {
            Ok(pick) => hash.pick(pick),
            Err(error) => hash.error(&error),
        }
    }
    let mut report = Report::default();
    let result = sampler.report(row, middle, ALTERNATIVES, scratch, &mut report);
    match &result {
        Ok(()) => hash.report(&report),
        Err(error) => hash.error(error),
    }
    if writing() && sampler.level() == Level::SCALAR {
        let expected = reference::report(row, sampler.params(), middle, ALTERNATIVES);
        assert_eq!(result.map(|()| report), expected, "{:?}", sampler.params());
    }
}

/// A serial batch over a strided, padded matrix, each row with other parameters.
fn batch<E: Make>(level: Level, rows: &[(String, Vec<E>)]) -> Parts {
    let length = rows[0].1.len();
    let stride = length + 48;
    let padding = vec![E::make(f32::INFINITY); stride - length];
    let rows: Vec<_> = rows.iter().filter(|(_, row)| row.len() == length).collect();
    let matrix: Vec<E> =
        rows.iter().flat_map(|(_, row)| row.iter().chain(&padding).copied()).collect();
    let all: Vec<SamplingParams> = grids().into_iter().flat_map(|(_, grid)| grid).collect();
    let sampler = |i: usize| Sampler::new(all[i % all.len()]).expect("in range").with_level(level);
    let samplers: Vec<Sampler> = (0..rows.len()).map(sampler).collect();
    let draws: Vec<f64> = (0..rows.len()).map(|i| rng::uniform(7, i as u64, 0)).collect();
    let rows_of = Rows::matrix(&matrix, rows.len(), length, stride).expect("it fits");
    let rows_of = rows_of.with_valid_vocab(length / 8 * 5);
    let picks = Batch::serial().sample(&rows_of, &samplers, &draws).expect("the lengths agree");
    let part = |((name, _), pick): (&(String, Vec<E>), Result<Pick, Error>)| {
        let mut hash = Hash::new();
        match pick {
            Ok(pick) => hash.pick(pick),
            Err(error) => hash.error(&error),
        }
        (name.clone(), hash)
    };
    rows.into_iter().zip(picks).map(part).collect()
}

/// Mirostat's lines of one element type: for each row some steps of a few sessions, tokens and feedback.
fn mirostat_lines<'a, E: Make>(lines: &mut Vec<Line<'a>>, rows: &'a Typed<E>) {
    for (name, version) in [("v1", Version::V1), ("v2", Version::V2)] {
        let parts = move |level| {
            let mut scratch = Scratch::new();
            let part = |(i, (name, row)): (usize, &(String, Vec<E>))| {
                let mut hash = Hash::new();
                for (tau, temperature) in [(0.5, 1.0), (3.0, 1.0), (6.0, 1.7)] {
                    let config = Config::new(tau).and_then(|c| c.with_temperature(temperature));
                    let session = Session::new(config.expect("in range"), version);
                    let mut session = session.with_level(level);
                    let mut draws = sortless::Draws::new(11, i as u64);
                    for _ in 0..4 {
                        match session.sample(row, draws.next_draw(), &mut scratch) {
                            Ok(step) => hash.step(&step),
                            Err(error) => hash.error(&error),
                        }
                    }
                }
                (name.clone(), hash)
            };
            rows.long.iter().chain(&rows.short).enumerate().map(part).collect()
        };
        lines.push(Line::new(format!("mirostat {name}, {}", E::NAME), parts));
    }
}

fn writing() -> bool {
    match std::env::var("SORTLESS_GOLDEN") {
        Ok(how) if how == "write" => true,
        Ok(how) if !how.is_empty() => panic!("SORTLESS_GOLDEN is {how:?}; it can only be write"),
        _ => false,
    }
}

fn whole(parts: &Parts) -> u64 {
    let mut hash = Hash::new();
    parts.iter().for_each(|(_, part)| hash.word(part.0));
    hash.0
}

/// `name = hash` lines, after comments.
fn parse(text: &str) -> BTreeMap<&str, u64> {
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let parsed = lines.map(|line| {
        let parts = line.split_once(" = ");
        let parts = parts.and_then(|(n, h)| Some((n, u64::from_str_radix(h, 16).ok()?)));
        parts.unwrap_or_else(|| panic!("{FILE}: not a line of it: {line:?}"))
    });
    parsed.collect()
}

const HEAD: &str = "\
# Hashes of all result bits of kernels and samplers, see golden.rs. The same on every level of every machine.
# A change here is a change of results, so a breaking one.
";

#[test]
fn every_level_gives_the_golden_bits() {
    let inputs = Inputs::new();
    let lines = lines(&inputs);
    let levels = support::levels();
    let mut wrong = Vec::new();
    let mut text = String::from(HEAD);
    let old = if writing() { String::new() } else { std::fs::read_to_string(FILE).expect(FILE) };
    let golden = parse(&old);
    for &level in &levels {
        let start = Instant::now();
        for line in &lines {
            let parts = (line.parts)(level);
            let (name, hash) = (&line.name, whole(&parts));
            if level == levels[0] {
                writeln!(text, "{name} = {hash:016x}").expect("a string takes it");
            }
            let expected = if !writing() {
                golden.get(&name[..]).copied()
            } else if level != levels[0] {
                parse(&text).get(&name[..]).copied()
            } else {
                Some(hash)
            };
            if expected != Some(hash) {
                let expected = expected.map_or("nothing".into(), |h| format!("{h:016x}"));
                let other = difference(line, level, &parts);
                wrong.push(format!("{name}: {hash:016x} on {level}, not {expected}{other}"));
            }
        }
        say(format_args!("golden: {} lines on {level} in {:.1?}", lines.len(), start.elapsed()));
    }
    let known = |name: &str| lines.iter().any(|line| line.name == name);
    wrong.extend(golden.keys().filter(|n| !known(n)).map(|n| format!("{n}: in the file alone")));
    assert!(wrong.is_empty(), "{} lines differ:\n{}", wrong.len(), wrong.join("\n"));
    if writing() {
        std::fs::write(FILE, text).expect(FILE);
        say(format_args!("{FILE}: {} lines written", lines.len()));
    }
}

/// The first part of a line where a level differs from the scalar one on this machine.
fn difference(line: &Line<'_>, level: Level, parts: &Parts) -> String {
    let scalar = (line.parts)(Level::SCALAR);
    match parts.iter().zip(&scalar).find(|(a, b)| a.1.0 != b.1.0) {
        Some(((name, _), _)) => format!("; first differs from scalar at: {name}"),
        None if level == Level::SCALAR => String::new(),
        None => "; as scalar does".into(),
    }
}
