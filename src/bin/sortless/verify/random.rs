//! Rows and parameters of its own, for as long as it is let.

use super::compare::{Tally, Task};
use super::steps::step;
use crate::args::Verify;
use crate::failure::Failure;
use crate::output::Progress;
use crate::threads::pool;
use half::{bf16, f16};
use rayon::prelude::*;
use sortless::mirostat::{Config, Session, Version};
use sortless::shapes::{self, Random};
use sortless::{Element, Error, Level, Sampler, SamplingParams};
use std::time::Instant;

/// Cases between two looks at the clock.
const ROUND: u64 = 64;

/// Case after case, numbered; each is a function of seed and number.
pub fn run(args: &Verify, levels: &[Level], seconds: f64) -> Result<Tally, Failure> {
    let pool = pool(args.run.threads)?;
    let progress = Progress::new(seconds.ceil() as u64, "seconds", true);
    let started = Instant::now();
    let mut tally = Tally::default();
    let mut case = 0;
    loop {
        let found: Vec<Tally> = pool.install(|| {
            let cases = (case..case + ROUND).into_par_iter();
            cases.map(|case| verify(args, levels, case)).collect()
        });
        tally.add(found.into_iter().collect());
        case += ROUND;
        let elapsed = started.elapsed().as_secs_f64();
        if elapsed >= seconds {
            return Ok(tally);
        }
        progress.to(elapsed as u64);
    }
}

fn verify(args: &Verify, levels: &[Level], case: u64) -> Tally {
    let mut random = Random::new(args.draws.seed ^ case.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let row = row(&mut random);
    let Ok(sampler) = Sampler::new(params(&mut random)) else {
        // All are in range.
        return Tally::default();
    };
    let task = Task { sampler, levels, alternatives: args.logprobs };
    let mut tally = Tally { rows: 1, ..Tally::default() };
    let version = if random.below(2) == 0 { Version::V1 } else { Version::V2 };
    let Ok(session) = session(&mut random, version) else {
        return Tally::default();
    };
    for draw in 0..args.count {
        let u = u(&mut random);
        tally.add(match case % 3 {
            0 => decisions(&task, &session, case, draw, &row, u),
            1 => decisions(&task, &session, case, draw, &convert(&row, f16::from_f32), u),
            _ => decisions(&task, &session, case, draw, &convert(&row, bf16::from_f32), u),
        });
    }
    tally.refused = u64::from(tally.first_refused.is_some());
    tally
}

/// A stateless decision, and a step of Mirostat.
fn decisions<E: Element>(
    task: &Task<'_>,
    session: &Session,
    case: u64,
    draw: usize,
    row: &[E],
    u: f64,
) -> Tally {
    let mut tally = task.decision(case, draw, row, u);
    tally.add(step(session, task.levels, case, draw, row, u).0);
    tally
}

fn session(random: &mut Random, version: Version) -> Result<Session, Error> {
    let config = Config::new(0.1 + random.unit() * 8.0)?
        .with_temperature((0.2 + random.unit() * 2.0) as f32)?
        .with_m(2 + random.below(120))?
        .with_initial_mu(random.unit() * 14.0)?;
    Ok(Session::new(config, version))
}

fn convert<E>(row: &[f32], to: impl Fn(f32) -> E) -> Vec<E> {
    row.iter().map(|&l| to(l)).collect()
}

fn row(random: &mut Random) -> Vec<f32> {
    // Mostly short: more cases. All lengths around 16 and its multiples, where tails are.
    let v = match random.below(8) {
        0..4 => 1 + random.below(200),
        4..6 => 1 + random.below(5000),
        6 => 16 * (1 + random.below(600)) + random.below(3) - 1,
        _ => 1 + random.below(100_000),
    };
    let seed = random.bits();
    let mut row = match random.below(8) {
        0 => shapes::llm(v, seed),
        1 => shapes::flat(v, seed),
        2 => shapes::ties(v, seed),
        3 => shapes::equal(v, random.normal() as f32),
        4 => shapes::plateau(v, 1 + random.below(60), seed),
        5 => shapes::half_masked(v, seed),
        // Every finite magnitude, masks included.
        6 => {
            let any = |random: &mut Random| f32::from_bits(random.bits() as u32);
            (0..v).map(|_| any(random)).map(|l| if l < f32::INFINITY { l } else { 0.0 }).collect()
        }
        // Two values that are neighbours.
        _ => (0..v).map(|_| f32::from_bits(0x4100_0000 + random.below(2) as u32)).collect(),
    };
    // Now and then what must be refused.
    match random.below(64) {
        0 => row[random.below(v)] = f32::NAN,
        1 => row[random.below(v)] = f32::INFINITY,
        2 => row.fill(f32::NEG_INFINITY),
        _ => {}
    }
    row
}

fn params(random: &mut Random) -> SamplingParams {
    let temperature = match random.below(8) {
        0 => 0.0,
        1 => 0.01 + random.unit() * 0.1,
        2 => random.unit() * 50.0 + 1.0,
        _ => 0.2 + random.unit() * 1.8,
    };
    let mut params = SamplingParams::new().with_temperature(temperature as f32);
    let share = |random: &mut Random| match random.below(6) {
        0 => 1.0,
        1 => 1e-8 + random.unit() * 1e-3,
        2 => 1.0 - random.unit() * 1e-3,
        _ => random.unit().max(1e-9),
    };
    // A small one in most cases: large ones leave the best token alone.
    let small = |random: &mut Random| random.unit().powi(3) * 0.3;
    if random.below(3) == 0 {
        params = params.with_top_k(1 + random.below(300) as u32);
    }
    if random.below(3) == 0 {
        params = params.with_top_p(share(random));
    }
    if random.below(4) == 0 {
        params = params.with_min_p(small(random));
    }
    if random.below(4) == 0 {
        params = params.with_typical_p(share(random));
    }
    if random.below(4) == 0 {
        params = params.with_epsilon(small(random));
    }
    params
}

fn u(random: &mut Random) -> f64 {
    match random.below(16) {
        0 => 0.0,
        1 => 1.0 - f64::EPSILON / 2.0,
        // Where boundaries of equal tokens lie.
        2 => random.below(64) as f64 / 64.0,
        _ => random.unit(),
    }
}
