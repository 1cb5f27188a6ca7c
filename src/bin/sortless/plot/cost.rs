//! Cost over vocabulary, a panel for each shape, element type and number of threads.

use super::canvas::{Anchor, Canvas, GREY, GRID, INK, LogAxis, draw, number};
use crate::cost::Section;
use crate::failure::Failure;
use crate::output::grouped;
use plotters::style::RGBColor;
use sortless::Level;

const PANEL: (f64, f64) = (470.0, 360.0);
/// Left, right, top, bottom of a panel.
const MARGINS: (f64, f64, f64, f64) = (62.0, 18.0, 46.0, 48.0);
const TITLE: f64 = 40.0;
const LEGEND_LINE: f64 = 22.0;
const LEGEND_COLUMNS: usize = 4;

/// Colours that people who can't tell red from green can tell apart, mostly, and a dash for the second half.
fn style(sampler: &str) -> (RGBColor, bool) {
    match sampler {
        "greedy" => (RGBColor(0, 114, 178), false),
        "temperature" => (RGBColor(230, 159, 0), false),
        "top_k" => (RGBColor(0, 158, 115), false),
        "top_p" => (RGBColor(213, 94, 0), false),
        "min_p" => (RGBColor(204, 121, 167), false),
        "epsilon" => (RGBColor(86, 180, 233), false),
        "typical" => (RGBColor(117, 76, 36), false),
        "mirostat_v1" => (RGBColor(0, 114, 178), true),
        "mirostat_v2" => (RGBColor(213, 94, 0), true),
        "floor read" | "floor exp" => (GREY, true),
        _ => (INK, false),
    }
}

/// A line of a panel: its name, and (vocabulary, microseconds).
type Line = (String, Vec<(f64, f64)>);

struct Panel {
    title: String,
    lines: Vec<Line>,
}

/// The whole page.
pub fn cost(sections: &[Section], level: Level) -> Result<String, Failure> {
    let panels = panels(sections);
    let points = || panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.1).copied();
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| (low.min(v), high.max(v)))
    };
    let xs = range(&mut points().map(|p| p.0));
    let (low, high) = range(&mut points().map(|p| p.1));
    // Some air, and at least one power of ten to stand on.
    let ys = (low / 1.3, (high * 1.3).max(low * 11.0));

    let columns = panels.len().clamp(1, 2);
    let lines = panels.len().div_ceil(columns);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in panels.iter().flat_map(|p| &p.lines) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let legend_columns = if columns == 1 { 2 } else { LEGEND_COLUMNS };
    let legend = names.len().div_ceil(legend_columns) as f64 * LEGEND_LINE + 16.0;
    let width = PANEL.0 * columns as f64;
    let bottom = TITLE + PANEL.1 * lines as f64;
    draw((width as u32, (bottom + legend) as u32), |canvas| {
        let title = format!("Microseconds a row over vocabulary size, both log (level {level})");
        canvas.text((width / 2.0, 24.0), &title, 17.0, Anchor::Center, INK)?;
        for (i, panel) in panels.iter().enumerate() {
            let left = PANEL.0 * (i % columns) as f64;
            let top = TITLE + PANEL.1 * (i / columns) as f64;
            draw_panel(canvas, panel, (left, top), xs, ys)?;
        }
        let step = (width - 40.0) / legend_columns as f64;
        for (i, name) in names.iter().enumerate() {
            let x = 30.0 + step * (i % legend_columns) as f64;
            let y = bottom + 10.0 + LEGEND_LINE * (i / legend_columns) as f64;
            stroke(canvas, name, &[(x, y), (x + 34.0, y)])?;
            canvas.text((x + 42.0, y), name, 14.0, Anchor::Left, INK)?;
        }
        Ok(())
    })
}

fn panels(sections: &[Section]) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for s in sections {
        let plural = if s.threads == 1 { "" } else { "s" };
        let title = format!("{} rows, {}, {} thread{plural}", s.shape, s.dtype, s.threads);
        if !panels.iter().any(|p| p.title == title) {
            panels.push(Panel { title: title.clone(), lines: Vec::new() });
        }
        let mut add = |name: &str, us: f64| {
            let Some(panel) = panels.iter_mut().find(|p| p.title == title) else {
                return;
            };
            if !panel.lines.iter().any(|l| l.0 == name) {
                panel.lines.push((name.to_string(), Vec::new()));
            }
            for line in panel.lines.iter_mut().filter(|l| l.0 == name) {
                // A log axis has no 0, and a clock that is too coarse has.
                line.1.push((s.vocab as f64, us.max(1e-3)));
            }
        };
        for cell in &s.cells {
            add(&cell.sampler, cell.us_per_row);
        }
        add("floor read", s.floor_read);
        add("floor exp", s.floor_exp);
    }
    for line in panels.iter_mut().flat_map(|p| &mut p.lines) {
        line.1.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    panels
}

fn stroke(canvas: &Canvas<'_>, name: &str, points: &[(f64, f64)]) -> Result<(), Failure> {
    let (ink, dashed) = style(name);
    if name == "floor exp" {
        return canvas.line(points, ink, 1);
    }
    if dashed { canvas.dashes(points, ink, 2) } else { canvas.line(points, ink, 2) }
}

fn draw_panel(
    canvas: &Canvas<'_>,
    panel: &Panel,
    (left, top): (f64, f64),
    xs: (f64, f64),
    ys: (f64, f64),
) -> Result<(), Failure> {
    let (right, bottom) = (left + PANEL.0 - MARGINS.1, top + PANEL.1 - MARGINS.3);
    let (left, top) = (left + MARGINS.0, top + MARGINS.2);
    let x = LogAxis::new(xs, (left + 8.0, right - 8.0));
    let y = LogAxis::new(ys, (bottom, top));
    canvas.text(((left + right) / 2.0, top - 30.0), &panel.title, 15.0, Anchor::Center, INK)?;
    canvas.text((left - 6.0, top - 12.0), "\u{b5}s", 13.0, Anchor::Right, GREY)?;
    for decade in y.decades() {
        for minor in 2..10 {
            let at = y.at(decade * f64::from(minor));
            if at > top {
                canvas.line(&[(left, at), (left + 4.0, at)], GREY, 1)?;
            }
        }
        let at = y.at(decade);
        canvas.line(&[(left, at), (right, at)], GRID, 1)?;
        canvas.text((left - 6.0, at), &number(decade), 13.0, Anchor::Right, INK)?;
    }
    let mut vocabs: Vec<f64> = panel.lines.iter().flat_map(|l| &l.1).map(|p| p.0).collect();
    vocabs.sort_by(f64::total_cmp);
    vocabs.dedup();
    let mut free = f64::NEG_INFINITY;
    for vocab in vocabs {
        let at = x.at(vocab);
        canvas.line(&[(at, bottom), (at, bottom + 4.0)], GREY, 1)?;
        let label = thousands(vocab);
        let half = label.len() as f64 * 3.8;
        // One that doesn't fit beside the one before is left out; its tick stays.
        if at - half > free {
            canvas.text((at, bottom + 14.0), &label, 13.0, Anchor::Center, INK)?;
            free = at + half + 4.0;
        }
    }
    canvas.text(((left + right) / 2.0, bottom + 33.0), "tokens", 13.0, Anchor::Center, GREY)?;
    canvas.line(&[(left, top), (left, bottom), (right, bottom)], GREY, 1)?;
    for (name, points) in &panel.lines {
        let places: Vec<_> = points.iter().map(|&(v, us)| (x.at(v), y.at(us))).collect();
        stroke(canvas, name, &places)?;
        for &place in &places {
            canvas.dot(place, if name.starts_with("floor") { 1 } else { 3 }, style(name).0)?;
        }
    }
    Ok(())
}

fn thousands(vocab: f64) -> String {
    if vocab >= 10_000.0 { format!("{:.0}k", vocab / 1000.0) } else { grouped(vocab as u64) }
}
