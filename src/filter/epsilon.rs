//! Epsilon: the tokens with at least a share of the mass, and the best (Hewitt et al., 2022).

use crate::fraction;
use crate::kernels::ONE;
use crate::rank::{Alive, Need, Ranked, Seek, agree, weight_of_mass};

pub(super) fn apply(ranked: &mut impl Ranked, alive: Alive, p: f64) -> Result<Alive, Need> {
    let target = |mass| match fraction::cut(p, mass) {
        // Not even the best token has that much, but it stays.
        least if least > ONE => Seek::Count(1),
        least => Seek::Weight(weight_of_mass(least)),
    };
    Ok(alive.within(agree(ranked, alive.mass(ranked)?, target)?))
}
