//! What is done to logits before sampling, against plain loops; and that a failure leaves the row alone.

use super::bytes::{Bytes, Random};
use super::params::temperature;
use super::row::{Frame, length, row, show};
use crate::error::{Error, NotFinite};
use crate::process::{Op, Tally, apply, apply_batch};

/// Checks preprocessing on the case that these bytes say.
///
/// # Errors
/// The case in full, and what is wrong with it.
pub fn process(bytes: &[u8]) -> Result<(), String> {
    super::check(bytes, [case])
}

/// An [`Op`] that owns its lists.
#[derive(Clone, Debug)]
enum Owned {
    Mask(Vec<bool>),
    PackedMask(Vec<u32>),
    Allow(Vec<u32>),
    Block(Vec<u32>),
    Bias(Vec<f32>),
    SparseBias(Vec<(u32, f32)>),
    Repetition(Vec<u32>, f32),
    PresenceFrequency(Vec<u32>, f32, f32),
    Temperature(f32),
}

impl Owned {
    fn read(b: &mut Bytes<'_>, len: usize) -> Self {
        match b.below(9) {
            0 => {
                let (mut random, dense) = (Random(b.u64()), b.of(&[1, 2, 8]));
                let n = if b.chance(10) { len + 1 } else { len };
                Self::Mask((0..n).map(|_| random.below(dense) == 0).collect())
            }
            1 => {
                let mut random = Random(b.u64());
                let and = b.of(&[u64::MAX, 0x8000_0001, 0, 0xffff]);
                let n = (len.div_ceil(32) + 1).saturating_sub(b.below(3));
                Self::PackedMask((0..n).map(|_| (random.u64() & and) as u32).collect())
            }
            2 => Self::Allow(ids(b, len)),
            3 => Self::Block(ids(b, len)),
            4 => {
                let n = if b.chance(10) { len + 1 } else { len };
                Self::Bias((0..n).map(|_| number(b)).collect())
            }
            5 => Self::SparseBias(ids(b, len).into_iter().map(|id| (id, number(b))).collect()),
            6 => {
                let penalty = b.of(&[1.2, 1.0, 2.0, f32::MAX, 0.5, f32::NAN, f32::INFINITY]);
                Self::Repetition(ids(b, len), penalty)
            }
            7 => Self::PresenceFrequency(ids(b, len), number(b), number(b)),
            _ => Self::Temperature(temperature(b)),
        }
    }

    fn op(&self) -> Op<'_> {
        match self {
            Self::Mask(allowed) => Op::Mask(allowed),
            Self::PackedMask(words) => Op::PackedMask(words),
            Self::Allow(ids) => Op::Allow(ids),
            Self::Block(ids) => Op::Block(ids),
            Self::Bias(biases) => Op::Bias(biases),
            Self::SparseBias(biases) => Op::SparseBias(biases),
            Self::Repetition(history, penalty) => {
                Op::RepetitionPenalty { history, penalty: *penalty }
            }
            Self::PresenceFrequency(history, presence, frequency) => {
                Op::PresenceFrequencyPenalty { history, presence: *presence, frequency: *frequency }
            }
            &Self::Temperature(t) => Op::Temperature(t),
        }
    }

    /// The plain way: the row after this, or the error that must come.
    fn plain(&self, row: &[f32]) -> Result<Vec<f32>, Error> {
        const MASKED: f32 = f32::NEG_INFINITY;
        let len = row.len();
        if len == 0 || len > crate::MAX_VOCAB {
            return Err(Error::RowLength { len });
        }
        let check = |mut ids: core::slice::Iter<'_, u32>| match ids.find(|&&id| id as usize >= len)
        {
            Some(&id) => Err(Error::TokenId { id, len }),
            None => Ok(()),
        };
        let fits = |what, found| match found == len {
            true => Ok(()),
            false => Err(Error::Shape { what, expected: len, found }),
        };
        let some = |row: Vec<f32>| match row.iter().any(|&l| l != MASKED) {
            true => Ok(row),
            false => Err(Error::NoAllowedToken),
        };
        let only = |allowed: &dyn Fn(usize) -> bool| {
            let kept = row.iter().enumerate().map(|(i, &l)| if allowed(i) { l } else { MASKED });
            some(kept.collect())
        };
        let add = |row: &mut [f32], id: u32, bias: f32| {
            let logit = &mut row[id as usize];
            let sum = *logit + bias;
            if bias.is_nan() {
                return Err(Error::Bias { id, value: NotFinite::NaN });
            }
            if bias == f32::INFINITY {
                return Err(Error::Bias { id, value: NotFinite::PosInf });
            }
            if logit.is_finite() && bias.is_finite() && sum.is_infinite() {
                return Err(Error::Overflow { id });
            }
            *logit = sum;
            Ok(())
        };
        let times = |history: &[u32], id: u32| history.iter().filter(|&&i| i == id).count();
        // Each id once, where it stands first.
        let distinct = |history: &[u32]| -> Vec<u32> {
            let new = |&(i, id): &(usize, &u32)| !history[..i].contains(id);
            history.iter().enumerate().filter(new).map(|(_, &id)| id).collect()
        };
        let mut out = row.to_vec();
        let change = |out: &mut Vec<f32>, id: u32, f: &dyn Fn(f32) -> f32| {
            let logit = &mut out[id as usize];
            if logit.is_finite() && !f(*logit).is_finite() {
                return Err(Error::Overflow { id });
            }
            if *logit != MASKED {
                *logit = f(*logit);
            }
            Ok(())
        };
        let parameter = |name, value: f32, expected| {
            let value = crate::Number(f64::from(value));
            Err(Error::Parameter { name, value, expected })
        };
        match self {
            Self::Mask(allowed) => {
                fits("length of the mask", allowed.len())?;
                only(&|i| allowed[i])
            }
            Self::PackedMask(words) => {
                only(&|i| words.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1))
            }
            Self::Allow(ids) => {
                check(ids.iter())?;
                only(&|i| ids.contains(&(i as u32)))
            }
            Self::Block(ids) => {
                check(ids.iter())?;
                only(&|i| !ids.contains(&(i as u32)))
            }
            Self::Bias(biases) => {
                fits("number of biases", biases.len())?;
                for (id, &bias) in biases.iter().enumerate() {
                    add(&mut out, id as u32, bias)?;
                }
                some(out)
            }
            Self::SparseBias(biases) => {
                let ids: Vec<u32> = biases.iter().map(|&(id, _)| id).collect();
                check(ids.iter())?;
                for &(id, bias) in biases {
                    if times(&ids, id) > 1 {
                        return Err(Error::RepeatedId { id });
                    }
                    add(&mut out, id, bias)?;
                }
                some(out)
            }
            Self::Repetition(history, penalty) => {
                if !(*penalty >= 1.0 && penalty.is_finite()) {
                    return parameter("repetition penalty", *penalty, "at least 1 and finite");
                }
                check(history.iter())?;
                for id in distinct(history) {
                    change(&mut out, id, &|l| if l > 0.0 { l / penalty } else { l * penalty })?;
                }
                Ok(out)
            }
            Self::PresenceFrequency(history, presence, frequency) => {
                for (name, value) in
                    [("presence penalty", presence), ("frequency penalty", frequency)]
                {
                    if !value.is_finite() {
                        return parameter(name, *value, "finite");
                    }
                }
                check(history.iter())?;
                for id in distinct(history) {
                    let count = times(history, id) as f64;
                    let penalty = f64::from(*presence) + count * f64::from(*frequency);
                    change(&mut out, id, &|l| (f64::from(l) - penalty) as f32)?;
                }
                Ok(out)
            }
            Self::Temperature(t) => {
                crate::params::check_temperature(*t)?;
                let max = crate::reference::max(row)?;
                if max == MASKED {
                    return Err(Error::NoAllowedToken);
                }
                let scale = |&l: &f32| match l {
                    MASKED => MASKED,
                    _ => ((l - max) / t).max(f32::MIN),
                };
                Ok(row.iter().map(scale).collect())
            }
        }
    }
}

/// A list of ids; some repeated, and now and then one outside the row.
fn ids(b: &mut Bytes<'_>, len: usize) -> Vec<u32> {
    let n = b.of(&[1, 0, 2, 3, 10, 40]);
    let mut ids: Vec<u32> = (0..n).map(|_| b.below(len) as u32).collect();
    if b.chance(12) {
        ids.push(b.of(&[len as u32, u32::MAX, 1 << 20]));
    }
    // Everything: with the row's last token, nothing is left.
    if b.chance(12) {
        ids.extend(0..len as u32);
    }
    ids
}

fn number(b: &mut Bytes<'_>) -> f32 {
    match b.below(12) {
        0 => f32::NEG_INFINITY,
        1 => b.of(&[f32::MAX, f32::MIN, -0.0, 1e-40]),
        2 if b.chance(60) => b.of(&[f32::NAN, f32::INFINITY]),
        _ => f32::from(b.u8()) / 16.0 - 8.0,
    }
}

fn case(b: &mut Bytes<'_>) -> Result<(), String> {
    let frame = Frame::read(b, 1.0);
    let len = length(b, 1500);
    let row = row::<f32>(b, frame, len);
    let ops: Vec<Owned> = (0..1 + b.below(4)).map(|_| Owned::read(b, len)).collect();
    let list: Vec<Op<'_>> = ops.iter().map(Owned::op).collect();
    let want = ops.iter().try_fold(row.clone(), |row, op| op.plain(&row));
    let case = || format!("{ops:?}, {}", show(&row));
    // NaN keeps no payload through arithmetic; that it is one is all that matters.
    let bits = |row: &[f32]| -> Vec<u32> {
        row.iter().map(|l| if l.is_nan() { 0x7fc0_0000 } else { l.to_bits() }).collect()
    };
    let check = |what: &str, outcome: &Result<(), Error>, got: &[f32]| {
        let same = match (outcome, &want) {
            (Ok(()), Ok(want)) => bits(got) == bits(want),
            (Err(a), Err(b)) => a == b && bits(got) == bits(&row),
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(format!("{what}: {outcome:?} {got:?}, not {want:?}; {}", case()))
        }
    };
    let mut tally = Tally::new();
    // The second time with what the first one left behind.
    for time in ["first", "second"] {
        let mut got = row.clone();
        let outcome = apply(&mut got, &list, &mut tally);
        check(time, &outcome, &got)?;
    }
    let (mut first, mut second, mut empty) = (row.clone(), row.clone(), Vec::new());
    let outcomes = apply_batch(&mut [&mut first, &mut empty, &mut second], &[&list]);
    let outcomes = outcomes.map_err(|error| format!("batch: {error:?}; {}", case()))?;
    check("batch", &outcomes[0], &first)?;
    check("batch", &outcomes[2], &second)
}
