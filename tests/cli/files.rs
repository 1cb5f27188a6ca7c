//! Files to read.

use std::path::{Path, PathBuf};

/// A real file of the repository.
pub fn real(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The real f32 rows: 5 of 51,864 tokens.
pub fn real_rows() -> Vec<Vec<f32>> {
    let bytes = std::fs::read(real("whisper_f32.npy")).unwrap();
    let values: Vec<f32> = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec().unwrap();
    values.chunks(51_864).map(<[f32]>::to_vec).collect()
}

/// A folder that goes away.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path of a file with these bytes.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        text(&path)
    }

    /// What is in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

/// A `.npy` file's bytes.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A matrix of f32 rows, which must have one length.
pub fn matrix(rows: &[Vec<f32>]) -> Vec<u8> {
    let data: Vec<u8> = rows.iter().flatten().flat_map(|l| l.to_le_bytes()).collect();
    npy("<f4", &format!("({}, {})", rows.len(), rows[0].len()), &data)
}

/// A matrix of f64 rows.
pub fn matrix_f64(rows: &[Vec<f64>]) -> Vec<u8> {
    let data: Vec<u8> = rows.iter().flatten().flat_map(|l| l.to_le_bytes()).collect();
    npy("<f8", &format!("({}, {})", rows.len(), rows[0].len()), &data)
}
