//! `sortless inspect`: what rows look like.

use crate::args::Inspect;
use crate::failure::{Failure, Outcome};
use crate::npy::Decode;
use crate::output::{Out, grouped, share, write_file};
use crate::plot;
use crate::record::ErrorRecord;
use crate::rows::{Row, RowError, RowFile, with_element};
use crate::threads::with_scratch;
use serde::Serialize;
use sortless::kernels::{ExponentHistogram, Scale, exponent_histogram};
use sortless::{Element, Error, Level, Report, Sampler, SamplingParams};

pub fn run(args: &Inspect) -> Result<Outcome, Failure> {
    // Ranges are checked before a file is opened.
    let look = Look::new(args)?;
    let file = RowFile::open(&args.rows.path, &args.rows.form)?;
    if let Some(row) = args.row.filter(|&row| row >= file.rows()) {
        let (name, rows) = (file.name(), file.rows());
        return Err(Failure::new(format_args!(
            "{name}: --row {row}: there are {rows} rows, from 0"
        )));
    }
    with_element!(file.kind(), inspect(args, &look, file))
}

fn inspect<E: Decode>(args: &Inspect, look: &Look, mut file: RowFile) -> Result<Outcome, Failure> {
    let mut out = Out::new();
    let mut row = Row { index: 0, logits: Vec::<E>::new(), fault: None, draws: Vec::new() };
    let mut bad = false;
    let mut mean = plot::Spread::default();
    while file.read(&mut row)? {
        if args.row.is_some_and(|wanted| wanted != row.index) {
            continue;
        }
        let view = look.at(&row);
        bad |= view.error.is_some();
        if let Some(spread) = &view.spread {
            mean.add(&spread.counts, &spread.probability);
        }
        if args.json {
            out.json(&view)?;
        } else {
            view.print(&mut out)?;
        }
        out.flush()?;
        if args.row.is_some() {
            break;
        }
    }
    if let Some(path) = &args.svg {
        if mean.rows == 0 {
            return Err(Failure::new("--svg: there is no good row to draw"));
        }
        write_file(path, &plot::spread(&mean, args.temperature)?)?;
    }
    Ok(Outcome::bad_if(bad))
}

/// How rows are looked at.
struct Look {
    level: Level,
    temperature: f32,
    plain: Sampler,
    nuclei: Vec<(f64, Sampler)>,
}

/// What a row looks like.
#[derive(Serialize)]
struct View {
    row: u64,
    vocab: usize,
    masked: usize,
    nan: usize,
    pos_inf: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorRecord>,
    #[serde(flatten)]
    shape: Option<RowShape>,
    #[serde(flatten)]
    spread: Option<Spread>,
    #[serde(skip)]
    message: Option<String>,
}

#[derive(Serialize)]
struct RowShape {
    max: f64,
    max_token: u32,
    ties_at_top: usize,
    with_mass: u32,
    best_probability: f64,
    entropy_bits: f64,
    nucleus: Vec<Nucleus>,
}

#[derive(Serialize)]
struct Nucleus {
    p: f64,
    kept: u32,
}

/// By the exponent of the weight: entry i is for weights from 2^-i to below 2^(1-i).
#[derive(Serialize)]
struct Spread {
    #[serde(rename = "exponent_tokens")]
    counts: Vec<u32>,
    #[serde(rename = "exponent_probability")]
    probability: Vec<f64>,
}

impl Look {
    fn new(args: &Inspect) -> Result<Self, Failure> {
        // Temperature 0 has no distribution to look at.
        Scale::new(0.0, args.temperature)?;
        let level = args.level.level()?;
        let sampler = |params: SamplingParams| {
            let params = params.with_temperature(args.temperature);
            Sampler::new(params).map(|sampler| sampler.with_level(level))
        };
        let plain = sampler(SamplingParams::new())?;
        let mut nuclei = Vec::new();
        for &p in &args.top_p {
            nuclei.push((p, sampler(SamplingParams::new().with_top_p(p))?));
        }
        Ok(Self { level, temperature: args.temperature, plain, nuclei })
    }

    fn at<E: Element>(&self, row: &Row<E>) -> View {
        let values = || row.logits.iter().map(|l| l.to_f32());
        let mut view = View {
            row: row.index,
            vocab: row.logits.len(),
            masked: values().filter(|&l| l == f32::NEG_INFINITY).count(),
            nan: values().filter(|l| l.is_nan()).count(),
            pos_inf: values().filter(|&l| l == f32::INFINITY).count(),
            error: None,
            shape: None,
            spread: None,
            message: None,
        };
        match row.check().and_then(|logits| self.describe(logits).map_err(RowError::from)) {
            Ok((shape, spread)) => (view.shape, view.spread) = (Some(shape), Some(spread)),
            Err(error) => {
                view.error = Some(ErrorRecord::from(&error));
                view.message = Some(error.to_string());
                if let RowError::Library(Error::RowLength { len }) = error {
                    view.vocab = len;
                }
            }
        }
        view
    }

    fn describe<E: Element>(&self, logits: &[E]) -> Result<(RowShape, Spread), Error> {
        with_scratch(|scratch| {
            let mut report = Report::default();
            self.plain.report(logits, 0.0, 1, scratch, &mut report)?;
            let best = report.alternatives.first().copied().unwrap_or_default();
            let max = logits.get(best.token as usize).map_or(f32::NAN, |l| l.to_f32());
            let (with_mass, entropy_bits) = (report.kept, report.entropy);
            let mut nucleus = Vec::new();
            for (p, sampler) in &self.nuclei {
                sampler.report(logits, 0.0, 0, scratch, &mut report)?;
                nucleus.push(Nucleus { p: *p, kept: report.kept });
            }
            let scale = Scale::new(max, self.temperature)?;
            let histogram = exponent_histogram(self.level, logits, scale)?;
            let shape = RowShape {
                max: f64::from(max),
                max_token: best.token,
                ties_at_top: logits.iter().filter(|l| l.to_f32() == max).count(),
                with_mass,
                best_probability: best.probability,
                entropy_bits,
                nucleus,
            };
            Ok((shape, Spread::new(&histogram)))
        })
    }
}

impl Spread {
    fn new(histogram: &ExponentHistogram) -> Self {
        let masses = histogram.masses();
        let total: u64 = masses.iter().sum();
        Self {
            counts: histogram.counts().to_vec(),
            probability: masses.iter().map(|&m| m as f64 / total as f64).collect(),
        }
    }

    /// Bars of tokens on a log scale, one line an exponent.
    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let last = self.counts.iter().rposition(|&n| n > 0).unwrap_or(0);
        let most = self.counts.iter().copied().max().unwrap_or(1);
        let length = |n: u32| match n {
            0 => 0,
            n => 1 + (f64::from(n).ln() / f64::from(most.max(2)).ln() * 39.0).round() as usize,
        };
        out.line("  weight      tokens  probability  (bars: tokens, log scale)")?;
        for (i, (&n, &p)) in self.counts.iter().zip(&self.probability).enumerate().take(last + 1) {
            let label = format!("2^-{i}");
            let bar = "#".repeat(length(n));
            let line = format!("  {label:<6}  {:>10}  {:>11}  {bar}", grouped(n.into()), share(p));
            out.line(line.trim_end())?;
        }
        Ok(())
    }
}

impl View {
    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let n = |n: usize| grouped(n as u64);
        let (vocab, masked) = (n(self.vocab), n(self.masked));
        out.line(format_args!("row {}: {vocab} tokens, {masked} masked", self.row))?;
        if let Some(message) = &self.message {
            let (nan, inf) = (n(self.nan), n(self.pos_inf));
            out.line(format_args!("  error: {message} ({nan} NaN, {inf} +inf in all)"))?;
        }
        if let (Some(shape), Some(spread)) = (&self.shape, &self.spread) {
            let RowShape { max, max_token, ties_at_top, with_mass, .. } = shape;
            out.line(format_args!("  maximum   {} (token {max_token})", *max as f32))?;
            let best = share(shape.best_probability);
            out.line(format_args!("  best      {best} of the probability, {ties_at_top} tied"))?;
            let mass = grouped((*with_mass).into());
            out.line(format_args!(
                "  entropy   {:.4} bits, {mass} tokens weigh something",
                shape.entropy_bits
            ))?;
            let nuclei = shape.nucleus.iter();
            let nuclei = nuclei.map(|s| format!("top-p {}: {}", s.p, grouped(s.kept.into())));
            out.line(format_args!("  nucleus   {}", nuclei.collect::<Vec<_>>().join(", ")))?;
            spread.print(out)?;
        }
        out.line("")
    }
}
