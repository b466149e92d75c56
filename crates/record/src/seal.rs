//! Files beside the tables with a checksum of their own. A run's description (`run.json`) determines its numbers as much as
//! its records do: `records.json` lists its length and checksum too, so that a changed description is noticed.
//!
//! Results of an older weir have descriptions without a checksum. They are read, with [`Sealed::checked`] false.

use crate::error::RecordError;
use crate::gathered::Gathered;
use crate::reader::RunReader;
use crate::shard::runs_of;
use crate::sum::{Sealed, Sum};
use crate::tables::Table;
use crate::writer::Manifest;
use std::path::Path;

/// Writes a file beside finished records, and adds its length and checksum to `records.json`. The folder must not be visible
/// to readers yet, because `records.json` is rewritten.
///
/// # Errors
/// There are no finished records, or the file system refused.
pub fn seal(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
    let mut manifest = Manifest::read(folder)?;
    let path = folder.join(name);
    std::fs::write(&path, bytes).map_err(RecordError::io(&path))?;
    manifest.files.insert(name.into(), Sum::of(bytes));
    manifest.write(folder)
}

/// Reads a file beside finished records.
///
/// # Errors
/// There are no finished records; the file is missing, cannot be read, or does not match its checksum.
pub fn read_sealed(folder: &Path, name: &str) -> Result<Sealed, RecordError> {
    RunReader::open_any(folder)?.sealed(name)
}

/// Reads the records of a shard's runs and a file beside them, checked against the same `records.json`.
///
/// # Errors
/// The shard was not finished, or a file cannot be read or does not match its checksum.
pub fn read_shard_sealed(folder: &Path, name: &str) -> Result<(Sealed, Vec<Gathered>), RecordError> {
    let reader = RunReader::open_any(folder)?;
    Ok((reader.sealed(name)?, runs_of(&reader, folder)?))
}

/// Checks that the tables of a finished run or shard, and the files beside them that have a checksum, are there in their full length.
/// `length` is that of a file of the folder, `None` if it is not there. Only the list of the files is read: [`Records::read`](crate::Records::read)
/// compares checksums.
///
/// # Errors
/// There are no finished records; a file is missing or has another length.
pub fn check_lengths(folder: &Path, length: impl Fn(&str) -> Option<u64>) -> Result<(), RecordError> {
    let manifest = Manifest::read(folder)?;
    let tables =
        Table::ALL.iter().filter_map(|table| Some((table.file(), &manifest.tables.get(table.name())?.sum)));
    for (name, sum) in tables.chain(manifest.files.iter().map(|(name, sum)| (name.clone(), sum))) {
        let checked =
            length(&name).ok_or_else(|| "missing".into()).and_then(|length| sum.check_length(length));
        checked.map_err(|what| RecordError::corrupt(&folder.join(&name), what))?;
    }
    Ok(())
}

/// Number of runs whose records are in a folder: one, or those of a shard.
///
/// # Errors
/// There are no finished records.
pub fn run_count(folder: &Path) -> Result<usize, RecordError> {
    Ok(Manifest::read(folder)?.runs.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParquetRecorder, write_shard};

    fn finished() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        ParquetRecorder::create(folder.path()).unwrap().finish().unwrap();
        folder
    }

    #[test]
    fn a_sealed_file_comes_back_and_any_change_is_noticed() {
        let folder = finished();
        seal(folder.path(), "run.json", b"{\"seed\": 1}").unwrap();
        let read = || read_sealed(folder.path(), "run.json");
        assert_eq!(read().unwrap(), Sealed { bytes: b"{\"seed\": 1}".to_vec(), checked: true, runs: None });
        for changed in [&b""[..], b"{\"seed\": 2}", b"{\"seed\": 1} "] {
            std::fs::write(folder.path().join("run.json"), changed).unwrap();
            let told = read().unwrap_err().to_string();
            assert!(told.contains("run.json"), "{told}");
        }
        std::fs::remove_file(folder.path().join("run.json")).unwrap();
        assert!(matches!(read(), Err(RecordError::Io { .. })));
        // A folder of this name is refused.
        std::fs::create_dir(folder.path().join("run.json")).unwrap();
        assert!(matches!(read(), Err(RecordError::Corrupt { .. })));
    }

    #[test]
    fn a_file_that_is_missing_or_has_another_length_is_noticed_without_being_read() {
        let folder = finished();
        seal(folder.path(), "run.json", b"{\"seed\": 1}").unwrap();
        let check = |length| check_lengths(folder.path(), |_| length).map_err(|error| error.to_string());
        assert_eq!(check(Some(11)), Ok(()));
        assert_eq!(run_count(folder.path()).unwrap(), 1);
        let told = [Some(1), None].map(|length| check(length).unwrap_err());
        assert!(told[0].ends_with("run.json: 1 bytes long, but 11 were written"), "{told:?}");
        assert!(told[1].ends_with("run.json: missing"), "{told:?}");
        let nothing = tempfile::tempdir().unwrap();
        assert!(matches!(check_lengths(nothing.path(), |_| None), Err(RecordError::Missing { .. })));
    }

    #[test]
    fn a_file_of_an_older_weir_is_read_and_marked_as_unchecked() {
        let folder = finished();
        std::fs::write(folder.path().join("run.json"), "{}").unwrap();
        assert!(!read_sealed(folder.path(), "run.json").unwrap().checked);
    }

    #[test]
    fn nothing_is_sealed_beside_unfinished_records() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(seal(folder.path(), "run.json", b"{}"), Err(RecordError::Missing { .. })));
        assert!(!folder.path().join("run.json").exists());
    }

    #[test]
    fn the_list_of_a_shard_comes_with_its_records() {
        let folder = tempfile::tempdir().unwrap();
        write_shard(folder.path(), &[&Gathered::new(), &Gathered::new()]).unwrap();
        seal(folder.path(), "runs.json", b"[1, 2]").unwrap();
        let (list, runs) = read_shard_sealed(folder.path(), "runs.json").unwrap();
        assert_eq!((list.bytes, list.runs, runs.len()), (b"[1, 2]".to_vec(), Some(2), 2));
    }
}
