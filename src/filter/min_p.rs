//! Min-p: the tokens with at least a share of the best token's weight (Nguyen et al., 2024).

use crate::rank::{Alive, Need, Ranked, Seek};

pub(super) fn apply(ranked: &mut impl Ranked, alive: Alive, p: f64) -> Result<Alive, Need> {
    Ok(alive.within(ranked.seek(Seek::Weight(weight(p)))?))
}

/// The smallest f32 weight with `w >= p * 1`: the filters before this one keep the best token, which weighs 1.
fn weight(p: f64) -> f32 {
    let near = p as f32;
    if f64::from(near) < p { near.next_up() } else { near }
}
