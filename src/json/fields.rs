//! The fields of a JSON object, taken one by one, with errors that name them.

use super::error::JsonError;
use serde_json::{Map, Value};

/// An object's fields that have not been taken yet.
pub(super) struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let value = serde_json::from_slice(bytes);
        let value =
            value.map_err(|error: serde_json::Error| JsonError::Syntax(error.to_string()))?;
        Self::of(value, String::new())
    }

    fn of(value: Value, path: String) -> Result<Self, JsonError> {
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other => Err(wrong(&path, "an object", &other)),
        }
    }

    /// The path of a field.
    pub fn path(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// A field that may be missing or null.
    pub fn optional(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    fn required(&mut self, name: &str) -> Result<Value, JsonError> {
        let value = self.optional(name);
        value.ok_or_else(|| problem(self.path(name), "is missing"))
    }

    pub fn number(&mut self, name: &str) -> Result<f64, JsonError> {
        let value = self.required(name)?;
        value.as_f64().ok_or_else(|| wrong(&self.path(name), "a number", &value))
    }

    pub fn optional_number(&mut self, name: &str) -> Result<Option<f64>, JsonError> {
        let Some(value) = self.optional(name) else {
            return Ok(None);
        };
        let number = value.as_f64();
        number.map(Some).ok_or_else(|| wrong(&self.path(name), "a number", &value))
    }

    pub fn integer(&mut self, name: &str) -> Result<u64, JsonError> {
        let value = self.required(name)?;
        value.as_u64().ok_or_else(|| wrong(&self.path(name), "an integer of at least 0", &value))
    }

    pub fn text(&mut self, name: &str) -> Result<String, JsonError> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            other => Err(wrong(&self.path(name), "a text", &other)),
        }
    }

    pub fn array(&mut self, name: &str) -> Result<Vec<Value>, JsonError> {
        match self.required(name)? {
            Value::Array(list) => Ok(list),
            other => Err(wrong(&self.path(name), "a list", &other)),
        }
    }

    /// A list of objects.
    pub fn objects(&mut self, name: &str) -> Result<Vec<Fields>, JsonError> {
        let list = self.array(name)?.into_iter().enumerate();
        let path = self.path(name);
        list.map(|(i, value)| Self::of(value, format!("{path}[{i}]"))).collect()
    }

    /// Nothing may be left: a field with a typing error must not go unnoticed.
    pub fn finish(self) -> Result<(), JsonError> {
        match self.map.keys().next() {
            Some(name) => Err(problem(self.path(name), "is not a field of this request")),
            None => Ok(()),
        }
    }
}

/// A number that rounds to an f32 of a finite size.
pub(super) fn narrow(value: f64, path: impl FnOnce() -> String) -> Result<f32, JsonError> {
    let narrow = value as f32;
    if narrow.is_finite() {
        return Ok(narrow);
    }
    Err(problem(path(), &format!("{value:e} overflows f32")))
}

pub(super) fn problem(field: String, problem: &str) -> JsonError {
    JsonError::Field { field, problem: problem.to_owned() }
}

pub(super) fn wrong(path: &str, expected: &str, found: &Value) -> JsonError {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    let field = if path.is_empty() { "the request" } else { path };
    problem(field.to_owned(), &format!("must be {expected}, not {found}"))
}
