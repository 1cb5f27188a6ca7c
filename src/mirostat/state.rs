//! What a session remembers, to be put aside and taken up again.

use super::config::{Config, Version};

/// The whole feedback state of a session, portable: its parameters are not part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct State {
    /// The surprise that the next step allows, in bits; finite.
    pub mu: f64,
    /// How many steps were taken.
    pub steps: u64,
}

/// A session's state together with the parameters that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpoint {
    pub(super) config: Config,
    pub(super) version: Version,
    pub(super) state: State,
}

impl Checkpoint {
    /// The state that was put aside.
    pub fn state(&self) -> State {
        self.state
    }
}
