//! `sortless completions` and `sortless man`: made from the command line's own description.

use crate::args::Cli;
use crate::failure::{Failure, Outcome};
use crate::output::{Out, write_file};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::path::Path;

pub fn completions(shell: Shell) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sortless", &mut script);
    print(&script)
}

pub fn man(out: Option<&Path>) -> Result<Outcome, Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = out else {
        return print(page(&command, "sortless")?.as_bytes());
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format_args!("{}: {error}", folder.display())))?;
    write_file(&folder.join("sortless.1"), &page(&command, "sortless")?)?;
    for sub in command.get_subcommands() {
        let name = format!("sortless-{}", sub.get_name());
        write_file(&folder.join(format!("{name}.1")), &page(sub, &name)?)?;
    }
    Ok(Outcome::Fine)
}

fn page(command: &Command, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // The long version is this machine's, and no business of a page.
    let command = command.clone().name(name.to_string()).long_version(None::<&str>);
    clap_mangen::Man::new(command).render(&mut bytes).map_err(Failure::of_output)?;
    String::from_utf8(bytes).map_err(Failure::new)
}

fn print(bytes: &[u8]) -> Result<Outcome, Failure> {
    let mut out = Out::new();
    out.bytes(bytes)?;
    out.flush()?;
    Ok(Outcome::Fine)
}
