//! JSON requests: any bytes get a response or a clear error, and a request that was built here gets what the session
//! itself gives, bit for bit.

use super::bytes::{Bytes, step_f64};
use super::describe;
use super::row::{Frame, row};
use crate::json;
use crate::mirostat::{Config, Session, State, Version};
use crate::sampler::Scratch;
use serde_json::{Value, json};

/// Checks the JSON protocol on the case that these bytes say.
///
/// # Errors
/// The case in full, and what is wrong with it.
pub fn json(bytes: &[u8]) -> Result<(), String> {
    // Text, as a fuzzer's dictionary and corpus make it, or a request that is built.
    let outcome = match bytes.split_first() {
        Some((&first, rest)) if first < 0x20 => built(&mut Bytes::new(rest)),
        _ => any(bytes),
    };
    outcome.map_err(|error| describe(error, bytes))
}

/// Whatever comes, no function panics, and what they return is JSON or says something.
fn any(request: &[u8]) -> Result<(), String> {
    let functions =
        [json::init, json::step, json::one_shot, json::replay, json::batch, json::preview];
    for f in functions {
        match f(request) {
            Ok(text) => {
                let value: Value =
                    serde_json::from_str(&text).map_err(|e| format!("{text}: {e}"))?;
                if !value.is_object() {
                    return Err(format!("no object: {text}"));
                }
            }
            Err(error) if error.to_string().is_empty() => return Err("an empty error".into()),
            Err(_) => {}
        }
    }
    Ok(())
}

fn built(b: &mut Bytes<'_>) -> Result<(), String> {
    let frame = Frame { max: b.of(&[0.0, 10.0, -900.0]), temperature: 1.0 };
    let len = b.below(70);
    let row = row::<f32>(b, frame, len);
    let version = b.of(&[Version::V2, Version::V1]);
    let tau = b.of(&[1.5, 3.0, 0.1, 1e-300, 5e-324]);
    let config = Config::new(tau).map_err(|e| e.to_string())?;
    let mu = step_f64(f64::from(b.u16()) / 2048.0, b.step());
    let (steps, u) = (b.u64(), (b.u64() >> 11) as f64 / (1u64 << 53) as f64);
    // NaN and +inf have no place in JSON.
    let logits: Vec<f32> =
        row.into_iter().map(|l| if l < f32::INFINITY { l } else { f32::NEG_INFINITY }).collect();
    let masked = if b.chance(128) { Value::Null } else { json!("-inf") };
    let value =
        |&l: &f32| if l == f32::NEG_INFINITY { masked.clone() } else { json!(f64::from(l)) };
    let logits_json: Vec<Value> = logits.iter().map(value).collect();
    let name = if version == Version::V1 { "v1" } else { "v2" };
    let request = json!({
        "version": name, "tau": tau, "state_mu": mu, "state_steps": steps, "logits": logits_json,
        "uniform": u,
    });
    let text = request.to_string();
    let state = State { mu, steps };
    let mut session =
        Session::from_state(config, version, state).map_err(|error| error.to_string())?;
    let want = session.sample(&logits, u, &mut Scratch::new());
    let got = json::step(text.as_bytes());
    let (step, response) = match (want, got) {
        (Ok(step), Ok(response)) => (step, response),
        (Err(_), Err(_)) => return any(text.as_bytes()),
        (want, got) => return Err(format!("{got:?}, but the session {want:?}; {text}")),
    };
    let response: Value = serde_json::from_str(&response).map_err(|error| error.to_string())?;
    let after = session.state();
    let number = |name: &str, want: f64| match response[name].as_f64() {
        Some(got) if got.to_bits() == want.to_bits() => Ok(()),
        got => Err(format!("{name}: {got:?}, not {want:?}; {text} gives {response}")),
    };
    let integer = |name: &str, want: u64| match response[name].as_u64() {
        Some(got) if got == want => Ok(()),
        got => Err(format!("{name}: {got:?}, not {want}; {text} gives {response}")),
    };
    integer("token", step.token.into())?;
    integer("kept_tokens", step.kept.into())?;
    integer("state_steps", after.steps)?;
    number("probability", step.probability)?;
    number("surprise_bits", step.surprise)?;
    number("mu_after", step.mu_after)?;
    number("state_mu", after.mu)?;
    // A field more, or one less, is refused.
    let mut changed = request.clone();
    changed["tua"] = json!(1);
    if json::step(changed.to_string().as_bytes()).is_ok() {
        return Err(format!("an unknown field goes through: {changed}"));
    }
    let field = b.of(&["version", "tau", "state_mu", "state_steps", "logits", "uniform"]);
    let mut changed = request;
    if let Some(map) = changed.as_object_mut() {
        map.remove(field);
    }
    match json::step(changed.to_string().as_bytes()) {
        Err(error) if error.to_string().contains(field) => Ok(()),
        // One of the two kinds of row is missing: either may be named.
        Err(_) if field == "logits" => Ok(()),
        other => Err(format!("without {field}: {other:?}")),
    }
}
