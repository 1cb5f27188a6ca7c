//! Starting the command and looking at what it says.

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// What a run left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The command, not yet started, in an environment that doesn't choose a level.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sortless"));
    command.args(args).env_remove("SORTLESS_LEVEL");
    command
}

/// Runs it to its end.
pub fn sortless(args: &[&str]) -> Ran {
    finish(command(args))
}

/// Runs it to its end, with something to read.
pub fn sortless_reading(args: &[&str], input: &[u8]) -> Ran {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may stop reading whenever it likes.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    ran(output)
}

pub fn finish(mut command: Command) -> Ran {
    ran(command.output().unwrap())
}

fn ran(output: std::process::Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().expect("no signal, no abort");
    let ran = Ran { code, out: text(output.stdout), err: text(output.stderr) };
    assert!(!ran.err.contains("panicked"), "{ran:?}");
    ran
}

impl Ran {
    /// Exit code 0, and not a word on stderr.
    pub fn fine(self) -> Self {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self
    }

    /// Exit code 1, and not a word on stderr.
    pub fn bad(self) -> Self {
        assert_eq!((self.code, self.err.as_str()), (1, ""), "{}", self.out);
        self
    }

    /// Exit code 2, and one line on stderr that holds these words.
    pub fn unusable(self, words: &str) -> Self {
        assert_eq!(self.code, 2, "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(
            self.err.starts_with("sortless: ") && self.err.contains(words),
            "{words}: {self:?}"
        );
        self
    }

    /// A JSON value a line.
    pub fn json(&self) -> Vec<Value> {
        let parse =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

/// The keys of an object, in the order in which they stand in its line.
pub fn keys(line: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(line).unwrap();
    let object = value.as_object().unwrap();
    let place = |key: &&String| line.find(&format!("\"{key}\":")).unwrap();
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort_by_key(place);
    keys.into_iter().cloned().collect()
}
