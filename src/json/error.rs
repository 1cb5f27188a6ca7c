//! What can be wrong with a request.

use crate::error::Error;

/// What is wrong with a request. Its text names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The bytes are not JSON; the text says where.
    #[error("not a JSON request: {0}")]
    Syntax(String),
    /// A field is missing, unknown or of the wrong kind.
    #[error("{field}: {problem}")]
    Field {
        /// The field's path, such as `rows[2].logits[17]`; empty for the request itself.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The value of a field was refused.
    #[error("{field}: {}", short(.error))]
    Refused {
        /// The field's path.
        field: String,
        /// Why.
        error: Error,
    },
}

/// The field is named already.
fn short(error: &Error) -> String {
    match error {
        Error::Parameter { value, expected, .. } => format!("must be {expected}, not {value:?}"),
        error => error.to_string(),
    }
}
