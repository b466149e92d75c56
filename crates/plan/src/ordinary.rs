//! Reads the files that a lab names, whole and only ordinary ones: a pipe or a device may have no end, or nothing to read.

use std::io::{Error, Read};
use std::path::Path;

/// Reads a file of at most `largest` bytes.
///
/// # Errors
/// The system's error; or the file is a folder, not an ordinary file, or too large.
pub(crate) fn read(path: &Path, largest: u64) -> std::io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        return Err(Error::other("it is a folder"));
    }
    if !found.is_file() {
        return Err(Error::other("it is not an ordinary file, but a pipe, a socket or a device"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(Error::other(format!("it is larger than {} MiB", largest >> 20)));
    }
    Ok(bytes)
}
