//! The rows that the benchmarks run on.

use half::f16;
use sortless::shapes::{self, Random};

/// Different rows of a shape, so that no branch is learnt by heart.
pub const ROWS: usize = 32;

/// Tokens of the real rows.
pub const REAL_VOCAB: usize = 51_864;

/// Every shape by its name. `worst-...` are made to hurt a particular shortcut.
pub const SHAPES: [&str; 15] = [
    "llm",
    "real",
    "flat",
    "ties",
    "equal",
    "worst-near",
    "worst-comb",
    "worst-bucket",
    "worst-ulp",
    "worst-last",
    "worst-one",
    "worst-ascending",
    "worst-descending",
    "worst-moving",
    "worst-steps",
];

fn normals(random: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| random.normal() as f32).collect()
}

/// Row number `index` of a shape. Only `real` can fail to be there: it needs the repository's test data and has one
/// vocabulary, [`REAL_VOCAB`].
pub fn row(shape: &str, vocab: usize, index: usize) -> Option<Vec<f32>> {
    let seed = (index as u64) << 32 | vocab as u64;
    let mut random = Random::new(seed);
    let block = 128;
    Some(match shape {
        "llm" => shapes::llm(vocab, seed),
        "real" if vocab == REAL_VOCAB => return real(index),
        "flat" => shapes::flat(vocab, seed),
        "ties" => shapes::ties(vocab, seed),
        "equal" => shapes::equal(vocab, index as f32 / 4.0),
        // Every token just above any threshold, all different, in one bucket.
        "worst-near" => {
            let near = |_| (16.0 + random.unit() / 1024.0) as f32;
            (0..vocab).map(near).collect()
        }
        // One token in every block just above any threshold that block maxima suggest.
        "worst-comb" => {
            let mut row = normals(&mut random, vocab);
            for start in (0..vocab).step_by(block) {
                let place = start + random.below(block.min(vocab - start));
                row[place] = (16.0 + random.unit() / 64.0) as f32;
            }
            row
        }
        // The best token, and one bucket far below that holds everything else.
        "worst-bucket" => {
            let bulk = |_| (6.0 + random.unit() / 256.0) as f32;
            let mut row: Vec<f32> = (0..vocab).map(bulk).collect();
            row[random.below(vocab)] = 16.0;
            row
        }
        // Weights that are equal but for the last bit.
        "worst-ulp" => {
            let pair = [1.0f32, 1.0f32.next_down()];
            (0..vocab).map(|_| pair[random.below(2)]).collect()
        }
        "worst-last" => {
            let mut row = normals(&mut random, vocab);
            row[vocab - 1] = 100.0;
            row
        }
        "worst-one" => {
            let mut row = vec![f32::NEG_INFINITY; vocab];
            row[random.below(vocab)] = -3.0;
            row
        }
        "worst-ascending" | "worst-descending" => {
            let mut row = shapes::llm(vocab, seed);
            row.sort_unstable_by(f32::total_cmp);
            if shape == "worst-descending" {
                row.reverse();
            }
            row
        }
        // The best token so far in every block: a running threshold moves at each.
        "worst-moving" => {
            let mut row = normals(&mut random, vocab);
            for (b, start) in (0..vocab).step_by(block).enumerate() {
                let place = start + random.below(block.min(vocab - start));
                row[place] = 6.0 + 10.0 * (b * block) as f32 / vocab as f32;
            }
            row
        }
        // Each block better than the one before, all of it.
        "worst-steps" => {
            let step = |i: usize| 10.0 * (i / block * block) as f32 / vocab as f32;
            (0..vocab).map(|i| step(i) + random.unit() as f32 / 1024.0).collect()
        }
        _ => return None,
    })
}

/// The 26 f16 rows, the 5 f32 rows, and from then on earlier ones shifted by a few tokens.
fn real(index: usize) -> Option<Vec<f32>> {
    static ROWS: std::sync::OnceLock<Option<Vec<Vec<f32>>>> = std::sync::OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let parents = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let data = parents.map(|p| p.join("tests/data")).find(|d| d.is_dir())?;
        let open = |name| std::fs::read(data.join(name)).ok();
        let (halves, singles) = (open("whisper_f16.npy")?, open("whisper_f32.npy")?);
        let halves: Vec<f16> = npyz::NpyFile::new(&halves[..]).ok()?.into_vec().ok()?;
        let singles: Vec<f32> = npyz::NpyFile::new(&singles[..]).ok()?.into_vec().ok()?;
        let halves = halves.chunks(REAL_VOCAB);
        let widened = halves.map(|row| row.iter().map(|l| l.to_f32()).collect());
        Some(widened.chain(singles.chunks(REAL_VOCAB).map(<[f32]>::to_vec)).collect())
    });
    let rows = rows.as_ref()?;
    let mut row = rows[index % rows.len()].clone();
    row.rotate_right(index / rows.len() * 17);
    Some(row)
}

/// The first [`ROWS`] rows of a shape.
pub fn rows(shape: &str, vocab: usize) -> Option<Vec<Vec<f32>>> {
    (0..ROWS).map(|i| row(shape, vocab, i)).collect()
}
