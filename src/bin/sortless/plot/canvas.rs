//! Lines, boxes and texts on a white page.

use crate::failure::Failure;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;

/// Ink for texts and axes.
pub const INK: RGBColor = RGBColor(34, 34, 34);
/// Ink for what is less important.
pub const GREY: RGBColor = RGBColor(120, 120, 120);
/// Ink for grids.
pub const GRID: RGBColor = RGBColor(226, 226, 226);

/// A page of that many pixels, drawn by `f`.
pub fn draw(
    size: (u32, u32),
    f: impl FnOnce(&Canvas<'_>) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(fail)?;
        let canvas = Canvas(area);
        f(&canvas)?;
        canvas.0.present().map_err(fail)?;
    }
    Ok(svg)
}

fn fail(error: impl Display) -> Failure {
    Failure::new(format_args!("SVG: {error}"))
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Left,
    Center,
    Right,
}

pub struct Canvas<'a>(DrawingArea<SVGBackend<'a>, Shift>);

impl Canvas<'_> {
    pub fn text(
        &self,
        at: (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        ink: RGBColor,
    ) -> Result<(), Failure> {
        let h = match anchor {
            Anchor::Left => HPos::Left,
            Anchor::Center => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let style = ("sans-serif", size).into_font().color(&ink).pos(Pos::new(h, VPos::Center));
        self.0.draw(&Text::new(text.to_string(), pixel(at), style)).map_err(fail)
    }

    pub fn line(&self, points: &[(f64, f64)], ink: RGBColor, width: u32) -> Result<(), Failure> {
        let points: Vec<_> = points.iter().copied().map(pixel).collect();
        let style = ink.stroke_width(width);
        self.0.draw(&PathElement::new(points, style)).map_err(fail)
    }

    /// A straight line of dashes.
    pub fn dashes(&self, points: &[(f64, f64)], ink: RGBColor, width: u32) -> Result<(), Failure> {
        const DASH: f64 = 5.0;
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let steps = ((x1 - x0).hypot(y1 - y0) / DASH).ceil().max(1.0);
            let at = |i: f64| (x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
            for i in (0..steps as usize).step_by(2) {
                let i = i as f64;
                self.line(&[at(i), at((i + 1.0).min(steps))], ink, width)?;
            }
        }
        Ok(())
    }

    pub fn dot(&self, at: (f64, f64), radius: i32, ink: RGBColor) -> Result<(), Failure> {
        self.0.draw(&Circle::new(pixel(at), radius, ink.filled())).map_err(fail)
    }

    pub fn bar(&self, from: (f64, f64), to: (f64, f64), ink: RGBColor) -> Result<(), Failure> {
        self.0.draw(&Rectangle::new([pixel(from), pixel(to)], ink.filled())).map_err(fail)
    }
}

fn pixel((x, y): (f64, f64)) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

/// A logarithmic axis from one place to another.
#[derive(Clone, Copy)]
pub struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// `low` and `high`, both above 0, come to stand at `from` and `to`.
    pub fn new((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        // A single value stands in the middle.
        let (low, high) = if high > low { (low, high) } else { (low / 1.5, low * 1.5) };
        Self { low: low.ln(), high: high.ln(), from, to }
    }

    pub fn at(&self, value: f64) -> f64 {
        let share = (value.ln() - self.low) / (self.high - self.low);
        self.from + (self.to - self.from) * share
    }

    /// The powers of ten on it.
    pub fn decades(&self) -> Vec<f64> {
        let first = (self.low / std::f64::consts::LN_10 - 1e-9).ceil() as i32;
        let last = (self.high / std::f64::consts::LN_10 + 1e-9).floor() as i32;
        (first..=last).map(|i| 10f64.powi(i)).collect()
    }
}

/// A number with a thousands separator, or its decimals where it is below 1.
pub fn number(value: f64) -> String {
    if value >= 1.0 { crate::output::grouped(value.round() as u64) } else { format!("{value}") }
}
