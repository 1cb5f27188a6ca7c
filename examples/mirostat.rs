//! Five decisions of each version, from a small row, with draws that anyone can reproduce.

use sortless::mirostat::{Config, Session, Version};
use sortless::{ParkMiller, Scratch};

fn main() -> Result<(), sortless::Error> {
    let words = ["the", "a", "this", "one", "every", "cheese"];
    let row = [3.0f32, 2.2, 1.5, 1.4, -0.5, -6.0];
    let mut scratch = Scratch::new();
    for version in [Version::V1, Version::V2] {
        let mut session = Session::new(Config::new(1.5)?, version);
        let mut draws = ParkMiller::new(20_210_503)?;
        println!("{version:?}, target {} bits", session.config().tau());
        for _ in 0..5 {
            let step = session.sample_with(&row, || draws.next_draw(), &mut scratch)?;
            println!(
                "  {:6}  {:.3} bits  of {} tokens  mu {:.3} -> {:.3}",
                words[step.token as usize], step.surprise, step.kept, step.mu_before, step.mu_after
            );
        }
    }
    Ok(())
}
