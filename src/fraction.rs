//! Shares of a mass, exactly: `p * M` for an f64 `p` and a u64 `M`, rounded up (cuts) or down (draws).

/// Splits a finite `p >= 0` into `a * 2^-b` with `a < 2^53`.
fn split(p: f64) -> (u64, u32) {
    let bits = p.to_bits();
    let exponent = (bits >> 52) as u32 & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, 1074) } else { (fraction | 1 << 52, 1075 - exponent) }
}

/// `ceil(p * mass)` for `p` in `[0, 1]`.
pub(crate) fn cut(p: f64, mass: u64) -> u64 {
    let (a, b) = split(p);
    let product = u128::from(a) * u128::from(mass);
    if b >= 128 {
        return u64::from(product != 0);
    }
    let floor = product >> b;
    let rest = product & ((1u128 << b) - 1);
    floor as u64 + u64::from(rest != 0)
}

/// `floor(u * mass)` for `u` in `[0, 1)`; less than the mass.
pub(crate) fn floor(u: f64, mass: u64) -> u64 {
    let (a, b) = split(u);
    let product = u128::from(a) * u128::from(mass);
    if b >= 128 { 0 } else { (product >> b) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dyadic_shares_are_exact_and_others_round_their_way() {
        assert_eq!(cut(0.75, 8), 6);
        assert_eq!(cut(0.75, 9), 7);
        assert_eq!(floor(0.75, 9), 6);
        assert_eq!(cut(1.0, u64::MAX >> 1), u64::MAX >> 1);
        // 0.1 as f64 is a little more than a tenth, 0.3 a little less than three tenths.
        assert_eq!(cut(0.1, 10_000_000_000_000_000_000), 1_000_000_000_000_000_056);
        assert_eq!(floor(0.3, 10_000_000_000_000_000_000), 2_999_999_999_999_999_888);
    }

    #[test]
    fn tiny_shares_cut_one_and_draw_nothing() {
        for p in [f64::MIN_POSITIVE, 5e-324, 1e-60] {
            assert_eq!(cut(p, 1 << 63), 1, "{p}");
            assert_eq!(floor(p, 1 << 63), 0, "{p}");
        }
        assert_eq!(cut(0.0, 1 << 63), 0);
        assert_eq!(floor(0.0, 1 << 63), 0);
    }

    #[test]
    fn the_largest_draw_stays_below_the_mass() {
        for mass in [1, 2, 1 << 43, (1 << 63) - 1, 1 << 63] {
            let largest = 1.0 - f64::EPSILON / 2.0;
            assert_eq!(floor(largest, mass), mass - mass.div_ceil(1 << 53), "{mass}");
        }
    }
}
