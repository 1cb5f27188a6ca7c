//! What was decided, as it is printed.

use crate::npy::Overflow;
use crate::rows::RowError;
use serde::Serialize;
use sortless::{Alternative, Error, Report};

/// A row's line: a decision, or what is wrong with the row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Line {
    Decision {
        row: u64,
        #[serde(flatten)]
        decision: Decision,
    },
    Error {
        row: u64,
        error: ErrorRecord,
    },
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    pub token: u32,
    pub kept: u32,
    pub probability: f64,
    pub conditional: f64,
    pub surprise_bits: f64,
    pub logprob: f64,
    /// Mirostat's; null for the others.
    pub mu_before: Option<f64>,
    pub mu_after: Option<f64>,
    pub alternatives: Vec<AlternativeRecord>,
}

/// One of the best tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlternativeRecord {
    pub token: u32,
    pub probability: f64,
    pub conditional: f64,
    pub surprise_bits: f64,
    pub logprob: f64,
}

impl From<&Alternative> for AlternativeRecord {
    fn from(a: &Alternative) -> Self {
        Self {
            token: a.token,
            probability: a.probability,
            conditional: a.conditional,
            surprise_bits: a.surprise,
            logprob: a.logprob,
        }
    }
}

impl Decision {
    /// A report's numbers; its alternatives only where they were asked for.
    pub fn new(report: &Report, alternatives: bool) -> Self {
        let chosen = &report.chosen;
        let list = if alternatives { &report.alternatives[..] } else { &[] };
        Self {
            token: chosen.token,
            kept: report.kept,
            probability: chosen.probability,
            conditional: chosen.conditional,
            surprise_bits: chosen.surprise,
            logprob: chosen.logprob,
            mu_before: None,
            mu_after: None,
            alternatives: list.iter().map(AlternativeRecord::from).collect(),
        }
    }
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ErrorRecord {
    RowLength {
        len: usize,
    },
    NotFinite {
        index: usize,
        value: String,
    },
    /// A finite f64 that f32 doesn't reach.
    Overflow {
        index: usize,
        value: f64,
    },
    NoAllowedToken,
    /// As text, since it may be a NaN.
    Draw {
        value: String,
    },
    /// Mirostat's feedback would leave the finite numbers. As text, too.
    Mu {
        value: String,
    },
    Other {
        message: String,
    },
}

impl From<&RowError> for ErrorRecord {
    fn from(error: &RowError) -> Self {
        match error {
            &RowError::Overflow(Overflow { index, value }) => Self::Overflow { index, value },
            RowError::Library(error) => match error {
                Error::RowLength { len } => Self::RowLength { len: *len },
                Error::NotFinite { index, value } => {
                    Self::NotFinite { index: *index, value: value.to_string() }
                }
                Error::NoAllowedToken => Self::NoAllowedToken,
                Error::Draw { u } => Self::Draw { value: u.to_string() },
                Error::Mu { mu } => Self::Mu { value: mu.to_string() },
                other => Self::Other { message: other.to_string() },
            },
        }
    }
}
