//! `sortless cost`.

use crate::files::{Folder, matrix, real, text};
use crate::run::{keys, sortless};

const SAMPLERS: [&str; 10] = [
    "greedy",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "epsilon",
    "typical",
    "mirostat_v1",
    "mirostat_v2",
    "sort_top_p",
];
const COLUMNS: &str =
    "vocab,shape,dtype,threads,sampler,us_per_row,ns_per_token,x_floor_read,x_floor_exp,x_sort";

#[test]
fn the_table_the_csv_and_the_chart_hold_every_sampler() {
    let folder = Folder::new();
    let (csv, svg) = (folder.path("cost.csv"), folder.path("cost.svg"));
    let args = ["cost", "--vocab", "200,3000", "--rounds", "1", "--tokens-per-second", "100"];
    let more = ["--csv", &text(&csv), "--svg", &text(&svg)];
    let table = sortless(&[&args[..], &more].concat()).fine().out;
    for shape in ["llm", "flat", "ties", "equal"] {
        for vocab in ["200", "3,000"] {
            assert!(table.contains(&format!("{shape}, {vocab} tokens, f32, 1 thread,")), "{table}");
        }
    }
    assert_eq!(
        table.matches("share of a decode step at 100 tokens/s (10000 us): greedy ").count(),
        8
    );

    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().next(), Some(COLUMNS));
    assert_eq!(csv.lines().count(), 1 + 4 * 2 * SAMPLERS.len());
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        assert!(SAMPLERS.contains(&fields[4]), "{line}");
        assert!(fields[5..].iter().all(|n| n.parse::<f64>().is_ok_and(|n| n >= 0.0)), "{line}");
        assert!(fields[4] != "sort_top_p" || fields[9] == "1.0000", "{line}");
    }
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(SAMPLERS.iter().all(|name| svg.contains(name)));
    assert_eq!(folder.names(), ["cost.csv", "cost.svg"]);
}

#[test]
fn lines_of_json_have_the_columns_for_every_combination() {
    let args = ["cost", "--vocab", "300", "--shape", "llm", "--rounds", "1", "--json"];
    let more = ["--samplers", "top_p,sort_top_p", "--threads", "1,2", "--dtype", "f32,f16,bf16"];
    let ran = sortless(&[&args[..], &more].concat()).fine();
    assert_eq!(ran.out.lines().count(), 2 * 2 * 3);
    for line in ran.out.lines() {
        assert_eq!(keys(line).join(","), COLUMNS);
    }
    let lines = ran.json();
    let seen: Vec<String> =
        lines.iter().step_by(2).map(|l| format!("{} {}", l["dtype"], l["threads"])).collect();
    let wanted = ["f32 1", "f32 2", "f16 1", "f16 2", "bf16 1", "bf16 2"];
    assert_eq!(seen, wanted.map(|w| format!("\"{}", w.replace(' ', "\" "))));
}

#[test]
fn rows_of_ones_own() {
    let args = ["--samplers", "greedy", "--rounds", "1", "--json"];
    let path = real("whisper_f16.npy");
    let ran = sortless(&[&["cost", "--rows", &path][..], &args].concat()).fine();
    let line = &ran.json()[0];
    assert_eq!(
        (&line["vocab"], &line["shape"], &line["dtype"]),
        (&51_864.into(), &"rows".into(), &"f16".into())
    );

    // Rows that can't be sampled are left out, with a word.
    let folder = Folder::new();
    let path = folder.file("rows.npy", &matrix(&[vec![1.0, 2.0], vec![f32::NAN; 2]]));
    let ran = sortless(&[&["cost", "--rows", &path][..], &args].concat());
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("1 bad rows are left out"), "{}", ran.err);
    let path = folder.file("bad.npy", &matrix(&[vec![f32::NAN; 2]]));
    let ran = sortless(&["cost", "--rows", &path]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("no row that can be sampled"), "{}", ran.err);
}
