//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use sortless::{Level, SamplingParams};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Exact, deterministic token sampling from rows of logits: samples, checks, measures and describes them.
///
/// Rows come from .npy files (f16, f32, f64, or bf16 stored as u16), a row each or a matrix of rows. Exit code 0: all
/// went well; 1: a row was bad, or a decision differed; 2: the arguments or a file can't be used.
#[derive(Debug, Parser)]
#[command(name = "sortless", version, long_version = LONG_VERSION.as_str(), after_help = EXAMPLES)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  sortless sample logits.npy --temperature 0.7 --top-p 0.9 --seed 1
  sortless verify logits.npy --top-k 40 --draws 10
  sortless cost --vocab 151936 --svg cost.svg
  sortless inspect logits.npy --row 0

`sortless COMMAND --help` shows each command's options and examples.";

/// Version, level and features.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<&str> = Level::available().map(Level::name).collect();
    let level = match Level::from_env() {
        Ok(Some(level)) => format!("{level}, as {} says", "SORTLESS_LEVEL"),
        Ok(None) => Level::best().to_string(),
        Err(error) => error.to_string(),
    };
    let all = [
        ("cli", true),
        ("json", cfg!(feature = "json")),
        ("rayon", cfg!(feature = "rayon")),
        ("serde", cfg!(feature = "serde")),
        ("rand", cfg!(feature = "rand")),
        ("avx512", cfg!(feature = "avx512")),
    ];
    let features: Vec<&str> = all.iter().filter(|f| f.1).map(|f| f.0).collect();
    format!(
        "{}\nlevel: {level} (available: {})\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        names.join(", "),
        features.join(", ")
    )
});

#[derive(Debug, Subcommand)]
pub enum Command {
    Sample(Sample),
    Verify(Verify),
    Cost(Cost),
    Inspect(Inspect),
    Json(Json),
    /// Writes a completion script for a shell to standard output.
    #[command(
        after_help = "Example:\n  sortless completions bash > ~/.local/share/bash-completion/completions/sortless"
    )]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Writes the man page to standard output, or all man pages into a folder.
    #[command(
        after_help = "Examples:\n  sortless man | man -l -\n  sortless man --out ~/.local/share/man/man1"
    )]
    Man {
        /// A folder for the pages of all commands.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Picks a token from every row.
///
/// Row i takes step i of the stream of draws, or the i-th number of the file of uniforms, whatever happened to the rows
/// before it. A bad row is reported in its place, the others go on, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sortless sample logits.npy --temperature 0                greedy
  sortless sample logits.npy --top-k 40 --top-p 0.95 --seed 7
  sortless sample logits.npy --mirostat v2 --tau 3 --json
  my-engine --dump-logits | sortless sample - --bf16 --logprobs 5 --json

A line of --json:
  {\"row\":0,\"token\":123,\"kept\":17,\"probability\":..,\"conditional\":..,\"surprise_bits\":..,\"logprob\":..,
   \"mu_before\":null,\"mu_after\":null,\"alternatives\":[..]}
  {\"row\":3,\"error\":{\"kind\":\"not_finite\",\"index\":7,\"value\":\"NaN\"}}")]
#[command(allow_negative_numbers = true)]
pub struct Sample {
    #[command(flatten)]
    pub rows: Rows,
    /// Also report the N best tokens of each row; the drawn one is always among them.
    #[arg(long, value_name = "N")]
    pub logprobs: Option<usize>,
    #[command(flatten)]
    pub params: Params,
    #[command(flatten)]
    pub draws: DrawArgs,
    #[command(flatten)]
    pub run: Run,
}

/// Checks every decision against a full sort and against an f64 softmax.
///
/// Every decision is made by the fast path at every available level, by each of its ways, light and with all numbers
/// reported. All of it must equal the full-sort reference bit for bit, and the token that of an independent f64 softmax,
/// except where that is in doubt: a draw or a cut within 1e-6 of a boundary. Exit code 1 if anything differs.
///
/// Draw j of row i is step (or uniform) i * DRAWS + j, so with one draw a row the decisions are those of `sample`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sortless verify logits.npy --temperature 0.7 --top-p 0.9 --draws 100
  sortless verify logits.npy --typical-p 0.95 --level avx2
  sortless verify --random 60 --seed 1                      rows and parameters of its own")]
#[command(allow_negative_numbers = true)]
pub struct Verify {
    /// A .npy file with a row or a matrix of rows; `-` is standard input.
    #[arg(value_name = "ROWS.npy", required_unless_present = "random", conflicts_with = "random")]
    pub rows: Option<String>,
    #[command(flatten)]
    pub form: Form,
    /// How many draws a row.
    #[arg(long = "draws", value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub count: usize,
    /// How many of the best tokens are compared, too.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub logprobs: usize,
    /// Make rows and parameters at random, for that many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub random: Option<f64>,
    #[command(flatten)]
    pub params: Params,
    #[command(flatten)]
    pub draws: DrawArgs,
    #[command(flatten)]
    pub run: Run,
}

/// Measures what sampling costs, by vocabulary size.
///
/// Every sampler takes turns with two floors, the bare maximum of a row (read) and the cheapest usable softmax sum (exp),
/// and with what a full sort takes for top-p 0.9 at temperature 0.7 (sort_unstable_by over 12-byte structs, sort_top_p).
/// Times are medians, in microseconds a row. Floors and the sort always read f32 rows. With several threads every
/// contestant works on several rows at once, and the time is that of a row, as wall time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sortless cost                                             all samplers, vocabularies and shapes
  sortless cost --vocab 32000,151936 --shape llm --samplers greedy,top_p --dtype f32,f16
  sortless cost --csv cost.csv --svg cost.svg
  sortless cost --rows logits.npy --tokens-per-second 80

Samplers: greedy; temperature 0.8; top_k 50; top_p 0.9 at temperature 0.7; min_p 0.05; epsilon 3e-4; typical 0.95;
mirostat_v1 and mirostat_v2, tau 3; sort_top_p, for comparison.
Shapes: llm, a bulk of Normal(0, 2.5) and 30 tokens at 18 - 1.2 ln(rank); flat, Normal(0, 1); ties, llm in steps of 1/8;
equal, one value everywhere.")]
#[command(allow_negative_numbers = true)]
pub struct Cost {
    /// Row lengths.
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = vocab)]
    #[arg(default_values_t = [32_000, 50_257, 128_256, 151_936, 200_019, 262_144])]
    pub vocab: Vec<usize>,
    /// Row shapes.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_enum)]
    #[arg(default_values_t = [Shape::Llm, Shape::Flat, Shape::Ties, Shape::Equal])]
    pub shape: Vec<Shape>,
    /// Samplers to measure [default: all].
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_enum)]
    pub samplers: Vec<Sampler>,
    /// Numbers of threads.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values_t = [1], value_parser = at_least_one)]
    pub threads: Vec<usize>,
    /// Element types [default: f32; with --rows the file's own].
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_enum)]
    pub dtype: Vec<Dtype>,
    /// Measure on rows of a .npy file instead (the first 64, at most); `-` is standard input.
    #[arg(long, value_name = "ROWS.npy", conflicts_with_all = ["vocab", "shape"])]
    pub rows: Option<String>,
    /// The rows hold bf16 as u16.
    #[arg(long, requires = "rows")]
    pub bf16: bool,
    /// Calls on each row; the sort gets a third of them.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = at_least_one)]
    pub rounds: usize,
    /// Also say what share of a decode step each sampler takes at this speed.
    #[arg(long, value_name = "N", value_parser = rate)]
    pub tokens_per_second: Option<f64>,
    /// Write the table to a CSV file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw cost over vocabulary to an SVG file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write JSON lines with the CSV's columns, instead of a table.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub level: LevelArg,
}

/// Describes rows: maximum, entropy, nucleus sizes, ties, masked and broken tokens, and how the weights are spread.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sortless inspect logits.npy
  sortless inspect logits.npy --row 3 --temperature 0.7 --svg row3.svg
  sortless inspect logits.npy --json | jq .entropy_bits")]
#[command(allow_negative_numbers = true)]
pub struct Inspect {
    #[command(flatten)]
    pub rows: Rows,
    /// Only this row, counted from 0.
    #[arg(long, value_name = "N")]
    pub row: Option<u64>,
    /// Divides the logits: a normal positive number.
    #[arg(long, value_name = "T", default_value = "1", value_parser = temperature)]
    pub temperature: f32,
    /// Nucleus sizes to show.
    #[arg(long, value_name = "P,..", value_delimiter = ',', default_values_t = [0.5, 0.9, 0.95, 0.99])]
    pub top_p: Vec<f64>,
    /// Draw how tokens and probability are spread over the weights' exponents, as a mean over the rows.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a JSON line a row.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub level: LevelArg,
}

/// Answers Mirostat's JSON requests, one a line, on standard input and output.
///
/// A line is an object with one key, the name of the operation, and its request. The answer is a line, too: the response,
/// or {"error":".."} with a text that names the field. The host keeps state_mu and state_steps and sends them with the next
/// step. Exit code 1 at the end if a request was wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  $ printf '%s\\n' '{\"init\":{\"version\":\"v2\",\"tau\":1.5}}' | sortless json
  {\"state_mu\":3.0,\"state_steps\":0}

Operations: init, step, one_shot, replay, batch, preview. A request has: version (\"v1\" or \"v2\") and tau; optional eta,
initial_mu, m, temperature; logits or weights, where a masked logit is null or \"-inf\"; uniform; state_mu and state_steps.
replay takes rows of logits or weights with uniform, batch takes rows of step requests, all or nothing.")]
pub struct Json {}

/// Rows, and which tokens of them count.
#[derive(Debug, Args)]
pub struct Rows {
    /// A .npy file with a row or a matrix of rows; `-` is standard input.
    #[arg(value_name = "ROWS.npy")]
    pub path: String,
    #[command(flatten)]
    pub form: Form,
}

#[derive(Debug, Args)]
pub struct Form {
    /// The rows hold bf16 as u16.
    #[arg(long)]
    pub bf16: bool,
    /// A .npy file of bool or u8, for all rows or a row each: only tokens with a true (or not 0) may be drawn.
    #[arg(long, value_name = "FILE.npy")]
    pub mask: Option<String>,
    /// Only the first N tokens of each row count; the rest is padding.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub valid_vocab: Option<usize>,
}

/// Temperature, then filters, each over what the ones before it left, in this order.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct Params {
    /// Divides the logits: a normal positive number, or 0 for greedy.
    #[arg(long, value_name = "T", default_value = "1", value_parser = temperature)]
    pub temperature: f32,
    /// Keep the K best tokens.
    #[arg(long, value_name = "K")]
    pub top_k: Option<u32>,
    /// Keep the shortest ranked prefix with at least this share of the mass, in (0, 1].
    #[arg(long, value_name = "P")]
    pub top_p: Option<f64>,
    /// Keep tokens with at least this share of the best token's weight, in [0, 1].
    #[arg(long, value_name = "P")]
    pub min_p: Option<f64>,
    /// Locally typical sampling: keep the tokens with the most typical surprise, up to this share of the mass, in (0, 1].
    #[arg(long, value_name = "P")]
    pub typical_p: Option<f64>,
    /// Keep tokens with at least this share of the mass, in [0, 1).
    #[arg(long, value_name = "EPSILON")]
    pub epsilon: Option<f64>,
    /// Mirostat instead of filters: hold the surprise of the drawn tokens at a target.
    #[arg(long, value_name = "VERSION", value_enum)]
    #[arg(conflicts_with_all = ["top_k", "top_p", "min_p", "typical_p", "epsilon"])]
    pub mirostat: Option<Mirostat>,
    /// Mirostat's target surprise in bits, above 0 [default: 3].
    #[arg(long, value_name = "BITS", requires = "mirostat")]
    pub tau: Option<f64>,
    /// Mirostat's learning rate, above 0 [default: 0.1].
    #[arg(long, value_name = "RATE", requires = "mirostat")]
    pub eta: Option<f64>,
    /// How many of the best tokens Mirostat v1 fits its law to, at least 2 [default: 100].
    #[arg(long, value_name = "N", requires = "mirostat")]
    pub m: Option<usize>,
    /// Whose steps the rows are: of one Mirostat session, in turn, or each the first of its own [default: one].
    #[arg(long, value_name = "WHOSE", value_enum, requires = "mirostat")]
    pub sessions: Option<Sessions>,
}

/// A version of Mirostat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mirostat {
    /// By a Zipf law that is fitted to the best tokens.
    V1,
    /// By each token's own surprise.
    V2,
}

/// Whose steps the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sessions {
    /// One session goes over all rows.
    One,
    /// Each row has a new session.
    PerRow,
}

impl Params {
    pub fn stateless(&self) -> SamplingParams {
        let mut params = SamplingParams::new().with_temperature(self.temperature);
        params.top_k = self.top_k;
        params.top_p = self.top_p;
        params.min_p = self.min_p;
        params.typical_p = self.typical_p;
        params.epsilon = self.epsilon;
        params
    }
}

/// Where draws come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Draws")]
pub struct DrawArgs {
    /// The seed of the draws (ChaCha8, counter-based).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// The stream of the seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stream: u64,
    /// Take draws in [0, 1) from a file instead: one a line, or a one-dimensional .npy of floats; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "stream"])]
    pub uniforms: Option<String>,
}

/// How to run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub struct Run {
    /// How many rows at once [default: as many as the machine has processors].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub level: LevelArg,
    /// Write JSON lines instead of a table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LevelArg {
    /// The instruction set to use, over what SORTLESS_LEVEL says [default: the best one]. Every level gives the same bits.
    #[arg(long = "level", value_name = "NAME")]
    name: Option<String>,
}

impl LevelArg {
    /// The level that was asked for, here or in the environment.
    pub fn chosen(&self) -> Result<Option<Level>, sortless::Error> {
        match &self.name {
            Some(name) => Level::by_name(name).map(Some),
            None => Level::from_env(),
        }
    }

    pub fn level(&self) -> Result<Level, sortless::Error> {
        Ok(self.chosen()?.unwrap_or_default())
    }
}

/// A row shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    Llm,
    Flat,
    Ties,
    Equal,
}

/// A sampler to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Sampler {
    Greedy,
    Temperature,
    TopK,
    TopP,
    MinP,
    Epsilon,
    Typical,
    MirostatV1,
    MirostatV2,
    SortTopP,
}

/// An element type to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    F32,
    F16,
    Bf16,
}

/// The name that a choice has on the command line, in tables and in files.
pub fn name_of(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

/// An f32; what isn't 0 doesn't become 0, which would mean greedy.
fn temperature(text: &str) -> Result<f32, String> {
    let exact: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    // Rounded once, from the text.
    let value: f32 = text.parse().map_err(|_| "not a number".to_string())?;
    if value == 0.0 && exact != 0.0 {
        return Err("too small for an f32; 0 is greedy".into());
    }
    Ok(value)
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(_) => Err("not a whole number, or too large".into()),
    }
}

fn vocab(text: &str) -> Result<usize, String> {
    at_least_one(text).and_then(|n| match n <= sortless::MAX_VOCAB {
        true => Ok(n),
        false => Err(format!("must be at most {}", sortless::MAX_VOCAB)),
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.0..=1e9).contains(&s) => Ok(s),
        _ => Err("must be a number of seconds, at least 0".into()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("must be a number above 0".into()),
    }
}
