//! The JSON protocol: what it gives, and what it says of bad requests.

#![cfg(feature = "json")]

mod support;

use serde_json::{Value, json};
use sortless::json::{self, JsonError};
use sortless::mirostat::{Config, Session, State, Version};
use sortless::{Error, Scratch};
use support::*;

type Function = fn(&[u8]) -> Result<String, JsonError>;

fn ask(
    f: impl Fn(&[u8]) -> Result<String, JsonError>,
    request: &Value,
) -> Result<Value, JsonError> {
    let text = f(request.to_string().as_bytes())?;
    Ok(serde_json::from_str(&text).unwrap())
}

fn base() -> Value {
    json!({
        "version": "v2", "tau": 1.5, "state_mu": 3.0, "state_steps": 0,
        "logits": [1.0, null, 0.5, "-inf", 2.0], "uniform": 0.6,
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut request = base();
    request[field] = value;
    request
}

fn without(field: &str) -> Value {
    let mut request = base();
    request.as_object_mut().unwrap().remove(field);
    request
}

#[test]
fn steps_are_a_session_s_bit_for_bit() {
    let mut random = Random::new(4);
    for version in [Version::V1, Version::V2] {
        let name = if version == Version::V1 { "v1" } else { "v2" };
        let config = Config::new(2.0).unwrap().with_eta(0.3).unwrap();
        let mut session = Session::new(config, version);
        let head = json!({"version": name, "tau": 2.0, "eta": 0.3});
        let mut state = ask(json::init, &head).unwrap();
        for i in 0..200 {
            let row = llm(200, i);
            let u = random.unit();
            let mut request = head.clone();
            request["state_mu"] = state["state_mu"].clone();
            request["state_steps"] = state["state_steps"].clone();
            request["uniform"] = json!(u);
            let weights: Vec<f32> = row.iter().map(|l| (l - 18.0).exp()).collect();
            let step = if i % 2 == 0 {
                request["logits"] = json!(row);
                session.sample(&row, u, &mut Scratch::new())
            } else {
                request["weights"] = json!(weights);
                session.sample_weights(&weights, u, &mut Scratch::new())
            };
            let step = step.unwrap();
            state = ask(json::step, &request).unwrap();
            assert_eq!(state["token"], step.token);
            assert_eq!(state["kept_tokens"], step.kept);
            let bits = |name: &str| state[name].as_f64().unwrap().to_bits();
            assert_eq!(bits("probability"), step.probability.to_bits());
            assert_eq!(bits("surprise_bits"), step.surprise.to_bits());
            assert_eq!(bits("mu_after"), step.mu_after.to_bits());
            assert_eq!(bits("state_mu"), session.mu().to_bits());
            assert_eq!(state["state_steps"], session.steps());
        }
    }
}

#[test]
fn masked_logits_are_null_or_minus_inf() {
    let response = ask(json::step, &base()).unwrap();
    assert_eq!((&response["token"], &response["kept_tokens"]), (&json!(4), &json!(3)));
    let all = ask(json::step, &with("logits", json!([null, "-inf"]))).unwrap_err();
    assert_eq!(all.to_string(), "logits: no allowed token: every logit is -inf");
}

#[test]
fn replay_batch_preview_and_one_shot() {
    let head = json!({"version": "v1", "tau": 2.0, "state_mu": 4.0, "state_steps": 7});
    let rows: Vec<Value> =
        (0..5).map(|i| json!({"logits": llm(50, i), "uniform": i as f64 / 5.0})).collect();
    let mut request = head.clone();
    request["rows"] = json!(rows);
    let replay = ask(json::replay, &request).unwrap();
    let mut state = head.clone();
    let mut sum = 0.0;
    for (row, step) in rows.iter().zip(replay["steps"].as_array().unwrap()) {
        let mut one = head.clone();
        for (name, value) in row.as_object().unwrap() {
            one[name] = value.clone();
        }
        one["state_mu"] = state["state_mu"].clone();
        one["state_steps"] = state["state_steps"].clone();
        state = ask(json::step, &one).unwrap();
        assert_eq!(&state, step);
        sum += step["surprise_bits"].as_f64().unwrap();
    }
    assert_eq!(replay["mean_surprise"], sum / 5.0);
    assert_eq!(replay["final_mu"], state["mu_after"]);
    assert_eq!(replay["state_steps"], 12);
    request["rows"] = json!([]);
    assert_eq!(ask(json::replay, &request).unwrap()["mean_surprise"], Value::Null);

    let batch = ask(json::batch, &json!({"rows": [base(), with("uniform", json!(0.99))]})).unwrap();
    assert_eq!(batch["rows"][0], ask(json::step, &base()).unwrap());
    assert_ne!(batch["rows"][1]["token"], batch["rows"][0]["token"]);

    let preview = ask(json::preview, &without("uniform")).unwrap();
    assert_eq!((&preview["vocabulary"], &preview["kept_tokens"]), (&json!(5), &json!(3)));
    assert_eq!((&preview["retained_mass"], &preview["state_mu"]), (&json!(1.0), &json!(3.0)));
    assert!(preview["expected_surprise"].as_f64().unwrap() > 1.0);

    let shot = json!({"version": "v2", "tau": 1.0, "weights": [1, 3], "uniform": 0.8});
    let got = ask(json::one_shot, &shot).unwrap();
    assert_eq!((&got["token"], &got["state_steps"]), (&json!(0), &json!(1)));
}

#[test]
fn errors_name_the_field() {
    let texts = [
        (without("tau"), "tau: is missing"),
        (with("tau", json!("x")), "tau: must be a number, not a text"),
        (with("tau", json!(0)), "tau: must be positive and finite, not 0.0"),
        (with("eta", json!(-1)), "eta: must be positive and finite, not -1.0"),
        (with("m", json!(1)), "m: must be at least 2, not 1.0"),
        (with("m", json!(1.5)), "m: must be an integer of at least 2"),
        (with("temperature", json!(1e300)), "temperature: 1e300 overflows f32"),
        (with("temperature", json!(0)), "temperature: must be a normal positive number"),
        (with("version", json!("v3")), "version: must be \"v1\" or \"v2\""),
        (with("version", json!(2)), "version: must be a text, not 2"),
        (without("uniform"), "uniform: is missing"),
        (with("uniform", json!(1)), "uniform: the draw must be in [0, 1), not 1"),
        (without("state_mu"), "state_mu: is missing"),
        (with("state_steps", json!(-1)), "state_steps: must be an integer of at least 0, not -1"),
        (without("logits"), "logits: or weights is missing"),
        (with("weights", json!([1])), "logits: and weights exclude each other"),
        (with("logits", json!("abc")), "logits: must be a list, not a text"),
        (with("logits", json!([])), "logits: a row must have 1 to 1048576 logits"),
        (with("logits", json!([0, 1e39])), "logits[1]: 1e39 overflows f32"),
        (with("logits", json!([0, "inf"])), "logits[1]: must be a number, null or \"-inf\""),
        (with("logits", json!([0, [1]])), "logits[1]: must be a number"),
        (with("state_mv", json!(1)), "state_mv: is not a field of this request"),
        (json!([1]), "the request: must be an object, not a list"),
    ];
    for (request, text) in texts {
        let error = ask(json::step, &request).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error:?}, not {text:?}");
    }
    let mut request = without("logits");
    request["weights"] = json!([1, null]);
    let error = ask(json::step, &request).unwrap_err().to_string();
    assert_eq!(error, "weights[1]: must be a number, not null");
    request["weights"] = json!([1, -1]);
    let error = ask(json::step, &request).unwrap_err().to_string();
    assert_eq!(error, "weights: weight 1 must be at least 0, not -1");

    let rows = json!({"rows": [base(), with("uniform", json!(2))]});
    let error = ask(json::batch, &rows).unwrap_err();
    let draw = Error::Draw { u: sortless::Number(2.0) };
    assert_eq!(error, JsonError::Refused { field: "rows[1].uniform".to_owned(), error: draw });
    let rows = json!({"rows": [base(), with("logits", json!([0, true]))]});
    let error = ask(json::batch, &rows).unwrap_err().to_string();
    assert!(error.starts_with("rows[1].logits[1]: must be"), "{error}");
    // A number beyond f64, and other things that are not JSON.
    for text in ["", "{", "{\"tau\": 1e999}", "{\"tau\": NaN}", "nul", "\u{0}"] {
        let error = json::init(text.as_bytes()).unwrap_err();
        assert!(matches!(error, JsonError::Syntax(_)), "{text}: {error}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut random = Random::new(12);
    let good = base().to_string().into_bytes();
    for round in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..1 + round % 4 {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.bits() as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"0123456789.eE-+[]{}\",:ntf"[random.below(25)]),
            }
        }
        let _ = FUNCTIONS[round % 6](&bytes);
        let noise: Vec<u8> = (0..random.below(40)).map(|_| random.bits() as u8).collect();
        let _ = FUNCTIONS[round % 6](&noise);
    }
}

const FUNCTIONS: [Function; 6] =
    [json::init, json::step, json::one_shot, json::replay, json::batch, json::preview];

#[test]
fn no_depth_exhausts_the_stack() {
    const DEPTH: usize = 100_000;
    let lists = "[".repeat(DEPTH);
    let objects = "{\"rows\":".repeat(DEPTH);
    let closed = format!("{lists}{}", "]".repeat(DEPTH));
    let inside = format!("{{\"version\": \"v2\", \"tau\": 1.5, \"logits\": {closed}}}");
    let rows = format!("{}1{}", "{\"rows\":[".repeat(DEPTH), "]}".repeat(DEPTH));
    // A thread's stack is smaller than the main one's.
    let run = move || {
        for text in [&lists, &objects, &closed, &inside, &rows] {
            for f in FUNCTIONS {
                let error = f(text.as_bytes()).unwrap_err();
                assert!(matches!(error, JsonError::Syntax(_)), "{error}");
                assert!(error.to_string().contains("recursion limit"), "{error}");
            }
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let bad: [&[u8]; 8] = [
        b"\xff",
        b"\xc0\xaf",         // longer than it has to be
        b"\xed\xa0\x80",     // half of a surrogate pair
        b"\xf4\x90\x80\x80", // beyond the last character
        b"\xe2\x82",         // cut off
        b"\x80",             // a continuation of nothing
        b"\\ud800",          // half of a pair, escaped
        b"\\udc00\\ud800",   // a pair the wrong way round
    ];
    for bad in bad {
        for (before, after) in [
            ("{\"version\": \"", "\", \"tau\": 1.5}"),
            ("{\"", "\": 1}"),
            ("{\"version\": \"v2\", \"tau\": 1.5, \"logits\": [\"", "\"]}"),
            ("", "{}"),
            ("{}", ""),
        ] {
            let request = [before.as_bytes(), bad, after.as_bytes()].concat();
            for f in FUNCTIONS {
                let error = f(&request).unwrap_err();
                assert!(matches!(error, JsonError::Syntax(_)), "{error}");
            }
        }
    }
    // A byte order mark is no part of JSON.
    assert!(json::init(b"\xef\xbb\xbf{\"version\": \"v2\", \"tau\": 1.5}").is_err());
}

/// A request of 100 MB, whose `field` has this text.
fn large(field: &str, value: &str) -> Vec<u8> {
    let fields = [
        ("version", "\"v2\""),
        ("tau", "1.5"),
        ("state_mu", "3"),
        ("state_steps", "0"),
        ("logits", "[1, 2]"),
        ("uniform", "0.5"),
    ];
    let text = |(name, old)| format!("\"{name}\":{}", if name == field { value } else { old });
    format!("{{{}}}", fields.map(text).join(",")).into_bytes()
}

/// Each is answered in seconds. (How much memory it takes: `tests/cli/streams.rs`.)
#[test]
fn requests_of_100_megabytes_are_answered() {
    const SIZE: usize = 100_000_000;
    let list = |element: &str| format!("[{}0]", element.repeat(SIZE / element.len()));
    let quoted = format!("\"{}\"", "x".repeat(SIZE));
    let digits = "1".repeat(SIZE);
    let fraction = format!("0.{digits}");
    let spaces = format!("{}0.5", " ".repeat(SIZE));
    let exponent = format!("1e{digits}");
    for (field, value, answer) in [
        (
            "logits",
            list("0,"),
            "logits: a row must have 1 to 1048576 logits, this one has 50000001",
        ),
        (
            "logits",
            list("null,"),
            "logits: a row must have 1 to 1048576 logits, this one has 20000001",
        ),
        ("logits", list("[],"), "logits[0]: must be a number, null or \"-inf\", not a list"),
        ("logits", quoted.clone(), "logits: must be a list, not a text"),
        ("version", quoted, "version: must be \"v1\" or \"v2\""),
        ("uniform", fraction, ""),
        ("uniform", spaces, ""),
        ("uniform", digits, "not a JSON request: number out of range"),
        ("uniform", exponent, "not a JSON request: number out of range"),
    ] {
        let request = large(field, &value);
        drop(value);
        let start = std::time::Instant::now();
        let response = json::step(&request);
        println!("{field} {answer:?} {:?}", start.elapsed());
        match response {
            Ok(_) => assert_eq!(answer, ""),
            Err(error) => {
                assert!(!answer.is_empty() && error.to_string().starts_with(answer), "{error}");
            }
        }
        assert!(start.elapsed().as_secs() < 300, "{field} {answer}");
    }
}

#[test]
fn configs_states_and_steps_go_through_serde() {
    let config: Config = serde_json::from_str(r#"{"tau": 2, "m": 50}"#).unwrap();
    assert_eq!(config, Config::new(2.0).unwrap().with_m(50).unwrap());
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
    for bad in [r#"{"tau": -2}"#, r#"{"tau": 2, "m": 1}"#, r#"{"tau": 2, "tav": 1}"#, "{}"] {
        assert!(serde_json::from_str::<Config>(bad).is_err(), "{bad}");
    }
    let state = State { mu: 0.1 + 0.2, steps: u64::MAX };
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    let mut session = Session::new(config, Version::V1);
    let step = session.sample(&llm(300, 1), 0.7, &mut Scratch::new()).unwrap();
    let text = serde_json::to_string(&step).unwrap();
    assert_eq!(serde_json::from_str::<sortless::mirostat::Step>(&text).unwrap(), step);
    assert_eq!(serde_json::to_string(&Version::V1).unwrap(), "\"v1\"");
}
