//! Lengths and checksums of files, and files that they cover.

use crate::error::RecordError;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::path::Path;

/// Length and checksum of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum {
    /// Length of the file.
    pub(crate) bytes: u64,
    /// XXH64 of the file, in hexadecimal.
    pub(crate) xxh64: String,
}

impl Sum {
    /// The length and checksum of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Sum {
        let mut sum = twox_hash::XxHash64::with_seed(0);
        sum.write(bytes);
        Sum { bytes: bytes.len() as u64, xxh64: format!("{:016x}", sum.finish()) }
    }

    /// Fails unless these bytes have this length and checksum.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), String> {
        self.check_length(bytes.len() as u64)?;
        if Sum::of(bytes).xxh64 != self.xxh64 {
            return Err("changed since it was written: the checksum differs".into());
        }
        Ok(())
    }

    /// Fails unless this is the length.
    pub(crate) fn check_length(&self, length: u64) -> Result<(), String> {
        if length == self.bytes {
            return Ok(());
        }
        Err(format!("{length} bytes long, but {} were written", self.bytes))
    }
}

/// A file beside the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether a checksum covers it, which it then matches; false in results of an older weir.
    pub checked: bool,
    /// Number of runs in the shard beside it. `None` beside the records of a single run.
    pub runs: Option<usize>,
}

/// The bytes of a file; a folder or a pipe of this name is refused.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, RecordError> {
    if !std::fs::metadata(path).map_err(RecordError::io(path))?.is_file() {
        return Err(RecordError::corrupt(path, "not a file"));
    }
    std::fs::read(path).map_err(RecordError::io(path))
}
