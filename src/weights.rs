//! A checked row of weights, finite and at least 0, ranked by weight. Selection is O(V); no draw sorts the vocabulary.

use crate::error::{Error, NotFinite, Number};
use crate::kernels::Candidate;
use crate::measure::{Facts, Measure};
use crate::rank::{Bracket, Inside, Need, Prefix, Ranked, Seek};
use crate::row::check_length;
use crate::select::{Buffers, Target, select};

/// Reused memory of [`Weights`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The tokens with mass, by id.
    tokens: Vec<Candidate>,
    masses: Vec<u64>,
    work: (Vec<Candidate>, Vec<u64>),
    buffers: Buffers,
}

/// A row of weights that may be sampled from.
#[derive(Debug)]
pub(crate) struct Weights<'a> {
    pub facts: Facts,
    memory: &'a mut Memory,
}

/// The largest weight of a row, after all checks.
pub(crate) fn check(values: &[f32]) -> Result<f32, Error> {
    check_length(values.len())?;
    // The valid range is what is tested, so that NaN can't slip through.
    if let Some(index) = values.iter().position(|&v| !(0.0..f32::INFINITY).contains(&v)) {
        let value = values[index];
        return Err(match value {
            _ if value.is_nan() => Error::NotFinite { index, value: NotFinite::NaN },
            f32::INFINITY => Error::NotFinite { index, value: NotFinite::PosInf },
            _ => Error::NegativeWeight { index, value: Number(f64::from(value)) },
        });
    }
    let max = values.iter().fold(0.0f32, |max, &v| if v > max { v } else { max });
    if max == 0.0 {
        return Err(Error::NoAllowedToken);
    }
    Ok(max)
}

impl<'a> Weights<'a> {
    /// Checks a row and takes its masses.
    pub fn new(values: &[f32], memory: &'a mut Memory) -> Result<Self, Error> {
        let measure = Measure::Weights(check(values)?);
        memory.tokens.clear();
        memory.masses.clear();
        let mut total = 0;
        for (id, &value) in values.iter().enumerate() {
            let mass = measure.mass(value);
            if mass != 0 {
                memory.tokens.push(Candidate::new(id as u32, value));
                memory.masses.push(mass);
                total += mass;
            }
        }
        Ok(Self { facts: Facts::new(measure, values.len(), total), memory })
    }

    fn select(&mut self, target: Target) -> Result<Prefix, Need> {
        let Memory { tokens, masses, work, buffers } = &mut *self.memory;
        work.0.clone_from(tokens);
        work.1.clone_from(masses);
        let found = select(&mut work.0, &mut work.1, target, buffers).ok_or(Need::Depth)?;
        Ok(Prefix { count: found.count, mass: found.mass, bound: found.entry })
    }

    /// The tokens whose value satisfies `keep`, which a larger one than one that does also does.
    fn prefix(&self, keep: impl Fn(f32) -> bool) -> Result<Prefix, Need> {
        let mut prefix = Prefix { count: 0, mass: 0, bound: Candidate::new(0, f32::MAX) };
        for (&token, &mass) in self.memory.tokens.iter().zip(&self.memory.masses) {
            if keep(token.logit()) {
                prefix.count += 1;
                prefix.mass += mass;
                prefix.bound = prefix.bound.max(token);
            }
        }
        if prefix.count == 0 {
            return Err(Need::Depth);
        }
        Ok(prefix)
    }
}

impl Ranked for Weights<'_> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        let measure = self.facts.measure;
        match seek {
            Seek::Mass(mass) => self.select(Target::Mass(mass)),
            Seek::Count(count) => self.select(Target::Count(count)),
            Seek::Weight(weight) => self.prefix(|v| measure.weight(v) >= weight),
            Seek::Logit(value) => self.prefix(|v| v >= value),
        }
    }

    fn total(&self) -> Result<Bracket, Need> {
        Ok(Bracket::exact(self.facts.total))
    }

    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need> {
        out.clear();
        let bound = prefix.map_or(Candidate::LAST, |p| p.bound);
        out.extend(self.memory.tokens.iter().filter(|&&t| t <= bound));
        Ok(None)
    }

    fn ring(&mut self, _: f64, _: u64, _: usize, _: &mut Vec<Candidate>) -> Result<Inside, Need> {
        Err(Need::Depth)
    }
}
