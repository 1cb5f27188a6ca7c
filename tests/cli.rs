//! Runs the `sortless` command over good and bad input.
#![cfg(feature = "cli")]

#[path = "cli/files.rs"]
mod files;
#[path = "cli/run.rs"]
mod run;

#[path = "cli/arguments.rs"]
mod arguments;
#[path = "cli/broken_files.rs"]
mod broken_files;
#[path = "cli/cost.rs"]
mod cost;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/sample.rs"]
mod sample;
#[path = "cli/streams.rs"]
mod streams;
#[path = "cli/verify.rs"]
mod verify;
