//! Whether the contestants decide the same, as far as they mean the same.

use crate::common::cases::draw;
use crate::ours::{Ours, kept};
use crate::peer::Peer;
use crate::turns::Rows;
use std::fmt;

/// How a peer's tokens compared.
#[derive(Clone, Copy, Default)]
pub struct Count {
    calls: usize,
    inside: usize,
    /// `None` for a peer that draws by itself, or not by rank.
    same: Option<usize>,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, inside, same } = self;
        write!(f, "{inside}/{calls} | ")?;
        same.map_or(Ok(()), |same| write!(f, "{same}/{calls}"))
    }
}

/// Runs everyone on some rows. Panics if sortless's token is not the reference's, or a peer's is neither in the set that it
/// should have kept nor near its edge.
pub fn all(ours: &Ours, peers: &mut [Peer], rows: &Rows, step: usize, draws: usize) -> Vec<Count> {
    let start = |p: &Peer| Count { same: p.same_draw.then_some(0), ..Count::default() };
    let mut counts: Vec<Count> = peers.iter().map(start).collect();
    let mut sortless = ours.pick();
    for (index, row) in rows.rows.iter().enumerate().step_by(step) {
        let us: Vec<f64> = (0..draws).map(|n| draw(index, n)).collect();
        let mut own = Vec::new();
        for &u in &us {
            let token = sortless(&mut row.clone(), u);
            assert_eq!(token, ours.reference(row, u), "sortless is not its reference");
            own.push(token);
        }
        for (peer, count) in peers.iter_mut().zip(&mut counts) {
            let (set, wide) = (kept(&peer.rule, row, false), kept(&peer.rule, row, true));
            for (&u, &own) in us.iter().zip(&own) {
                let token = (peer.pick)(&mut row.clone(), u);
                let inside = set.binary_search(&token).is_ok();
                assert!(
                    inside || wide.binary_search(&token).is_ok(),
                    "{}: token {token} of row {index} is not one of the {} that it may keep",
                    peer.name,
                    set.len(),
                );
                count.calls += 1;
                count.inside += usize::from(inside);
                if let Some(same) = &mut count.same {
                    *same += usize::from(token == own);
                }
            }
        }
    }
    counts
}
