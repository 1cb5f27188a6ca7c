//! What happens to logits before sampling: a grammar's mask, a bias, penalties, a temperature.

use sortless::process::{Op, Tally, apply, packed_mask};
use sortless::{Draws, Error, Sampler, Scratch};

fn main() -> Result<(), Error> {
    let row = [2.0f32, 1.5, 1.0, 0.5, 0.0, -0.5];
    let history = [0, 0, 0, 1];
    let ops = [
        ("only tokens 0 to 4", Op::PackedMask(&[0b01_1111])),
        ("never token 4", Op::Block(&[4])),
        ("rather token 3", Op::SparseBias(&[(3, 1.0)])),
        ("repeat less", Op::RepetitionPenalty { history: &history, penalty: 1.2 }),
        (
            "by count",
            Op::PresenceFrequencyPenalty { history: &history, presence: 0.1, frequency: 0.2 },
        ),
        ("temperature 0.8", Op::Temperature(0.8)),
    ];
    let mut tally = Tally::new();
    let mut each = row;
    println!("{:20} {row:6.2?}", "logits");
    for (name, op) in ops {
        apply(&mut each, &[op], &mut tally)?;
        println!("{name:20} {each:6.2?}");
    }
    // All at once is the same.
    let mut once = row;
    apply(&mut once, &ops.map(|(_, op)| op), &mut tally)?;
    assert_eq!(once, each);

    let (mut draws, mut scratch) = (Draws::new(1, 0), Scratch::new());
    let sampler = Sampler::top_p(0.9)?;
    let mut counts = [0; 6];
    for _ in 0..1000 {
        counts[sampler.sample(&each, draws.next_draw(), &mut scratch)?.token as usize] += 1;
    }
    println!("{:20} {counts:?}", "of 1,000 draws");

    // A mask that leaves nothing is an error of its own, and the row is as it was.
    let before = each;
    let nothing = packed_mask(&mut each, &[1 << 4]);
    println!("{:20} {}", "only token 4", nothing.unwrap_err());
    assert_eq!(each, before);
    Ok(())
}
