//! Eight sessions a step at a time: what a row's neighbours are makes no difference.

use sortless::mirostat::{Config, Session, SessionBatch, Version};
use sortless::{Draws, Rows, Scratch};

fn main() -> Result<(), sortless::Error> {
    let (vocab, count) = (32_000usize, 8);
    // Each row a Zipf law of its own.
    let logits: Vec<f32> = (0..count)
        .flat_map(|row| (1..=vocab).map(move |i| -(0.9 + 0.1 * row as f32) * (i as f32).ln()))
        .collect();
    let rows = Rows::matrix(&logits, count, vocab, vocab)?;
    let mut sessions = vec![Session::new(Config::new(3.0)?, Version::V2); count];
    let mut alone = sessions.clone();
    let mut draws: Vec<Draws> = (0..count).map(|row| Draws::new(1, row as u64)).collect();
    let (mut batch, mut scratch) = (SessionBatch::new(), Scratch::new());
    let mut sums = vec![0.0; count];
    const STEPS: usize = 200;
    for _ in 0..STEPS {
        let us: Vec<f64> = draws.iter_mut().map(Draws::next_draw).collect();
        let steps = batch.sample(&rows, &mut sessions, &us)?;
        for (i, step) in steps.into_iter().enumerate() {
            let step = step?;
            sums[i] += step.surprise;
            let row = &logits[i * vocab..][..vocab];
            assert_eq!(alone[i].sample(row, us[i], &mut scratch)?, step);
        }
    }
    println!("row  exponent  mean surprise  mu");
    for (i, (session, sum)) in sessions.iter().zip(sums).enumerate() {
        let exponent = 0.9 + 0.1 * i as f64;
        println!("{i:3}  {exponent:8.1}  {:13.3}  {:.3}", sum / STEPS as f64, session.mu());
    }
    println!("each step was the one that its session takes alone");
    Ok(())
}
