//! `sortless verify`.

use crate::files::{Folder, matrix, real};
use crate::run::{keys, sortless};
use sortless::Level;

#[test]
fn nothing_differs_on_real_rows() {
    let path = real("whisper_f32.npy");
    let levels = Level::available().count() as u64;
    for options in [
        "--temperature 0.7 --top-p 0.9",
        "--temperature 0",
        "--temperature 1.5",
        "--top-k 20 --typical-p 0.9",
        "--min-p 0.01 --epsilon 0.001",
    ] {
        let mut args = vec!["verify", &path, "--draws", "2", "--seed", "9", "--json"];
        args.extend(options.split_whitespace());
        let ran = sortless(&args).fine();
        let found = &ran.json()[0];
        assert_eq!((&found["rows"], &found["decisions"]), (&5.into(), &10.into()));
        // Three paths, light and reported.
        assert_eq!(found["comparisons"], 10 * levels * 6);
        assert_eq!(found["differ_from_reference"], 0);
        assert_eq!(found["differ_from_oracle"], 0);
        assert!(found["first_difference"].is_null() && found["first_bad_row"].is_null());
    }
    let text = sortless(&["verify", &path, "--top-k", "9"]).fine().out;
    assert!(text.contains("decisions                         5"), "{text}");
    assert!(text.contains("differ from reference             0\n"), "{text}");
}

#[test]
fn nothing_differs_for_mirostat() {
    let path = real("whisper_f32.npy");
    let levels = Level::available().count() as u64;
    for version in ["v1", "v2"] {
        for sessions in ["one", "per-row"] {
            let args = ["verify", &path, "--mirostat", version, "--sessions", sessions];
            let more = ["--tau", "1", "--draws", "3", "--json"];
            let found = &sortless(&[&args[..], &more].concat()).fine().json()[0];
            assert_eq!(found["decisions"], 15);
            assert_eq!(found["comparisons"], 15 * levels * 2);
            assert_eq!(found["differ_from_reference"], 0);
            assert_eq!(found["differ_from_oracle"], 0);
        }
    }
}

#[test]
fn a_level_can_be_chosen_and_the_schema_holds() {
    let path = real("whisper_f32.npy");
    let ran = sortless(&["verify", &path, "--level", "scalar", "--json", "--top-k", "5"]).fine();
    assert_eq!(ran.json()[0]["levels"], serde_json::json!(["scalar"]));
    let names = [
        "levels",
        "rows",
        "decisions",
        "comparisons",
        "refused_rows",
        "differ_from_reference",
        "differ_from_oracle",
        "in_doubt",
        "seconds",
        "first_bad_row",
        "first_difference",
    ];
    assert_eq!(keys(ran.out.trim()), names);
}

#[test]
fn bad_rows_are_refused_alike() {
    let folder = Folder::new();
    let rows = [vec![1.0, f32::NAN], vec![1.0, 2.0], vec![f32::NEG_INFINITY; 2]];
    let path = folder.file("rows.npy", &matrix(&rows));
    let found = &sortless(&["verify", &path, "--json"]).fine().json()[0];
    assert_eq!((&found["rows"], &found["refused_rows"]), (&3.into(), &2.into()));
    assert_eq!(found["first_bad_row"]["row"], 0);
    assert_eq!(found["first_bad_row"]["error"]["kind"], "not_finite");
    let found = &sortless(&["verify", &path, "--mirostat", "v2", "--json"]).fine().json()[0];
    assert_eq!(found["refused_rows"], 2);
    assert!(
        sortless(&["verify", &path]).fine().out.contains("rows refused                      2")
    );
}

#[test]
fn equal_tokens_at_a_boundary_are_in_doubt() {
    let folder = Folder::new();
    let rows = folder.file("rows.npy", &matrix(&[vec![1.0; 4]]));
    let uniforms = folder.file("u.txt", b"0.5\n0.6\n");
    let args = ["verify", &rows, "--draws", "2", "--uniforms", &uniforms, "--json"];
    assert_eq!(sortless(&args).fine().json()[0]["in_doubt"], 1);
}

#[test]
fn random_rows_differ_nowhere() {
    let ran = sortless(&["verify", "--random", "1", "--seed", "3", "--json"]).fine();
    let found = &ran.json()[0];
    assert!(found["decisions"].as_u64() >= Some(64), "{found}");
    assert!(found["refused_rows"].as_u64() > Some(0), "{found}");
}
