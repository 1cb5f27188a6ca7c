//! Files that are not what they say.

use crate::files::{Folder, matrix, npy, real};
use crate::run::sortless;

#[test]
fn each_is_one_line_and_exit_code_2() {
    let folder = Folder::new();
    let whole = std::fs::read(real("whisper_f16.npy")).unwrap();
    let mut fortran = matrix(&[vec![1.0, 2.0], vec![3.0, 4.0]]);
    let at = fortran.windows(5).position(|w| w == b"False").unwrap();
    fortran.splice(at..at + 5, *b"True ");
    for (name, bytes, words) in [
        ("empty.npy", vec![], "is empty"),
        ("cut.npy", whole[..whole.len() - 1].to_vec(), "truncated"),
        ("header.npy", whole[..40].to_vec(), "truncated"),
        ("long.npy", [&whole[..], &[0]].concat(), "longer than its header"),
        ("text.npy", b"1.0 2.0 3.0\n".to_vec(), "not a .npy file"),
        ("zip.npz", b"PK\x03\x04........".to_vec(), "not a .npy file"),
        ("cube.npy", npy("<f4", "(1, 1, 2)", &[0; 8]), "3 dimensions"),
        ("none.npy", npy("<f4", "(0, 5)", &[]), "is empty: 0 x 5"),
        ("thin.npy", npy("<f4", "(5, 0)", &[]), "is empty: 5 x 0"),
        ("scalar.npy", npy("<f4", "()", &[0; 4]), "0 dimensions"),
        ("int.npy", npy("<i4", "(1, 2)", &[0; 8]), "holds '<i4', not f16, f32 or f64"),
        ("complex.npy", npy("<c8", "(1, 2)", &[0; 16]), "holds '<c8'"),
        ("object.npy", npy("|O", "(1, 2)", &[0; 16]), "holds '|O'"),
        ("u2.npy", npy("<u2", "(1, 2)", &[0; 4]), "--bf16"),
        ("huge.npy", npy("<f4", "(99999999999, 99999999999)", &[0; 8]), "larger than any file"),
        ("lie.npy", npy("<f4", "(1000000, 1000000)", &[0; 8]), "truncated"),
        ("negative.npy", npy("<f4", "(-1, 2)", &[0; 8]), "no whole number"),
        ("fortran.npy", fortran, "Fortran order"),
        ("version.npy", b"\x93NUMPY\x09\x00\x10\x00{}".to_vec(), "version 9"),
    ] {
        let path = folder.file(name, &bytes);
        for command in ["sample", "verify", "inspect"] {
            let ran = sortless(&[command, &path]).unusable(words);
            assert!(ran.err.contains(name) && ran.out.is_empty(), "{ran:?}");
        }
        sortless(&["cost", "--rows", &path]).unusable(words);
    }
    let path = folder.file("f32.npy", &matrix(&[vec![1.0]]));
    sortless(&["sample", &path, "--bf16"]).unusable("not u16, because of --bf16");
    sortless(&["sample", "/no/such.npy"]).unusable("/no/such.npy: no such file");
    sortless(&["sample", "/"]).unusable("/: is a directory");
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let rows = real("whisper_f32.npy");
    let args = ["cost", "--rows", &rows, "--samplers", "greedy", "--rounds", "1"];
    let target = "/no/such/folder/cost.csv";
    sortless(&[&args[..], &["--csv", target]].concat()).unusable(target);
    sortless(&["inspect", &rows, "--svg", target]).unusable(target);
}
