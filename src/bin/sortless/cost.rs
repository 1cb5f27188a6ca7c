//! `sortless cost`: what sampling costs, by vocabulary size.

mod contestants;
mod measure;
mod table;

use crate::args::{Cost, Dtype, Form, name_of};
use crate::failure::{Failure, Outcome};
use crate::npy::{Decode, Kind};
use crate::output::{Out, Progress, note, write_file};
use crate::plot;
use crate::rows::{Row, RowFile, with_element};
pub use measure::Section;
use measure::measure;
use sortless::{Level, kernels, shapes};

/// Different rows of a shape, so that no branch is learnt by heart.
const ROWS: usize = 8;
/// Rows of a file that are measured, and how much memory they may take.
const MOST_ROWS: usize = 64;
const MOST_BYTES: usize = 64 << 20;

pub fn run(args: &Cost) -> Result<Outcome, Failure> {
    let level = args.level.level()?;
    let (subjects, own_dtype) = match &args.rows {
        Some(path) => {
            let form = Form { bf16: args.bf16, mask: None, valid_vocab: None };
            let file = RowFile::open(path, &form)?;
            let dtype = match file.kind() {
                Kind::F16 => Dtype::F16,
                Kind::Bf16 => Dtype::Bf16,
                _ => Dtype::F32,
            };
            (vec![with_element!(file.kind(), own_rows(file, level))?], dtype)
        }
        None => (synthetic(args), Dtype::F32),
    };
    let dtypes = if args.dtype.is_empty() { vec![own_dtype] } else { args.dtype.clone() };

    let mut out = Out::new();
    if let Some(remark) = busy().filter(|_| !args.json) {
        out.line(remark)?;
    }
    let count = subjects.len() * dtypes.len() * args.threads.len();
    let progress = Progress::new(count as u64, "tables", false);
    let mut sections: Vec<Section> = Vec::new();
    for subject in &subjects {
        let rows = subject.rows();
        for &dtype in &dtypes {
            for &threads in &args.threads {
                let section = measure(args, level, subject, &rows, dtype, threads)?;
                if args.json {
                    for cell in &section.cells {
                        out.json(cell)?;
                    }
                } else {
                    table::print(&section, args.tokens_per_second, level, &mut out)?;
                }
                out.flush()?;
                sections.push(section);
                progress.to(sections.len() as u64);
            }
        }
    }
    progress.clear();
    if let Some(path) = &args.csv {
        write_file(path, &table::csv(&sections))?;
    }
    if let Some(path) = &args.svg {
        write_file(path, &plot::cost(&sections, level)?)?;
    }
    Ok(Outcome::Fine)
}

/// What to think of the numbers where others use the processors as well: a long call, as the sort, is interrupted more
/// often than a short one, and so its median grows more.
fn busy() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    (load > 0.75 * processors as f64).then(|| {
        let machine = format!("this machine is busy (load {load:.1} on {processors} processors)");
        format!("{machine}: long calls, above all the sort, look slower than they are\n")
    })
}

/// Rows that are measured together.
struct Subject {
    vocab: usize,
    shape: String,
    make: Make,
}

enum Make {
    Shape(crate::args::Shape),
    Own(Vec<Vec<f32>>),
}

impl Subject {
    fn rows(&self) -> Vec<Vec<f32>> {
        use crate::args::Shape;
        let shape = match &self.make {
            Make::Own(rows) => return rows.clone(),
            Make::Shape(shape) => *shape,
        };
        let row = |i: usize| match shape {
            Shape::Llm => shapes::llm(self.vocab, i as u64),
            Shape::Flat => shapes::flat(self.vocab, i as u64),
            Shape::Ties => shapes::ties(self.vocab, i as u64),
            Shape::Equal => shapes::equal(self.vocab, i as f32 / 4.0),
        };
        (0..ROWS).map(row).collect()
    }
}

fn synthetic(args: &Cost) -> Vec<Subject> {
    let subject = |shape, vocab| Subject { vocab, shape: name_of(shape), make: Make::Shape(shape) };
    let of_shape = |&shape| args.vocab.iter().map(move |&vocab| subject(shape, vocab));
    args.shape.iter().flat_map(of_shape).collect()
}

/// The first good rows of a file.
fn own_rows<E: Decode>(mut file: RowFile, level: Level) -> Result<Subject, Failure> {
    let vocab = usize::try_from(file.valid()).unwrap_or(usize::MAX);
    let most = (MOST_BYTES / 4 / vocab.max(1)).clamp(1, MOST_ROWS);
    let mut row = Row { index: 0, logits: Vec::<E>::new(), fault: None, draws: Vec::new() };
    let (mut rows, mut bad) = (Vec::new(), 0u64);
    while rows.len() < most && file.read(&mut row)? {
        let max = row.check().ok().and_then(|logits| kernels::max(level, logits).ok());
        match max.filter(|&max| max > f32::NEG_INFINITY) {
            Some(_) => rows.push(row.logits.iter().map(|l| l.to_f32()).collect()),
            None => bad += 1,
        }
    }
    if bad > 0 {
        note(format_args!("{}: {bad} bad rows are left out", file.name()));
    }
    if rows.is_empty() {
        return Err(Failure::new(format_args!("{}: has no row that can be sampled", file.name())));
    }
    Ok(Subject { vocab, shape: "rows".into(), make: Make::Own(rows) })
}
