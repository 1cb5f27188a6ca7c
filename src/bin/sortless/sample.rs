//! `sortless sample`: a token from every row.

use crate::args::Sample;
use crate::draws::Draws;
use crate::failure::{Failure, Outcome};
use crate::method::Method;
use crate::npy::Decode;
use crate::output::{Out, Progress, share};
use crate::record::{Decision, ErrorRecord, Line};
use crate::rows::{Row, RowError, RowFile, with_element};
use crate::threads::pool;

pub fn run(args: &Sample) -> Result<Outcome, Failure> {
    let method = Method::new(&args.params, args.run.level.level()?)?;
    let draws = Draws::open(&args.draws, Some(&args.rows.path))?;
    let file = RowFile::open(&args.rows.path, &args.rows.form)?;
    with_element!(file.kind(), sample(args, method, file, draws))
}

fn sample<E: Decode>(
    args: &Sample,
    mut method: Method,
    mut file: RowFile,
    mut draws: Draws,
) -> Result<Outcome, Failure> {
    let pool = pool(args.run.threads)?;
    let progress = Progress::new(file.rows(), "rows", false);
    let mut printer = Printer::new(args);
    let mut chunk: Vec<Row<E>> = Vec::new();
    loop {
        let (n, read) = file.read_chunk(&mut chunk, &mut draws, 1);
        let decisions = pool.install(|| method.decide(&chunk[..n], args.logprobs));
        for (row, decision) in chunk.iter().zip(decisions) {
            printer.row(row.index, decision)?;
        }
        // Rows before a broken place are good.
        printer.out.flush()?;
        read?;
        if n == 0 {
            return Ok(Outcome::bad_if(printer.bad));
        }
        progress.to(chunk[n - 1].index + 1);
    }
}

/// Writes rows as they come.
struct Printer {
    out: Out,
    json: bool,
    mirostat: bool,
    started: bool,
    bad: bool,
}

impl Printer {
    fn new(args: &Sample) -> Self {
        let mirostat = args.params.mirostat.is_some();
        Self { out: Out::new(), json: args.run.json, mirostat, started: false, bad: false }
    }

    fn row(&mut self, row: u64, decision: Result<Decision, RowError>) -> Result<(), Failure> {
        self.bad |= decision.is_err();
        if self.json {
            return self.out.json(&match &decision {
                Ok(decision) => Line::Decision { row, decision: decision.clone() },
                Err(error) => Line::Error { row, error: ErrorRecord::from(error) },
            });
        }
        if !self.started {
            self.started = true;
            self.out.line(head(self.mirostat))?;
        }
        match decision {
            Ok(decision) => self.out.line(line(row, &decision)),
            Err(error) => self.out.line(format_args!("{row:>6}  error: {error}")),
        }
    }
}

fn head(mirostat: bool) -> String {
    let mu = if mirostat { "  mu before  mu after" } else { "" };
    format!("   row    token     kept  probability  conditional     bits   logprob{mu}")
}

fn line(row: u64, d: &Decision) -> String {
    let mut text = format!(
        "{row:>6}  {:>7}  {:>7}  {:>11}  {:>11}  {:>7.3}  {:>8.3}",
        d.token,
        d.kept,
        share(d.probability),
        share(d.conditional),
        d.surprise_bits,
        d.logprob
    );
    if let (Some(before), Some(after)) = (d.mu_before, d.mu_after) {
        text += &format!("  {before:>9.3}  {after:>8.3}");
    }
    if !d.alternatives.is_empty() {
        let list = d.alternatives.iter().map(|a| format!("{} ({:.3})", a.token, a.logprob));
        text += &format!("\n        best: {}", list.collect::<Vec<_>>().join(", "));
    }
    text
}
