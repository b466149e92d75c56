//! Reads records from a run's folder. A file is parsed only if `records.json` exists and the file's length and checksum
//! match it, so that a truncated or changed file is reported as such.

use crate::error::RecordError;
use crate::records::Records;
use crate::sum::{Sealed, read_file};
use crate::table::{Batch, Column, Kind, Values};
use crate::tables::{Rows, Table};
use crate::writer::{MANIFEST, Manifest, schema};
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Records {
    /// Whether a folder holds the records of a finished run.
    pub fn are_in(folder: &Path) -> bool {
        folder.join(MANIFEST).is_file()
    }

    /// Reads a run's records, but not its packets.
    ///
    /// # Errors
    /// The run was not finished, or a file cannot be read or does not match its checksum.
    pub fn read(folder: &Path) -> Result<Records, RecordError> {
        Records::read_tables(folder, &Table::BUT_PACKETS)
    }

    /// Reads some tables of a run; the others stay empty.
    fn read_tables(folder: &Path, tables: &[Table]) -> Result<Records, RecordError> {
        let reader = RunReader::open(folder)?;
        let mut records = Records::default();
        for table in tables {
            reader.batches(*table, |batch| records.append(*table, batch))?;
        }
        Ok(records)
    }
}

/// The tables of a run or of a shard.
pub(crate) struct RunReader {
    folder: PathBuf,
    manifest: Manifest,
    of: Rows,
}

impl RunReader {
    /// Opens the tables of one run; those of a shard are an error.
    pub(crate) fn open(folder: &Path) -> Result<RunReader, RecordError> {
        let reader = RunReader::open_any(folder)?;
        match reader.runs() {
            None => Ok(reader),
            Some(runs) => {
                let what = format!("records of {runs} runs; expected those of one");
                Err(RecordError::corrupt(&folder.join(MANIFEST), what))
            }
        }
    }

    /// Opens the tables of one run or of a shard.
    pub(crate) fn open_any(folder: &Path) -> Result<RunReader, RecordError> {
        let manifest = Manifest::read(folder)?;
        let of = if manifest.runs.is_some() { Rows::OfAShard } else { Rows::OfOneRun };
        Ok(RunReader { folder: folder.into(), manifest, of })
    }

    /// Number of runs in a shard; `None` for the tables of one run.
    pub(crate) fn runs(&self) -> Option<usize> {
        self.manifest.runs
    }

    /// Reads a file beside the tables.
    pub(crate) fn sealed(&self, name: &str) -> Result<Sealed, RecordError> {
        let path = self.folder.join(name);
        let (bytes, sum) = (read_file(&path)?, self.manifest.files.get(name));
        sum.map_or(Ok(()), |sum| sum.check(&bytes)).map_err(|what| RecordError::corrupt(&path, what))?;
        Ok(Sealed { bytes, checked: sum.is_some(), runs: self.runs() })
    }

    /// The file of a table.
    pub(crate) fn path(&self, table: Table) -> PathBuf {
        self.folder.join(table.file())
    }

    /// Whether the run has any row of a table.
    pub(crate) fn has(&self, table: Table) -> bool {
        self.manifest.tables.contains_key(table.name())
    }

    /// Hands each row group of a table to `each`; an absent table has none.
    pub(crate) fn batches(
        &self,
        table: Table,
        each: impl FnMut(&Batch) -> Result<(), String>,
    ) -> Result<(), RecordError> {
        let Some(entry) = self.manifest.tables.get(table.name()) else { return Ok(()) };
        let path = self.path(table);
        let bytes = read_file(&path)?;
        entry.sum.check(&bytes).map_err(|what| RecordError::corrupt(&path, what))?;
        let rows = parse_guarded(bytes.into(), table, self.of, each)
            .map_err(|what| RecordError::corrupt(&path, what))?;
        if rows != entry.rows {
            let what = format!("{rows} rows, but {MANIFEST} says {}", entry.rows);
            return Err(RecordError::corrupt(&path, what));
        }
        Ok(())
    }
}

/// Parses a table's file and returns the number of rows. The Parquet library panics at some malformed pages, which a file
/// with a forged checksum may have: the panic becomes an error.
fn parse_guarded(
    bytes: Bytes,
    table: Table,
    of: Rows,
    each: impl FnMut(&Batch) -> Result<(), String>,
) -> Result<u64, String> {
    // The caller drops what `each` has gathered on any error, so nobody sees a half-changed state.
    let parse = AssertUnwindSafe(|| parse(bytes, table, of, each));
    catch_unwind(parse).unwrap_or_else(|_| Err("not a well-formed Parquet file".into()))
}

/// Parses a table's file and returns the number of rows.
fn parse(
    bytes: Bytes,
    table: Table,
    of: Rows,
    mut each: impl FnMut(&Batch) -> Result<(), String>,
) -> Result<u64, String> {
    let columns = of.columns(table);
    let text = |error: ParquetError| error.to_string();
    let reader = SerializedFileReader::new(bytes).map_err(text)?;
    if *reader.metadata().file_metadata().schema() != *schema(table.name(), &columns) {
        return Err("its columns are not those of this build of weir".into());
    }
    let mut rows = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(text)?;
        let batch = read_batch(&*group, &columns)?;
        rows += batch.rows as u64;
        each(&batch)?;
    }
    Ok(rows)
}

fn read_batch(group: &dyn RowGroupReader, columns: &[Column]) -> Result<Batch, String> {
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| "a negative number of rows")?;
    let mut batch = Batch::new(columns);
    batch.rows = rows;
    for (index, column) in columns.iter().enumerate() {
        let reader = group.get_column_reader(index).map_err(|e| e.to_string())?;
        let values = read_column(reader, column.kind, rows).map_err(|e| e.to_string())?;
        batch.columns[index] = values
            .ok_or_else(|| format!("column {} does not have {rows} values of its type", column.name))?;
    }
    Ok(batch)
}

/// The values of a column in a row group. `None` if they are not of this kind, or not `rows` values.
fn read_column(reader: ColumnReader, kind: Kind, rows: usize) -> Result<Option<Values>, ParquetError> {
    let values = match (reader, kind) {
        (ColumnReader::Int64ColumnReader(r), Kind::Integer) => Values::Integer(required(r, rows)?),
        (ColumnReader::Int64ColumnReader(r), Kind::OptionalInteger) => {
            Values::OptionalInteger(optional(r, rows)?)
        }
        (ColumnReader::DoubleColumnReader(r), Kind::Real) => Values::Real(required(r, rows)?),
        (ColumnReader::DoubleColumnReader(r), Kind::OptionalReal) => Values::OptionalReal(optional(r, rows)?),
        (ColumnReader::ByteArrayColumnReader(r), Kind::Name) => match names(&required(r, rows)?) {
            Some(names) => names,
            None => return Ok(None),
        },
        (ColumnReader::ByteArrayColumnReader(r), Kind::Histogram) => histograms(&required(r, rows)?),
        _ => return Ok(None),
    };
    let read = match &values {
        Values::Integer(v) => v.len(),
        Values::OptionalInteger(v) => v.len(),
        Values::Real(v) => v.len(),
        Values::OptionalReal(v) => v.len(),
        Values::Name(v, _) => v.len(),
        Values::Histogram(_, ends) => ends.len(),
    };
    Ok((read == rows).then_some(values))
}

fn required<T: DataType>(mut reader: ColumnReaderImpl<T>, rows: usize) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::new();
    while values.len() < rows {
        if reader.read_records(rows - values.len(), None, None, &mut values)?.0 == 0 {
            break;
        }
    }
    Ok(values)
}

fn optional<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    while levels.len() < rows {
        if reader.read_records(rows - levels.len(), Some(&mut levels), None, &mut values)?.0 == 0 {
            break;
        }
    }
    let mut present = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { present.next() } else { None }).collect())
}

fn names(values: &[ByteArray]) -> Option<Values> {
    let (mut codes, mut names) = (Vec::with_capacity(values.len()), Vec::<Arc<str>>::new());
    for value in values {
        let name = std::str::from_utf8(value.data()).ok()?;
        let code = names.iter().position(|n| **n == *name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        codes.push(code as u32);
    }
    Some(Values::Name(codes, names))
}

fn histograms(values: &[ByteArray]) -> Values {
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(values.len()));
    for value in values {
        bytes.extend_from_slice(value.data());
        ends.push(bytes.len());
    }
    Values::Histogram(bytes, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{busy_records, replay};
    use crate::{FlowSample, ParquetRecorder, Recorder};
    use proptest::prelude::*;
    use weir_base::Time;

    fn written(records: &Records) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = ParquetRecorder::create(folder.path()).unwrap();
        replay(records, &mut recorder);
        recorder.finish().unwrap();
        folder
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let records = busy_records();
        let folder = written(&records);
        assert_eq!(Records::read_tables(folder.path(), &Table::ALL).unwrap(), records);
        assert!(Records::read(folder.path()).unwrap().packets.is_empty());
    }

    #[test]
    fn a_run_without_records_is_read_as_one() {
        let folder = written(&Records::default());
        assert_eq!(Records::read(folder.path()).unwrap(), Records::default());
        assert!(Records::are_in(folder.path()));
    }

    #[test]
    fn the_same_records_make_the_same_bytes() {
        let (a, b) = (written(&busy_records()), written(&busy_records()));
        let names = Table::ALL.map(Table::file).into_iter().chain([MANIFEST.to_string()]);
        for name in names {
            let read = |folder: &tempfile::TempDir| std::fs::read(folder.path().join(&name)).unwrap();
            assert_eq!(read(&a), read(&b), "{name}");
        }
    }

    #[test]
    fn many_row_groups_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = ParquetRecorder::create(folder.path()).unwrap();
        let rows = 3 * crate::table::rows_in_group(&Table::Flows.columns()) as u64 / 2;
        for i in 0..rows {
            recorder.flow(&FlowSample {
                at: Time::from_nanos(i),
                read_bytes: i * i,
                ..FlowSample::default()
            });
        }
        let kept = recorder.finish().unwrap().expect("two row groups are kept");
        let flows = Records::read(folder.path()).unwrap().flows;
        assert_eq!(flows.len() as u64, rows);
        assert_eq!(kept.flows, flows);
        assert!(flows.iter().zip(0..).all(|(f, i)| f.at == Time::from_nanos(i) && f.read_bytes == i * i));
    }

    #[test]
    fn a_recorder_returns_the_records_that_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = ParquetRecorder::create(folder.path()).unwrap();
        replay(&busy_records(), &mut recorder);
        assert_eq!(recorder.finish().unwrap(), Some(Records::read(folder.path()).unwrap()));
    }

    #[test]
    fn an_unfinished_run_is_reported_as_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = ParquetRecorder::create(folder.path()).unwrap();
        replay(&busy_records(), &mut recorder);
        drop(recorder);
        assert!(matches!(Records::read(folder.path()), Err(RecordError::Missing { .. })));
        assert!(!Records::are_in(folder.path()));
    }

    #[test]
    fn a_new_attempt_removes_the_files_of_the_last_one() {
        let folder = written(&busy_records());
        let recorder = ParquetRecorder::create(folder.path()).unwrap();
        assert!(!Records::are_in(folder.path()));
        recorder.finish().unwrap();
        assert_eq!(Records::read_tables(folder.path(), &Table::ALL).unwrap(), Records::default());
        assert!(!folder.path().join("links.parquet").exists());
    }

    #[test]
    fn any_truncation_or_change_of_a_table_is_an_error() {
        let folder = written(&busy_records());
        let path = folder.path().join(Table::Links.file());
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            for bytes in [&changed, &whole[..at].to_vec()] {
                std::fs::write(&path, bytes).unwrap();
                assert!(
                    matches!(Records::read(folder.path()), Err(RecordError::Corrupt { .. })),
                    "byte {at}"
                );
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Records::read(folder.path()), Err(RecordError::Io { .. })));
    }

    #[test]
    fn a_forged_checksum_still_ends_as_an_error_or_as_records() {
        let folder = written(&busy_records());
        for table in Table::ALL {
            let whole = std::fs::read(folder.path().join(table.file())).unwrap();
            let (mut read, mut refused) = (0, 0);
            for at in (0..whole.len()).step_by(13) {
                let mut changed = whole.clone();
                changed[at] ^= 1 << (at % 8);
                match parse_guarded(changed.into(), table, Rows::OfOneRun, |_| Ok(())) {
                    Ok(_) => read += 1,
                    Err(_) => refused += 1,
                }
            }
            assert!(read > 0 && refused > 0, "{}: {read} read, {refused} refused", table.name());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_malformed_list_of_tables_is_an_error(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let folder = written(&busy_records());
            let path = folder.path().join(MANIFEST);
            let mut bytes = std::fs::read(&path).unwrap();
            let index = place.index(bytes.len());
            let changed = bytes[index] != byte && !(bytes[index].is_ascii_whitespace() && byte.is_ascii_whitespace());
            bytes[index] = byte;
            std::fs::write(&path, bytes).unwrap();
            // A change in the name of a table makes it absent; every other change but one of white space is noticed.
            let read = Records::read_tables(folder.path(), &Table::ALL);
            prop_assert!(!changed || read.is_err() || read.unwrap() != busy_records());
        }
    }
}
