//! Every public kernel, on every level that the machine has, against plain loops, bit for bit.

mod support;

use half::{bf16, f16};
use sortless::kernels::{
    Candidate, ExponentHistogram, ONE, Scale, argmax_first, collect, exp_mass, exp_weights,
    exponent_histogram, mass, max, weight,
};
use sortless::{Error, Level, MAX_VOCAB, NotFinite};
use support::{Make, Random};

/// The plain loops: what each kernel is defined to give.
mod plain {
    use super::*;

    pub fn fault<E: Make>(row: &[E]) -> Option<Error> {
        for (index, v) in row.iter().enumerate() {
            let v = v.to_f32();
            if v.is_nan() {
                return Some(Error::NotFinite { index, value: NotFinite::NaN });
            }
            if v == f32::INFINITY {
                return Some(Error::NotFinite { index, value: NotFinite::PosInf });
            }
        }
        None
    }

    pub fn max<E: Make>(row: &[E]) -> Result<f32, Error> {
        if let Some(error) = fault(row) {
            return Err(error);
        }
        let mut best = f32::NEG_INFINITY;
        for v in row {
            if v.to_f32() > best {
                best = v.to_f32();
            }
        }
        Ok(if best == 0.0 { 0.0 } else { best })
    }

    pub fn argmax_first<E: Make>(row: &[E]) -> Option<usize> {
        if row.is_empty() {
            return None;
        }
        let mut best = 0;
        for i in 1..row.len() {
            if row[i].to_f32() > row[best].to_f32() {
                best = i;
            }
        }
        Some(best)
    }

    pub fn weights<E: Make>(row: &[E], max: f32, temperature: f32) -> Vec<f32> {
        let mut weights = Vec::with_capacity(row.len());
        for v in row {
            weights.push(weight((v.to_f32() - max) / temperature));
        }
        weights
    }

    pub fn mass(w: f32) -> u64 {
        (f64::from(w) * 2f64.powi(43)).round_ties_even() as u64
    }

    pub fn total(weights: &[f32]) -> u64 {
        let total: u128 = weights.iter().map(|&w| u128::from(mass(w))).sum();
        u64::try_from(total).unwrap()
    }

    pub fn collect<E: Make>(row: &[E], threshold: f32) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for (id, v) in row.iter().enumerate() {
            let v = v.to_f32();
            if v >= threshold && v > f32::NEG_INFINITY {
                // +0 for either zero.
                found.push((id as u32, if v == 0.0 { 0 } else { v.to_bits() }));
            }
        }
        found
    }

    pub type Exponents = ([u32; ExponentHistogram::LEN], [u64; ExponentHistogram::LEN]);

    pub fn histogram(weights: &[f32]) -> Exponents {
        let (mut counts, mut masses) = ([0; _], [0; _]);
        for &w in weights {
            let q = mass(w);
            if q > 0 {
                let mut i = 0;
                let mut floor = 1.0;
                while w < floor {
                    floor *= 0.5;
                    i += 1;
                }
                counts[i] += 1;
                masses[i] += q;
            }
        }
        (counts, masses)
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn pairs(found: &[Candidate]) -> Vec<(u32, u32)> {
    found.iter().map(|c| (c.id(), c.logit().to_bits())).collect()
}

/// The kernels that need only a row.
fn check_scan<E: Make>(level: Level, row: &[E], what: &str) {
    let len = row.len();
    let bits = |result: Result<f32, Error>| result.map(f32::to_bits);
    assert_eq!(bits(max(level, row)), bits(plain::max(row)), "max of {what}, {len}, {level}");
    let (got, want) = (argmax_first(level, row), plain::argmax_first(row));
    assert_eq!(got, want, "argmax of {what}, {len}, {level}");
}

/// The kernels that need a maximum and a temperature. `expected`: what the plain loops gave.
fn check_exp<E: Make>(
    level: Level,
    row: &[E],
    scale: Scale,
    expected: &(Vec<f32>, u64, plain::Exponents),
    what: &str,
) {
    let what = format!("{what}, {} {}, T = {:e}, {level}", row.len(), E::NAME, scale.temperature());
    let (weights, total, (counts, masses)) = expected;
    let mut got = vec![-1.0; row.len()];
    assert_eq!(exp_weights(level, row, scale, &mut got), Ok(*total), "mass of {what}");
    assert!(bits(&got) == bits(weights), "weights of {what}");
    assert_eq!(exp_mass(level, row, scale), Ok(*total), "mass alone of {what}");
    let histogram = exponent_histogram(level, row, scale).unwrap();
    assert_eq!(histogram.counts(), counts, "counts of {what}");
    assert_eq!(histogram.masses(), masses, "masses of {what}");
    assert_eq!(histogram.masses().iter().sum::<u64>(), *total, "sum of the masses of {what}");
}

fn check_exp_on<E: Make>(levels: &[Level], row: &[E], max: f32, temperature: f32, what: &str) {
    let weights = plain::weights(row, max, temperature);
    let expected = (weights.clone(), plain::total(&weights), plain::histogram(&weights));
    let scale = Scale::new(max, temperature).unwrap();
    for &level in levels {
        check_exp(level, row, scale, &expected, what);
    }
}

/// `found` is dirty on purpose: the kernel replaces what is there.
fn check_collect<E: Make>(levels: &[Level], row: &[E], threshold: f32, what: &str) {
    let want = plain::collect(row, threshold);
    for &level in levels {
        let mut found = vec![Candidate::new(u32::MAX, 1e30); 3];
        collect(level, row, threshold, &mut found).unwrap();
        assert!(
            pairs(&found) == want,
            "collected from {what}, {} {}, at {threshold:e}, {level}",
            row.len(),
            E::NAME
        );
    }
}

/// Every kernel over a row without NaN and +inf.
fn check_row<E: Make>(levels: &[Level], row: &[E], temperatures: &[f32], what: &str) {
    for &level in levels {
        check_scan(level, row, what);
    }
    let top = plain::max(row).unwrap();
    // A masked row has no weights; 0 does for a maximum.
    let top = if top == f32::NEG_INFINITY { 0.0 } else { top };
    for &temperature in temperatures {
        check_exp_on(levels, row, top, temperature, what);
    }
    for threshold in [top, top - 1.0, top - 8.0, -0.0, f32::NEG_INFINITY] {
        check_collect(levels, row, threshold, what);
    }
}

fn check_lengths<E: Make>(lengths: impl Iterator<Item = usize>, temperatures: &[f32]) {
    let levels = support::levels();
    for len in lengths.filter(|&len| len <= support::longest_row()) {
        for (name, row) in support::shapes::<E>(len, 1 + len as u64) {
            check_row(&levels, &row, temperatures, name);
        }
    }
}

/// 0 to 100, and every tail of a block of 128 after many full ones.
fn short_lengths() -> impl Iterator<Item = usize> {
    (0..=100).chain(3_990..=4_120)
}

/// Around the lengths that have gone wrong elsewhere, and around the spills of the mass kernel's 32-bit lanes.
fn long_lengths() -> impl Iterator<Item = usize> {
    [8_191, 8_192, 8_193, 16_383, 16_384, 65_535, 65_536, 65_537]
        .into_iter()
        .chain([131_071, 131_072, 131_073, 151_936, 250_000])
}

#[test]
fn short_rows_f32() {
    check_lengths::<f32>(short_lengths(), &[1.0, 0.3]);
}

#[test]
fn short_rows_f16() {
    check_lengths::<f16>(short_lengths(), &[0.7]);
}

#[test]
fn short_rows_bf16() {
    check_lengths::<bf16>(short_lengths(), &[1.3]);
}

#[test]
fn long_rows_f32() {
    check_lengths::<f32>(long_lengths(), &[0.9]);
}

#[test]
fn long_rows_f16() {
    check_lengths::<f16>(long_lengths(), &[1.0]);
}

#[test]
fn long_rows_bf16() {
    check_lengths::<bf16>(long_lengths(), &[2.0]);
}

#[test]
fn temperatures_from_one_end_to_the_other() {
    let levels = support::levels();
    let temperatures =
        [f32::MIN_POSITIVE, 1e-30, 1e-4, 0.01, 0.2, 1.0, 2.0, 50.0, 1e4, 1e30, f32::MAX];
    for len in [1, 2, 17, 1000] {
        for (name, row) in support::shapes::<f32>(len, 77) {
            check_row(&levels, &row, &temperatures, name);
        }
    }
}

#[test]
fn the_longest_row_at_full_mass() {
    // 2^20 tokens of weight 1: 2^63, and every lane of the mass kernel at its limit.
    for len in [longest(), longest() - 1, longest() - 8191] {
        let row = vec![f16::from_f32(-3.0); len];
        for level in support::levels() {
            let scale = Scale::new(-3.0, 1.0).unwrap();
            assert_eq!(exp_mass(level, &row, scale), Ok(len as u64 * ONE), "{level}");
            let histogram = exponent_histogram(level, &row, scale).unwrap();
            assert_eq!(histogram.counts()[0], len as u32, "{level}");
            assert_eq!(histogram.masses()[0], len as u64 * ONE, "{level}");
            check_scan(level, &row, "the longest row");
        }
    }
}

fn longest() -> usize {
    support::longest_row().min(MAX_VOCAB)
}

#[test]
fn rows_that_are_too_long_and_outputs_of_another_length_are_refused() {
    let row = vec![0.0f32; MAX_VOCAB + 1];
    let scale = Scale::new(0.0, 1.0).unwrap();
    let error = Error::RowLength { len: MAX_VOCAB + 1 };
    for level in support::levels() {
        assert_eq!(exp_mass(level, &row, scale), Err(error.clone()));
        let mut out = vec![0.5; MAX_VOCAB + 1];
        assert_eq!(exp_weights(level, &row, scale, &mut out), Err(error.clone()));
        assert!(out.iter().all(|&w| w == 0.5));
        assert_eq!(exponent_histogram(level, &row, scale), Err(error.clone()));
        let mut found = vec![Candidate::new(1, 2.0)];
        assert_eq!(collect(level, &row, 0.0, &mut found), Err(error.clone()));
        assert_eq!(found, [Candidate::new(1, 2.0)]);
        for wrong in [2, 4] {
            let mut out = vec![0.5; wrong];
            let result = exp_weights(level, &row[..3], scale, &mut out);
            assert!(
                matches!(result, Err(Error::Shape { expected: 3, found, .. }) if found == wrong)
            );
            assert!(out.iter().all(|&w| w == 0.5));
        }
    }
}

/// All 65,536 patterns of a 16-bit type.
fn patterns<E: Make>() -> Vec<E> {
    (0..=0xffff).map(E::from_pattern).collect()
}

fn every_pattern<E: Make>() {
    let levels = support::levels();
    let all = patterns::<E>();
    let finite: Vec<E> = all.iter().copied().filter(|v| plain::fault(&[*v]).is_none()).collect();
    // All that are allowed, in one row, forwards and backwards.
    let backwards: Vec<E> = finite.iter().rev().copied().collect();
    for row in [&finite, &backwards] {
        check_row(&levels, row, &[1.0, 300.0, 1e36], "all patterns");
        for threshold in
            [1e-9, -1e-9, 1.0001, -1.0001, 70_000.0, -70_000.0, f32::MAX, f32::INFINITY]
        {
            check_collect(&levels, row, threshold, "all patterns");
        }
    }
    for &level in &levels {
        check_scan(level, &all, "all patterns with NaN");
    }
    // Each one alone, after another, and before another, with the rest of a block behind it.
    for &v in &all {
        for row in [&[v][..], &[E::make(-1.0), v], &[v, E::make(-1.0)], &[E::MASKED, v]] {
            for &level in &levels {
                check_scan(level, row, "a pattern");
            }
        }
    }
    let step = if support::longest_row() < MAX_VOCAB { 17 } else { 1 };
    for &v in all.iter().step_by(step) {
        let mut row = [E::make(0.25); 35];
        row[20] = v;
        for &level in &levels {
            check_scan(level, &row, "a pattern in a row");
        }
        let value = v.to_f32();
        if plain::fault(&[v]).is_none() {
            for threshold in [value, value.next_up(), value.next_down()] {
                check_collect(&levels, &row[18..22], threshold, "a pattern");
            }
        }
    }
}

#[test]
fn every_f16_pattern() {
    every_pattern::<f16>();
}

#[test]
fn every_bf16_pattern() {
    every_pattern::<bf16>();
}

/// What the weights of a row can't be made from: NaN, +inf and logits above the scale's maximum, in this order. Then
/// nothing is written.
fn beyond_the_scale<E: Make>() {
    let levels = support::levels();
    let step = if support::longest_row() < MAX_VOCAB { 17 } else { 1 };
    let scale = Scale::new(0.25, 1.0).unwrap();
    let above = Error::Parameter {
        name: "max",
        value: sortless::Number(0.25),
        expected: "the row's maximum",
    };
    let mut seen = [0; 3];
    for &v in patterns::<E>().iter().step_by(step) {
        let mut row = [E::make(0.25); 19];
        let at = (v.to_f32().to_bits() >> 16) as usize % 19;
        row[at] = v;
        let want = if let Some(fault) = plain::fault(&row) {
            seen[0] += 1;
            fault
        } else if v.to_f32() > 0.25 {
            seen[1] += 1;
            above.clone()
        } else {
            seen[2] += 1;
            check_exp_on(&levels, &row[at..], 0.25, 1.0, "a row with a pattern");
            continue;
        };
        for &level in &levels {
            let mut weights = [7.0; 19];
            let got = exp_weights(level, &row, scale, &mut weights);
            assert_eq!(got, Err(want.clone()), "{v:?}, {level}");
            assert_eq!(weights, [7.0; 19], "{level}");
            assert_eq!(exp_mass(level, &row, scale), Err(want.clone()), "{v:?}, {level}");
            assert_eq!(exponent_histogram(level, &row, scale), Err(want.clone()), "{v:?}, {level}");
        }
    }
    assert!(seen.iter().all(|&n| n > 10), "{seen:?}");
}

#[test]
fn nan_infinity_and_logits_above_the_maximum_have_no_weights() {
    beyond_the_scale::<f16>();
    beyond_the_scale::<bf16>();
}

#[test]
fn a_maximum_above_the_row_s_is_fine() {
    let levels = support::levels();
    for (name, row) in support::shapes::<f32>(1000, 4) {
        let top = plain::max(&row).unwrap();
        for above in [0.0, 0.5, 3.0, 40.0, 100.0] {
            if (top + above).is_finite() {
                check_exp_on(&levels, &row, top + above, 1.0, name);
            }
        }
    }
}

/// Every kind of NaN and +inf that a type has a few of.
fn faults<E: Make>() -> Vec<E> {
    let mut bits: Vec<u32> = match size_of::<E>() {
        2 => patterns::<E>()
            .iter()
            .zip(0..)
            .filter_map(|(&v, bits)| plain::fault(&[v]).map(|_| bits))
            .collect(),
        _ => vec![
            0x7f80_0000,
            0x7f80_0001,
            0x7fc0_0000,
            0x7fff_ffff,
            0xff80_0001,
            0xffc0_0000,
            0xffff_ffff,
        ],
    };
    // The ends of each run of patterns are what comparisons get wrong.
    bits.dedup_by_key(|b| *b >> 6);
    bits.into_iter().map(E::from_pattern).collect()
}

fn faults_everywhere<E: Make>() {
    let levels = support::levels();
    let faults = faults::<E>();
    // Blocks are 128 long, groups 16; each length has another tail.
    for len in [1, 2, 15, 16, 17, 31, 127, 128, 129, 143, 300] {
        let row: Vec<E> = support::convert(&support::half_masked(len, len as u64));
        for at in 0..len {
            for (i, &fault) in faults.iter().enumerate() {
                if len > 17 && i % 3 != at % 3 {
                    continue;
                }
                let mut row = row.clone();
                row[at] = fault;
                let want = plain::fault(&row);
                assert!(matches!(want, Some(Error::NotFinite { index, .. }) if index == at));
                // A second fault, of any kind, behind it: the lowest index is reported.
                let second = at + 1 + (i * 7 + at) % 40;
                if let Some(v) = row.get_mut(second) {
                    *v = faults[(i + at) % faults.len()];
                }
                for &level in &levels {
                    check_scan(level, &row, "a row with faults");
                    let mut found = vec![Candidate::new(9, 9.0)];
                    let got = collect(level, &row, 0.0, &mut found);
                    assert_eq!(got.err(), want, "{len}, {at}, {level}");
                    assert_eq!(found, [Candidate::new(9, 9.0)], "{level}");
                }
            }
        }
    }
    // In a long row at every class of position: the ends, the middle, both sides of a block's edge.
    let len = support::longest_row().min(70_001);
    let clean: Vec<E> = support::convert(&support::flat(len, 5));
    for at in
        [0, 1, 15, 16, 127, 128, len / 2, len / 128 * 128 - 1, len / 128 * 128, len - 2, len - 1]
    {
        for &fault in &faults {
            let mut row = clean.clone();
            row[at] = fault;
            for &level in &levels {
                assert_eq!(max(level, &row).err(), plain::fault(&row), "{at}, {level}");
                assert_eq!(argmax_first(level, &row), plain::argmax_first(&row), "{at}, {level}");
            }
        }
    }
}

#[test]
fn faults_at_every_position_f32() {
    faults_everywhere::<f32>();
}

#[test]
fn faults_at_every_position_f16() {
    faults_everywhere::<f16>();
}

#[test]
fn faults_at_every_position_bf16() {
    faults_everywhere::<bf16>();
}

#[test]
fn a_threshold_that_is_nan_is_refused() {
    for level in support::levels() {
        let mut found = vec![Candidate::new(9, 9.0)];
        let result = collect(level, &[1.0f32], f32::NAN, &mut found);
        assert!(matches!(result, Err(Error::Parameter { name: "threshold", .. })), "{result:?}");
        assert_eq!(found, [Candidate::new(9, 9.0)]);
    }
}

/// 600 rows of 1 to 40 tokens from a small set of values, so that ties, zeros of both signs, NaN and infinities meet.
fn fixtures<E: Make>() {
    let levels = support::levels();
    let mut random = Random::new(600);
    let values =
        [0.0, -0.0, 1.0, 1.0, -1.0, 2.5, f32::NEG_INFINITY, f32::INFINITY, f32::NAN, -f32::NAN];
    let mut seen = [0; 5];
    for case in 0..600 {
        let len = 1 + random.below(40);
        // A third without NaN and infinities, a third without NaN, a third of everything.
        let choice = [6, 8, 10][case % 3];
        let mut row: Vec<E> = (0..len).map(|_| E::make(values[random.below(choice)])).collect();
        match case % 12 {
            2 => row[0] = E::make(f32::NAN),
            5 => row[len - 1] = E::make(f32::NAN),
            // Only zeros: the first wins, whatever its sign.
            9 => row = (0..len).map(|_| E::make(values[random.below(2)])).collect(),
            _ => {}
        }
        let best = plain::argmax_first(&row).unwrap();
        let nan = |v: &E| v.to_f32().is_nan();
        let equal = |v: &&E| v.to_f32() == row[best].to_f32();
        seen[0] += usize::from(row.iter().filter(equal).count() > 1);
        seen[1] += usize::from(nan(&row[0]));
        seen[2] += usize::from(!nan(&row[0]) && row.iter().any(nan));
        seen[3] += usize::from(row[best].to_f32() == f32::INFINITY);
        seen[4] += usize::from(row[best].to_f32() == 0.0);
        for &level in &levels {
            check_scan(level, &row, &format!("fixture {case}: {row:?}"));
        }
    }
    // Each kind did occur.
    assert!(seen.iter().all(|&n| n > 20), "{seen:?}");
}

#[test]
fn argmax_on_600_fixtures_of_each_type() {
    fixtures::<f32>();
    fixtures::<f16>();
    fixtures::<bf16>();
}

#[test]
fn the_first_of_equal_maxima_wins() {
    for level in support::levels() {
        for len in [33, 64, 200, 4096] {
            let mut row = vec![0.5f32; len];
            (row[17], row[32]) = (3.0, 3.0);
            assert_eq!(argmax_first(level, &row), Some(17), "{level}");
        }
        // Every pair of places in a row of two blocks and a tail, the later one in another lane, group or block.
        for first in (0..270).step_by(7) {
            for second in (first + 1..275).step_by(11) {
                let mut row = vec![bf16::from_f32(-7.0); 275];
                (row[first], row[second]) = (bf16::ONE, bf16::ONE);
                assert_eq!(argmax_first(level, &row), Some(first), "{level}");
            }
        }
    }
}

#[test]
fn zeros_of_both_signs_tie() {
    for level in support::levels() {
        for row in [[0.0f32, -0.0], [-0.0, 0.0]] {
            assert_eq!(argmax_first(level, &row), Some(0), "{level}");
            assert_eq!(max(level, &row).map(f32::to_bits), Ok(0), "{level}");
        }
        let mut row = vec![-1.0f32; 200];
        (row[17], row[32], row[150]) = (-0.0, 0.0, 0.0);
        assert_eq!(argmax_first(level, &row), Some(17), "{level}");
        let mut found = Vec::new();
        for threshold in [0.0, -0.0] {
            collect(level, &row, threshold, &mut found).unwrap();
            assert_eq!(pairs(&found), [(17, 0), (32, 0), (150, 0)], "{level}");
        }
    }
}

#[test]
fn masked_rows_and_empty_rows() {
    let scale = Scale::new(0.0, 1.0).unwrap();
    for level in support::levels() {
        for len in [0, 1, 16, 40, 128, 129, 300] {
            let row = vec![f32::NEG_INFINITY; len];
            assert_eq!(max(level, &row), Ok(f32::NEG_INFINITY));
            assert_eq!(argmax_first(level, &row), (len > 0).then_some(0));
            let mut weights = vec![1.0; len];
            assert_eq!(exp_weights(level, &row, scale, &mut weights), Ok(0));
            assert!(weights.iter().all(|w| w.to_bits() == 0));
            assert_eq!(exp_mass(level, &row, scale), Ok(0));
            let mut found = vec![Candidate::new(0, 0.0)];
            collect(level, &row, f32::NEG_INFINITY, &mut found).unwrap();
            assert!(found.is_empty());
            assert_eq!(exponent_histogram(level, &row, scale).unwrap().counts(), &[0; _]);
        }
    }
}

/// Logits whose weights lie around the smallest masses: half a unit, one, and one and a half.
#[test]
fn the_smallest_masses() {
    let levels = support::levels();
    let ln2 = core::f64::consts::LN_2;
    let mut row = vec![0.0f32];
    for units in [0.5, 1.0, 1.5, 2.0, 2.5, 3.5] {
        let centre = ((f64::ln(units) - 43.0 * ln2) as f32).to_bits();
        row.extend((centre - 40..=centre + 40).map(f32::from_bits));
    }
    check_row(&levels, &row, &[1.0], "the smallest masses");
    let masses: Vec<u64> = row[1..].iter().map(|&x| mass(weight(x))).collect();
    for q in 0..=4 {
        assert!(masses.contains(&q), "none has mass {q}");
    }
    // Exact ties, by weights whose mass is a half: even wins, also with a big part above.
    for (w, q) in [
        (2f32.powi(-44), 0),
        (2f32.powi(-44).next_up(), 1),
        (3.0 * 2f32.powi(-44), 2),
        (5.0 * 2f32.powi(-44), 2),
        (7.0 * 2f32.powi(-44), 4),
        (f32::from_bits((2f32.powi(-20)).to_bits() + 1), (1 << 23) + 1),
        (f32::from_bits((2f32.powi(-21)).to_bits() + 1), 1 << 22),
        (f32::from_bits((2f32.powi(-21)).to_bits() + 3), (1 << 22) + 2),
    ] {
        assert_eq!(mass(w), q, "{w:e}");
        assert_eq!(plain::mass(w), q, "{w:e}");
    }
}

#[test]
fn masses_of_all_kinds_of_weights() {
    let last = 1.0f32.to_bits();
    for bits in (0..=last).step_by(1009).chain(last - 100..=last) {
        let w = f32::from_bits(bits);
        assert_eq!(mass(w), plain::mass(w), "{w:e}");
    }
}

#[test]
fn candidates_order_as_the_rank() {
    let mut random = Random::new(3);
    let values = [0.0, -0.0, 1.0, -1.0, f32::MAX, f32::MIN, 1e-45, -1e-45, f32::NEG_INFINITY];
    let list: Vec<(u32, f32)> =
        (0..400).map(|_| (random.below(50) as u32, values[random.below(values.len())])).collect();
    for &(a, x) in &list {
        for &(b, y) in &list {
            let rank = y.partial_cmp(&x).unwrap().then(a.cmp(&b));
            assert_eq!(Candidate::new(a, x).cmp(&Candidate::new(b, y)), rank, "{a} {x} {b} {y}");
        }
        assert_eq!((Candidate::new(a, x).id(), Candidate::new(a, x).logit()), (a, x));
    }
}

#[test]
fn the_real_rows_give_the_engine_s_tokens() {
    let real = support::whisper();
    assert_eq!(real.f16.len(), 26);
    assert_eq!((real.f16.len(), real.f32.len()), (real.greedy.len(), real.twins.len()));
    assert!(real.f16.iter().all(|row| row.len() == real.vocab));
    assert!(real.f32.iter().all(|row| row.len() == real.vocab));
    assert!(real.greedy.contains(&None));
    for level in support::levels() {
        for (row, token) in real.f16.iter().zip(&real.greedy) {
            let token = token.unwrap_or(support::END_OF_TEXT);
            assert_eq!(argmax_first(level, row), Some(token), "{level}");
            let mut masked = row.clone();
            for &id in &real.suppress_ids {
                masked[id] = f16::NEG_INFINITY;
            }
            assert_eq!(argmax_first(level, &masked), Some(token), "{level}");
        }
        for (row, &twin) in real.f32.iter().zip(&real.twins) {
            assert!(support::convert::<f16>(row) == real.f16[twin]);
            assert_eq!(argmax_first(level, row), real.greedy[twin], "{level}");
        }
    }
}

#[test]
fn the_real_rows_on_all_levels() {
    let levels = support::levels();
    let real = support::whisper();
    let few = if support::longest_row() < MAX_VOCAB { 2 } else { real.f16.len() };
    for row in &real.f16[..few] {
        check_row(&levels, row, &[0.7], "a real f16 row");
    }
    for row in &real.f32[..few.min(real.f32.len())] {
        check_row(&levels, row, &[0.7], "a real f32 row");
    }
}
