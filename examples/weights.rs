//! Rows that are weights already: a session, a prepared row, a list of one's own.

use sortless::diagnostics::Diagnostics;
use sortless::mirostat::{Config, Session, Version};
use sortless::{Draws, PreparedRow, Scratch, draw_from, normalize_weights};

fn main() -> Result<(), sortless::Error> {
    // Counts from a table; they need not sum to anything.
    let weights = [120.0f32, 60.0, 40.0, 0.0, 30.0, 24.0, 20.0, 1.0];
    let mut scratch = Scratch::new();
    let mut probabilities = [0.0; 8];
    normalize_weights(&weights, &mut probabilities)?;
    println!("probabilities {probabilities:.3?}");

    let mut row = Diagnostics::from_weights(&weights, &mut scratch)?;
    println!("entropy {:.3} bits", row.entropy()?);
    println!("top-p 0.8 keeps {}, min-p 0.2 {}", row.top_p_len(0.8)?, row.min_p_len(0.2)?);
    println!("typical order {:?}", row.typical_order()?);

    let mut session = Session::new(Config::new(2.0)?, Version::V2);
    println!("before: {:?}", session.preview_weights(&weights, &mut scratch)?);
    let prepared = PreparedRow::from_weights(&weights)?;
    let mut draws = Draws::new(3, 0);
    for _ in 0..3 {
        let u = draws.next_draw();
        let twin = session.fork().sample_prepared(&prepared, u, &mut scratch)?;
        let step = session.sample_weights(&weights, u, &mut scratch)?;
        assert_eq!(step, twin);
        println!("u {u:.3}: token {} with {:.3} bits, of {}", step.token, step.surprise, step.kept);
    }

    // The host draws, the session is told.
    let set = session.candidates_weights(&weights, &mut scratch)?;
    let token = draw_from(&weights, set.ids(), 0.5)?;
    let step = session.observe_weights(&weights, token, &mut scratch)?;
    println!("the host drew {token} from {:?}; mu is {:.3} now", set.ids(), step.mu_after);
    Ok(())
}
