//! Batches: a row's result is its own, however the rows are laid out, ordered, split and spread over threads.

use super::bytes::{Bytes, Random};
use super::row::{Frame, Make, length, row, show};
use super::sample::bits;
use super::{on_threads, params};
use crate::batch::{Batch, Rows};
use crate::error::Error;
use crate::params::SamplingParams;
use crate::pick::{Pick, Report};
use crate::reference;
use crate::sampler::Sampler;
use half::{bf16, f16};

/// Checks batches on the case that these bytes say.
///
/// # Errors
/// The case in full, and what is wrong with it.
pub fn batch(bytes: &[u8]) -> Result<(), String> {
    super::check(bytes, [case::<f32>, case::<f16>, case::<bf16>])
}

type Picks = Vec<Result<Pick, Error>>;
type Reports = Vec<Result<Report, Error>>;

/// The rows with all that belongs to them, and the reference's answers.
struct Case<E> {
    rows: Vec<Vec<E>>,
    samplers: Vec<Sampler>,
    draws: Vec<f64>,
    alternatives: usize,
    picks: Picks,
    reports: Reports,
}

impl<E: Make> Case<E> {
    fn read(b: &mut Bytes<'_>) -> Self {
        let n = b.below(9);
        let shared = b.chance(100);
        let mut case = Self {
            rows: Vec::new(),
            samplers: Vec::new(),
            draws: Vec::new(),
            alternatives: b.below(4),
            picks: Vec::new(),
            reports: Vec::new(),
        };
        let mut params = SamplingParams::new();
        for i in 0..n {
            let temperature = params::temperature(b);
            let frame = Frame::read(b, temperature);
            let len = length(b, 3000);
            let row = row::<E>(b, frame, len);
            if i == 0 || !shared {
                params = params::params(b, temperature, &row);
            }
            // What a sampler refuses is a matter for another property.
            let sampler = Sampler::new(params).unwrap_or_else(|_| Sampler::greedy());
            params = *sampler.params();
            let u = params::draw(b, &row, &params);
            case.picks.push(reference::sample(&row, &params, u));
            case.reports.push(reference::report(&row, &params, u, case.alternatives));
            case.rows.push(row);
            case.draws.push(u);
            if i == 0 || !shared {
                case.samplers.push(sampler);
            }
        }
        if n == 0 {
            case.samplers.push(Sampler::greedy());
        }
        case
    }

    fn slices(&self) -> Vec<&[E]> {
        self.rows.iter().map(Vec::as_slice).collect()
    }

    fn sampler(&self, i: usize) -> Sampler {
        self.samplers[if self.samplers.len() == 1 { 0 } else { i }]
    }

    /// The samplers of some rows: one for all, if it was one.
    fn samplers_of(&self, rows: &[usize]) -> Vec<Sampler> {
        if self.samplers.len() == 1 {
            return self.samplers.clone();
        }
        rows.iter().map(|&i| self.samplers[i]).collect()
    }

    fn show(&self) -> String {
        let mut text = String::new();
        for (i, row) in self.rows.iter().enumerate() {
            let sampler = self.sampler(i);
            text +=
                &format!("\n{i}: {:?}, u = {:?}, {}", sampler.params(), self.draws[i], show(row));
        }
        text
    }
}

fn case<E: Make>(b: &mut Bytes<'_>) -> Result<(), String> {
    let case = Case::<E>::read(b);
    let wrong = |what: String| Err(format!("{what}{}", case.show()));
    let threads = b.below(5);
    on_threads(threads, || together(&case, threads))
        .and_then(|()| permuted(&case, b))
        .and_then(|()| split(&case, b))
        .and_then(|()| strided(&case, b))
        .and_then(|()| refused(&case, b))
        .or_else(wrong)
}

fn expect<T: PartialEq + core::fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, not {want:?}")) }
}

fn expect_reports(what: &str, got: &Reports, want: &Reports) -> Result<(), String> {
    let all = |reports: &Reports| -> Vec<Result<Vec<u64>, Error>> {
        reports.iter().map(|r| r.as_ref().map(bits).map_err(Clone::clone)).collect()
    };
    if all(got) == all(want) { Ok(()) } else { Err(format!("{what}: {got:?}, not {want:?}")) }
}

/// Results that no batch gives.
fn sentinels(n: usize) -> Picks {
    vec![Ok(sentinel()); n]
}

fn sentinel() -> Pick {
    Pick { token: u32::MAX, kept: Some(u32::MAX) }
}

/// The whole batch at once, twice with the same memory.
fn together<E: Make>(case: &Case<E>, threads: usize) -> Result<(), String> {
    let slices = case.slices();
    let rows = Rows::slices(&slices);
    let n = case.rows.len();
    expect("number of rows", &(rows.len(), rows.is_empty()), &(n, n == 0))?;
    for (name, mut batch) in [("serial", Batch::serial()), ("parallel", Batch::new())] {
        let what = |call: &str| format!("{name} {call} on {threads} threads");
        let mut reports: Reports = vec![Ok(Report::default()); case.rows.len()];
        for _ in 0..2 {
            let got = batch.sample(&rows, &case.samplers, &case.draws);
            expect(&what("sample"), &got, &Ok(case.picks.clone()))?;
            let mut all = vec![sentinel(); case.rows.len()];
            let outcome = batch.sample_all(&rows, &case.samplers, &case.draws, &mut all);
            let picks: Result<Vec<Pick>, Error> = case.picks.iter().cloned().collect();
            let failed = case.picks.iter().position(|pick| pick.is_err());
            match (picks, failed) {
                (Err(error), Some(row)) => {
                    let error = Box::new(error);
                    expect(&what("sample_all"), &outcome, &Err(Error::Row { row, error }))?;
                    let untouched = vec![sentinel(); case.rows.len()];
                    expect(&what("sample_all's output"), &all, &untouched)?;
                }
                (picks, _) => {
                    expect(&what("sample_all"), &outcome, &Ok(()))?;
                    expect(&what("sample_all's output"), &Ok(all), &picks)?;
                }
            }
            // The second time into what the first one left.
            let outcome = batch.report_into(
                &rows,
                &case.samplers,
                &case.draws,
                case.alternatives,
                &mut reports,
            );
            expect(&what("report_into"), &outcome, &Ok(()))?;
            expect_reports(&what("reports"), &reports, &case.reports)?;
        }
    }
    Ok(())
}

/// The rows in another order.
fn permuted<E: Make>(case: &Case<E>, b: &mut Bytes<'_>) -> Result<(), String> {
    let mut order: Vec<usize> = (0..case.rows.len()).collect();
    let mut random = Random(b.u64());
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
    let slices: Vec<&[E]> = order.iter().map(|&i| case.rows[i].as_slice()).collect();
    let draws: Vec<f64> = order.iter().map(|&i| case.draws[i]).collect();
    let want: Picks = order.iter().map(|&i| case.picks[i].clone()).collect();
    let got = Batch::new().sample(&Rows::slices(&slices), &case.samplers_of(&order), &draws);
    expect(&format!("permuted {order:?}"), &got, &Ok(want))
}

/// The batch in two parts, one after the other with the same memory.
fn split<E: Make>(case: &Case<E>, b: &mut Bytes<'_>) -> Result<(), String> {
    let n = case.rows.len();
    let at = b.below(n + 1);
    let mut batch = Batch::new();
    let mut got = sentinels(n);
    for part in [at..n, 0..at] {
        let indices: Vec<usize> = part.clone().collect();
        let slices: Vec<&[E]> = indices.iter().map(|&i| case.rows[i].as_slice()).collect();
        let outcome = batch.sample_into(
            &Rows::slices(&slices),
            &case.samplers_of(&indices),
            &case.draws[part.clone()],
            &mut got[part],
        );
        expect("split", &outcome, &Ok(()))?;
    }
    expect(&format!("split at {at}"), &got, &case.picks)
}

/// The rows in a matrix, between values that must not be read: all cut to one length, which is the matrix's vocabulary
/// or, where that is longer, the valid part of it.
fn strided<E: Make>(case: &Case<E>, b: &mut Bytes<'_>) -> Result<(), String> {
    let valid = case.rows.iter().map(Vec::len).min().unwrap_or(0);
    let vocab = valid + b.of(&[0, 1, 15, 16, 128]);
    let stride = vocab + b.of(&[0, 1, 7, 64]);
    let gap = E::make(b.of(&[f32::NAN, f32::INFINITY, f32::MAX, f32::NEG_INFINITY]));
    let mut data = Vec::new();
    for row in &case.rows {
        data.extend_from_slice(&row[..valid]);
        data.resize(data.len() + stride - valid, gap);
    }
    // The last row needs no gap behind it.
    data.truncate(data.len() - data.len().min(stride - vocab));
    let n = case.rows.len();
    let rows = Rows::matrix(&data, n, vocab, stride).map_err(|e| format!("matrix: {e:?}"))?;
    let rows = rows.with_valid_vocab(valid);
    let want: Picks = (0..n)
        .map(|i| reference::sample(&case.rows[i][..valid], case.sampler(i).params(), case.draws[i]))
        .collect();
    let got = Batch::new().sample(&rows, &case.samplers, &case.draws);
    expect(&format!("matrix, {valid} of {vocab}, stride {stride}"), &got, &Ok(want))?;
    expect("a row beyond the last", &rows.get(n).is_some(), &false)
}

/// Shapes that don't fit are refused and change nothing.
fn refused<E: Make>(case: &Case<E>, b: &mut Bytes<'_>) -> Result<(), String> {
    let slices = case.slices();
    let rows = Rows::slices(&slices);
    let n = case.rows.len();
    let mut batch = Batch::new();
    let mut outs = sentinels(n + 1);
    let before = outs.clone();
    let shape = |outcome: Result<(), Error>, what: &str| match outcome {
        Err(Error::Shape { .. }) => Ok(()),
        other => Err(format!("{what}: {other:?}, not a shape error")),
    };
    let outcome = batch.sample_into(&rows, &case.samplers, &case.draws, &mut outs);
    shape(outcome, "one result too many")?;
    let mut draws = case.draws.clone();
    draws.push(0.5);
    let outcome = batch.sample_into(&rows, &case.samplers, &draws, &mut outs[..n]);
    shape(outcome, "one draw too many")?;
    let samplers = vec![Sampler::greedy(); n + 2];
    let outcome = batch.sample_into(&rows, &samplers, &case.draws, &mut outs[..n]);
    shape(outcome, "two samplers too many")?;
    expect("outputs of a refused batch", &outs, &before)?;

    // Any numbers for a matrix: it exists if its rows lie in the data, computed without overflow.
    let data = vec![E::make(1.0); b.below(300)];
    let size = |b: &mut Bytes<'_>| match b.below(6) {
        0 => usize::MAX - b.below(4),
        1 => usize::MAX / 2 + b.below(3),
        2 => data.len(),
        _ => b.below(20),
    };
    let (count, vocab, stride) = (size(b), size(b), size(b));
    let needed = match count {
        0 => 0,
        _ => (count as u128 - 1) * stride as u128 + vocab as u128,
    };
    let fits = stride >= vocab && needed <= data.len() as u128;
    match Rows::matrix(&data, count, vocab, stride) {
        Ok(rows) if fits => {
            let last = count.checked_sub(1).map(|i| rows.get(i).map(<[E]>::len));
            expect("the last row", &last, &count.checked_sub(1).map(|_| Some(vocab)))?;
            expect("a row beyond it", &rows.get(count).is_some(), &false)
        }
        Err(Error::Shape { .. }) if !fits => Ok(()),
        other => Err(format!(
            "matrix of {count} x {vocab}, stride {stride}, in {}: {:?}",
            data.len(),
            other.map(|rows| rows.len())
        )),
    }
}
