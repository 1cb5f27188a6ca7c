//! `sortless sample`.

use crate::files::{Folder, matrix, matrix_f64, npy, real, real_rows};
use crate::run::{keys, sortless};
use half::bf16;
use serde_json::Value;
use sortless::{Draws, Level, Report, Sampler, SamplingParams, Scratch};

const MASKED: f32 = f32::NEG_INFINITY;

/// Every number of a line must be the library's, bit for bit.
fn assert_line(line: &Value, row: usize, report: &Report, alternatives: usize) {
    let bits = |value: &Value| value.as_f64().unwrap().to_bits();
    let numbers = |value: &Value, a: &sortless::Alternative| {
        assert_eq!(value["token"], a.token, "{line}");
        assert_eq!(bits(&value["probability"]), a.probability.to_bits(), "{line}");
        assert_eq!(bits(&value["conditional"]), a.conditional.to_bits(), "{line}");
        assert_eq!(bits(&value["surprise_bits"]), a.surprise.to_bits(), "{line}");
        assert_eq!(bits(&value["logprob"]), a.logprob.to_bits(), "{line}");
    };
    assert_eq!(line["row"], row);
    assert_eq!(line["kept"], report.kept, "{line}");
    numbers(line, &report.chosen);
    let list = line["alternatives"].as_array().unwrap();
    assert_eq!(list.len(), alternatives, "{line}");
    for (value, a) in list.iter().zip(&report.alternatives) {
        numbers(value, a);
    }
}

#[test]
fn real_rows_come_out_as_the_library_says_for_every_option() {
    let (path, rows) = (real("whisper_f32.npy"), real_rows());
    let p = SamplingParams::new;
    for (options, params) in [
        ("", p()),
        ("--temperature 0", p().with_temperature(0.0)),
        ("--temperature -0", p().with_temperature(-0.0)),
        ("--temperature 0.7 --top-p 0.9", p().with_temperature(0.7).with_top_p(0.9)),
        ("--top-k 40", p().with_top_k(40)),
        ("--min-p 0.05", p().with_min_p(0.05)),
        ("--typical-p 0.95", p().with_typical_p(0.95)),
        ("--epsilon 0.0003", p().with_epsilon(3e-4)),
        (
            "--temperature 1.3 --top-k 50 --top-p 0.95 --min-p 0.01 --typical-p 0.9 --epsilon 1e-4",
            p().with_temperature(1.3)
                .with_top_k(50)
                .with_top_p(0.95)
                .with_min_p(0.01)
                .with_typical_p(0.9)
                .with_epsilon(1e-4),
        ),
    ] {
        let mut args = vec!["sample", &path, "--json", "--seed", "5", "--stream", "2"];
        args.extend(options.split_whitespace());
        let plain = sortless(&args).fine();
        args.extend(["--logprobs", "3"]);
        let long = sortless(&args).fine();
        let sampler = Sampler::new(params).unwrap();
        let mut draws = Draws::new(5, 2);
        assert_eq!(plain.json().len(), rows.len());
        for (i, row) in rows.iter().enumerate() {
            let (u, mut report) = (draws.next_draw(), Report::default());
            sampler.report(row, u, 3, &mut Scratch::new(), &mut report).unwrap();
            assert_line(&plain.json()[i], i, &report, 0);
            assert_line(&long.json()[i], i, &report, report.alternatives.len());
        }
    }
}

#[test]
fn the_schema_of_a_line() {
    let path = real("whisper_f32.npy");
    let ran = sortless(&["sample", &path, "--json", "--logprobs", "2", "--top-k", "2"]).fine();
    for line in ran.out.lines() {
        let names = [
            "row",
            "token",
            "kept",
            "probability",
            "conditional",
            "surprise_bits",
            "logprob",
            "mu_before",
            "mu_after",
            "alternatives",
        ];
        // The alternatives' own keys come later in the line.
        assert_eq!(keys(line), names);
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(value["mu_before"].is_null() && value["mu_after"].is_null());
        let names = ["token", "probability", "conditional", "surprise_bits", "logprob"];
        let first = &value["alternatives"][0];
        assert_eq!(first.as_object().unwrap().len(), names.len());
        assert!(names.iter().all(|name| first[name].is_number()), "{first}");
    }
}

#[test]
fn the_engines_greedy_tokens_come_out() {
    let known: Value =
        serde_json::from_slice(&std::fs::read(real("whisper.json")).unwrap()).unwrap();
    let ran = sortless(&["sample", &real("whisper_f16.npy"), "--temperature", "0", "--json"]);
    let lines = ran.fine().json();
    assert_eq!(lines.len(), 26);
    for (line, known) in lines.iter().zip(known["engine_greedy_token"].as_array().unwrap()) {
        let end_of_text = Value::from(50_256);
        let token = if known.as_i64() == Some(-1) { &end_of_text } else { known };
        assert_eq!((&line["token"], line["kept"].as_u64()), (token, Some(1)));
    }
}

#[test]
fn threads_and_levels_change_no_byte() {
    let path = real("whisper_f16.npy");
    let run = |more: &[&str]| {
        let args = ["sample", &path, "--json", "--top-p", "0.95", "--logprobs", "4"];
        sortless(&[&args[..], more].concat()).fine().out
    };
    let one = run(&["--threads", "1"]);
    for threads in ["2", "7"] {
        assert_eq!(run(&["--threads", threads]), one);
    }
    for level in Level::available() {
        assert_eq!(run(&["--level", level.name()]), one, "{level}");
    }
    assert_ne!(run(&["--seed", "1"]), one);
    assert_ne!(run(&["--stream", "1"]), one);
}

#[test]
fn uniforms_come_from_lines_or_an_array() {
    let folder = Folder::new();
    let rows = folder.file("rows.npy", &matrix(&vec![vec![0.0; 4]; 4]));
    let us = [0.0, 0.3, 0.5, 0.999];
    let lines = us.map(|u| format!("{u}\n")).concat();
    let lines = folder.file("u.txt", lines.as_bytes());
    let double = folder.file("u8.npy", &npy("<f8", "(4,)", &us.map(f64::to_le_bytes).concat()));
    let single = us.map(|u| (u as f32).to_be_bytes()).concat();
    let single = folder.file("u4.npy", &npy(">f4", "(4,)", &single));
    for path in [lines, double, single] {
        let ran = sortless(&["sample", &rows, "--uniforms", &path, "--json"]).fine();
        let tokens: Vec<_> = ran.json().iter().map(|l| l["token"].as_u64().unwrap()).collect();
        assert_eq!(tokens, [0, 1, 2, 3], "{path}");
    }
    // Not draws, but numbers: each is its row's error.
    let path = folder.file("bad.txt", b"1\n0.3\nnan\n-0.5\n");
    let ran = sortless(&["sample", &rows, "--uniforms", &path, "--json"]).bad();
    let lines = ran.json();
    assert_eq!(lines[1]["token"], 1);
    for (row, value) in [(0, "1"), (2, "NaN"), (3, "-0.5")] {
        let error = serde_json::json!({"kind": "draw", "value": value});
        assert_eq!(lines[row], serde_json::json!({"row": row, "error": error}));
    }
}

#[test]
fn bad_rows_stand_in_their_places_and_leave_the_others_alone() {
    let folder = Folder::new();
    let good = real_rows();
    let mut rows: Vec<Vec<f32>> = (0..7).map(|i| good[i % 5].clone()).collect();
    let clean = folder.file("clean.npy", &matrix(&rows));
    rows[1][7] = f32::NAN;
    rows[1][9] = f32::INFINITY;
    rows[3][51_863] = f32::INFINITY;
    rows[4].fill(MASKED);
    let dirty = folder.file("dirty.npy", &matrix(&rows));
    let clean = sortless(&["sample", &clean, "--json"]).fine();
    let ran = sortless(&["sample", &dirty, "--json"]).bad();
    let lines: Vec<&str> = ran.out.lines().collect();
    let not_finite = r#"{"row":1,"error":{"kind":"not_finite","index":7,"value":"NaN"}}"#;
    assert_eq!(lines[1], not_finite);
    let infinite = r#"{"row":3,"error":{"kind":"not_finite","index":51863,"value":"+inf"}}"#;
    assert_eq!(lines[3], infinite);
    assert_eq!(lines[4], r#"{"row":4,"error":{"kind":"no_allowed_token"}}"#);
    for i in [0, 2, 5, 6] {
        assert_eq!(Some(lines[i]), clean.out.lines().nth(i));
    }
    let table = sortless(&["sample", &dirty]).bad().out;
    assert!(table.contains("     1  error: logit 7 is NaN"), "{table}");
    assert!(table.contains("     4  error: no allowed token"), "{table}");
    assert_eq!(table.lines().count(), 8);
}

#[test]
fn an_f64_that_overflows_is_its_rows_error_and_no_mask() {
    let folder = Folder::new();
    let rows = [
        vec![1.0, 2.0, 0.5],
        vec![1.0, -1e39, 0.5],
        vec![1.0, 1e300, f64::NAN],
        vec![f64::NAN, 1e300, 0.0],
        vec![1.0, f64::NEG_INFINITY, 1e-60],
    ];
    let path = folder.file("rows.npy", &matrix_f64(&rows));
    let ran = sortless(&["sample", &path, "--temperature", "0", "--json"]).bad();
    let lines = ran.json();
    let overflow = |index: u32, value: f64| serde_json::json!({"kind": "overflow", "index": index, "value": value});
    assert_eq!(lines[0]["token"], 1);
    assert_eq!(lines[1]["error"], overflow(1, -1e39));
    assert_eq!(lines[2]["error"], overflow(1, 1e300));
    assert_eq!(lines[3]["error"]["kind"], "not_finite");
    assert_eq!(lines[4]["token"], 0);
    // Masked, it doesn't matter.
    let mask = folder.file("mask.npy", &npy("|b1", "(3,)", &[1, 0, 0]));
    let args = ["sample", &path, "--temperature", "0", "--json", "--mask", &mask];
    let tokens: Vec<Value> = sortless(&args).bad().json();
    assert_eq!(tokens[2]["token"], 0);
    assert_eq!(tokens[3]["error"]["index"], 0);
}

#[test]
fn every_element_type_gives_its_values() {
    let folder = Folder::new();
    // Exact in every type.
    let row = [0.5f32, 3.0, -1.0, 2.0, MASKED];
    let halves = row.map(half::f16::from_f32);
    let brains = row.map(bf16::from_f32);
    let files = [
        ("f16", npy("<f2", "(1, 5)", &halves.map(|v| v.to_le_bytes()).concat()), false),
        ("f16 big", npy(">f2", "(5,)", &halves.map(|v| v.to_be_bytes()).concat()), false),
        ("f32", npy("<f4", "(5,)", &row.map(f32::to_le_bytes).concat()), false),
        ("f32 big", npy(">f4", "(1, 5)", &row.map(f32::to_be_bytes).concat()), false),
        ("f64", matrix_f64(&[row.map(f64::from).to_vec()]), false),
        ("bf16", npy("<u2", "(5,)", &brains.map(|v| v.to_le_bytes()).concat()), true),
        ("bf16 big", npy(">u2", "(5,)", &brains.map(|v| v.to_be_bytes()).concat()), true),
    ];
    let mut seen = Vec::new();
    for (name, bytes, is_bf16) in files {
        let path = folder.file(name, &bytes);
        let mut args = vec!["sample", &path, "--json", "--seed", "3", "--logprobs", "9"];
        args.extend(is_bf16.then_some("--bf16"));
        seen.push(sortless(&args).fine().out);
    }
    assert!(seen[0].contains("\"token\":1"));
    assert!(seen.iter().all(|out| *out == seen[0]), "{seen:#?}");
}

#[test]
fn masks_and_padding() {
    let folder = Folder::new();
    let rows = folder.file("rows.npy", &matrix(&vec![vec![1.0, 4.0, 3.0, 2.0]; 2]));
    let tokens = |more: &[&str], code: i32| -> Vec<Option<u64>> {
        let args = [&["sample", &rows, "--temperature", "0", "--json"], more].concat();
        let ran = sortless(&args);
        assert_eq!(ran.code, code, "{ran:?}");
        ran.json().iter().map(|line| line["token"].as_u64()).collect()
    };
    assert_eq!(tokens(&[], 0), [Some(1), Some(1)]);
    let all = folder.file("all.npy", &npy("|b1", "(4,)", &[1, 0, 0, 1]));
    assert_eq!(tokens(&["--mask", &all], 0), [Some(3), Some(3)]);
    let each = folder.file("each.npy", &npy("|u1", "(2, 4)", &[0, 0, 7, 1, 0, 0, 0, 0]));
    assert_eq!(tokens(&["--mask", &each], 1), [Some(2), None]);
    assert_eq!(tokens(&["--valid-vocab", "1"], 0), [Some(0), Some(0)]);
    assert_eq!(tokens(&["--valid-vocab", "4"], 0), [Some(1), Some(1)]);
    let short = folder.file("short.npy", &npy("|b1", "(3,)", &[1, 0, 1]));
    assert_eq!(tokens(&["--valid-vocab", "3", "--mask", &short], 0), [Some(2), Some(2)]);
    // A NaN in the padding or under the mask is not even read.
    let rows = folder.file("nan.npy", &matrix(&[vec![1.0, 4.0, f32::NAN]]));
    sortless(&["sample", &rows]).bad();
    sortless(&["sample", &rows, "--valid-vocab", "2"]).fine();
    let mask = folder.file("mask.npy", &npy("|b1", "(3,)", &[1, 1, 0]));
    sortless(&["sample", &rows, "--mask", &mask]).fine();
}

#[test]
fn the_shortest_and_the_longest_rows() {
    let folder = Folder::new();
    let path = folder.file("one.npy", &matrix(&[vec![-3.0], vec![MASKED], vec![1e38]]));
    let lines = sortless(&["sample", &path, "--json"]).bad().json();
    assert_eq!((&lines[0]["token"], &lines[0]["surprise_bits"]), (&0.into(), &0.0.into()));
    assert_eq!(lines[1]["error"]["kind"], "no_allowed_token");
    assert_eq!(lines[2]["probability"], 1.0);
    let wide = vec![0; 2 * ((1 << 20) + 1) * 2];
    let path = folder.file("wide.npy", &npy("<f2", "(2, 1048577)", &wide));
    let error = serde_json::json!({"kind": "row_length", "len": 1_048_577});
    for line in sortless(&["sample", &path, "--json"]).bad().json() {
        assert_eq!(line["error"], error);
    }
    sortless(&["sample", &path, "--valid-vocab", "1048576", "--temperature", "0"]).fine();
}

#[test]
fn the_table_is_for_people() {
    let ran = sortless(&["sample", &real("whisper_f32.npy"), "--top-k", "3", "--logprobs", "2"]);
    let out = ran.fine().out;
    assert!(out.starts_with("   row    token     kept  probability"), "{out}");
    assert_eq!(out.lines().filter(|line| line.contains("best: ")).count(), 5);
    assert_eq!(out.lines().count(), 11);
}

#[test]
fn mirostat_steps_are_the_sessions() {
    use sortless::mirostat::{Config, Session, Version};
    let (path, rows) = (real("whisper_f32.npy"), real_rows());
    for (name, version) in [("v1", Version::V1), ("v2", Version::V2)] {
        let config = Config::new(1.5).unwrap().with_temperature(0.9).unwrap();
        let config = config.with_eta(0.2).unwrap().with_m(50).unwrap();
        let fresh = Session::new(config, version);
        for sessions in ["one", "per-row"] {
            let args = "--tau 1.5 --temperature 0.9 --eta 0.2 --m 50 --seed 3 --json --logprobs 2";
            let mut list = vec!["sample", &path, "--mirostat", name, "--sessions", sessions];
            list.extend(args.split(' '));
            let lines = sortless(&list).fine().json();
            let (mut session, mut draws) = (fresh.fork(), Draws::new(3, 0));
            for (row, line) in rows.iter().zip(&lines) {
                if sessions == "per-row" {
                    session = fresh.fork();
                }
                let step = session.sample(row, draws.next_draw(), &mut Scratch::new()).unwrap();
                assert_eq!(
                    (&line["token"], &line["kept"]),
                    (&step.token.into(), &step.kept.into())
                );
                for (key, value) in [
                    ("probability", step.probability),
                    ("surprise_bits", step.surprise),
                    ("mu_before", step.mu_before),
                    ("mu_after", step.mu_after),
                ] {
                    assert_eq!(line[key].as_f64().unwrap().to_bits(), value.to_bits(), "{line}");
                }
                assert!(line["conditional"].as_f64().unwrap() >= step.probability);
                let nats = line["surprise_bits"].as_f64().unwrap() * std::f64::consts::LN_2;
                assert!((nats + line["logprob"].as_f64().unwrap()).abs() < 1e-12);
                assert!((2..=3).contains(&line["alternatives"].as_array().unwrap().len()));
            }
        }
    }
}

#[test]
fn a_bad_row_moves_no_session() {
    let folder = Folder::new();
    let good = vec![2.0, 1.0, 0.0];
    let path = folder.file("x.npy", &matrix(&[good.clone(), vec![f32::NAN; 3], good]));
    let lines = sortless(&["sample", &path, "--mirostat", "v2", "--json"]).bad().json();
    assert_eq!(lines[1]["error"]["kind"], "not_finite");
    assert_eq!(lines[0]["mu_after"], lines[2]["mu_before"]);
    let table = sortless(&["sample", &path, "--mirostat", "v1", "--tau", "1"]).bad().out;
    assert!(table.lines().next().unwrap().ends_with("mu before  mu after"), "{table}");
}

#[test]
fn what_mirostat_does_not_go_with() {
    let path = real("whisper_f32.npy");
    for (options, words) in [
        ("--mirostat v2 --temperature 0", "--temperature above 0"),
        ("--mirostat v2 --top-p 0.9", "--top-p"),
        ("--mirostat v1 --top-k 5", "--top-k"),
        ("--mirostat v1 --min-p 0.1", "--min-p"),
        ("--mirostat v1 --typical-p 0.9", "--typical-p"),
        ("--mirostat v1 --epsilon 0.01", "--epsilon"),
        ("--mirostat v3", "--mirostat"),
        ("--mirostat v2 --tau 0", "tau must be"),
        ("--mirostat v2 --tau nan", "tau must be"),
        ("--mirostat v2 --eta -1", "eta must be"),
        ("--mirostat v1 --m 1", "m must be at least 2"),
        ("--mirostat v2 --temperature -1", "temperature must be"),
        ("--mirostat v2 --sessions two", "--sessions"),
        ("--tau 3", "--mirostat"),
        ("--eta 0.1", "--mirostat"),
        ("--m 5", "--mirostat"),
        ("--sessions one", "--mirostat"),
    ] {
        for command in ["sample", "verify"] {
            let mut args = vec![command, &path];
            args.extend(options.split(' '));
            sortless(&args).unusable(words);
        }
    }
}
