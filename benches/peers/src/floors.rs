//! What a row costs before anything is decided: sortless's floors, the same passes in raw intrinsics, and what peers
//! build from a row.

use crate::common::measure::{Contestant, alternate};
use crate::llm;
use crate::turns::Rows;
use sortless::{Level, floors};

/// The temperature of the exp floors.
const TEMPERATURE: f32 = 0.8;
/// What sortless's floors may take, in those of the raw passes.
const LIMIT: f64 = 1.1;

/// Prints the costs and how the floors compare; with `assert` panics if a floor is slower than it should be.
pub fn table(rows: &mut Rows, rounds: usize, assert: bool) {
    let mut names = Vec::new();
    let mut contestants: Vec<Contestant<'_, Rows>> = Vec::new();
    let mut add = |name, contestant| {
        names.push(name);
        contestants.push(contestant);
        names.len()
    };
    // The level that the raw passes are written for, where there is one.
    let level = Level::by_name("avx2").ok();
    let ours = level.unwrap_or_default();
    add("floor/read", Box::new(move |r, i, _| r.timed(i, |row| floors::read(ours, row))));
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut passes = add("floor/exp", {
        Box::new(move |r, i, _| r.timed(i, |row| floors::exp(ours, row, TEMPERATURE)))
    });
    #[cfg(target_arch = "x86_64")]
    let raw = level.and(crate::raw::Passes::new());
    #[cfg(target_arch = "x86_64")]
    if let Some(raw) = raw {
        agree(rows, ours, raw);
        add("read, raw AVX2", Box::new(move |r, i, _| r.timed(i, |row| raw.read(row))));
        passes = add("exp, raw AVX2", {
            Box::new(move |r, i, _| r.timed(i, |row| raw.exp(row, TEMPERATURE)))
        });
    }
    #[cfg(feature = "candle")]
    add("candle's tensor", Box::new(|r, i, _| r.timed(i, |row| crate::candle::tensor(row))));
    add("llm-samplers' list", Box::new(|r, i, _| r.timed(i, |row| llm::logits(row))));
    let mut candidates = token_sampling::Candidates::new();
    add("token-sampling's list", {
        Box::new(move |r, i, _| r.timed(i, |row| candidates.load(row).expect("a good row")))
    });
    #[cfg(feature = "llama")]
    add("llama.cpp's array", {
        let mut array = crate::llama::Array::default();
        Box::new(move |r, i, _| r.timed(i, |row| array.fill(row)))
    });

    // The passes among themselves: what follows upon a list that fills the caches is slower.
    let mut lists = contestants.split_off(passes);
    let mut times = alternate(rows, &mut contestants, rounds.max(7));
    times.extend(alternate(rows, &mut lists, rounds.max(7)));
    println!("| before any decision | us |\n|---|--:|");
    for (name, time) in names.iter().zip(&times) {
        println!("| {name} | {:.1} |", time.median);
    }
    #[cfg(target_arch = "x86_64")]
    if raw.is_some() {
        let [read, exp] = [0, 1].map(|i| times[i].median / times[i + 2].median);
        println!("\nfloor/read takes {read:.3}, floor/exp {exp:.3} of the raw passes' time.");
        assert!(!assert || read.max(exp) <= LIMIT, "a floor is more than 10% above its raw pass");
        return;
    }
    assert!(!assert, "the raw passes need AVX2");
}

/// Panics unless the raw passes do what the floors do.
#[cfg(target_arch = "x86_64")]
fn agree(rows: &Rows, level: Level, raw: crate::raw::Passes) {
    for row in &rows.rows {
        // A length with a tail, too.
        for row in [&row[..], &row[..row.len() - 5]] {
            assert_eq!(raw.read(row), floors::read(level, row), "the maximum");
            let ratio = raw.exp(row, TEMPERATURE) / floors::exp(level, row, TEMPERATURE);
            assert!((ratio - 1.0).abs() < 1e-5, "the sums' ratio is {ratio}");
        }
    }
}
