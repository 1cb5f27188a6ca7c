//! `sortless json`: Mirostat's JSON protocol over lines.

use crate::failure::{Failure, Outcome};
use crate::output::Out;
use serde::Serialize;
use serde_json::value::RawValue;
use sortless::json::{self, JsonError};
use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// The longest line: some hundred rows of the largest vocabularies.
const LONGEST_LINE: u64 = 1 << 28;

pub fn run() -> Result<Outcome, Failure> {
    let mut input = io::stdin().lock();
    let mut out = Out::new();
    let (mut line, mut number, mut bad) = (Vec::new(), 0u64, false);
    loop {
        line.clear();
        let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        let read = read.map_err(|e| Failure::new(format_args!("standard input: {e}")))?;
        if read == 0 {
            return Ok(Outcome::bad_if(bad));
        }
        number += 1;
        if read as u64 == LONGEST_LINE {
            return Err(Failure::new(format_args!(
                "standard input: line {number} is longer than {LONGEST_LINE} bytes"
            )));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match answer(&line) {
            Ok(response) => out.line(response)?,
            Err(error) => {
                bad = true;
                out.json(&Wrong { error })?;
            }
        }
        // The host waits for it.
        out.flush()?;
    }
}

#[derive(Serialize)]
struct Wrong {
    error: String,
}

fn answer(line: &[u8]) -> Result<String, String> {
    // The request goes on as the bytes that it is.
    let operations: HashMap<String, &RawValue> =
        serde_json::from_slice(line).map_err(|error| format!("not a JSON request: {error}"))?;
    let mut operations = operations.into_iter();
    let (Some((name, request)), None) = (operations.next(), operations.next()) else {
        return Err("a line is an object with one key, the operation's name".into());
    };
    let operation: fn(&[u8]) -> Result<String, JsonError> = match name.as_str() {
        "init" => json::init,
        "step" => json::step,
        "one_shot" => json::one_shot,
        "replay" => json::replay,
        "batch" => json::batch,
        "preview" => json::preview,
        _ => {
            let known = "init, step, one_shot, replay, batch or preview";
            return Err(format!("{name:?}: not one of {known}"));
        }
    };
    operation(request.get().as_bytes()).map_err(|error| error.to_string())
}
