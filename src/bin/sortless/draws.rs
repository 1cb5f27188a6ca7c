//! Where draws come from: a seed's stream, or a file.

use crate::args::DrawArgs;
use crate::failure::Failure;
use crate::npy::{Array, Input, Layout, Wanted, reason};
use std::io::{BufRead, BufReader, Read};

/// The longest line that may hold a number.
const LONGEST_LINE: u64 = 1 << 10;

/// Draws, one after the other. Any f64 can come out of a file; the library checks it.
pub enum Draws {
    /// Counter-based draws.
    Seeded(sortless::Draws),
    /// Numbers of a `.npy` file.
    Array(Array),
    /// Numbers, one a line.
    Lines { name: String, source: BufReader<Box<dyn Read + Send>>, line: u64 },
}

impl Draws {
    /// Opens what the arguments say. `rows` is the path of the rows, if there is one.
    pub fn open(args: &DrawArgs, rows: Option<&str>) -> Result<Self, Failure> {
        let Some(path) = &args.uniforms else {
            return Ok(Self::Seeded(sortless::Draws::new(args.seed, args.stream)));
        };
        if path == "-" && rows == Some("-") {
            return Err(Failure::new("standard input can't be both the rows and the uniforms"));
        }
        let mut input = Input::open(path)?;
        let fail = |error: std::io::Error| format!("{path}: {}", reason(&error));
        // No text begins with the first byte of a .npy file.
        if input.source.fill_buf().map_err(fail)?.first() == Some(&0x93) {
            return Ok(Self::Array(Array::new(input, Wanted::Floats, Layout::Numbers)?));
        }
        Ok(Self::Lines { name: input.name, source: input.source, line: 0 })
    }

    /// The next draw.
    pub fn draw(&mut self) -> Result<f64, Failure> {
        match self {
            Self::Seeded(draws) => Ok(draws.next_draw()),
            Self::Array(array) => {
                let found = array.next(1)?.and_then(|row| row.doubles().next());
                found.ok_or_else(|| too_few(array.name(), array.rows()))
            }
            Self::Lines { name, source, line } => next_number(name, source, line),
        }
    }
}

fn too_few(name: &str, count: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("{name}: too few uniforms: more than its {count} are needed"))
}

/// The number on the next line that isn't blank.
fn next_number(name: &str, source: &mut impl BufRead, line: &mut u64) -> Result<f64, Failure> {
    loop {
        let mut bytes = Vec::new();
        let read = source.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        if read.map_err(|error| format!("{name}: {}", reason(&error)))? == 0 {
            return Err(too_few(name, format_args!("{line} lines")));
        }
        *line += 1;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        return text.parse().map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            Failure::new(format_args!("{name}: line {line}: {shown:?} is no number"))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str) -> Draws {
        let source: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(text.to_string()));
        Draws::Lines { name: "u.txt".into(), source: BufReader::new(source), line: 0 }
    }

    fn error(draws: &mut Draws) -> String {
        match draws.draw() {
            Err(Failure::Unusable(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_hold_a_number_each() {
        let mut two = draws("0.25\n\n  1e-3\r\n");
        assert_eq!((two.draw().unwrap(), two.draw().unwrap()), (0.25, 1e-3));
        assert!(error(&mut two).contains("3 lines"));
        assert!(draws("nan").draw().unwrap().is_nan());
        assert!(error(&mut draws("\n0.5 0.5\n")).contains("line 2"));
        // A line without an end takes no memory.
        assert!(error(&mut draws(&"9".repeat(5000).replace("99999", "x"))).contains("line 1"));
    }
}
