//! Top-p, the nucleus: the shortest ranked prefix with at least a share of the mass (Holtzman et al., 2020).

use crate::fraction;
use crate::rank::{Alive, Need, Ranked, Seek, agree};

pub(super) fn apply(ranked: &mut impl Ranked, alive: Alive, p: f64) -> Result<Alive, Need> {
    // `>= cut` is `> cut - 1`; a cut of a positive mass is at least 1.
    let target = |mass| Seek::Mass(fraction::cut(p, mass).saturating_sub(1));
    Ok(alive.within(agree(ranked, alive.mass(ranked)?, target)?))
}
