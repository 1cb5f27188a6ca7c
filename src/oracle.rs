//! An independent, looser check: an f64 softmax with the platform's exp, float sums and an ordinary
//! sort. It shares nothing with the crate but plain data types, so it can't share a mistake either.
//!
//! Floats can't decide what lies within their error, so a verdict is in doubt where the draw or a
//! cut lies within 1e-6, relative, of a boundary. The crate's f32 weights are off by up to about
//! `abs(x) * 2^-23 + 2^-22`; where single tokens are compared, that widens the margin of light
//! ones.

use crate::element::Element;
use crate::params::SamplingParams;
use core::f64::consts::LN_2;

const DOUBT: f64 = 1e-6;

/// What the oracle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This token, and no other.
    Token(u32),
    /// This token, but the draw or a cut is too near to a boundary to tell.
    InDoubt(u32),
    /// The row, the draw or a parameter is not valid.
    Refused,
}

#[derive(Clone, Copy)]
struct Token {
    id: u32,
    logit: f64,
    x: f64,
    /// `e^x`, not normalised.
    p: f64,
}

/// The token that `params` and the draw pick.
pub fn sample<E: Element>(row: &[E], params: &SamplingParams, u: f64) -> Verdict {
    let share = |p: Option<f64>, low: f64| p.is_none_or(|p| low <= p && p <= 1.0);
    let tiny = f64::from_bits(1);
    let valid = share(params.top_p, tiny)
        && share(params.typical_p, tiny)
        && share(params.min_p, 0.0)
        && share(params.epsilon, 0.0)
        && params.epsilon != Some(1.0)
        && params.top_k != Some(0);
    let greedy = params.temperature == 0.0;
    let temperature = if greedy { 1.0 } else { params.temperature };
    let Some(mut alive) = softmax(row, temperature, u).filter(|_| valid) else {
        return Verdict::Refused;
    };
    if greedy {
        return Verdict::Token(alive[0].id);
    }
    let mut doubt = false;
    if let Some(k) = params.top_k {
        alive.truncate(k as usize);
    }
    if let Some(p) = params.top_p.filter(|&p| p < 1.0) {
        doubt |= truncate(&mut alive, p);
    }
    if let Some(p) = params.min_p {
        let least = p * alive[0].p;
        doubt |= retain(&mut alive, least);
    }
    let mut mean = None;
    if let Some(p) = params.typical_p {
        let m = alive.iter().map(|t| t.p * t.x).sum::<f64>() / sum(&alive);
        mean = Some(m);
        alive.sort_by(|a, b| {
            let ascending = (a.x - m).abs().total_cmp(&(b.x - m).abs());
            ascending.then(a.id.cmp(&b.id))
        });
        if p < 1.0 {
            let all = alive.clone();
            doubt |= truncate(&mut alive, p);
            doubt |= near_neighbours(&all, alive.len() - 1, m);
        }
    }
    if let Some(p) = params.epsilon {
        let least = p * sum(&alive);
        doubt |= retain(&mut alive, least);
    }
    let (drawn, near) = reach(&alive, u);
    doubt |= near || mean.is_some_and(|m| near_neighbours(&alive, drawn, m));
    verdict(alive[drawn].id, doubt)
}

/// Mirostat v1: k from the slope of the first `m` tokens.
pub fn mirostat_v1<E: Element>(row: &[E], temperature: f32, mu: f64, m: usize, u: f64) -> Verdict {
    let Some(tokens) = softmax(row, temperature, u).filter(|_| mu.is_finite() && m >= 2) else {
        return Verdict::Refused;
    };
    // A weight of 2^-44 or less has no mass.
    let no_mass = -44.0 * LN_2;
    let mut doubt = tokens.iter().take(m).any(|t| (t.x - no_mass).abs() < 1e-4);
    let with_mass: Vec<Token> = tokens.into_iter().filter(|t| t.x > no_mass).collect();
    let xs: Vec<f64> = with_mass.iter().take(m).map(|t| t.x).collect();

    let mut ks = vec![1.0];
    if xs.len() > 1 {
        let (mut tb, mut tt) = (0.0, 0.0);
        for i in 0..xs.len() - 1 {
            let t = ((i + 2) as f64 / (i + 1) as f64).ln();
            tb += t * (xs[i] - xs[i + 1]);
            tt += t * t;
        }
        // Each x of the crate is off by at most |x| * 2^-23; summed by parts (the t descend), that
        // moves the slope by at most 2 * ln 2 / sum(t^2), less than 3, times the largest of them.
        let error = 3.0 * 2f64.powi(-23) * xs[xs.len() - 1].abs() + 1e-12;
        let k = |slope: f64| {
            let (slope, v) = (slope.max(1e-6), row.len() as f64);
            let eps = slope - 1.0;
            let ratio = match eps.abs() < 1e-6 {
                true => v.ln(),
                false => (1.0 - v.powf(-eps)) / eps,
            };
            (mu.exp2() / ratio).powf(1.0 / slope)
        };
        ks.clear();
        for slope in [tb / tt, tb / tt - error, tb / tt + error] {
            ks.extend([1.0, 1.0 - DOUBT, 1.0 + DOUBT].map(|f| f * k(slope)));
        }
    }
    // What any k in doubt draws; between the least and the greatest, the token moves one way only.
    let draw = |k: f64| {
        let len = (k.round().max(1.0) as usize).min(with_mass.len());
        let (drawn, near) = reach(&with_mass[..len], u);
        (with_mass[drawn].id, near)
    };
    let (token, near) = draw(ks[0]);
    doubt |= near || ks.iter().any(|&k| draw(k) != (token, false));
    verdict(token, doubt)
}

/// Mirostat v2: tokens with a surprise of at most `mu` bits.
pub fn mirostat_v2<E: Element>(row: &[E], temperature: f32, mu: f64, u: f64) -> Verdict {
    let Some(mut alive) = softmax(row, temperature, u).filter(|_| mu.is_finite()) else {
        return Verdict::Refused;
    };
    let log_total = sum(&alive).ln();
    let surprise = |t: &Token| (log_total - t.x) / LN_2;
    let near = |t: &Token| {
        let margin = (DOUBT * mu.abs()).max(2.0 * light(t)).max(DOUBT);
        (surprise(t) - mu).abs() <= margin
    };
    let mut doubt = alive[1..].iter().any(near);
    let kept = 1 + alive[1..].iter().filter(|t| surprise(t) <= mu).count();
    alive.truncate(kept);
    let (drawn, near) = reach(&alive, u);
    doubt |= near;
    verdict(alive[drawn].id, doubt)
}

/// The unmasked tokens, best first. `None` for a row, a temperature or a draw that is not valid;
/// never empty.
fn softmax<E: Element>(row: &[E], temperature: f32, u: f64) -> Option<Vec<Token>> {
    let logits: Vec<f64> = row.iter().map(|v| f64::from(v.to_f32())).collect();
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let clean = max.is_finite() && !logits.iter().any(|l| l.is_nan()) && row.len() <= 1 << 20;
    let temperature_ok = temperature.is_normal() && temperature > 0.0;
    if !clean || !temperature_ok || !(0.0..1.0).contains(&u) {
        return None;
    }
    let mut tokens = Vec::new();
    for (id, logit) in (0..).zip(logits) {
        if logit != f64::NEG_INFINITY {
            let x = (logit - max) / f64::from(temperature);
            let p = x.exp();
            tokens.push(Token { id, logit, x, p });
        }
    }
    // Stable, so equal logits stay by id. Adding 0 makes -0 equal +0.
    tokens.sort_by(|a, b| (b.logit + 0.0).total_cmp(&(a.logit + 0.0)));
    Some(tokens)
}

fn sum(tokens: &[Token]) -> f64 {
    tokens.iter().map(|t| t.p).sum()
}

/// The first token at which the cumulative mass reaches a share of the total, and whether the one
/// before or after it is in question as well.
fn reach(tokens: &[Token], share: f64) -> (usize, bool) {
    let total = sum(tokens);
    let (target, margin, last) = (share * total, DOUBT * total, tokens.len() - 1);
    let mut before = 0.0;
    for (i, t) in tokens.iter().enumerate() {
        let after = before + t.p;
        if after > target || i == last {
            let near_before = i > 0 && target - before <= margin;
            let near_after = i < last && after - target <= margin;
            return (i, near_before || near_after);
        }
        before = after;
    }
    (last, true)
}

/// Cuts to the shortest prefix with a share of the mass; whether that is in doubt.
fn truncate(alive: &mut Vec<Token>, share: f64) -> bool {
    let (i, near) = reach(alive, share);
    alive.truncate(i + 1);
    near
}

/// Keeps what has at least this `p`, and the best token; whether that is in doubt.
fn retain(alive: &mut Vec<Token>, least: f64) -> bool {
    let best = *alive
        .iter()
        .min_by(|a, b| {
            let descending = (b.logit + 0.0).total_cmp(&(a.logit + 0.0));
            descending.then(a.id.cmp(&b.id))
        })
        .unwrap_or(&alive[0]);
    let near = |t: &Token| {
        let margin = (light(t) * least).max(2f64.powi(-42));
        t.id != best.id && (t.p - least).abs() <= margin
    };
    let doubt = least > 0.0 && alive.iter().any(near);
    alive.retain(|t| t.id == best.id || t.p >= least);
    doubt
}

/// The margin, relative, of one token's weight.
fn light(t: &Token) -> f64 {
    (t.x.abs() * 2f64.powi(-22)).max(DOUBT)
}

/// Whether typical's order of a token and another one is in doubt. Equal logits are equal to the crate, too, so that ids
/// decide; but tokens about as far from the mean may stand beyond them.
fn near_neighbours(tokens: &[Token], i: usize, mean: f64) -> bool {
    let token = tokens[i];
    let near = |other: &&Token| {
        let margin = DOUBT * (token.x.abs() + other.x.abs() + mean.abs()) + 1e-12;
        ((token.x - mean).abs() - (other.x - mean).abs()).abs() <= margin
    };
    let other_logit = |other: &Token| other.logit != token.logit;
    let before = tokens[..i].iter().rev().take_while(near).any(other_logit);
    before || tokens[i + 1..].iter().take_while(near).any(other_logit)
}

fn verdict(token: u32, doubt: bool) -> Verdict {
    match doubt {
        true => Verdict::InDoubt(token),
        false => Verdict::Token(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    const MASKED: f32 = f32::NEG_INFINITY;

    fn params() -> SamplingParams {
        SamplingParams::new()
    }

    #[test]
    fn the_set_is_the_smallest_that_reaches_p() {
        let row: Vec<f32> = [0.4f32, 0.3, 0.2, 0.1].map(f32::ln).to_vec();
        let p = params().with_top_p(0.6);
        // .4 of .7 is .571.
        assert_eq!(sample(&row, &p, 0.57), Verdict::Token(0));
        assert_eq!(sample(&row, &p, 0.58), Verdict::Token(1));
        assert_eq!(sample(&row, &p, 0.999_999_9), Verdict::Token(1));
        assert_eq!(sample(&row, &params().with_top_k(1), 0.9), Verdict::Token(0));
        // .1 of .9 and of the best's .4.
        assert_eq!(sample(&row, &params().with_min_p(0.3), 0.999), Verdict::Token(2));
        assert_eq!(sample(&row, &params().with_epsilon(0.15), 0.999), Verdict::Token(2));
    }

    #[test]
    fn near_boundaries_are_in_doubt() {
        assert_eq!(sample(&[1.0f32; 4], &params(), 0.5), Verdict::InDoubt(2));
        assert_eq!(sample(&[1.0f32; 4], &params(), 0.5 - 2e-6), Verdict::Token(1));
        assert_eq!(sample(&[1.0f32; 4], &params(), 0.0), Verdict::Token(0));
        let p = params().with_top_p(0.5);
        assert!(matches!(sample(&[1.0f32; 4], &p, 0.1), Verdict::InDoubt(_)));
        let p = params().with_min_p(1.0);
        assert!(matches!(sample(&[1.0f32; 4], &p, 0.1), Verdict::InDoubt(0)));
    }

    #[test]
    fn typical_keeps_its_own_order() {
        let row: Vec<f32> = [0.6f32, 0.3, 0.1].map(f32::ln).to_vec();
        assert_eq!(sample(&row, &params().with_typical_p(0.2), 0.9), Verdict::Token(1));
        assert_eq!(sample(&row, &params().with_typical_p(1.0), 0.29), Verdict::Token(1));
        assert_eq!(sample(&row, &params().with_typical_p(1.0), 0.31), Verdict::Token(0));
        let row = [1.0f32, 0.0, MASKED];
        assert_eq!(sample(&row, &params().with_typical_p(0.7), 0.99), Verdict::Token(0));
    }

    /// One token above the mean and two below it, all as far from it but for 1e-8: which come first can't be told, so that
    /// whatever is drawn is in doubt, also where its neighbour has the same logit.
    #[test]
    fn typical_doubts_beyond_equal_logits() {
        let half = -std::f32::consts::LN_2;
        for u in [0.1, 0.3, 0.6, 0.9] {
            let verdict = sample(&[0.0, half, half], &params().with_typical_p(1.0), u);
            assert!(matches!(verdict, Verdict::InDoubt(_)), "{u}: {verdict:?}");
        }
    }

    #[test]
    fn greedy_and_refusals() {
        let greedy = params().with_temperature(0.0);
        assert_eq!(sample(&[0.0f32, 1.0, 1.0], &greedy, 0.9), Verdict::Token(1));
        assert_eq!(sample(&[-0.0f32, 0.0], &greedy, 0.9), Verdict::Token(0));
        for row in [&[][..], &[MASKED], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(sample(row, &params(), 0.5), Verdict::Refused);
        }
        assert_eq!(sample(&[1.0f32], &params(), 1.0), Verdict::Refused);
        let p = params().with_top_p(0.0);
        assert_eq!(sample(&[1.0f32], &p, 0.5), Verdict::Refused);
    }

    #[test]
    fn mirostat_by_hand() {
        let row: Vec<f32> = [0.6f32, 0.3, 0.1].map(f32::ln).to_vec();
        // Surprises .737, 1.737, 3.322 bits.
        assert_eq!(mirostat_v2(&row, 1.0, 1.5, 0.99), Verdict::Token(0));
        assert_eq!(mirostat_v2(&row, 1.0, 1.8, 0.99), Verdict::Token(1));
        assert_eq!(mirostat_v2(&row, 1.0, 4.0, 0.99), Verdict::Token(2));
        // k = 2 on i^-2, mu = 2, V = 4.
        let row: Vec<f32> = (1..=4).map(|i| -2.0 * (i as f32).ln()).collect();
        assert_eq!(mirostat_v1(&row, 1.0, 2.0, 100, 0.99), Verdict::Token(1));
        assert_eq!(mirostat_v1(&row, 1.0, 2.0, 100, 0.79), Verdict::Token(0));
        assert_eq!(mirostat_v1(&row, 1.0, -1e9, 100, 0.99), Verdict::Token(0));
        assert_eq!(mirostat_v1(&row, 1.0, 1e9, 100, 0.99), Verdict::Token(3));
    }

    /// splitmix64.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) as f64 / 2f64.powi(64) * (1.0 - f64::EPSILON)
        }

        fn row(&mut self, len: usize) -> Vec<f32> {
            let spread = 0.1 + 8.0 * self.uniform();
            let grid = self.uniform() < 0.3;
            (0..len)
                .map(|_| {
                    let normal: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
                    match (self.uniform() < 0.05, grid) {
                        (true, _) => MASKED,
                        (_, true) => (normal * spread).round() as f32,
                        _ => (normal * spread) as f32,
                    }
                })
                .collect()
        }

        fn params(&mut self) -> SamplingParams {
            let hot = if self.uniform() < 0.1 { 50.0 } else { 3.0 };
            let mut p = params().with_temperature((self.uniform() * hot + 0.05) as f32);
            let mut on = |x: &mut f64| {
                *x = self.uniform();
                self.uniform() < 0.35
            };
            let mut x = 0.0;
            if on(&mut x) {
                p = p.with_top_k(1 + (x * 60.0) as u32);
            }
            if on(&mut x) {
                p = p.with_top_p(x.max(1e-9));
            }
            if on(&mut x) {
                p = p.with_min_p(x * x * x * 0.5);
            }
            if on(&mut x) {
                p = p.with_typical_p(x.max(1e-9));
            }
            if on(&mut x) {
                p = p.with_epsilon(x * x * x * 0.1);
            }
            p
        }
    }

    /// Counts doubts; panics on a disagreement without one.
    fn compare(verdict: Verdict, token: u32, doubts: &mut u32, context: impl core::fmt::Debug) {
        match verdict {
            Verdict::Token(t) => assert_eq!(t, token, "{context:?}"),
            Verdict::InDoubt(_) => *doubts += 1,
            Verdict::Refused => panic!("refused: {context:?}"),
        }
    }

    #[test]
    fn the_reference_agrees() {
        let mut random = Random(1);
        let (mut doubts, mut runs) = (0, 0);
        for round in 0..2000 {
            let row = random.row([2, 5, 40, 300, 3000][round % 5]);
            if row.iter().all(|&l| l == MASKED) {
                continue;
            }
            let (p, u) = (random.params(), random.uniform());
            let token = reference::sample(&row, &p, u).unwrap().token;
            compare(sample(&row, &p, u), token, &mut doubts, (round, &p, u));

            let mu = random.uniform() * 12.0;
            let token = reference::mirostat_v2(&row, p.temperature, mu, u).unwrap().token;
            let verdict = mirostat_v2(&row, p.temperature, mu, u);
            compare(verdict, token, &mut doubts, (round, &p, u, mu));

            let m = 2 + (random.uniform() * 100.0) as usize;
            let token = reference::mirostat_v1(&row, p.temperature, mu, m, u).unwrap().token;
            let verdict = mirostat_v1(&row, p.temperature, mu, m, u);
            compare(verdict, token, &mut doubts, (round, &p, u, mu, m));
            runs += 3;
        }
        println!("{doubts} of {runs} in doubt");
        assert!(doubts * 20 < runs, "{doubts} of {runs} in doubt");
    }
}
