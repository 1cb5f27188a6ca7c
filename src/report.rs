//! Scalar formulas behind the reported numbers. The fast path and the reference share this file, and nothing else but
//! the weight function and the parameters.

use core::f64::consts::LOG2_E;

/// `L = log(S * 2^-43)`, the log of the total weight, in nats.
pub(crate) fn log_total(total: u64) -> f64 {
    libm::log(total as f64 * (1.0 / crate::kernels::ONE as f64))
}

/// The log-probability in nats, `x - L`. Never -0, so that reports don't depend on the sign of a zero.
pub(crate) fn logprob(x: f64, log_total: f64) -> f64 {
    x - log_total + 0.0
}

/// The surprise in bits, `(L - x) / ln 2`.
pub(crate) fn surprise(x: f64, log_total: f64) -> f64 {
    (log_total - x) * LOG2_E + 0.0
}

/// The entropy in bits, from the mean of `x` under the distribution.
pub(crate) fn entropy(mean: f64, log_total: f64) -> f64 {
    (log_total - mean).max(0.0) * LOG2_E + 0.0
}

/// One mass over another: a probability, conditional probability or retained share.
pub(crate) fn share(mass: u64, of: u64) -> f64 {
    mass as f64 / of as f64
}
