//! Mirostat as JSON: the host keeps the state.

use serde_json::{Value, json};
use sortless::json::{self, JsonError};

fn main() -> Result<(), JsonError> {
    let parameters = json!({"version": "v2", "tau": 1.2, "eta": 0.2});
    let mut state = show("init", json::init(parameters.to_string().as_bytes())?);
    for uniform in [0.1, 0.7, 0.95] {
        let mut request = parameters.clone();
        request["logits"] = json!([2.0, 1.0, null, 0.5, -1.0]);
        request["uniform"] = json!(uniform);
        request["state_mu"] = state["state_mu"].clone();
        request["state_steps"] = state["state_steps"].clone();
        println!("> {request}");
        state = show("step", json::step(request.to_string().as_bytes())?);
    }
    let bad = r#"{"version": "v2", "tau": 1.2, "weights": [1, "x"], "uniform": 0.5}"#;
    println!("> {bad}");
    if let Err(error) = json::one_shot(bad.as_bytes()) {
        println!("  error: {error}");
    }
    Ok(())
}

fn show(name: &str, response: String) -> Value {
    println!("  {name}: {response}");
    serde_json::from_str(&response).unwrap_or_default()
}
