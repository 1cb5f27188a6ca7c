//! The command's reader of .npy files: whatever a file holds, it is refused in one line, or gives exactly the rows that
//! its header promises. The reader is part of the command, not of the library, so its property stands here.
#![no_main]

#[allow(dead_code)]
#[path = "../../src/bin/sortless/npy.rs"]
mod npy;

use half::{bf16, f16};
use npy::{Array, Decode, Input, Kind, Layout, Wanted};
use std::io::{BufReader, Cursor, Read};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&mode, rest)) = bytes.split_first() else { return };
    let wanted =
        [Wanted::Floats, Wanted::Bf16, Wanted::Mask, Wanted::Floats][usize::from(mode & 3)];
    let layout = if mode & 4 == 0 { Layout::Rows } else { Layout::Numbers };
    // A file as it is, or data behind a header that promises something else.
    let file = if mode & 16 == 0 { rest.to_vec() } else { with_header(rest) };
    let measured = read(&file, wanted, layout, true);
    let stream = read(&file, wanted, layout, false);
    for error in [&measured, &stream].into_iter().filter_map(|r| r.as_ref().err()) {
        assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
    }
    // A stream is refused later than a file, but what both give is the same; NaN by its bits.
    if let (Ok(a), Ok(b)) = (&measured, &stream) {
        assert_eq!(a, b);
    }
    assert_eq!(measured.is_ok(), stream.is_ok(), "{measured:?} {stream:?}");
});

/// Every element's bits as f64.
fn read(file: &[u8], wanted: Wanted, layout: Layout, measured: bool) -> Result<Vec<u64>, String> {
    let source: Box<dyn Read + Send> = Box::new(Cursor::new(file.to_vec()));
    let length = measured.then_some(file.len() as u64);
    let input = Input { name: "x".into(), source: BufReader::new(source), length };
    let mut array = Array::new(input, wanted, layout)?;
    let (rows, width, kind) = (array.rows(), array.width(), array.kind());
    let (mut found, mut all) = (0, Vec::new());
    while let Some(row) = array.next(sortless::MAX_VOCAB)? {
        assert_eq!(row.index, found);
        found += 1;
        let values: Vec<f64> = row.doubles().collect();
        assert_eq!(values.len() as u64, width.min(sortless::MAX_VOCAB as u64));
        decode(&row, kind, &values);
        all.extend(values.into_iter().map(f64::to_bits));
    }
    assert_eq!(found, rows);
    Ok(all)
}

/// The row in its own type is the row as f64.
fn decode(row: &npy::RawRow<'_>, kind: Kind, values: &[f64]) {
    fn same<E: Decode>(row: &npy::RawRow<'_>, values: &[f64], f64s: bool) {
        let mut out: Vec<E> = Vec::new();
        let overflow = E::decode(row, &mut out, &|_| true);
        assert_eq!(out.len(), values.len());
        for (own, &value) in out.iter().zip(values) {
            let (own, value) = (own.to_f32(), value as f32);
            assert!(own.to_bits() == value.to_bits() || own.is_nan() && value.is_nan());
        }
        if let Some(found) = overflow {
            assert!(f64s && values[found.index] == found.value && found.value.is_finite());
        }
    }
    match kind {
        Kind::F16 => same::<f16>(row, values, false),
        Kind::Bf16 => same::<bf16>(row, values, false),
        Kind::F32 => same::<f32>(row, values, false),
        Kind::F64 => same::<f32>(row, values, true),
        Kind::Bool => assert_eq!(row.flags().count(), values.len()),
    }
}

/// A header out of the first bytes, then the others.
fn with_header(bytes: &[u8]) -> Vec<u8> {
    let (head, data) = bytes.split_at(bytes.len().min(5));
    let byte = |i: usize| usize::from(head.get(i).copied().unwrap_or(0));
    let kinds =
        ["<f4", "<f2", "<f8", "<u2", "|b1", "|u1", ">f4", ">f2", ">f8", "<i4", "<f16", "U3"];
    let (descr, rows) = (kinds[byte(0) % kinds.len()], byte(2) % 5);
    let order = if byte(1) % 8 == 7 { "True" } else { "False" };
    let size = descr[2..].parse::<usize>().unwrap_or(1);
    // As many as there are, or another number.
    let width = match byte(3) {
        0..=180 => data.len() / size / rows.max(1),
        181..=220 => byte(4),
        221..=230 => usize::MAX >> (byte(4) % 64),
        _ => 0,
    };
    let shape = match byte(1) % 4 {
        0 => format!("({width},)"),
        3 => format!("({rows}, 1, {width})"),
        _ => format!("({rows}, {width})"),
    };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(data);
    file
}
