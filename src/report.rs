//! Scalar formulas behind the reported numbers. The fast path and the reference share this file, and nothing else but
//! the weight function and the parameters.

use core::f64::consts::{LN_2, LOG2_E};

/// `L = log(S * 2^-43)`, the log of the total weight, in nats.
pub(crate) fn log_total(total: u64) -> f64 {
    libm::log(total as f64 * (1.0 / crate::kernels::ONE as f64))
}

/// The exponent argument of a token that came as a weight: `log(w)`.
pub(crate) fn log_weight(weight: f32) -> f64 {
    libm::log(f64::from(weight))
}

/// `(l - m) / T` of an unmasked token can overflow, `log(w)` of a weight that rounds to 0 is -inf:
/// the lowest f32 stands for both, so that what is reported stays finite.
fn finite(x: f64) -> f64 {
    x.max(f64::from(f32::MIN))
}

/// The log-probability in nats, `x - L`. Never -0, so that reports don't depend on the sign of a zero.
pub(crate) fn logprob(x: f64, log_total: f64) -> f64 {
    finite(x) - log_total + 0.0
}

/// The surprise in bits, `(L - x) / ln 2`.
pub(crate) fn surprise(x: f64, log_total: f64) -> f64 {
    (log_total - finite(x)) * LOG2_E + 0.0
}

/// The entropy in bits, from the mean of `x` under the distribution.
pub(crate) fn entropy(mean: f64, log_total: f64) -> f64 {
    (log_total - mean).max(0.0) * LOG2_E + 0.0
}

/// One mass over another: a probability, conditional probability or retained share.
pub(crate) fn share(mass: u64, of: u64) -> f64 {
    mass as f64 / of as f64
}

/// Mirostat's estimate of the Zipf exponent, from the exponent arguments of the best tokens, in
/// rank order, all finite: `sum(t b) / sum(t^2)` with `t_i = ln((i + 2) / (i + 1))`,
/// `b_i = x_i - x_(i+1)`. At least 1e-6, also for fewer than two.
pub(crate) fn zipf_slope(xs: &[f64]) -> f64 {
    let (mut tb, mut tt) = (0.0, 0.0);
    for (i, pair) in xs.windows(2).enumerate() {
        let t = libm::log((i + 2) as f64 / (i + 1) as f64);
        tb += t * (pair[0] - pair[1]);
        tt += t * t;
    }
    let slope = tb / tt;
    // Also for NaN, 0 / 0 where there is no pair.
    if slope >= SMALL { slope } else { SMALL }
}

/// The least slope, and how near to 1 a slope counts as 1.
const SMALL: f64 = 1e-6;

/// Mirostat v1's k, in `[1, V]`: `((eps 2^mu) / (1 - V^-eps))^(1/s)` with `eps = s - 1`, rounded
/// half away from zero. In logs, so that any finite mu goes.
pub(crate) fn mirostat_k(slope: f64, mu: f64, vocab: usize) -> usize {
    if vocab <= 1 {
        return 1;
    }
    let ln_v = libm::log(vocab as f64);
    let eps = slope - 1.0;
    // (1 - V^-eps) / eps is positive for either sign of eps.
    let ratio = if eps.abs() < SMALL { ln_v } else { (1.0 - libm::exp(-eps * ln_v)) / eps };
    let ln_k = (mu * LN_2 - libm::log(ratio)) / slope;
    if ln_k >= ln_v {
        vocab
    } else if ln_k > 0.0 {
        (libm::round(libm::exp(ln_k)) as usize).clamp(1, vocab)
    } else {
        1
    }
}

/// Mirostat's feedback, `mu - eta (surprise - tau)`; the caller checks that it is finite.
pub(crate) fn next_mu(mu: f64, eta: f64, surprise: f64, tau: f64) -> f64 {
    mu - eta * (surprise - tau)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::ONE;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs().max(1.0)
    }

    #[test]
    fn logs_and_shares() {
        assert_eq!(log_total(ONE), 0.0);
        assert!(close(log_total(4 * ONE), 2.0 * LN_2));
        assert!(close(log_total(1 << 63), 20.0 * LN_2));
        assert_eq!(log_weight(1.0), 0.0);
        assert!(close(log_weight(0.25), -2.0 * LN_2));
        assert_eq!(share(1, 4), 0.25);
        assert_eq!(share(ONE, ONE), 1.0);
    }

    #[test]
    fn surprise_is_in_bits_and_logprob_in_nats() {
        let log_total = log_total(4 * ONE);
        assert!(close(surprise(0.0, log_total), 2.0));
        assert!(close(surprise(-LN_2, log_total), 3.0));
        assert!(close(logprob(-1.0, log_total), -1.0 - 2.0 * LN_2));
        assert!(close(entropy(0.0, log_total), 2.0));
        // A mean a rounding above L is no negative entropy.
        assert_eq!(entropy(1e-9, 0.0).to_bits(), 0);
    }

    #[test]
    fn reports_are_finite_and_never_minus_zero() {
        for x in [f64::NEG_INFINITY, f64::from(f32::MIN)] {
            assert_eq!(logprob(x, 1.0), f64::from(f32::MIN));
            assert!(surprise(x, 1.0).is_finite());
        }
        for x in [0.0, -0.0] {
            assert_eq!(logprob(x, 0.0).to_bits(), 0);
            assert_eq!(surprise(x, 0.0).to_bits(), 0);
        }
    }

    #[test]
    fn zipf_finds_the_exponent_of_a_power_law() {
        for exponent in [0.5, 1.0, 2.0] {
            let xs: Vec<f64> = (1..=100).map(|i| -exponent * f64::from(i).ln()).collect();
            assert!((zipf_slope(&xs) - exponent).abs() < 1e-12);
        }
        // Two tokens: b / t, here ln 4 / ln 2.
        assert!(close(zipf_slope(&[0.0, -2.0 * LN_2]), 2.0));
        for flat in [&[][..], &[0.0], &[0.0, 0.0, 0.0]] {
            assert_eq!(zipf_slope(flat), 1e-6);
        }
    }

    #[test]
    fn k_by_hand() {
        // (1 * 4 / (1 - 1/4))^(1/2) = 2.309
        assert_eq!(mirostat_k(2.0, 2.0, 4), 2);
        // The limit at s = 1: 64 / ln 32000 = 6.17
        assert_eq!(mirostat_k(1.0, 6.0, 32_000), 6);
        assert_eq!(mirostat_k(1.0 + 9e-7, 6.0, 32_000), 6);
        // (0.1 * 64 / (1 - 32000^-0.1))^(1/1.1) = 8.05; with e^mu for 2^mu it would be 42.9
        assert_eq!(mirostat_k(1.1, 6.0, 32_000), 8);
        // s < 1: (0.5 * 4 / (sqrt 100 - 1))^2 = 0.049 and (0.5 * 64 / 9)^2 = 12.64
        assert_eq!(mirostat_k(0.5, 2.0, 100), 1);
        assert_eq!(mirostat_k(0.5, 6.0, 100), 13);
    }

    #[test]
    fn k_never_overflows() {
        for slope in [1e-6, 0.3, 1.0, 1.0 - 1e-6, 1.0 + 1e-6, 3.0, 45.0, f64::MAX] {
            for vocab in [1, 2, 32_000, 1 << 20] {
                for mu in [f64::MIN, -1e4, -1.0, 0.0, 1e-300] {
                    assert_eq!(mirostat_k(slope, mu.min(-1e4), vocab), 1);
                    assert!((1..=vocab).contains(&mirostat_k(slope, mu, vocab)));
                }
                if slope < 100.0 {
                    assert_eq!(mirostat_k(slope, f64::MAX, vocab), vocab);
                    assert_eq!(mirostat_k(slope, 1e4, vocab), vocab);
                }
            }
        }
    }

    #[test]
    fn feedback() {
        // tau 5, eta 0.1, mu 10, surprise 2
        assert!(close(next_mu(10.0, 0.1, 2.0, 5.0), 10.3));
        assert!(close(next_mu(10.0, 0.1, 8.0, 5.0), 9.7));
        assert_eq!(next_mu(f64::MAX, 1e308, -1e9, 5.0), f64::INFINITY);
    }
}
