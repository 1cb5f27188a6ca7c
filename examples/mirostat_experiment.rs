//! Both versions, 1,000 draws each on a static Zipf row: summary metrics as CSV.

use sortless::mirostat::{Config, Session, Spread, Step, TraceAccumulator, Version, perplexity};
use sortless::{Draws, PreparedRow, Scratch};

fn main() -> Result<(), sortless::Error> {
    // Probabilities proportional to i^-1.1.
    let logits: Vec<f32> = (1..=50_000).map(|i| (-1.1 * f64::from(i).ln()) as f32).collect();
    let row = PreparedRow::from_logits(&logits)?;
    let mut scratch = Scratch::new();
    println!(
        "version,target,steps,mean_surprise,mean_absolute_error,variance,median,p90,perplexity,mean_kept,kept_min,kept_max,final_mu"
    );
    for version in [Version::V1, Version::V2] {
        for target in [3.0, 4.0, 5.0] {
            let mut session = Session::new(Config::new(target)?, version);
            let mut draws = Draws::new(1, 0);
            let steps = (0..1000)
                .map(|_| session.sample_prepared(&row, draws.next_draw(), &mut scratch))
                .collect::<Result<Vec<Step>, _>>()?;
            let mut trace = TraceAccumulator::new(target)?;
            trace.extend(steps.iter().copied());
            if let (Some(t), Some(s), Some(perplexity)) =
                (trace.summary(), Spread::of(&steps), perplexity(steps.iter().map(|s| s.surprise)))
            {
                println!(
                    "{version:?},{target},{},{:.4},{:.4},{:.4},{:.4},{:.4},{perplexity:.4},{:.1},{},{},{:.4}",
                    t.count,
                    t.mean_surprise,
                    t.mean_absolute_error,
                    s.variance,
                    s.median,
                    s.p90,
                    t.mean_kept,
                    s.kept_min,
                    s.kept_max,
                    t.final_mu
                );
            }
        }
    }
    Ok(())
}
