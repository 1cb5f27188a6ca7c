//! `sortless inspect`.

use crate::files::{Folder, matrix, real, real_rows, text};
use crate::run::sortless;
use sortless::{Report, Sampler, SamplingParams, Scratch};

const MASKED: f32 = f32::NEG_INFINITY;

#[test]
fn a_row_by_hand() {
    let folder = Folder::new();
    let ln2 = std::f32::consts::LN_2;
    let rows = vec![vec![3.0, 3.0 - ln2, 3.0, MASKED, 3.0 - ln2]];
    let path = folder.file("rows.npy", &matrix(&rows));
    let seen = &sortless(&["inspect", &path, "--json", "--top-p", "0.3,0.9"]).fine().json()[0];
    assert_eq!((&seen["vocab"], &seen["masked"]), (&5.into(), &1.into()));
    assert_eq!((&seen["max"], &seen["max_token"]), (&3.0.into(), &0.into()));
    assert_eq!((&seen["ties_at_top"], &seen["with_mass"]), (&2.into(), &4.into()));
    // Thirds and sixths: 2/3 log2 3 + 1/3 log2 6.
    let entropy = seen["entropy_bits"].as_f64().unwrap();
    assert!((entropy - (2.0 / 3.0 * 3f64.log2() + 6f64.log2() / 3.0)).abs() < 1e-6);
    let nucleus = serde_json::json!([{"p": 0.3, "kept": 1}, {"p": 0.9, "kept": 4}]);
    assert_eq!(seen["nucleus"], nucleus);
    assert_eq!(seen["exponent_tokens"][0], 2);
    let tokens = seen["exponent_tokens"].as_array().unwrap();
    assert_eq!(tokens.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 4);
    let shares = seen["exponent_probability"].as_array().unwrap();
    assert!((shares.iter().map(|n| n.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn real_rows_have_the_librarys_numbers() {
    let args = ["inspect", &real("whisper_f32.npy"), "--json", "--temperature", "0.7"];
    let seen = sortless(&args).fine().json();
    let sampler = |p: SamplingParams| Sampler::new(p.with_temperature(0.7)).unwrap();
    for (row, seen) in real_rows().iter().zip(&seen) {
        let (mut scratch, mut report) = (Scratch::new(), Report::default());
        let params = SamplingParams::new();
        sampler(params).report(row, 0.0, 1, &mut scratch, &mut report).unwrap();
        assert_eq!(seen["entropy_bits"].as_f64(), Some(report.entropy));
        assert_eq!(seen["max_token"], report.chosen.token);
        sampler(params.with_top_p(0.95)).report(row, 0.0, 1, &mut scratch, &mut report).unwrap();
        assert_eq!(seen["nucleus"][2]["kept"], report.kept);
    }
    let table = sortless(&args[..2]).fine().out;
    assert_eq!(table.matches("  entropy  ").count(), 5);
    assert!(table.contains("row 4: 51,864 tokens, 0 masked"), "{table}");
}

#[test]
fn bad_rows_are_counted_and_the_others_go_on() {
    let folder = Folder::new();
    let rows = vec![
        vec![f32::NAN, f32::INFINITY, f32::NAN, MASKED],
        vec![MASKED; 4],
        vec![1.0, 1.0, 1.0, 0.0],
    ];
    let path = folder.file("rows.npy", &matrix(&rows));
    let seen = sortless(&["inspect", &path, "--json"]).bad().json();
    assert_eq!((&seen[0]["nan"], &seen[0]["pos_inf"]), (&2.into(), &1.into()));
    assert_eq!(seen[0]["error"]["kind"], "not_finite");
    assert!(seen[0].get("max").is_none());
    assert_eq!(
        (&seen[1]["error"]["kind"], &seen[1]["masked"]),
        (&"no_allowed_token".into(), &4.into())
    );
    assert_eq!(seen[2]["ties_at_top"], 3);
    assert!(
        sortless(&["inspect", &path])
            .bad()
            .out
            .contains("error: logit 0 is NaN (2 NaN, 1 +inf in all)")
    );
    sortless(&["inspect", &path, "--row", "2"]).fine();
    let svg = text(&folder.path("x.svg"));
    sortless(&["inspect", &path, "--row", "1", "--svg", &svg]).unusable("no good row");
    assert_eq!(folder.names(), ["rows.npy"]);
}

#[test]
fn the_chart_is_one_whole_svg() {
    let folder = Folder::new();
    let path = text(&folder.path("spread.svg"));
    sortless(&["inspect", &real("whisper_f16.npy"), "--svg", &path]).fine();
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("mean of 26 rows") && svg.contains("share of the probability"));
    assert_eq!(folder.names(), ["spread.svg"]);
}
