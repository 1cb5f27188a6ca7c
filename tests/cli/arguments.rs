//! Help, version, documents, and arguments that can't be.

use crate::files::{Folder, matrix, npy, real};
use crate::run::{command, finish, sortless, sortless_reading};

const COMMANDS: [&str; 7] = ["sample", "verify", "cost", "inspect", "json", "completions", "man"];

#[test]
fn every_command_has_help_with_an_example() {
    let help = sortless(&["--help"]).fine().out;
    for name in COMMANDS {
        assert!(help.contains(&format!("  {name} ")), "{name}");
        let own = sortless(&[name, "--help"]).fine().out;
        assert!(own.contains("Example") && own.contains(&format!("sortless {name}")), "{own}");
    }
    assert!(help.contains("Examples:"));
}

#[test]
fn the_version_tells_level_and_features() {
    assert_eq!(
        sortless(&["-V"]).fine().out.trim(),
        concat!("sortless ", env!("CARGO_PKG_VERSION"))
    );
    let long = sortless(&["--version"]).fine().out;
    let best = sortless::Level::best().name();
    assert!(long.contains(&format!("level: {best} (available: {best}")), "{long}");
    assert!(long.contains("features: cli, json, rayon"), "{long}");
    let mut scalar = command(&["--version"]);
    scalar.env("SORTLESS_LEVEL", "scalar");
    assert!(finish(scalar).out.contains("level: scalar"));
}

#[test]
fn completions_and_man_pages() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sortless(&["completions", shell]).fine().out;
        assert!(script.contains("typical-p"), "{shell}");
    }
    sortless(&["completions", "tcl"]).unusable("tcl");

    let page = sortless(&["man"]).fine().out;
    assert!(page.contains(".TH sortless 1") && page.contains("SUBCOMMANDS"), "{page}");
    let folder = Folder::new();
    let out = folder.path("man1");
    sortless(&["man", "--out", out.to_str().unwrap()]).fine();
    for name in COMMANDS {
        let page = std::fs::read_to_string(out.join(format!("sortless-{name}.1"))).unwrap();
        assert!(page.contains(&format!("sortless-{name}")), "{page}");
    }
    let blocked = folder.file("blocked", b"");
    sortless(&["man", "--out", &blocked]).unusable("blocked");
}

#[test]
fn arguments_that_cannot_be_are_one_line() {
    let folder = Folder::new();
    let rows = folder.file("rows.npy", &matrix(&[vec![1.0, 2.0]]));
    let rows = rows.as_str();
    for (args, words) in [
        (&["sample", rows, "--temperature", "-1"][..], "temperature must be"),
        (&["sample", rows, "--temperature", "nan"], "temperature must be"),
        (&["sample", rows, "--temperature", "inf"], "temperature must be"),
        (&["sample", rows, "--temperature", "1e39"], "temperature must be"),
        (&["sample", rows, "--temperature", "1e-40"], "temperature must be"),
        (&["sample", rows, "--temperature", "1e-60"], "--temperature"),
        (&["sample", rows, "--temperature", "warm"], "--temperature"),
        (&["sample", rows, "--top-k", "0"], "top_k must be at least 1"),
        (&["sample", rows, "--top-k", "-3"], "--top-k"),
        (&["sample", rows, "--top-k", "4294967296"], "--top-k"),
        (&["sample", rows, "--top-p", "0"], "top_p must be in (0, 1]"),
        (&["sample", rows, "--top-p", "1.5"], "top_p"),
        (&["sample", rows, "--top-p", "nan"], "top_p"),
        (&["sample", rows, "--min-p", "-0.1"], "min_p must be in [0, 1]"),
        (&["sample", rows, "--typical-p", "0"], "typical_p must be in (0, 1]"),
        (&["sample", rows, "--epsilon", "1"], "epsilon must be in [0, 1)"),
        (&["sample", rows, "--level", "mmx"], "level \"mmx\" is not available"),
        (&["sample", rows, "--threads", "0"], "--threads"),
        (&["sample", rows, "--threads", "9999999"], "--threads"),
        (&["sample", rows, "--valid-vocab", "0"], "--valid-vocab"),
        (&["sample", rows, "--valid-vocab", "3"], "--valid-vocab 3"),
        (&["sample", rows, "--seed", "-1"], "--seed"),
        (&["sample", rows, "--seed", "1", "--uniforms", "u.txt"], "--uniforms"),
        (&["sample", rows, "--logprobs", "x"], "--logprobs"),
        (&["sample", rows, "--wrong"], "--wrong"),
        (&["sample", rows, "another"], "another"),
        (&["sample"], "ROWS.npy"),
        (&["sample", "-", "--mask", "-"], "standard input"),
        (&["sample", "-", "--uniforms", "-"], "standard input"),
        (&["verify"], "ROWS.npy"),
        (&["verify", rows, "--draws", "0"], "--draws"),
        (&["verify", rows, "--random", "1"], "--random"),
        (&["verify", "--random", "-1"], "--random"),
        (&["verify", "--random", "nan"], "--random"),
        (&["cost", "--vocab", "0"], "--vocab"),
        (&["cost", "--vocab", "1048577"], "--vocab"),
        (&["cost", "--vocab", "10,,20"], "--vocab"),
        (&["cost", "--shape", "round"], "--shape"),
        (&["cost", "--samplers", "top-p"], "--samplers"),
        (&["cost", "--dtype", "f64"], "--dtype"),
        (&["cost", "--rows", rows, "--vocab", "10"], "--vocab"),
        (&["cost", "--tokens-per-second", "0"], "--tokens-per-second"),
        (&["inspect", rows, "--temperature", "0"], "temperature must be"),
        (&["inspect", rows, "--top-p", "0.5,2"], "top_p"),
        (&["inspect", rows, "--row", "1"], "--row 1"),
        (&["nonsense"], "nonsense"),
        (&[], "--help"),
    ] {
        let ran = sortless(args).unusable(words);
        assert_eq!(ran.out, "", "{args:?}");
    }
}

#[test]
fn the_environment_chooses_a_level_and_the_option_wins() {
    let rows = real("whisper_f32.npy");
    let run = |level: &str, more: &[&str]| {
        let mut command = command(&[&["sample", &rows, "--json"], more].concat());
        command.env("SORTLESS_LEVEL", level);
        finish(command)
    };
    let scalar = run("scalar", &[]).fine().out;
    assert_eq!(scalar, run("", &[]).fine().out);
    run("mmx", &[]).unusable("level \"mmx\" is not available");
    assert_eq!(scalar, run("mmx", &["--level", "scalar"]).fine().out);
}

#[test]
fn masks_and_uniforms_that_do_not_fit() {
    let folder = Folder::new();
    let rows = folder.file("rows.npy", &matrix(&vec![vec![1.0; 4]; 3]));
    for (name, bytes, words) in [
        ("narrow.npy", npy("|b1", "(3,)", &[1; 3]), "the mask has 3 tokens, the rows have 4"),
        ("two.npy", npy("|b1", "(2, 4)", &[1; 8]), "2 masks for 3 rows"),
        ("float.npy", npy("<f4", "(4,)", &[0; 16]), "not bool or u8"),
        ("short.npy", npy("|b1", "(4,)", &[1; 3]), "truncated"),
        ("deep.npy", npy("|b1", "(1, 1, 4)", &[1; 4]), "3 dimensions"),
    ] {
        let mask = folder.file(name, &bytes);
        sortless(&["sample", &rows, "--mask", &mask]).unusable(words);
    }
    for (name, bytes, words) in [
        ("words.txt", b"0.5\nhalf\n0.5\n".to_vec(), "line 2: \"half\" is no number"),
        ("none.txt", vec![], "too few uniforms"),
        ("ints.npy", npy("<i8", "(3,)", &[0; 24]), "not f16, f32 or f64"),
        ("matrix.npy", npy("<f8", "(3, 1)", &[0; 24]), "not a list of numbers"),
        ("two.npy", npy("<f8", "(2,)", &[0; 16]), "too few uniforms"),
    ] {
        let uniforms = folder.file(name, &bytes);
        sortless(&["sample", &rows, "--uniforms", &uniforms]).unusable(words);
    }
    sortless(&["sample", &rows, "--mask", "/no/such.npy"]).unusable("/no/such.npy: no such file");
    sortless(&["sample", &rows, "--uniforms", "/no/such"]).unusable("/no/such: no such file");
    // The rows before the broken place stay.
    let ran = sortless_reading(&["sample", &rows, "--uniforms", "-", "--json"], b"0.1\n0.9\n");
    assert_eq!(ran.unusable("standard input: too few").json().len(), 2);
}
