//! `examples/batch_decode.rs`, as a user runs it: over the real rows, over good files and over bad ones.
// Where tests run under an emulator, they can't start a second program.
#![cfg(target_arch = "x86_64")]

use half::{bf16, f16};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The example next to this test. `cargo test` builds it before; a call for this test alone doesn't.
fn example() -> &'static Path {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLE.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let profile = own.parent().and_then(Path::parent).unwrap();
        let name = format!("batch_decode{}", std::env::consts::EXE_SUFFIX);
        let example = profile.join("examples").join(name);
        if !example.exists() {
            let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
            let mut build = Command::new(cargo);
            build.args(["build", "--example", "batch_decode", "--target-dir"]);
            build.arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
        }
        example
    })
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(example());
    command.args(arguments).env_remove("SORTLESS_LEVEL").output().unwrap()
}

/// The output of a call that must succeed.
fn good(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(arguments);
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.success() && stderr.is_empty(), "{arguments:?}: {status}, {stderr}");
    String::from_utf8(stdout).unwrap()
}

/// What a call that must be refused says: one line on stderr, nothing on stdout, exit code 2.
fn refused(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{command:?}: {text}");
    assert!(stdout.is_empty(), "{command:?}");
    assert_eq!(text.lines().count(), 1, "{command:?}: {text}");
    text
}

/// A file in a folder of this test run's own.
fn file(name: &str, bytes: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("example");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().into()
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The tables' lines as words: row, sampling (in words itself), token, kept, probability, surprise.
fn table(text: &str) -> Vec<Vec<&str>> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|w| w.len() > 5 && ["greedy", "T"].contains(&w[1])).collect()
}

#[test]
fn without_arguments_it_decodes_the_real_rows_and_measures() {
    let text = good(&[]);
    let rows = table(&text);
    assert_eq!(rows.len(), 26 + 5, "{text}");
    // The rows that are greedy here: the tokens of whisper.json, end of text where none was recorded.
    let token = |row: usize| rows[row][rows[row].len() - 4];
    let kept = |row: usize| rows[row][rows[row].len() - 3];
    for (row, engine) in [(1, "319"), (9, "12037"), (17, "50256")] {
        assert_eq!((token(row), kept(row)), (engine, "1"), "{text}");
    }
    for row in &rows {
        let [probability, surprise] = [row[row.len() - 2], row[row.len() - 1]];
        let (p, s): (f64, f64) = (probability.parse().unwrap(), surprise.parse().unwrap());
        assert!(p > 0.0 && p <= 1.0 && (p.log2() + s).abs() < 0.01 + 1e-6 / p, "{row:?}");
    }
    for vocab in ["51,864", "151,936", "250,000"] {
        let after = text.split_once(vocab).expect(vocab).1;
        assert!(after.contains("1 thread,") && after.contains("tokens/s"), "{text}");
    }
}

#[test]
fn it_takes_a_row_or_a_matrix_of_each_type() {
    let values = [0.5f32, 3.0, -1.0, 2.5, f32::NEG_INFINITY, 2.0, 9.0, 0.0];
    let halves: Vec<u8> = values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
    let brains: Vec<u8> = values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect();
    let big: Vec<u8> = values.iter().flat_map(|&v| v.to_be_bytes()).collect();
    let cases: [(&str, &str, &[u8], &[&str]); 5] = [
        ("single.npy", "<f4", &floats(&values), &[]),
        ("half.npy", "<f2", &halves, &[]),
        ("brain.npy", "<u2", &brains, &["--bf16"]),
        ("big.npy", ">f4", &big, &[]),
        ("same.npy", "<f4", &floats(&values), &[]),
    ];
    for (name, descr, data, more) in cases {
        let matrix = file(name, &npy(descr, "(2, 4)", data));
        let text = good(&[&["--rows", &matrix], more].concat());
        let rows = table(&text);
        assert_eq!(rows.len(), 2, "{text}");
        // The second row is greedy.
        assert_eq!(rows[1][1..4], ["greedy", "2", "1"], "{text}");
        let row = file(name, &npy(descr, "(8,)", data));
        let text = good(&[&["--rows", &row], more].concat());
        assert_eq!(table(&text).len(), 1, "{text}");
        assert!(text.contains("1 row(s) of 8 "), "{text}");
    }
}

#[test]
fn a_bad_row_leaves_its_neighbours_alone() {
    let bad = file("bad-row.npy", &npy("<f4", "(2, 2)", &floats(&[1.0, f32::NAN, 0.0, 1.0])));
    let Output { status, stdout, stderr } = run(&["--rows", &bad]);
    assert_eq!(status.code(), Some(1));
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(stdout.contains("logit 1 is NaN"), "{stdout}");
    assert_eq!(table(&stdout).last().unwrap()[1..4], ["greedy", "1", "1"], "{stdout}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_file_that_can_t_be_used_gets_one_line_and_exit_code_2() {
    let four = floats(&[1.0, 2.0, 3.0, 4.0]);
    let whole = npy("<f4", "(2, 2)", &four);
    let cases = [
        (file("truncated.npy", &whole[..whole.len() - 1]), "truncated"),
        (file("cut-header.npy", &whole[..20]), "truncated"),
        (file("longer.npy", &[&whole[..], &[0]].concat()), "longer"),
        (file("integers.npy", &npy("<i4", "(2, 2)", &four)), "holds"),
        (file("doubles.npy", &npy("<f8", "(2,)", &[0; 16])), "holds f64"),
        (file("u16.npy", &npy("<u2", "(8,)", &four)), "--bf16"),
        (file("cube.npy", &npy("<f4", "(1, 2, 2)", &four)), "3 dimensions"),
        (file("number.npy", &npy("<f4", "()", &four[..4])), "0 dimensions"),
        (file("no-bytes.npy", &[]), "empty"),
        (file("no-rows.npy", &npy("<f4", "(0, 2)", &[])), "empty"),
        (file("no-tokens.npy", &npy("<f4", "(2, 0)", &[])), "empty"),
        (file("text.npy", b"not an array"), "not a .npy file"),
        (file("long-row.npy", &npy("<f2", "(1048577,)", &[0; 2 << 20 | 2])), "1048576"),
        (env!("CARGO_TARGET_TMPDIR").into(), "directory"),
        (format!("{}/no-such-file.npy", env!("CARGO_TARGET_TMPDIR")), "no such file"),
    ];
    for (path, says) in cases {
        let text = refused(Command::new(example()).args(["--rows", &path]));
        assert!(text.contains(says) && text.contains(&path), "{text}");
    }
}

#[test]
fn arguments_and_levels_that_are_not_there_are_refused() {
    assert!(refused(Command::new(example()).arg("--row")).contains("usage"));
    assert!(refused(Command::new(example()).arg("--rows")).contains("usage"));
    let text = refused(Command::new(example()).env("SORTLESS_LEVEL", "mmx"));
    assert!(text.contains("mmx") && text.contains("scalar"), "{text}");
}

#[test]
fn every_level_prints_the_same_table() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/whisper_f32.npy");
    let mut tables = Vec::new();
    for level in sortless::Level::available() {
        let mut command = Command::new(example());
        let output = command.args(["--rows", data]).env("SORTLESS_LEVEL", level.name()).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(text.contains(&format!("1 thread, {level}:")), "{text}");
        tables.push(table(&text).concat().join(" "));
    }
    assert!(tables.iter().all(|t| !t.is_empty() && *t == tables[0]), "{tables:?}");
}
