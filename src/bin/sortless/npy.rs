//! Arrays in `.npy` files, read row by row from anything that can be read, in the memory of one row.
//!
//! A header is a promise by a stranger: nothing is allocated, multiplied or believed before it was checked.

use half::{bf16, f16};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};
use sortless::Element;
use std::fs::File;
use std::io::{self, BufReader, Read};

/// The longest header text. What NumPy itself reads without being told to trust a file.
const LONGEST_HEADER: usize = 10_000;
/// The deepest nesting of brackets in a header: a parser of nested values can run out of stack.
const DEEPEST: usize = 8;
/// Bytes asked of the system at once.
const BUFFER: usize = 1 << 18;

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F16,
    /// Stored as u16: NumPy has no bfloat16.
    Bf16,
    F32,
    F64,
    /// A bool or u8; 0 is false.
    Bool,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::Bool => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Which elements the caller can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// f16, f32, f64.
    Floats,
    /// bf16 stored as u16.
    Bf16,
    /// bool or u8.
    Mask,
}

impl Wanted {
    fn kind(self, dtype: &DType) -> Result<Kind, String> {
        let found = match dtype {
            DType::Plain(plain) => match (self, plain.type_char(), plain.size_field()) {
                (Self::Floats, TypeChar::Float, 2) => Some(Kind::F16),
                (Self::Floats, TypeChar::Float, 4) => Some(Kind::F32),
                (Self::Floats, TypeChar::Float, 8) => Some(Kind::F64),
                (Self::Bf16, TypeChar::Uint, 2) => Some(Kind::Bf16),
                (Self::Mask, TypeChar::Bool | TypeChar::Uint, 1) => Some(Kind::Bool),
                (Self::Floats, TypeChar::Uint, 2) => {
                    return Err("holds u16; if these are bf16 logits, say so with --bf16".into());
                }
                _ => None,
            },
            _ => None,
        };
        found.ok_or_else(|| {
            let wanted = match self {
                Self::Floats => "f16, f32 or f64",
                Self::Bf16 => "u16, because of --bf16",
                Self::Mask => "bool or u8",
            };
            format!("holds {}, not {wanted}", dtype.descr())
        })
    }
}

/// How the rows of an array follow from its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A matrix of rows, or one row.
    Rows,
    /// A list of single numbers, each a row of its own.
    Numbers,
}

/// An open array whose header was checked.
pub struct Array {
    name: String,
    source: Box<dyn Read + Send>,
    kind: Kind,
    big_endian: bool,
    rows: u64,
    width: u64,
    next: u64,
    /// Whether the file's length was compared with the header's promise.
    measured: bool,
    bytes: Vec<u8>,
}

/// A file, or standard input for `-`, with its name and, where it has one, its length in bytes.
pub struct Input {
    pub name: String,
    pub source: BufReader<Box<dyn Read + Send>>,
    pub length: Option<u64>,
}

impl Input {
    pub fn open(path: &str) -> Result<Self, String> {
        let (name, source, length): (_, Box<dyn Read + Send>, _) = if path == "-" {
            ("standard input".to_string(), Box::new(io::stdin()), None)
        } else {
            let fail = |error: io::Error| format!("{path}: {}", reason(&error));
            let file = File::open(path).map_err(fail)?;
            let about = file.metadata().map_err(fail)?;
            let length = about.is_file().then_some(about.len());
            (path.to_string(), Box::new(file), length)
        };
        Ok(Self { name, source: BufReader::with_capacity(BUFFER, source), length })
    }
}

/// An I/O error without the number that the system gives it.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "is a directory".into(),
        _ => error.to_string(),
    }
}

impl Array {
    /// Opens a file, or standard input for `-`, and reads the header.
    pub fn open(path: &str, wanted: Wanted, layout: Layout) -> Result<Self, String> {
        Self::new(Input::open(path)?, wanted, layout)
    }

    /// Reads the header.
    pub fn new(input: Input, wanted: Wanted, layout: Layout) -> Result<Self, String> {
        let Input { name, mut source, length } = input;
        let about = |text: String| format!("{name}: {text}");
        let (header, offset) = read_header(&mut source).map_err(about)?;
        let kind = wanted.kind(&header.dtype()).map_err(about)?;
        let big_endian =
            matches!(header.dtype(), DType::Plain(plain) if plain.endianness() == Endianness::Big);
        let (rows, width) = dimensions(&header, layout).map_err(about)?;
        let promised = rows * width * kind.bytes() + offset;
        if let Some(length) = length.filter(|&length| length != promised) {
            let how = if length < promised { "truncated" } else { "longer than its header says" };
            let shape = format!("{rows} x {width} {}", kind.name());
            return Err(about(format!("{how}: {shape} take {promised} bytes, it has {length}")));
        }
        let measured = length.is_some();
        let source = Box::new(source);
        let (next, bytes) = (0, Vec::new());
        Ok(Self { name, source, kind, big_endian, rows, width, next, measured, bytes })
    }

    /// The file's name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many rows the header promises.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Elements a row.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Reads the next row's first `take` elements and skips the others; `None` after the last row. A row longer than
    /// the caller can use takes no memory: 0 skips it whole.
    pub fn next(&mut self, take: usize) -> Result<Option<RawRow<'_>>, String> {
        if self.next == self.rows {
            return self.check_end().map(|()| None);
        }
        let size = self.kind.bytes();
        let taken = (take as u64).min(self.width) * size;
        let (index, rest) = (self.next, self.width * size - taken);
        let (name, rows, width) = (&self.name, self.rows, self.width);
        let fail = |error: io::Error| {
            if error.kind() != io::ErrorKind::UnexpectedEof {
                return format!("{name}: {}", reason(&error));
            }
            format!("{name}: truncated: ends within row {index} of {rows} rows of {width}")
        };
        self.bytes.resize(taken as usize, 0);
        self.source.read_exact(&mut self.bytes).map_err(&fail)?;
        let skipped = io::copy(&mut self.source.by_ref().take(rest), &mut io::sink());
        if skipped.map_err(&fail)? < rest {
            return Err(fail(io::ErrorKind::UnexpectedEof.into()));
        }
        self.next += 1;
        let (kind, big_endian) = (self.kind, self.big_endian);
        Ok(Some(RawRow { index, bytes: &self.bytes, kind, big_endian }))
    }

    /// A stream can't be measured beforehand, so what follows the last row is found here.
    fn check_end(&mut self) -> Result<(), String> {
        if self.measured {
            return Ok(());
        }
        self.measured = true;
        let mut byte = [0];
        match self.source.read(&mut byte) {
            Ok(0) => Ok(()),
            Ok(_) => {
                Err(format!("{}: longer than its header says: data after the last row", self.name))
            }
            Err(error) => Err(format!("{}: {}", self.name, reason(&error))),
        }
    }
}

fn dimensions(header: &NpyHeader, layout: Layout) -> Result<(u64, u64), String> {
    let shape = header.shape();
    let (rows, width) = match (shape, layout) {
        (&[n], Layout::Numbers) => (n, 1),
        (&[n], Layout::Rows) => (1, n),
        (&[rows, width], Layout::Rows) => (rows, width),
        _ => {
            let wanted = match layout {
                Layout::Rows => "a row or a matrix of rows",
                Layout::Numbers => "a list of numbers",
            };
            return Err(format!("has {} dimensions, not {wanted}", shape.len()));
        }
    };
    if rows == 0 || width == 0 {
        return Err(format!("is empty: {rows} x {width}"));
    }
    if header.order() == Order::Fortran && rows > 1 && width > 1 {
        return Err("is in Fortran order; save it with numpy.ascontiguousarray".into());
    }
    Ok((rows, width))
}

/// The header, and how many bytes it took.
fn read_header(source: &mut impl Read) -> Result<(NpyHeader, u64), String> {
    let not_npy = "is not a .npy file".to_string();
    let mut head = vec![0; 10];
    let read = |source: &mut dyn Read, bytes: &mut [u8]| {
        source.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "truncated: ends within the header".to_string(),
            _ => reason(&error),
        })
    };
    let mut magic = 0;
    while magic < 6 {
        match source.read(&mut head[magic..6]) {
            Ok(0) if magic == 0 => return Err("is empty: not even a header".into()),
            Ok(0) => return Err(not_npy),
            Ok(n) => magic += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(reason(&error)),
        }
    }
    if &head[..6] != b"\x93NUMPY" {
        return Err(not_npy);
    }
    read(source, &mut head[6..])?;
    let mut length = usize::from(u16::from_le_bytes([head[8], head[9]]));
    match head[6] {
        1 => {}
        2 | 3 => {
            let mut high = [0; 2];
            read(source, &mut high)?;
            length |= usize::from(u16::from_le_bytes(high)) << 16;
            head.extend(high);
        }
        version => return Err(format!("has .npy version {version}, not 1, 2 or 3")),
    }
    if length > LONGEST_HEADER {
        return Err(format!("has a header of {length} bytes; {LONGEST_HEADER} are allowed"));
    }
    let start = head.len();
    head.resize(start + length, 0);
    read(source, &mut head[start..])?;
    check_text(&head[start..])?;
    let broken = |error: io::Error| {
        let text = error.to_string();
        // The parser's messages show the place over several lines.
        format!("has a broken header: {}", text.lines().next().unwrap_or("no reason given"))
    };
    let header = NpyHeader::from_reader(&head[..]).map_err(broken)?;
    Ok((header, head.len() as u64))
}

/// Refuses what could exhaust the parser's stack or overflow its products.
fn check_text(text: &[u8]) -> Result<(), String> {
    let broken = |what: &str| Err(format!("has a broken header: {what}"));
    let Some(text) = std::str::from_utf8(text).ok().filter(|t| !t.contains('\\')) else {
        return broken("not plain text");
    };
    let mut depth = 0usize;
    for c in text.bytes() {
        match c {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return broken("nested too deep");
        }
    }
    let mut shapes = text.match_indices("shape");
    let (Some((at, _)), None) = (shapes.next(), shapes.next()) else {
        return broken("no shape, or more than one");
    };
    let inside = text[at..].split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let Some((inside, _)) = inside else {
        return broken("the shape is no tuple");
    };
    let mut product = 8u64;
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        // Python 2 wrote longs with an L.
        let Ok(size) = part.parse::<u64>() else {
            return broken("a dimension is no whole number");
        };
        match product.checked_mul(size.max(1)).filter(|&bytes| bytes < 1 << 62) {
            Some(bytes) => product = bytes,
            None => return broken("the shape is larger than any file"),
        }
    }
    Ok(())
}

/// The bytes of a row, or of its beginning.
pub struct RawRow<'a> {
    pub index: u64,
    bytes: &'a [u8],
    kind: Kind,
    big_endian: bool,
}

impl RawRow<'_> {
    /// A mask's values.
    pub fn flags(&self) -> impl Iterator<Item = bool> {
        self.bytes.iter().map(|&b| b != 0)
    }

    /// The values as f64, which holds each exactly.
    pub fn doubles(&self) -> impl Iterator<Item = f64> {
        let size = self.kind.bytes() as usize;
        self.bytes.chunks_exact(size).map(move |bytes| match (self.kind, bytes) {
            (Kind::F16, &[a, b]) => f64::from(f16::from_bits(self.half([a, b]))),
            (Kind::Bf16, &[a, b]) => f64::from(bf16::from_bits(self.half([a, b]))),
            (Kind::F32, &[a, b, c, d]) => f64::from(self.single([a, b, c, d])),
            (_, &[a, b, c, d, e, f, g, h]) => self.double([a, b, c, d, e, f, g, h]),
            (_, bytes) => f64::from(bytes.first().copied().unwrap_or(0)),
        })
    }

    /// The bits of f16 or bf16 values.
    fn halves(&self) -> impl Iterator<Item = u16> {
        let (pairs, _) = self.bytes.as_chunks::<2>();
        pairs.iter().map(|&b| self.half(b))
    }

    fn half(&self, bytes: [u8; 2]) -> u16 {
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn single(&self, bytes: [u8; 4]) -> f32 {
        if self.big_endian { f32::from_be_bytes(bytes) } else { f32::from_le_bytes(bytes) }
    }

    fn double(&self, bytes: [u8; 8]) -> f64 {
        if self.big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) }
    }
}

/// A finite number that f32 doesn't reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overflow {
    pub index: usize,
    pub value: f64,
}

/// An element type that rows are held in.
pub trait Decode: Element {
    /// Appends a row's elements. Of f64 elements, rounded to f32, one that overflows is given back, if `allowed` and if no
    /// NaN or +inf stands before it.
    fn decode(
        row: &RawRow<'_>,
        out: &mut Vec<Self>,
        allowed: &dyn Fn(usize) -> bool,
    ) -> Option<Overflow>;
}

impl Decode for f16 {
    fn decode(
        row: &RawRow<'_>,
        out: &mut Vec<Self>,
        _: &dyn Fn(usize) -> bool,
    ) -> Option<Overflow> {
        out.extend(row.halves().map(f16::from_bits));
        None
    }
}

impl Decode for bf16 {
    fn decode(
        row: &RawRow<'_>,
        out: &mut Vec<Self>,
        _: &dyn Fn(usize) -> bool,
    ) -> Option<Overflow> {
        out.extend(row.halves().map(bf16::from_bits));
        None
    }
}

impl Decode for f32 {
    fn decode(
        row: &RawRow<'_>,
        out: &mut Vec<Self>,
        allowed: &dyn Fn(usize) -> bool,
    ) -> Option<Overflow> {
        if row.kind != Kind::F64 {
            let (quads, _) = row.bytes.as_chunks::<4>();
            out.extend(quads.iter().map(|&b| row.single(b)));
            return None;
        }
        let (eights, _) = row.bytes.as_chunks::<8>();
        let values = || eights.iter().map(|&b| row.double(b));
        out.extend(values().map(|v| v as f32));
        let suspect = |v: f64| v != f64::NEG_INFINITY && !(v as f32).is_finite();
        let (index, value) = values().enumerate().find(|&(i, v)| suspect(v) && allowed(i))?;
        value.is_finite().then_some(Overflow { index, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn open(bytes: &[u8], length: bool) -> Result<Array, String> {
        let source: Box<dyn Read + Send> = Box::new(io::Cursor::new(bytes.to_vec()));
        let length = length.then_some(bytes.len() as u64);
        let input = Input { name: "x".into(), source: BufReader::new(source), length };
        Array::new(input, Wanted::Floats, Layout::Rows)
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
    }

    #[test]
    fn rows_of_either_endianness_come_out_whole_or_in_part() {
        let values = [1.5f32, -2.0, f32::NEG_INFINITY, 4.0, 0.25, -0.0];
        for (descr, bytes) in [
            ("'<f4'", values.map(f32::to_le_bytes).concat()),
            ("'>f4'", values.map(f32::to_be_bytes).concat()),
        ] {
            let mut array = open(&file(&header(descr, "False", "(2, 3)"), &bytes), true).unwrap();
            assert_eq!((array.rows(), array.width(), array.kind()), (2, 3, Kind::F32));
            let mut out = Vec::new();
            let row = array.next(9).unwrap().unwrap();
            assert_eq!(f32::decode(&row, &mut out, &|_| true), None);
            assert_eq!(out, values[..3]);
            out.clear();
            f32::decode(&array.next(2).unwrap().unwrap(), &mut out, &|_| true);
            assert_eq!(out, values[3..5]);
            assert!(array.next(2).unwrap().is_none());
        }
    }

    #[test]
    fn an_f64_beyond_f32_is_found_where_it_matters() {
        let decode = |values: &[f64], allowed: &dyn Fn(usize) -> bool| {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let shape = format!("({},)", values.len());
            let mut array = open(&file(&header("'<f8'", "False", &shape), &bytes), true).unwrap();
            f32::decode(&array.next(99).unwrap().unwrap(), &mut Vec::new(), allowed)
        };
        let overflow = |index, value| Some(Overflow { index, value });
        assert_eq!(decode(&[1.0, 1e39, -1e300], &|_| true), overflow(1, 1e39));
        assert_eq!(decode(&[1.0, 1e39, -1e300], &|i| i != 1), overflow(2, -1e300));
        assert_eq!(decode(&[f64::NEG_INFINITY, 1e-300], &|_| true), None);
        assert_eq!(decode(&[f64::NAN, 1e39], &|_| true), None);
    }

    #[test]
    fn headers_that_lie_are_refused_in_one_line() {
        let float = |shape: &str| header("'<f4'", "False", shape);
        let deep = format!("{}{}", "(".repeat(5000), ")".repeat(4000));
        for (bytes, words) in [
            (file(&float("(2, 2)"), &[0; 15]), "truncated"),
            (file(&float("(2, 2)"), &[0; 17]), "longer"),
            (file(&float("(2, 2, 1)"), &[0; 16]), "3 dimensions"),
            (file(&float("()"), &[0; 4]), "0 dimensions"),
            (file(&float("(0, 2)"), &[]), "empty"),
            (file(&float("(4294967296, 4294967296)"), &[]), "larger than any file"),
            (file(&float("(0, 18446744073709551615, 18446744073709551615)"), &[]), "larger"),
            (file(&float("(2_0, 2)"), &[]), "whole number"),
            (file(&float("(-2, 2)"), &[]), "whole number"),
            (file(&float("[2, 2]"), &[0; 16]), "tuple"),
            (file(&header("'<f4'", "True", "(2, 2)"), &[0; 16]), "Fortran"),
            (file(&header("'<i4'", "False", "(2, 2)"), &[0; 16]), "holds '<i4'"),
            (file(&header("'<c8'", "False", "(2, 2)"), &[0; 32]), "holds"),
            (file(&header("'|O'", "False", "(2, 2)"), &[0; 32]), "holds"),
            (file(&header("[('a', '<f4')]", "False", "(2, 2)"), &[0; 16]), "holds"),
            (file(&header("'<u2'", "False", "(2, 2)"), &[0; 8]), "--bf16"),
            (file(&header("'zz'", "False", "(2, 2)"), &[0; 8]), "broken header"),
            (file(&header(&deep, "False", "(2, 2)"), &[0; 8]), "nested"),
            (file("{'descr': '<f4', 'shape': (2, 2)}", &[0; 16]), "broken header"),
            (file("nonsense", &[0; 16]), "shape"),
            (b"\x93NUMPY\x01\x00".to_vec(), "header"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "4294967295"),
            (b"\x93NUMPY\x07\x00\x10\x00".to_vec(), "version 7"),
            (b"PK\x03\x04 and so on".to_vec(), "not a .npy"),
            (b"\x93NU".to_vec(), "not a .npy"),
            (vec![], "empty"),
        ] {
            let error = open(&bytes, true).err().unwrap_or_else(|| panic!("no error: {words}"));
            assert!(error.contains(words) && error.lines().count() == 1, "{words}: {error}");
        }
    }

    #[test]
    fn a_stream_is_measured_as_it_is_read() {
        let mut array = open(&file(&header("'<f4'", "False", "(2, 2)"), &[0; 15]), false).unwrap();
        assert!(array.next(2).unwrap().is_some());
        assert!(array.next(2).is_err_and(|e| e.contains("within row 1")));
        // The same where the row is skipped.
        let mut array = open(&file(&header("'<f4'", "False", "(1, 4)"), &[0; 15]), false).unwrap();
        assert!(array.next(0).is_err_and(|e| e.contains("within row 0")));
        let mut array = open(&file(&header("'<f4'", "False", "(1, 2)"), &[0; 9]), false).unwrap();
        assert!(array.next(2).unwrap().is_some());
        assert!(array.next(2).is_err_and(|e| e.contains("longer")));
    }

    #[test]
    fn one_column_or_row_has_no_order() {
        for shape in ["(1, 4)", "(4, 1)", "(4,)"] {
            assert!(open(&file(&header("'<f4'", "True", shape), &[0; 16]), true).is_ok());
        }
    }
}
