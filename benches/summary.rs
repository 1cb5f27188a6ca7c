//! Prints every sampler as a multiple of its floors, as a Markdown table.
//!
//! `cargo bench --bench summary -- [options]`
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `--vocab 32000,151936` | 151936 | row lengths; `real` rows have 51,864 tokens whatever this says |
//! | `--shape llm,flat` | llm,real,flat,ties,equal | row shapes; `worst` stands for all `worst-...` |
//! | `--samplers greedy,top-p` | all | those whose name contains one of these |
//! | `--dtype f32,f16,bf16` | f32 | element types, measured in one run; the floors are always f32 |
//! | `--rounds 25` | 25 | calls on each of the 32 rows |
//! | `--quick` | | 7 rounds, and checks on fewer rows |
//! | `--cold` | | rows out of 256 MiB instead of one buffer |
//! | `--batch` | | instead, batches of 1, 8 and 64 rows (of Mirostat: sessions) on one thread and on all, the two taking turns of 18 calls |
//!
//! `SORTLESS_LEVEL` chooses the level. A multiple is the ratio of the medians of all calls, floors and samplers taking
//! turns in one run; `mean` is that of the rows' medians, so it shows what a few expensive rows cost, `worst` the most
//! expensive row's. The last column counts which path decided. Mirostat takes a step a call, 256 steps a session.

mod common;

use common::batched::Batched;
use common::cases::{Case, Runner, cases, draw};
use common::measure::{Contestant, Feed, Make, Times, alternate, make, median, timed};
use common::rows::{REAL_VOCAB, SHAPES, rows};
use half::{bf16, f16};
use sortless::{Level, Rows, floors};
use std::time::Instant;

struct Options {
    vocabs: Vec<usize>,
    shapes: Vec<String>,
    samplers: Vec<String>,
    dtypes: Vec<String>,
    rounds: usize,
    quick: bool,
    cold: bool,
    batch: bool,
}

fn options() -> Options {
    let mut options = Options {
        vocabs: vec![151_936],
        shapes: ["llm", "real", "flat", "ties", "equal"].map(String::from).to_vec(),
        samplers: Vec::new(),
        dtypes: vec!["f32".into()],
        rounds: 25,
        quick: false,
        cold: false,
        batch: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut list = || -> Vec<String> {
            let value = args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
            value.split(',').map(|v| v.trim().to_string()).collect()
        };
        let number = |v: &String| v.parse().unwrap_or_else(|_| panic!("not a number: {v}"));
        match arg.as_str() {
            "--vocab" => options.vocabs = list().iter().map(number).collect(),
            "--shape" => options.shapes = list(),
            "--samplers" => options.samplers = list(),
            "--dtype" => options.dtypes = list(),
            "--rounds" => options.rounds = number(&list()[0]),
            "--quick" => (options.quick, options.rounds) = (true, 7),
            "--cold" => options.cold = true,
            "--batch" => options.batch = true,
            // The harness's own arguments.
            "--bench" => {}
            _ => panic!("unknown option {arg}; see the top of benches/summary.rs"),
        }
    }
    let worst = SHAPES.iter().filter(|s| s.starts_with("worst-"));
    let expand = |s: String| match s.as_str() {
        "worst" => worst.clone().map(|s| s.to_string()).collect(),
        name if SHAPES.contains(&name) => vec![s],
        _ => panic!("no shape {s:?}; there are {SHAPES:?}"),
    };
    options.shapes = options.shapes.into_iter().flat_map(expand).collect();
    options
}

/// What the contestants share: rows of each element type.
struct Feeds {
    f32: Feed<f32>,
    f16: Option<Feed<f16>>,
    bf16: Option<Feed<bf16>>,
}

fn feed<E: Make>(rows: &[Vec<f32>], cold: bool) -> Feed<E> {
    let rows = make(rows);
    if cold { Feed::cold(&rows) } else { Feed::hot(rows) }
}

fn main() {
    let options = options();
    let level = common::level();
    println!("{}, level {level}, {}", common::cpu(), common::date());
    for shape in &options.shapes {
        let vocabs = if shape == "real" { &[REAL_VOCAB][..] } else { &options.vocabs };
        for &vocab in vocabs {
            match rows(shape, vocab) {
                Some(rows) if options.batch => batches(&options, level, shape, vocab, &rows),
                Some(rows) => table(&options, level, shape, vocab, &rows),
                None => {
                    println!("\n`{shape}` needs the repository's test data, which is not here.")
                }
            }
        }
    }
}

fn table(options: &Options, level: Level, shape: &str, vocab: usize, rows: &[Vec<f32>]) {
    let has = |name: &str| options.dtypes.iter().any(|d| d == name);
    let mut feeds = Feeds {
        f32: feed(rows, options.cold),
        f16: has("f16").then(|| feed(rows, options.cold)),
        bf16: has("bf16").then(|| feed(rows, options.cold)),
    };
    let protocol = if options.cold { "cold" } else { "hot" };
    println!("\n`{shape}`, V = {vocab}, {protocol}, one thread:\n");
    println!("| sampler | us | ns/token | x read | x exp | mean x exp | worst x exp | paths |");
    println!("|---|--:|--:|--:|--:|--:|--:|---|");
    for (i, case) in wanted(options).into_iter().enumerate() {
        let (floors, measured) = measure(options, level, case, rows, &mut feeds);
        if i == 0 {
            let [read, exp] = floors;
            line("*floor/read*", vocab, read, floors, "");
            line("*floor/exp*", vocab, exp, floors, "");
        }
        for (dtype, times, paths) in measured {
            let only_f32 = options.dtypes == ["f32"];
            let suffix = if only_f32 { String::new() } else { format!(", {dtype}") };
            line(&format!("{}{suffix}", case.name), vocab, times, floors, &paths);
        }
    }
}

fn wanted(options: &Options) -> Vec<Case> {
    let names = &options.samplers;
    let chosen =
        |case: &Case| names.is_empty() || names.iter().any(|n| case.name.contains(n.as_str()));
    cases().into_iter().filter(chosen).collect()
}

/// One thread and all take turns in stretches of calls. Threads that have slept through the other's stretch can need some
/// milliseconds until each is on a core of its own, which they wouldn't in an engine that keeps decoding; those calls don't
/// count.
const IDLE_CALLS: usize = 6;
const TIMED_CALLS: usize = 12;

/// Batches, of the light picks and of Mirostat steps.
fn batches(options: &Options, level: Level, shape: &str, vocab: usize, rows: &[Vec<f32>]) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    println!("\n`{shape}`, V = {vocab}, batches, one thread and {threads}:\n");
    println!("| sampler | rows | us, one thread | us, all | faster |");
    println!("|---|--:|--:|--:|--:|");
    for case in wanted(options).into_iter().filter(Batched::fits) {
        for size in [1, 8, 64] {
            let matrix: Vec<f32> = (0..size).flat_map(|i| rows[i % rows.len()].clone()).collect();
            let rows = Rows::matrix(&matrix, size, vocab, vocab).expect("it fits");
            let mut ways = [false, true].map(|all| Batched::new(case, level, size, all));
            let mut times = [Vec::new(), Vec::new()];
            for round in 0..options.rounds {
                for (batch, times) in ways.iter_mut().zip(&mut times) {
                    for call in 0..IDLE_CALLS + TIMED_CALLS {
                        let n = round * (IDLE_CALLS + TIMED_CALLS) + call;
                        let draws: Vec<f64> = (0..size).map(|i| draw(i, n)).collect();
                        let start = Instant::now();
                        if n == 0 {
                            batch.check(&rows, &draws);
                        } else {
                            batch.call(&rows, &draws);
                        }
                        if call >= IDLE_CALLS {
                            times.push(start.elapsed().as_secs_f64() * 1e6);
                        }
                    }
                }
                // A thread changes no result.
                let [one, all] = &ways;
                one.assert_same(all);
            }
            let [one, all] = times.map(median);
            println!("| {} | {size} | {one:.0} | {all:.0} | {:.2} x |", case.name, one / all);
        }
    }
}

fn line(name: &str, vocab: usize, times: Times, [read, exp]: [Times; 2], paths: &str) {
    println!(
        "| {name} | {:.1} | {:.3} | {:.2} | {:.2} | {:.2} | {:.2} | {paths} |",
        times.median,
        times.median * 1e3 / vocab as f64,
        times.median / read.median,
        times.median / exp.median,
        times.mean / exp.mean,
        times.worst / exp.mean,
    );
}

/// The floors' times, then those of a case for each element type, with the paths that decided.
fn measure(
    options: &Options,
    level: Level,
    case: Case,
    rows: &[Vec<f32>],
    feeds: &mut Feeds,
) -> ([Times; 2], Vec<(String, Times, String)>) {
    let mut runners: Vec<Runner> =
        options.dtypes.iter().map(|_| Runner::new(case, level)).collect();
    let (step, draws) = if options.quick { (8, 2) } else { (2, 4) };
    for (dtype, runner) in options.dtypes.iter().zip(&mut runners) {
        for (i, row) in rows.iter().enumerate().step_by(step) {
            match dtype.as_str() {
                "f32" => check(runner, row, i, draws),
                "f16" => check::<f16>(runner, &make(std::slice::from_ref(row))[0], i, draws),
                "bf16" => check::<bf16>(runner, &make(std::slice::from_ref(row))[0], i, draws),
                _ => panic!("no element type {dtype:?}; there are f32, f16, bf16"),
            }
        }
        runner.scratch = sortless::Scratch::new();
    }
    let temperature = case.params.temperature;
    let temperature = if temperature == 0.0 { 1.0 } else { temperature };
    let mut contestants: Vec<Contestant<'_, Feeds>> = vec![
        Box::new(move |f, i, _| timed(&mut f.f32, i, |row| floors::read(level, row))),
        Box::new(move |f, i, _| timed(&mut f.f32, i, |row| floors::exp(level, row, temperature))),
    ];
    for (dtype, runner) in options.dtypes.iter().zip(&mut runners) {
        contestants.push(match dtype.as_str() {
            "f16" => Box::new(move |f, i, n| {
                let feed = f.f16.as_mut().expect("made for this element type");
                timed(feed, i, |row| runner.call(row, draw(i, n)))
            }),
            "bf16" => Box::new(move |f, i, n| {
                let feed = f.bf16.as_mut().expect("made for this element type");
                timed(feed, i, |row| runner.call(row, draw(i, n)))
            }),
            _ => Box::new(move |f, i, n| timed(&mut f.f32, i, |row| runner.call(row, draw(i, n)))),
        });
    }
    let times = alternate(feeds, &mut contestants, options.rounds);
    drop(contestants);
    let measured = options.dtypes.iter().zip(&times[2..]).zip(&runners);
    let measured =
        measured.map(|((dtype, &times), runner)| (dtype.clone(), times, paths(runner))).collect();
    ([times[0], times[1]], measured)
}

fn check<E: Make>(runner: &mut Runner, row: &[E], index: usize, draws: usize) {
    for n in 0..draws {
        runner.check(row, draw(index, n));
    }
}

/// The nonzero counts, whatever paths there are.
fn paths(runner: &Runner) -> String {
    let all = format!("{:?}", runner.scratch.paths());
    let count = |part: &&str| {
        let number =
            part.rsplit(": ").next().and_then(|n| n.trim_end_matches([' ', '}']).parse().ok());
        number.is_some_and(|n: u64| n > 0)
    };
    let parts: Vec<&str> = all.split(", ").filter(count).collect();
    parts.join(", ").trim_end_matches([' ', '}']).to_string()
}
