//! One row's decisions, three times: by the library, by the reference, by the oracle.

use crate::failure::Failure;
use crate::output::Out;
use crate::record::{Decision, ErrorRecord};
use crate::rows::{Row, RowError};
use crate::threads::with_scratch;
use rayon::prelude::*;
use serde::Serialize;
use sortless::oracle::{self, Verdict};
use sortless::{
    Alternative, Element, Error, Level, Path, Report, Sampler, SamplingParams, reference,
};

/// What is compared.
pub struct Task<'a> {
    pub sampler: Sampler,
    pub levels: &'a [Level],
    pub alternatives: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Tally {
    pub rows: u64,
    pub decisions: u64,
    pub comparisons: u64,
    pub refused: u64,
    pub reference: u64,
    pub oracle: u64,
    pub doubt: u64,
    pub first: Option<Difference>,
    pub first_refused: Option<BadRow>,
}

/// A row that was refused, and why.
#[derive(Clone, Debug, Serialize)]
pub struct BadRow {
    pub row: u64,
    pub error: ErrorRecord,
}

impl Tally {
    /// Adds what was found later.
    pub fn add(&mut self, later: Self) {
        self.rows += later.rows;
        self.decisions += later.decisions;
        self.comparisons += later.comparisons;
        self.refused += later.refused;
        self.reference += later.reference;
        self.oracle += later.oracle;
        self.doubt += later.doubt;
        self.first = self.first.take().or(later.first);
        self.first_refused = self.first_refused.take().or(later.first_refused);
    }
}

impl FromIterator<Tally> for Tally {
    fn from_iter<I: IntoIterator<Item = Self>>(tallies: I) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            sum.add(tally);
        }
        sum
    }
}

/// A decision that isn't what it should be, in full.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    pub row: u64,
    pub draw: usize,
    pub u: f64,
    pub parameters: String,
    pub level: String,
    pub path: String,
    /// `reference` or `oracle`.
    pub against: &'static str,
    pub expected: Found,
    pub found: Found,
}

/// A decision as far as it was reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    Report {
        #[serde(flatten)]
        decision: Decision,
        retained: f64,
        entropy_bits: f64,
    },
    Pick {
        token: u32,
        kept: Option<u32>,
    },
    Step {
        token: u32,
        kept: u32,
        probability: f64,
        surprise_bits: f64,
        mu_after: f64,
    },
    Token(u32),
    Error(ErrorRecord),
    Refused,
}

impl Found {
    fn report(result: &Result<Report, Error>) -> Self {
        match result {
            Ok(report) => Self::Report {
                decision: Decision::new(report, true),
                retained: report.retained,
                entropy_bits: report.entropy,
            },
            Err(error) => Self::error(error),
        }
    }

    fn pick(result: &Light) -> Self {
        match result {
            &Ok((token, kept)) => Self::Pick { token, kept },
            Err(error) => Self::error(error),
        }
    }

    pub fn error(error: &Error) -> Self {
        Self::Error(ErrorRecord::from(&RowError::Library(error.clone())))
    }
}

impl Difference {
    pub fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let Self { row, draw, u, parameters, level, path, against, .. } = self;
        let json = |found: &Found| serde_json::to_string(found).unwrap_or_default();
        out.line(format_args!("the first difference: from the {against}, row {row}, draw {draw}"))?;
        out.line(format_args!("  u           {u:?}"))?;
        out.line(format_args!("  parameters  {parameters}"))?;
        out.line(format_args!("  level       {level}, path {path}"))?;
        out.line(format_args!("  expected    {}", json(&self.expected)))?;
        out.line(format_args!("  found       {}", json(&self.found)))
    }
}

impl Task<'_> {
    /// A row of a file, with all its draws.
    pub fn row<E: Element>(&self, row: &Row<E>) -> Tally {
        let mut tally = Tally { rows: 1, ..Tally::default() };
        match row.check() {
            Ok(logits) => {
                let draws = row.draws.par_iter().enumerate();
                let decide = |(draw, &u): (usize, &f64)| self.decision(row.index, draw, logits, u);
                let found: Vec<Tally> = draws.map(decide).collect();
                tally.add(found.into_iter().collect());
            }
            Err(error) => {
                tally.first_refused =
                    Some(BadRow { row: row.index, error: ErrorRecord::from(&error) })
            }
        }
        tally.refused = u64::from(tally.first_refused.is_some());
        tally
    }

    /// One decision.
    pub fn decision<E: Element>(&self, row: u64, draw: usize, logits: &[E], u: f64) -> Tally {
        let params = self.sampler.params();
        let mut tally = Tally { decisions: 1, ..Tally::default() };
        let expected = reference::report(logits, params, u, self.alternatives);
        if let Err(error) = &expected {
            let error = ErrorRecord::from(&RowError::Library(error.clone()));
            tally.first_refused = Some(BadRow { row, error });
        }
        let expected_pick = light(&expected, params, logits.len());
        let differs = |level: Level, path, expected, found| Difference {
            row,
            draw,
            u,
            parameters: describe(params),
            level: level.to_string(),
            path,
            against: "reference",
            expected,
            found,
        };
        let mut differences = Vec::new();
        for &level in self.levels {
            for path in [Path::Bounds, Path::Exact, Path::Full] {
                let sampler = self.sampler.with_level(level);
                let (pick, report) = with_scratch(|scratch| {
                    scratch.start_at(path);
                    let pick = sampler.sample(logits, u, scratch);
                    let mut report = Report::default();
                    let found = sampler.report(logits, u, self.alternatives, scratch, &mut report);
                    scratch.start_at(Path::default());
                    (pick.map(|p| (p.token, p.kept)), found.map(|()| report))
                });
                tally.comparisons += 2;
                let from = format!("{path:?}").to_lowercase();
                if !same(&report, &expected) {
                    let (e, f) = (Found::report(&expected), Found::report(&report));
                    differences.push(differs(level, from, e, f));
                } else if pick != expected_pick {
                    let (e, f) = (Found::pick(&expected_pick), Found::pick(&pick));
                    differences.push(differs(level, from, e, f));
                }
            }
        }
        if let Some(first) = differences.into_iter().next() {
            tally.reference = 1;
            tally.first = Some(first);
        }
        let verdict = oracle::sample(logits, params, u);
        let decided = expected.as_ref().ok().map(|report| report.chosen.token);
        judge(&mut tally, verdict, decided, |wanted| Difference {
            against: "oracle",
            ..differs(Level::best(), "any".into(), wanted, Found::report(&expected))
        });
        tally
    }
}

/// Asks the oracle about what the reference decided: all levels agree with that, or the difference is told already.
pub fn judge(
    tally: &mut Tally,
    verdict: Verdict,
    decided: Option<u32>,
    differs: impl FnOnce(Found) -> Difference,
) {
    let wanted = match (verdict, decided) {
        (Verdict::InDoubt(_), Some(_)) => {
            tally.doubt = 1;
            return;
        }
        (Verdict::Token(token), Some(decided)) if decided == token => return,
        (Verdict::Refused, None) => return,
        (Verdict::Token(token) | Verdict::InDoubt(token), _) => Found::Token(token),
        (Verdict::Refused, _) => Found::Refused,
    };
    tally.oracle = 1;
    if tally.first.is_none() {
        tally.first = Some(differs(wanted));
    }
}

/// A light decision: token and kept count.
type Light = Result<(u32, Option<u32>), Error>;

/// The light decision that belongs to a reference's report. Its kept count is left out where nothing truncates.
fn light(report: &Result<Report, Error>, p: &SamplingParams, len: usize) -> Light {
    let truncates = p.is_greedy()
        || p.top_k.is_some_and(|k| (k as usize) < len)
        || p.top_p.is_some_and(|p| p < 1.0)
        || p.min_p.is_some_and(|p| p > 0.0)
        || p.typical_p.is_some_and(|p| p < 1.0)
        || p.epsilon.is_some_and(|p| p > 0.0);
    let report = report.as_ref().map_err(Error::clone)?;
    Ok((report.chosen.token, truncates.then_some(report.kept)))
}

/// Equal in every bit that is reported.
fn same(a: &Result<Report, Error>, b: &Result<Report, Error>) -> bool {
    let token = |a: &Alternative| {
        (a.token, [a.probability, a.conditional, a.surprise, a.logprob].map(f64::to_bits))
    };
    let bits = |r: &Report| {
        let numbers = [r.retained, r.entropy].map(f64::to_bits);
        let list: Vec<_> = r.alternatives.iter().map(token).collect();
        (token(&r.chosen), r.kept, numbers, list)
    };
    match (a, b) {
        (Ok(a), Ok(b)) => bits(a) == bits(b),
        (a, b) => a == b,
    }
}

fn describe(params: &SamplingParams) -> String {
    let mut text = format!("--temperature {:?}", params.temperature);
    if let Some(k) = params.top_k {
        text += &format!(" --top-k {k}");
    }
    let shares = [
        ("top-p", params.top_p),
        ("min-p", params.min_p),
        ("typical-p", params.typical_p),
        ("epsilon", params.epsilon),
    ];
    for (name, value) in shares {
        if let Some(value) = value {
            text += &format!(" --{name} {value:?}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_the_oracle_does_not_have_is_told_once() {
        let difference = |expected| Difference {
            row: 3,
            draw: 0,
            u: 0.5,
            parameters: String::new(),
            level: "scalar".into(),
            path: "any".into(),
            against: "oracle",
            expected,
            found: Found::Token(2),
        };
        let mut sum = Tally::default();
        for (verdict, decided) in [
            (Verdict::Token(2), Some(2)),
            (Verdict::InDoubt(1), Some(2)),
            (Verdict::Refused, None),
            (Verdict::Token(1), Some(2)),
            (Verdict::Refused, Some(2)),
            (Verdict::Token(1), None),
        ] {
            let mut tally = Tally::default();
            judge(&mut tally, verdict, decided, difference);
            sum.add(tally);
        }
        assert_eq!((sum.oracle, sum.doubt, sum.reference), (3, 1, 0));
        assert_eq!(sum.first.map(|d| d.expected), Some(Found::Token(1)));
    }

    #[test]
    fn one_bit_makes_a_report_differ() {
        let report = |row: &[f32]| reference::report(row, &SamplingParams::new(), 0.5, 2);
        let (a, mut b) = (report(&[1.0, 2.0]), report(&[1.0, 2.0]));
        assert!(same(&a, &b));
        if let Ok(b) = &mut b {
            b.alternatives[1].logprob = b.alternatives[1].logprob.next_up();
        }
        assert!(!same(&a, &b));
        assert!(!same(&a, &report(&[f32::NAN])));
        assert!(same(&report(&[f32::NAN]), &report(&[f32::NAN])));
    }
}
