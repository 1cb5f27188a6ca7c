//! What can be wrong with a row, a draw or a parameter.

use core::fmt;

/// A number inside an [`Error`]; compares by its bits, so that errors that hold a NaN are equal to themselves.
#[derive(Clone, Copy)]
pub struct Number(pub f64);

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Number {}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The two values that no logit may have. Minus infinity is not one of them: it is a masked token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotFinite {
    /// Not a number, of either sign.
    NaN,
    /// Plus infinity.
    PosInf,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NaN => "NaN",
            Self::PosInf => "+inf",
        })
    }
}

/// Everything that this crate refuses. After an error nothing has moved: no state, no generator, no other row.
///
/// A row is checked in this order: its length, its values (the lowest index with NaN or +inf), whether
/// any token is allowed, then the draw.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A row has no token, or more than [`MAX_VOCAB`](crate::MAX_VOCAB).
    #[error("a row must have 1 to 1048576 logits, this one has {len}")]
    RowLength {
        /// The row's length.
        len: usize,
    },
    /// A logit is NaN or +inf; this is the lowest such index.
    #[error("logit {index} is {value}")]
    NotFinite {
        /// The token id.
        index: usize,
        /// Which of the two it is.
        value: NotFinite,
    },
    /// A weight is below 0; no lower index holds NaN or +inf.
    #[error("weight {index} must be at least 0, not {value}")]
    NegativeWeight {
        /// The token id.
        index: usize,
        /// The weight as given.
        value: Number,
    },
    /// Every token is masked (-inf), or every weight is 0.
    #[error("no allowed token: every logit is -inf")]
    NoAllowedToken,
    /// The draw `u` is not in `[0, 1)`.
    #[error("the draw must be in [0, 1), not {u}")]
    Draw {
        /// The draw as given.
        u: Number,
    },
    /// A parameter is outside its range.
    #[error("{name} must be {expected}, not {value}")]
    Parameter {
        /// The parameter's name.
        name: &'static str,
        /// The value as given.
        value: Number,
        /// The range, and how to switch the filter off where that is what the value tried.
        expected: &'static str,
    },
    /// Two lengths that must agree don't, or a stride or length doesn't fit.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What was measured.
        what: &'static str,
        /// The length that fits.
        expected: usize,
        /// The length that was found.
        found: usize,
    },
    /// A token id lies outside the row.
    #[error("token id {id} is outside the row of {len}")]
    TokenId {
        /// The id as given.
        id: u32,
        /// The row's length.
        len: usize,
    },
    /// A token id appears twice where each may appear once.
    #[error("token id {id} appears twice")]
    RepeatedId {
        /// The id.
        id: u32,
    },
    /// A logit would become +inf, or -inf without having been banned: the number given for it is too large.
    #[error("the logit of token {id} would overflow")]
    Overflow {
        /// The token id.
        id: u32,
    },
    /// A bias is NaN or +inf.
    #[error("the bias of token {id} is {value}")]
    Bias {
        /// The token id.
        id: u32,
        /// Which of the two it is.
        value: NotFinite,
    },
    /// An observed token is not in the set that a draw would have been made from.
    #[error("token {id} is not among the kept ones")]
    NotKept {
        /// The id as given.
        id: u32,
    },
    /// Mirostat's feedback would leave the finite numbers.
    #[error("mu would become {mu}")]
    Mu {
        /// What mu would have become.
        mu: Number,
    },
    /// Two things that belong together don't: a checkpoint or a prepared row was made under other parameters.
    #[error("{what} differs from the session's")]
    Mismatch {
        /// What differs.
        what: &'static str,
    },
    /// A row of an all-or-nothing batch failed; this is the first such row.
    #[error("row {row}: {error}")]
    Row {
        /// The row's index in the batch.
        row: usize,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// This machine or build doesn't have the instruction set that was asked for.
    #[error("level {requested:?} is not available here; available: {available}")]
    Level {
        /// The name as given.
        requested: Box<str>,
        /// The names that can be used, best first.
        available: Box<str>,
    },
}

impl Error {
    /// The error of a row of an all-or-nothing batch.
    pub(crate) fn in_row(self, row: usize) -> Self {
        Self::Row { row, error: Box::new(self) }
    }
}
