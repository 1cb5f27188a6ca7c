//! Measures other samplers side by side with sortless; see the README beside.

#[path = "../../common/mod.rs"]
mod common;

mod check;
mod decisions;
mod floors;
mod llm;
mod ours;
mod peer;
mod plain;
#[cfg(target_arch = "x86_64")]
mod raw;
mod tokens;
mod turns;

#[cfg(feature = "candle")]
mod candle;
#[cfg(feature = "llama")]
mod llama;

use common::rows::{REAL_VOCAB, rows};
use decisions::{Decision, decisions};
use peer::Peer;
use turns::{Rows, turns};

struct Options {
    shapes: Vec<String>,
    vocabs: Vec<usize>,
    decisions: Option<Vec<String>>,
    rounds: usize,
    /// Rows that the checks run on are this far apart.
    step: usize,
    /// Draws on each of them.
    draws: usize,
    check_floors: bool,
}

fn options() -> Options {
    let mut options = Options {
        shapes: vec!["llm".into()],
        vocabs: vec![151_936],
        decisions: None,
        rounds: 15,
        step: 2,
        draws: 4,
        check_floors: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut list = || -> Vec<String> {
            let value = args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
            value.split(',').map(|v| v.trim().to_string()).collect()
        };
        let number = |v: &String| v.parse().unwrap_or_else(|_| panic!("not a number: {v}"));
        match arg.as_str() {
            "--shape" => options.shapes = list(),
            "--vocab" => options.vocabs = list().iter().map(number).collect(),
            "--decisions" => options.decisions = Some(list()),
            "--rounds" => options.rounds = number(&list()[0]),
            "--quick" => (options.rounds, options.step, options.draws) = (3, 4, 2),
            "--check-floors" => options.check_floors = true,
            _ => panic!("unknown option {arg}; see benches/peers/README.md"),
        }
    }
    options
}

fn main() {
    let options = options();
    println!("{}, level {}, {}", common::cpu(), common::level(), common::date());
    println!("{}", versions());
    for shape in &options.shapes {
        let vocabs = if shape == "real" { &[REAL_VOCAB][..] } else { &options.vocabs };
        for &vocab in vocabs {
            let Some(rows) = rows(shape, vocab) else {
                panic!("there are no rows {shape:?}, or they need the repository's test data");
            };
            let mut rows = Rows::new(rows);
            println!("\n`{shape}`, V = {vocab}, one thread:\n");
            floors::table(&mut rows, options.rounds, options.check_floors);
            println!("\n| decision | sampler | us | x sortless | in the kept set | same token |");
            println!("|---|---|--:|--:|--:|--:|");
            for decision in decisions(vocab) {
                let names = options.decisions.as_ref();
                if names.is_none_or(|n| n.iter().any(|n| decision.name.contains(n.as_str()))) {
                    table(&options, decision, &mut rows);
                }
            }
        }
    }
}

/// Checks a decision's contestants, lets them take turns, and prints what they took.
fn table(options: &Options, decision: Decision, rows: &mut Rows) {
    let Decision { name, ours, mut peers } = decision;
    let counts = check::all(&ours, &mut peers, rows, options.step, options.draws);
    let names: Vec<&str> = peers.iter().map(|p| p.name).collect();
    let sortless = ours.pick();
    let picks = std::iter::once(sortless).chain(peers.into_iter().map(|p: Peer| p.pick));
    let times = turns(rows, picks.collect(), options.rounds);
    println!("| {name} | sortless | {:.1} | 1.00 | | |", times[0].median);
    for ((name, time), count) in names.iter().zip(&times[1..]).zip(counts) {
        let ratio = time.median / times[0].median;
        println!("| | {name} | {:.1} | {ratio:.2} | {count} |", time.median);
    }
}

/// The peers' versions, as they were built.
fn versions() -> String {
    let lock = include_str!("../Cargo.lock");
    let version = |name: &str| {
        let rest = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
        format!("{name} {}", rest.and_then(|r| r.split('"').next()).unwrap_or("?"))
    };
    let mut names = vec!["argminmax", "llm-samplers", "token-sampling"];
    if cfg!(feature = "candle") {
        names.push("candle-transformers");
    }
    if cfg!(feature = "llama") {
        names.push("llama-cpp-sys-2");
    }
    names.into_iter().map(version).collect::<Vec<_>>().join(", ")
}
