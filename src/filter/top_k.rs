//! Top-k: the first `k` of the rank.

use crate::rank::{Alive, Need, Ranked, Seek};

pub(super) fn apply(ranked: &mut impl Ranked, alive: Alive, k: u64) -> Result<Alive, Need> {
    Ok(alive.within(ranked.seek(Seek::Count(k))?))
}
