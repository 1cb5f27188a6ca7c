//! A generation from a model callback, with an end token and an observer.

use sortless::mirostat::{Config, Generate, Session, Stop, Version};
use sortless::{Draws, Scratch};
use std::ops::ControlFlow;

const WORDS: [&str; 8] = [".", "the", "cat", "dog", "saw", "chased", "a", "again"];

/// A toy model: which word follows which, as logits.
fn model(text: &[u32], row: &mut Vec<f32>) -> Result<(), String> {
    row.clear();
    row.resize(WORDS.len(), -4.0);
    let next: &[(usize, f32)] = match text.last() {
        Some(1 | 6) => &[(2, 2.0), (3, 1.5)],
        Some(2 | 3) => &[(4, 1.5), (5, 1.2), (0, 0.8), (7, 0.5)],
        Some(4 | 5) => &[(1, 2.0), (6, 1.5)],
        Some(7) => &[(0, 2.0)],
        Some(0) => return Err("the text has ended".to_owned()),
        _ => &[(1, 2.0), (6, 1.0)],
    };
    for &(word, logit) in next {
        row[word] = logit;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scratch = Scratch::new();
    for seed in 0..4 {
        let mut session = Session::new(Config::new(1.2)?, Version::V2);
        let mut draws = Draws::new(seed, 0);
        let mut bits = 0.0;
        let done = Generate::new(20).with_end_token(0).observe(
            &mut session,
            || draws.next_draw(),
            model,
            &[1],
            &mut scratch,
            |step| {
                bits += step.surprise;
                // Too much of a surprise: stop.
                if bits > 25.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        let done = done.map_err(|error| error.to_string())?;
        let words: Vec<&str> = done.tokens.iter().map(|&t| WORDS[t as usize]).collect();
        let why = match done.stop {
            Stop::EndToken => "the end token",
            Stop::Limit => "the limit",
            Stop::Observer => "the observer",
        };
        println!("the {}   [{bits:.1} bits, ended by {why}]", words.join(" "));
    }
    Ok(())
}
