//! Rows of logits as the command takes them: from a file, with a mask, cut to the valid vocabulary, each with its draws.

use crate::args::Form;
use crate::draws::Draws;
use crate::failure::Failure;
use crate::npy::{Array, Decode, Kind, Layout, Overflow, Wanted};
use sortless::{Error, MAX_VOCAB};

/// Bytes of logits that are read before they are worked on, unless a single row is larger.
const CHUNK_BYTES: u64 = 4 << 20;
/// Rows that are read before they are worked on, at most.
const CHUNK_ROWS: u64 = 1024;

/// A file of rows, open.
pub struct RowFile {
    array: Array,
    mask: Option<Mask>,
    valid: u64,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowError {
    /// What the library says.
    Library(Error),
    /// A finite f64 that f32 doesn't reach: as an infinity it would be a mask, or something else that it wasn't.
    Overflow(Overflow),
}

impl From<Error> for RowError {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl std::fmt::Display for RowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Overflow(Overflow { index, value }) => {
                write!(f, "logit {index} is {value:e}, more than an f32 can hold")
            }
        }
    }
}

/// One row.
pub struct Row<E> {
    pub index: u64,
    pub logits: Vec<E>,
    /// Something that the library can't see any more.
    pub fault: Option<RowError>,
    /// The row's draws.
    pub draws: Vec<f64>,
}

impl<E> Row<E> {
    /// The logits, unless they can't be used.
    pub fn check(&self) -> Result<&[E], RowError> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(&self.logits),
        }
    }
}

impl RowFile {
    pub fn open(path: &str, form: &Form) -> Result<Self, Failure> {
        let wanted = if form.bf16 { Wanted::Bf16 } else { Wanted::Floats };
        let array = Array::open(path, wanted, Layout::Rows)?;
        let valid = form.valid_vocab.map_or(array.width(), |n| n as u64);
        if valid > array.width() {
            let (name, width) = (array.name(), array.width());
            return Err(Failure::new(format_args!(
                "{name}: --valid-vocab {valid} is more than its rows have, {width} tokens"
            )));
        }
        let mask = match &form.mask {
            Some(mask) if mask == "-" && path == "-" => {
                return Err(Failure::new("standard input can't be both the rows and the mask"));
            }
            Some(mask) => Some(Mask::open(mask, &array, valid)?),
            None => None,
        };
        Ok(Self { array, mask, valid })
    }

    pub fn name(&self) -> &str {
        self.array.name()
    }

    pub fn kind(&self) -> Kind {
        self.array.kind()
    }

    pub fn rows(&self) -> u64 {
        self.array.rows()
    }

    /// Tokens of a row that count.
    pub fn valid(&self) -> u64 {
        self.valid
    }

    /// How many rows to take at once.
    pub fn chunk(&self) -> usize {
        (CHUNK_BYTES / (4 * self.valid.min(MAX_VOCAB as u64))).clamp(1, CHUNK_ROWS) as usize
    }

    /// Reads the next row into memory that is there already; whether there was one.
    pub fn read<E: Decode>(&mut self, row: &mut Row<E>) -> Result<bool, Failure> {
        if let Some(mask) = &mut self.mask {
            mask.advance()?;
        }
        row.logits.clear();
        row.fault = None;
        // A row that no sampler takes is skipped, whatever its length.
        let take = if self.valid > MAX_VOCAB as u64 { 0 } else { self.valid as usize };
        let Some(raw) = self.array.next(take)? else {
            return Ok(false);
        };
        row.index = raw.index;
        let allowed = self.mask.as_ref().map(|mask| &mask.allowed[..]);
        let is_allowed = |i: usize| allowed.is_none_or(|a| a.get(i).copied().unwrap_or(false));
        row.fault = E::decode(&raw, &mut row.logits, &is_allowed).map(RowError::Overflow);
        if let Some(allowed) = allowed {
            for (logit, _) in row.logits.iter_mut().zip(allowed).filter(|(_, a)| !**a) {
                *logit = E::MASKED;
            }
        }
        if take == 0 {
            let len = usize::try_from(self.valid).unwrap_or(usize::MAX);
            row.fault = Some(Error::RowLength { len }.into());
        }
        Ok(true)
    }

    /// Reads the next rows, with `count` draws each. What was read before an error stays; 0 rows are the end.
    pub fn read_chunk<E: Decode>(
        &mut self,
        chunk: &mut Vec<Row<E>>,
        draws: &mut Draws,
        count: usize,
    ) -> (usize, Result<(), Failure>) {
        for n in 0..self.chunk() {
            if n == chunk.len() {
                chunk.push(Row { index: 0, logits: Vec::new(), fault: None, draws: Vec::new() });
            }
            let row = &mut chunk[n];
            let read = self.read(row).and_then(|there| {
                if there {
                    row.draws.clear();
                    for _ in 0..count {
                        row.draws.push(draws.draw()?);
                    }
                }
                Ok(there)
            });
            match read {
                Ok(true) => {}
                Ok(false) => return (n, Ok(())),
                Err(failure) => return (n, Err(failure)),
            }
        }
        (self.chunk(), Ok(()))
    }
}

/// A mask for all rows, or the current row's.
struct Mask {
    /// The rest of a file with a mask a row.
    rest: Option<Array>,
    allowed: Vec<bool>,
}

impl Mask {
    fn open(path: &str, rows: &Array, valid: u64) -> Result<Self, Failure> {
        let array = Array::open(path, Wanted::Mask, Layout::Rows)?;
        let (n, width) = (array.rows(), array.width());
        let wrong = |what: String| Err(Failure::new(format_args!("{}: {what}", array.name())));
        if width != rows.width() && width != valid {
            return wrong(format!("the mask has {width} tokens, the rows have {}", rows.width()));
        }
        if n != 1 && n != rows.rows() {
            return wrong(format!("holds {n} masks for {} rows; give 1 or one a row", rows.rows()));
        }
        if n == 1 {
            let mut mask = Self { rest: Some(array), allowed: Vec::new() };
            mask.advance()?;
            // One for all rows; the end of the file is checked, too.
            mask.finish()?;
            return Ok(mask);
        }
        Ok(Self { rest: Some(array), allowed: Vec::new() })
    }

    /// Goes to the next row's mask.
    fn advance(&mut self) -> Result<(), Failure> {
        if let Some(array) = &mut self.rest
            && let Some(raw) = array.next(MAX_VOCAB)?
        {
            self.allowed.clear();
            self.allowed.extend(raw.flags());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if let Some(mut array) = self.rest.take() {
            array.next(0)?;
        }
        Ok(())
    }
}

/// Calls a generic function with the type that rows of this kind are held in.
macro_rules! with_element {
    ($kind:expr, $function:ident($($argument:expr),*)) => {
        match $kind {
            crate::npy::Kind::F16 => $function::<half::f16>($($argument),*),
            crate::npy::Kind::Bf16 => $function::<half::bf16>($($argument),*),
            _ => $function::<f32>($($argument),*),
        }
    };
}
pub(crate) use with_element;
