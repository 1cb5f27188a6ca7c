//! A full sort, as short as it can be written, and as fast as that allows: what sortless does without.

use crate::peer::Pick;

/// Top-p at a temperature. `(logit, id)` pairs are sorted in a buffer that is used again; the softmax needs no pass for the
/// maximum then.
pub fn top_p(temperature: f32, p: f64) -> Pick {
    let mut pairs: Vec<(f32, u32)> = Vec::new();
    let mut weights: Vec<f32> = Vec::new();
    Box::new(move |row, u| {
        pairs.clear();
        pairs.extend(row.iter().copied().zip(0..));
        pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let best = pairs[0].0;
        weights.clear();
        weights.extend(pairs.iter().map(|&(logit, _)| ((logit - best) / temperature).exp()));
        let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let kept = through(&weights, p * total);
        let mass: f64 = weights[..=kept].iter().map(|&w| f64::from(w)).sum();
        pairs[through(&weights[..=kept], u * mass)].1
    })
}

/// The place where the running sum reaches `target`, or the last one.
fn through(weights: &[f32], target: f64) -> usize {
    let mut sum = 0.0;
    let reached = weights.iter().position(|&w| {
        sum += f64::from(w);
        sum >= target
    });
    reached.unwrap_or(weights.len() - 1)
}
