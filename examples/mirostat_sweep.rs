//! Several targets on a static Zipf row, with a plot of mean surprise and mu over the steps.
//!
//! Writes `target/mirostat_sweep.svg`, or to the path that is given.

use plotters::prelude::*;
use sortless::mirostat::{Config, Session, Version, rolling_mean};
use sortless::{Draws, PreparedRow, Scratch};
use std::error::Error;

const STEPS: usize = 400;
const TARGETS: [f64; 4] = [3.0, 4.0, 5.0, 6.0];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "target/mirostat_sweep.svg".to_owned());
    if let Some(folder) = std::path::Path::new(&path).parent() {
        std::fs::create_dir_all(folder)?;
    }
    let logits: Vec<f32> = (1..=50_000).map(|i| (-1.1 * f64::from(i).ln()) as f32).collect();
    let row = PreparedRow::from_logits(&logits)?;
    let mut scratch = Scratch::new();

    let area = SVGBackend::new(&path, (900, 700)).into_drawing_area();
    area.fill(&WHITE)?;
    let halves = area.split_evenly((2, 1));
    let mut charts = Vec::new();
    for (half, name) in halves.iter().zip(["mean surprise of the last 50 steps, bits", "mu, bits"])
    {
        let mut chart = ChartBuilder::on(half)
            .caption(name, ("sans-serif", 18))
            .margin(8)
            .x_label_area_size(24)
            .y_label_area_size(36)
            .build_cartesian_2d(0..STEPS, 0.0..14.0)?;
        chart.configure_mesh().light_line_style(TRANSPARENT).draw()?;
        charts.push(chart);
    }

    println!("target  mean surprise   mu    kept at the end");
    for (i, target) in TARGETS.into_iter().enumerate() {
        let mut session = Session::new(Config::new(target)?, Version::V2);
        let mut draws = Draws::new(7, i as u64);
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            steps.push(session.sample_prepared(&row, draws.next_draw(), &mut scratch)?);
        }
        let surprises = || steps.iter().map(|s| s.surprise);
        let rolling: Vec<f64> = rolling_mean(surprises(), 50)?.collect();
        let color = Palette99::pick(i);
        charts[0].draw_series(LineSeries::new(rolling.into_iter().enumerate(), &color))?;
        let line = [(0, target), (STEPS, target)];
        charts[0].draw_series(LineSeries::new(line, color.mix(0.4)))?;
        let mus = steps.iter().enumerate().map(|(x, s)| (x, s.mu_after));
        charts[1].draw_series(LineSeries::new(mus, &color))?;
        let mean = surprises().sum::<f64>() / STEPS as f64;
        let kept = steps.last().map_or(0, |s| s.kept);
        println!("{target:6.1}  {mean:13.3}  {:5.2}  {kept:6}", session.mu());
    }
    area.present()?;
    println!("plot: {path}");
    Ok(())
}
