//! How tokens and probability are spread over the exponents of the weights.

use super::canvas::{Anchor, Canvas, GREY, GRID, INK, LogAxis, draw, number};
use crate::failure::Failure;
use plotters::style::RGBColor;

const SIZE: (f64, f64) = (760.0, 560.0);
const LEFT: f64 = 80.0;
const RIGHT: f64 = 740.0;
const TOKENS: RGBColor = RGBColor(86, 180, 233);
const PROBABILITY: RGBColor = RGBColor(213, 94, 0);

/// Sums over rows.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    pub rows: u64,
    tokens: Vec<f64>,
    probability: Vec<f64>,
}

impl Spread {
    /// Adds a row.
    pub fn add(&mut self, tokens: &[u32], probability: &[f64]) {
        self.rows += 1;
        self.tokens.resize(tokens.len(), 0.0);
        self.probability.resize(probability.len(), 0.0);
        for (sum, &n) in self.tokens.iter_mut().zip(tokens) {
            *sum += f64::from(n);
        }
        for (sum, p) in self.probability.iter_mut().zip(probability) {
            *sum += p;
        }
    }
}

/// Two panels of bars, one above the other: mean tokens (log scale), mean probability.
pub fn spread(spread: &Spread, temperature: f32) -> Result<String, Failure> {
    let rows = spread.rows as f64;
    let mean = |sums: &[f64]| sums.iter().map(|s| s / rows).collect::<Vec<_>>();
    let (tokens, probability) = (mean(&spread.tokens), mean(&spread.probability));
    let last = tokens.iter().rposition(|&n| n > 0.0).unwrap_or(0);
    let step = (RIGHT - LEFT) / (last + 1) as f64;
    let place = |i: usize| LEFT + step * (i as f64 + 0.5);
    draw((SIZE.0 as u32, SIZE.1 as u32), |canvas| {
        let of = if spread.rows == 1 {
            "one row".into()
        } else {
            format!("mean of {} rows", spread.rows)
        };
        let title = format!("Weights e^((l - max) / T) at T = {temperature}, {of}");
        canvas.text((SIZE.0 / 2.0, 22.0), &title, 17.0, Anchor::Center, INK)?;

        let (top, bottom) = (72.0, 270.0);
        let most = tokens.iter().copied().fold(1.0, f64::max);
        // A mean may be below 1.
        let least = tokens.iter().copied().filter(|&n| n > 0.0).fold(1.0, f64::min);
        let y = LogAxis::new((least / 2.0, (most * 1.5).max(10.0)), (bottom, top));
        canvas.text((LEFT, top - 18.0), "tokens a row (log scale)", 14.0, Anchor::Left, INK)?;
        for decade in y.decades() {
            grid(canvas, y.at(decade), &number(decade))?;
        }
        for (i, &n) in tokens.iter().enumerate().take(last + 1).filter(|(_, n)| **n > 0.0) {
            canvas.bar(
                (place(i) - step * 0.4, y.at(n)),
                (place(i) + step * 0.4, bottom),
                TOKENS,
            )?;
        }
        axis(canvas, bottom, last, &place)?;

        let (top, bottom) = (338.0, 505.0);
        canvas.text((LEFT, top - 18.0), "share of the probability", 14.0, Anchor::Left, INK)?;
        let high = probability.iter().copied().fold(0.0, f64::max);
        let tick = [0.02, 0.05, 0.1, 0.2, 0.25].into_iter().find(|t| high / t <= 5.0);
        let tick = tick.unwrap_or(0.25);
        let scale = (high / tick).ceil().max(1.0) * tick;
        let y = |p: f64| bottom - (bottom - top) * p / scale;
        for i in 0..=(scale / tick).round() as usize {
            let p = tick * i as f64;
            grid(canvas, y(p), &format!("{:.0}%", p * 100.0))?;
        }
        for (i, &p) in probability.iter().enumerate().take(last + 1).filter(|(_, p)| **p > 0.0) {
            canvas.bar(
                (place(i) - step * 0.4, y(p)),
                (place(i) + step * 0.4, bottom),
                PROBABILITY,
            )?;
        }
        axis(canvas, bottom, last, &place)?;
        let text = "i: weights from 2^-i to below 2^(1-i), where the best token weighs 1";
        canvas.text(((LEFT + RIGHT) / 2.0, 543.0), text, 13.0, Anchor::Center, GREY)
    })
}

fn grid(canvas: &Canvas<'_>, y: f64, label: &str) -> Result<(), Failure> {
    canvas.line(&[(LEFT, y), (RIGHT, y)], GRID, 1)?;
    canvas.text((LEFT - 8.0, y), label, 13.0, Anchor::Right, INK)
}

fn axis(
    canvas: &Canvas<'_>,
    bottom: f64,
    last: usize,
    place: &impl Fn(usize) -> f64,
) -> Result<(), Failure> {
    canvas.line(&[(LEFT, bottom), (RIGHT, bottom)], GREY, 1)?;
    let every = if last > 22 { 2 } else { 1 };
    for i in (0..=last).step_by(every) {
        canvas.text((place(i), bottom + 13.0), &i.to_string(), 12.0, Anchor::Center, INK)?;
    }
    Ok(())
}
