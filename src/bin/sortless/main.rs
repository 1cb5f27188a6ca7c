//! The `sortless` command. Each subcommand is a file of its name.

mod args;
mod cost;
mod docs;
mod draws;
mod failure;
mod inspect;
mod json;
mod method;
mod npy;
mod output;
mod plot;
mod record;
mod rows;
mod sample;
mod threads;
mod verify;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::{Failure, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => run(&cli),
        Err(error) => parse_error(&error),
    };
    match result {
        Ok(Outcome::Fine) | Err(Failure::Unread) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Err(Failure::Unusable(text)) => {
            output::note(text);
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    match &cli.command {
        Command::Sample(args) => sample::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Cost(args) => cost::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Json(_) => json::run(),
        Command::Completions { shell } => docs::completions(*shell),
        Command::Man { out } => docs::man(out.as_deref()),
    }
}

/// Help and version are results; the rest becomes one line.
fn parse_error(error: &clap::Error) -> Result<Outcome, Failure> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return error.print().map(|()| Outcome::Fine).map_err(Failure::of_output);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(Failure::new("a command is needed: see sortless --help"));
    }
    let text = error.to_string();
    // The message, its list of arguments and its tips, but not the usage and the pointer to --help.
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more"));
    let message = message.collect::<Vec<_>>().join(" ");
    Err(Failure::new(message.trim_start_matches("error: ")))
}
