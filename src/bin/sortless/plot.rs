//! The charts, as SVG text. Everything is drawn by hand with the backend's lines and texts: labels must not overlap.

mod canvas;
mod cost;
mod spread;

pub use cost::cost;
pub use spread::{Spread, spread};
