//! Both versions over real rows: logits that an engine decoded speech with (see `tests/data/README.md`).

use half::f16;
use sortless::mirostat::{Config, Session, TraceAccumulator, Version};
use sortless::{Draws, Scratch};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/whisper_f16.npy");
    let file = npyz::NpyFile::new(std::io::BufReader::new(std::fs::File::open(path)?))?;
    let vocab = file.shape()[1] as usize;
    let logits: Vec<f16> = file.into_vec()?;
    let rows: Vec<&[f16]> = logits.chunks_exact(vocab).collect();
    println!("{} rows of {vocab} logits", rows.len());

    let mut scratch = Scratch::new();
    for version in [Version::V1, Version::V2] {
        let mut session = Session::new(Config::new(1.0)?, version);
        let mut draws = Draws::new(1, 0);
        let mut trace = TraceAccumulator::new(1.0)?;
        for i in 0..rows.len() * 8 {
            let row = rows[i % rows.len()];
            let step = session.sample_with(row, || draws.next_draw(), &mut scratch)?;
            trace.push(&step);
            if i < 5 {
                println!(
                    "{version:?} row {i}: token {:5}  {:6.3} bits  of {:4}  mu {:.3}",
                    step.token, step.surprise, step.kept, step.mu_after
                );
            }
        }
        if let Some(s) = trace.summary() {
            println!(
                "{version:?} after {} steps: mean surprise {:.3} bits (target 1), mean kept {:.1}, mu {:.3}",
                s.count, s.mean_surprise, s.mean_kept, s.final_mu
            );
        }
    }
    Ok(())
}
