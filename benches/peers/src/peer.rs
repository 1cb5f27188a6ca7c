//! What a contestant is.

use sortless::SamplingParams;
use sortless::mirostat::Version;

/// Picks a token from a row. The draw is for those that take one; the others have a generator of their own.
///
/// The row may be written to: an engine makes a new one for the next token.
pub type Pick = Box<dyn FnMut(&mut [f32], f64) -> u32>;

/// A contestant that is not sortless.
pub struct Peer {
    pub name: &'static str,
    pub pick: Pick,
    pub rule: Rule,
    /// Whether it takes the draw and goes through its candidates by rank, as sortless does: then both should pick the
    /// same token, but where rounding decides.
    pub same_draw: bool,
}

impl Peer {
    /// One with a generator of its own.
    pub fn new(name: &'static str, rule: Rule, pick: Pick) -> Self {
        Self { name, pick, rule, same_draw: false }
    }

    /// One that picks the token that sortless picks.
    pub fn same(name: &'static str, rule: Rule, pick: Pick) -> Self {
        Self { name, pick, rule, same_draw: true }
    }
}

/// Which tokens a contestant may pick: what it keeps, said in sortless's terms.
#[derive(Clone)]
pub enum Rule {
    /// A token with the largest logit.
    Best,
    /// A token that every one of these keeps.
    Kept(Vec<SamplingParams>),
    /// A token that Mirostat keeps in its first step, with the target of [`mirostat`](crate::ours::mirostat).
    Mirostat(Version),
}
