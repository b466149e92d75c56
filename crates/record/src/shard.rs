//! The records of several runs in one set of tables: in a lab of thousands of short runs, opening files and their footers
//! would cost more than the records. A shard's tables have one more column, `run`, with the run's index in the shard; the
//! rows of a run are contiguous.

use crate::error::RecordError;
use crate::gathered::Gathered;
use crate::reader::RunReader;
use crate::table::{Batch, Values, rows_in_group};
use crate::tables::{Rows, Table};
use crate::writer::TableFiles;
use std::path::Path;

/// Largest number of runs of a shard that a reader accepts; weir writes far fewer into one.
const MOST_RUNS: usize = 1 << 16;

/// Writes the records of some runs to a folder, which should be empty and is made if it does not exist.
///
/// # Errors
/// The file system refused.
pub fn write_shard(folder: &Path, runs: &[&Gathered]) -> Result<(), RecordError> {
    std::fs::create_dir_all(folder).map_err(RecordError::io(folder))?;
    let mut files = TableFiles::new(folder.into(), Rows::OfAShard);
    for table in Table::ALL {
        let columns = Rows::OfAShard.columns(table);
        let limit = rows_in_group(&columns);
        let all = runs.iter().map(|run| run.batches[table as usize].rows).sum();
        let empty = |room| Batch::with_room(columns.iter().map(|column| column.kind), room);
        let mut rows = empty(limit.min(all));
        for (place, run) in runs.iter().enumerate() {
            append(&mut rows, place, &run.batches[table as usize]);
            if rows.rows >= limit {
                files.write(table, &rows)?;
                rows = empty(limit.min(all));
            }
        }
        if rows.rows > 0 {
            files.write(table, &rows)?;
        }
    }
    let mut manifest = files.close()?;
    manifest.runs = Some(runs.len());
    manifest.write(folder)
}

/// Appends the rows of the run with this index.
fn append(to: &mut Batch, place: usize, from: &Batch) {
    let Some((Values::Integer(places), columns)) = to.columns.split_first_mut() else { return };
    places.extend(std::iter::repeat_n(place as i64, from.rows));
    for (to, from_values) in columns.iter_mut().zip(&from.columns) {
        to.append(from_values, 0..from.rows);
    }
    to.rows += from.rows;
}

/// Reads all runs of a shard.
///
/// # Errors
/// The shard was not finished, or a file cannot be read or does not match its checksum.
pub fn read_shard(folder: &Path) -> Result<Vec<Gathered>, RecordError> {
    runs_of(&RunReader::open_any(folder)?, folder)
}

/// Reads all runs of the shard in this folder.
pub(crate) fn runs_of(reader: &RunReader, folder: &Path) -> Result<Vec<Gathered>, RecordError> {
    let Some(count) = reader.runs() else {
        return Err(RecordError::corrupt(folder, "records of one run; expected those of several"));
    };
    if count > MOST_RUNS {
        return Err(RecordError::corrupt(folder, format!("records of {count} runs: no shard has so many")));
    }
    let mut runs = vec![Gathered::new(); count];
    for table in Table::ALL {
        reader.batches(table, |rows| split(rows, table, &mut runs))?;
    }
    for run in &runs {
        run.load().map_err(|what| RecordError::corrupt(folder, what))?;
    }
    Ok(runs)
}

/// Gives each run its rows.
fn split(rows: &Batch, table: Table, runs: &mut [Gathered]) -> Result<(), String> {
    let Some((Values::Integer(places), columns)) = rows.columns.split_first() else {
        return Err("the rows do not name their run".into());
    };
    let mut first = 0;
    for same in places.chunk_by(|a, b| a == b) {
        let (place, end) = (same[0], first + same.len());
        let run = usize::try_from(place).ok().and_then(|place| runs.get_mut(place));
        let to =
            &mut run.ok_or_else(|| format!("there is no run {place} in this shard"))?.batches[table as usize];
        for (to, from) in to.columns.iter_mut().zip(columns) {
            to.append(from, first..end);
        }
        to.rows += same.len();
        first = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::busy_records;
    use crate::{RecordError, Records};

    fn gathered(records: &Records) -> Gathered {
        Gathered::from(records)
    }

    /// Three runs: one with all records, one without any, one with only events.
    fn three() -> Vec<Gathered> {
        let events = Records { events: busy_records().events, ..Records::default() };
        vec![gathered(&busy_records()), Gathered::new(), gathered(&events)]
    }

    #[test]
    fn the_runs_of_a_shard_come_back_each_with_its_own_rows() {
        let (folder, runs) = (tempfile::tempdir().unwrap(), three());
        write_shard(folder.path(), &runs.iter().collect::<Vec<_>>()).unwrap();
        let back = read_shard(folder.path()).unwrap();
        assert_eq!(back, runs);
        let without_packets = Records { packets: vec![], ..busy_records() };
        assert_eq!(back[0].records(), without_packets);
        assert_eq!(back[2].records().events, busy_records().events);
    }

    #[test]
    fn the_same_runs_make_the_same_bytes_and_another_order_makes_others() {
        let write = |runs: Vec<Gathered>| {
            let folder = tempfile::tempdir().unwrap();
            write_shard(folder.path(), &runs.iter().collect::<Vec<_>>()).unwrap();
            std::fs::read(folder.path().join("flows.parquet")).unwrap()
        };
        assert_eq!(write(three()), write(three()));
        assert_ne!(write(three()), write(three().into_iter().rev().collect()));
    }

    #[test]
    fn a_shard_is_no_run_and_a_run_no_shard() {
        let (shard, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_shard(shard.path(), &[&Gathered::new()]).unwrap();
        crate::ParquetRecorder::create(run.path()).unwrap().finish().unwrap();
        assert!(matches!(Records::read(shard.path()), Err(RecordError::Corrupt { .. })));
        assert!(matches!(read_shard(run.path()), Err(RecordError::Corrupt { .. })));
    }

    #[test]
    fn a_shard_that_was_changed_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        write_shard(folder.path(), &three().iter().collect::<Vec<_>>()).unwrap();
        let path = folder.path().join("flows.parquet");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(read_shard(folder.path()), Err(RecordError::Corrupt { .. })));
    }
}
