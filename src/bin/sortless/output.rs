//! Standard output, files that appear whole or not at all, progress, and numbers for people.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;

/// Standard output. A closed pipe is a [`Failure::Unread`], never a panic.
pub struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    pub fn new() -> Self {
        Self(BufWriter::new(io::stdout().lock()))
    }

    pub fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        writeln!(self.0, "{text}").map_err(Failure::of_output)
    }

    /// One JSON value a line. Floats are written with all digits that they need to come back as they were.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.0, value).map_err(|e| Failure::of_output(e.into()))?;
        self.line("")
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(Failure::of_output)
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(Failure::of_output)
    }
}

/// A remark that is no result.
pub fn note(text: impl Display) {
    // Nowhere to complain if that fails.
    let _ = writeln!(io::stderr(), "sortless: {text}");
}

/// Writes a file under another name and renames it once it is whole, so that a run that is stopped leaves either the
/// old file or the new one.
pub fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::new(format_args!("{}: {error}", path.display()));
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As an ordinary new file; the system takes away what the umask says.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error)).map(drop)
}

/// A progress bar on standard error, if that is a terminal.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// `what` is counted up to `total`. Results that go to the same terminal show the progress themselves, so no bar
    /// is drawn between them, unless they come at the end (`quiet`).
    pub fn new(total: u64, what: &'static str, quiet: bool) -> Self {
        let visible = io::stderr().is_terminal() && (quiet || !io::stdout().is_terminal());
        Self(visible.then(|| {
            let template = format!("{{bar:40}} {{human_pos}}/{{human_len}} {what}, {{eta}} left");
            let bar = ProgressBar::new(total);
            match ProgressStyle::with_template(&template) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        }))
    }

    pub fn to(&self, position: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(position);
        }
    }

    /// Takes the bar away while something else is printed.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A share of 1, for people.
pub fn share(value: f64) -> String {
    if value == 0.0 || value >= 1e-4 { format!("{value:.5}") } else { format!("{value:.2e}") }
}

/// A number with three digits that matter, or all those before the point.
pub fn three(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 || v == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A whole number in groups of three.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let groups = [0, 999, 1000, 151_936, 1 << 20].map(grouped);
        assert_eq!(groups, ["0", "999", "1,000", "151,936", "1,048,576"]);
        let numbers = [0.0, 0.01234, 1.0, 9.994, 9.996, 99.96, 12345.6].map(three);
        assert_eq!(numbers, ["0.00", "0.012", "1.00", "9.99", "10.0", "100", "12346"]);
        assert_eq!([0.0, 0.5, 1e-5].map(share), ["0.00000", "0.50000", "1.00e-5"]);
    }
}
