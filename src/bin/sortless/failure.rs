//! How the command ends.

use std::fmt::Display;
use std::io;

/// A run that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Fine,
    /// Exit code 1: a row was bad, or a decision differed.
    Bad,
}

impl Outcome {
    /// Fine unless something was bad.
    pub fn bad_if(bad: bool) -> Self {
        if bad { Self::Bad } else { Self::Fine }
    }
}

/// A run that stopped.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 2: arguments or files that can't be used. One line that says what and where.
    Unusable(String),
    /// Nobody reads the output any more. Exit code 0, and no word about it.
    Unread,
}

impl Failure {
    /// Of an argument or a file.
    pub fn new(text: impl Display) -> Self {
        Self::Unusable(text.to_string())
    }

    /// Of writing to standard output.
    pub fn of_output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::new(format_args!("standard output: {error}")),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Unusable(text)
    }
}

impl From<sortless::Error> for Failure {
    fn from(error: sortless::Error) -> Self {
        Self::new(error)
    }
}
