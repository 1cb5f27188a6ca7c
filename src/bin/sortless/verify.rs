//! `sortless verify`: every decision against the reference and the oracle.

mod compare;
mod random;
mod steps;

use crate::args::Verify;
use crate::draws::Draws;
use crate::failure::{Failure, Outcome};
use crate::method::Method;
use crate::npy::Decode;
use crate::output::{Out, Progress, grouped};
use crate::rows::{Row, RowFile, with_element};
use crate::threads::pool;
use compare::{BadRow, Difference, Tally, Task};
use rayon::prelude::*;
use serde::Serialize;
use sortless::Level;
use steps::Generations;

pub fn run(args: &Verify) -> Result<Outcome, Failure> {
    let levels = match args.run.level.chosen()? {
        Some(level) => vec![level],
        None => Level::available().collect(),
    };
    let started = std::time::Instant::now();
    let tally = if let Some(seconds) = args.random {
        random::run(args, &levels, seconds)?
    } else {
        // The levels are the task's own business.
        let method = Method::new(&args.params, Level::best())?;
        // One of the two is there, by the rules of the command line.
        let path = args.rows.as_deref().unwrap_or("-");
        let draws = Draws::open(&args.draws, Some(path))?;
        let file = RowFile::open(path, &args.form)?;
        with_element!(file.kind(), verify(args, &method, &levels, file, draws))?
    };
    let summary = Summary::new(&tally, &levels, started.elapsed().as_secs_f64());
    let mut out = Out::new();
    if args.run.json { out.json(&summary) } else { summary.print(&mut out) }?;
    out.flush()?;
    Ok(Outcome::bad_if(tally.reference + tally.oracle > 0))
}

/// What is done with the next rows.
type Work<'a, E> = Box<dyn FnMut(&[Row<E>]) -> Tally + Send + 'a>;

fn verify<E: Decode>(
    args: &Verify,
    method: &Method,
    levels: &[Level],
    mut file: RowFile,
    mut draws: Draws,
) -> Result<Tally, Failure> {
    let pool = pool(args.run.threads)?;
    let progress = Progress::new(file.rows(), "rows", true);
    let mut chunk: Vec<Row<E>> = Vec::new();
    let mut tally = Tally::default();
    let mut work: Work<'_, E> = match method {
        &Method::Stateless(sampler) => {
            let task = Task { sampler, levels, alternatives: args.logprobs };
            Box::new(move |rows| {
                let found: Vec<Tally> = rows.par_iter().map(|row| task.row(row)).collect();
                found.into_iter().collect()
            })
        }
        Method::Mirostat { session, sessions, .. } => {
            let mut generations = Generations::new(session, *sessions, levels, args.count);
            Box::new(move |rows| generations.rows(rows))
        }
    };
    loop {
        let (n, read) = file.read_chunk(&mut chunk, &mut draws, args.count);
        tally.add(pool.install(|| work(&chunk[..n])));
        read?;
        if n == 0 {
            return Ok(tally);
        }
        progress.to(chunk[n - 1].index + 1);
    }
}

/// What is printed.
#[derive(Serialize)]
struct Summary<'a> {
    levels: Vec<&'static str>,
    rows: u64,
    decisions: u64,
    comparisons: u64,
    refused_rows: u64,
    differ_from_reference: u64,
    differ_from_oracle: u64,
    in_doubt: u64,
    seconds: f64,
    first_bad_row: Option<&'a BadRow>,
    first_difference: Option<&'a Difference>,
}

impl<'a> Summary<'a> {
    fn new(tally: &'a Tally, levels: &[Level], seconds: f64) -> Self {
        Self {
            levels: levels.iter().map(|level| level.name()).collect(),
            rows: tally.rows,
            decisions: tally.decisions,
            comparisons: tally.comparisons,
            refused_rows: tally.refused,
            differ_from_reference: tally.reference,
            differ_from_oracle: tally.oracle,
            in_doubt: tally.doubt,
            seconds,
            first_bad_row: tally.first_refused.as_ref(),
            first_difference: tally.first.as_ref(),
        }
    }

    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let levels = self.levels.join(", ");
        let n = |value: u64| format!("{:>12}", grouped(value));
        out.line(format_args!("rows                   {}", n(self.rows)))?;
        out.line(format_args!("decisions              {}", n(self.decisions)))?;
        let ways = "each at every level and by every path, light and reported";
        out.line(format_args!(
            "comparisons            {}  {ways}; levels: {levels}",
            n(self.comparisons)
        ))?;
        let expected = |count: u64| if count == 0 { "" } else { "  <-- 0 expected" };
        let reference = self.differ_from_reference;
        out.line(format_args!("differ from reference  {}{}", n(reference), expected(reference)))?;
        let oracle = self.differ_from_oracle;
        out.line(format_args!("differ from oracle     {}{}", n(oracle), expected(oracle)))?;
        let why = "too near to a boundary for an f64 softmax to tell";
        out.line(format_args!("in doubt there         {}  {why}", n(self.in_doubt)))?;
        if let Some(BadRow { row, error }) = self.first_bad_row {
            let error = serde_json::to_string(error).unwrap_or_default();
            let first = format_args!("as the reference does; the first: row {row}, {error}");
            out.line(format_args!("rows refused           {}  {first}", n(self.refused_rows)))?;
        }
        out.line(format_args!("seconds                {:>12.1}", self.seconds))?;
        if let Some(first) = self.first_difference {
            out.line("")?;
            first.print(out)?;
        }
        Ok(())
    }
}
