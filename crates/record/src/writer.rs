//! Writes records as Parquet, one file for each table, into a run's folder. Whenever a table has enough records for a row
//! group, these go to a writing thread, by column, so that a long run does not wait for the disk. Only a very long run does
//! not keep its records in memory. A short run never starts the thread.
//!
//! Integers are delta-packed and everything is compressed with Snappy. Nothing in the files depends on when or where they
//! were written. `records.json` is written last: it lists each table with its rows, length and checksum (XXH64). A run
//! without it was not finished, and a file that does not match it is not read.

use crate::error::RecordError;
use crate::json::to_json;
use crate::records::Records;
use crate::sum::{Sum, read_file};
use crate::table::{Batch, Column, Kind, Values, rows_in_group};
use crate::tables::{FORMAT, Rows, Table};
use crate::types::{
    DecisionRecord, DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder,
    RttSample, StateSample, TransitSample, TransportSample,
};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use weir_base::not_started;

/// Name of the list of tables.
pub(crate) const MANIFEST: &str = "records.json";

/// The contents of `records.json`, whose presence means that a run's records are complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of the record schema.
    pub(crate) format: u32,
    /// Number of runs in a shard; `None` for the records of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<usize>,
    /// The tables that exist; a table without rows does not.
    pub(crate) tables: BTreeMap<String, TableFile>,
    /// The other files with a checksum; empty in results of an older weir.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, Sum>,
}

impl Manifest {
    /// Reads `records.json` of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Manifest, RecordError> {
        let path = folder.join(MANIFEST);
        let text = match read_file(&path) {
            Err(RecordError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(RecordError::Missing { path: folder.into() });
            }
            other => other?,
        };
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| RecordError::corrupt(&path, e))?;
        if manifest.format != FORMAT {
            let what = format!("records of format {}, this weir reads format {FORMAT}", manifest.format);
            return Err(RecordError::corrupt(&path, what));
        }
        Ok(manifest)
    }

    /// Writes `records.json`, after all other files.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let path = folder.join(MANIFEST);
        let text = to_json(self).map_err(|e| RecordError::corrupt(&path, e))?;
        std::fs::write(&path, text).map_err(RecordError::io(&path))
    }
}

/// One table's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableFile {
    /// Number of its rows.
    pub(crate) rows: u64,
    /// Its length and checksum.
    #[serde(flatten)]
    pub(crate) sum: Sum,
}

/// Full batches that may wait for the writing thread before the run waits for it.
const BATCHES_WAITING: usize = 2;
/// Largest number of full batches, of about 8 MiB each, whose records are kept for [`ParquetRecorder::finish`] to return; a
/// run with more batches keeps none.
const BATCHES_KEPT: usize = 32;

/// Samples of a kind for which there is memory at first.
const FIRST_SAMPLES: usize = 4096;

/// Writes an engine's records to a folder. [`ParquetRecorder::finish`] must be called at the end; without it the records
/// stay unfinished and are not read.
#[derive(Debug)]
pub struct ParquetRecorder {
    folder: PathBuf,
    /// The records so far; if they are too many to keep, only those that were not handed over.
    records: Records,
    /// Number of rows in a row group of each table.
    limits: [usize; Table::ALL.len()],
    /// For each table, number of records in memory that were handed over.
    handed_over: [usize; Table::ALL.len()],
    /// Number of batches that were handed over, and whether all records so far are in memory.
    batches: usize,
    is_whole: bool,
    thread: Option<WritingThread>,
    /// Why the thread could not be started, if one is needed.
    refused: Option<io::Error>,
}

#[derive(Debug)]
struct WritingThread {
    batches: SyncSender<(Table, Batch)>,
    handle: JoinHandle<Result<Manifest, RecordError>>,
}

impl ParquetRecorder {
    /// A recorder into this folder, which is made if it does not exist. Files of an earlier attempt are removed.
    ///
    /// # Errors
    /// The folder cannot be made or cleared.
    pub fn create(folder: &Path) -> Result<ParquetRecorder, RecordError> {
        std::fs::create_dir_all(folder).map_err(RecordError::io(folder))?;
        for name in std::iter::once(MANIFEST.into()).chain(Table::ALL.map(Table::file)) {
            let path = folder.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(RecordError::io(&path)(error));
                }
                _ => {}
            }
        }
        let limits = Table::ALL.map(|table| rows_in_group(&table.columns()));
        Ok(ParquetRecorder {
            folder: folder.into(),
            records: Records::with_room(FIRST_SAMPLES),
            limits,
            handed_over: [0; Table::ALL.len()],
            batches: 0,
            is_whole: true,
            thread: None,
            refused: None,
        })
    }

    /// Writes the remaining records and closes the files. Returns the records without the packets, as [`Records::read`] would;
    /// `None` if the run has too many to keep in memory.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(mut self) -> Result<Option<Records>, RecordError> {
        if let Some(error) = self.refused {
            return Err(RecordError::io(&self.folder)(error));
        }
        let left = |table: &Table| self.records.count(*table) > self.handed_over[*table as usize];
        let left = Table::ALL.into_iter().filter(left);
        let left = left.map(|table| (table, self.records.batch(table, self.handed_over[table as usize])));
        let manifest = match self.thread {
            None => {
                let mut files = TableFiles::new(self.folder.clone(), Rows::OfOneRun);
                for (table, batch) in left {
                    files.write(table, &batch)?;
                }
                files.close()?
            }
            Some(thread) => {
                for batch in left {
                    // If the thread has ended, joining it returns the reason.
                    let _ = thread.batches.send(batch);
                }
                drop(thread.batches);
                thread.handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
            }
        };
        manifest.write(&self.folder)?;
        self.records.packets.clear();
        Ok(self.is_whole.then_some(self.records))
    }

    #[inline]
    fn pushed(&mut self, table: Table) {
        let left = self.records.count(table) - self.handed_over[table as usize];
        if left >= self.limits[table as usize] {
            self.hand_over(table);
        }
    }

    #[cold]
    fn hand_over(&mut self, table: Table) {
        let full = self.records.batch(table, self.handed_over[table as usize]);
        self.handed_over[table as usize] = self.records.count(table);
        if table == Table::Packets {
            self.forget(table);
        } else {
            self.batches += 1;
            self.is_whole &= self.batches <= BATCHES_KEPT;
        }
        if !self.is_whole {
            Table::ALL.into_iter().for_each(|table| self.forget(table));
        }
        if self.thread.is_none() && self.refused.is_none() {
            match WritingThread::start(self.folder.clone()) {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => self.refused = Some(not_started(error)),
            }
        }
        if let Some(thread) = &self.thread {
            // If the thread has ended, joining it at the end returns the reason.
            let _ = thread.batches.send((table, full));
        }
    }

    /// Removes the records of a table that were handed over.
    fn forget(&mut self, table: Table) {
        let handed_over = std::mem::take(&mut self.handed_over[table as usize]);
        self.records.forget(table, handed_over);
    }
}

impl WritingThread {
    fn start(folder: PathBuf) -> io::Result<WritingThread> {
        let (batches, waiting) = sync_channel::<(Table, Batch)>(BATCHES_WAITING);
        let handle = std::thread::Builder::new().name("weir-records".into()).spawn(move || {
            let mut files = TableFiles::new(folder, Rows::OfOneRun);
            for (table, batch) in waiting {
                files.write(table, &batch)?;
            }
            files.close()
        })?;
        Ok(WritingThread { batches, handle })
    }
}

impl Recorder for ParquetRecorder {
    fn link(&mut self, sample: &LinkSample) {
        self.records.link(sample);
        self.pushed(Table::Links);
    }
    fn delay(&mut self, sample: &DelaySample) {
        self.records.delay(sample);
        self.pushed(Table::Delays);
    }
    fn flow(&mut self, sample: &FlowSample) {
        self.records.flow(sample);
        self.pushed(Table::Flows);
    }
    fn rtt(&mut self, sample: &RttSample) {
        self.records.rtt(sample);
        self.pushed(Table::Rtts);
    }
    fn transit(&mut self, sample: &TransitSample) {
        self.records.transit(sample);
        self.pushed(Table::Transits);
    }
    fn transport(&mut self, sample: &TransportSample) {
        self.records.transport(sample);
        self.pushed(Table::Transport);
    }
    fn state(&mut self, sample: &StateSample<&str>) {
        self.records.state(sample);
        self.pushed(Table::States);
    }
    fn event(&mut self, event: &FlowEvent) {
        self.records.event(event);
        self.pushed(Table::Events);
    }
    fn decision(&mut self, decision: &DecisionRecord<&str>) {
        self.records.decision(decision);
        self.pushed(Table::Decisions);
    }
    fn message(&mut self, message: &Message) {
        self.records.message(message);
        self.pushed(Table::Messages);
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.records.packet(packet);
        self.pushed(Table::Packets);
    }
}

/// The files of the tables that have rows.
pub(crate) struct TableFiles {
    folder: PathBuf,
    of: Rows,
    open: BTreeMap<Table, (PathBuf, u64, SerializedFileWriter<Summed>)>,
}

impl TableFiles {
    pub(crate) fn new(folder: PathBuf, of: Rows) -> TableFiles {
        TableFiles { folder, of, open: BTreeMap::new() }
    }

    /// Writes a batch as one row group.
    pub(crate) fn write(&mut self, table: Table, batch: &Batch) -> Result<(), RecordError> {
        use std::collections::btree_map::Entry;
        let (path, rows, writer) = match self.open.entry(table) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = self.folder.join(table.file());
                let file = Summed::create(&path).map_err(RecordError::io(&path))?;
                let columns = self.of.columns(table);
                let writer =
                    SerializedFileWriter::new(file, schema(table.name(), &columns), properties(&columns))
                        .map_err(failed(&path))?;
                entry.insert((path, 0, writer))
            }
        };
        *rows += batch.rows as u64;
        write_row_group(writer, batch).map_err(failed(path))
    }

    /// Closes the files and returns their list.
    pub(crate) fn close(self) -> Result<Manifest, RecordError> {
        let mut tables = BTreeMap::new();
        for (table, (path, rows, writer)) in self.open {
            let file = writer.into_inner().map_err(failed(&path))?;
            let sum = Sum { bytes: file.bytes, xxh64: format!("{:016x}", file.sum.finish()) };
            let entry = TableFile { rows, sum };
            tables.insert(table.name().into(), entry);
        }
        Ok(Manifest { format: FORMAT, runs: None, tables, files: BTreeMap::new() })
    }
}

/// Writes a table of other columns than a record's, as a file of its own.
pub(crate) fn write_parquet(
    name: &str,
    columns: &[Column],
    batch: &Batch,
    path: &Path,
) -> Result<(), RecordError> {
    let file = Summed::create(path).map_err(RecordError::io(path))?;
    let writer = SerializedFileWriter::new(file, schema(name, columns), properties(columns));
    let mut writer = writer.map_err(failed(path))?;
    write_row_group(&mut writer, batch).map_err(failed(path))?;
    writer.close().map(drop).map_err(failed(path))
}

/// A file that counts its length and checksum while it is written.
struct Summed {
    file: File,
    bytes: u64,
    sum: twox_hash::XxHash64,
}

impl Summed {
    fn create(path: &Path) -> io::Result<Summed> {
        Ok(Summed { file: File::create(path)?, bytes: 0, sum: twox_hash::XxHash64::with_seed(0) })
    }
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.write(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Reports a Parquet error of writing as an error of the file system; the only other cause is a mistake in this code.
fn failed(path: &Path) -> impl Fn(ParquetError) -> RecordError + '_ {
    move |error| RecordError::Io { path: path.into(), source: io::Error::other(error) }
}

/// The Parquet schema of a table.
pub(crate) fn schema(name: &str, columns: &[Column]) -> TypePtr {
    let field = |column: &Column| {
        let unsigned = LogicalType::integer(64, false);
        let (physical, logical, repetition) = match column.kind {
            Kind::Integer => (Physical::INT64, Some(unsigned), Repetition::REQUIRED),
            Kind::OptionalInteger => (Physical::INT64, Some(unsigned), Repetition::OPTIONAL),
            Kind::Real => (Physical::DOUBLE, None, Repetition::REQUIRED),
            Kind::OptionalReal => (Physical::DOUBLE, None, Repetition::OPTIONAL),
            Kind::Name => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Kind::Histogram => (Physical::BYTE_ARRAY, None, Repetition::REQUIRED),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_logical_type(logical);
        Arc::new(field.with_repetition(repetition).build().expect("the types above fit each other"))
    };
    let fields = columns.iter().map(field).collect();
    Arc::new(
        Type::group_type_builder(name).with_fields(fields).build().expect("a group of fields is a schema"),
    )
}

fn properties(columns: &[Column]) -> WriterPropertiesPtr {
    let mut properties = WriterProperties::builder()
        .set_created_by("weir".into())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false);
    for column in columns {
        let path = ColumnPath::from(column.name.as_str());
        properties = match column.kind {
            Kind::Integer | Kind::OptionalInteger => {
                properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
            }
            Kind::Name => properties.set_column_dictionary_enabled(path, true),
            Kind::Real | Kind::OptionalReal | Kind::Histogram => properties,
        };
    }
    Arc::new(properties.build())
}

fn write_row_group(writer: &mut SerializedFileWriter<Summed>, batch: &Batch) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for values in &batch.columns {
        let missing = || ParquetError::General("the schema has fewer columns than the batch".into());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        write_column(column.untyped(), values)?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column(writer: &mut ColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    match (writer, values) {
        (ColumnWriter::Int64ColumnWriter(w), Values::Integer(v)) => w.write_batch(v, None, None),
        (ColumnWriter::Int64ColumnWriter(w), Values::OptionalInteger(v)) => {
            w.write_batch(&present(v), Some(&levels(v)), None)
        }
        (ColumnWriter::DoubleColumnWriter(w), Values::Real(v)) => w.write_batch(v, None, None),
        (ColumnWriter::DoubleColumnWriter(w), Values::OptionalReal(v)) => {
            w.write_batch(&present(v), Some(&levels(v)), None)
        }
        (ColumnWriter::ByteArrayColumnWriter(w), Values::Name(codes, names)) => {
            let names: Vec<ByteArray> = names.iter().map(|name| name.as_bytes().to_vec().into()).collect();
            let values: Vec<ByteArray> = codes.iter().map(|&code| names[code as usize].clone()).collect();
            w.write_batch(&values, None, None)
        }
        (ColumnWriter::ByteArrayColumnWriter(w), Values::Histogram(bytes, ends)) => {
            let bytes = bytes::Bytes::copy_from_slice(bytes);
            let starts = std::iter::once(&0).chain(ends);
            let values: Vec<ByteArray> =
                starts.zip(ends).map(|(&start, &end)| bytes.slice(start..end).into()).collect();
            w.write_batch(&values, None, None)
        }
        _ => Err(ParquetError::General("a column's values do not fit its type".into())),
    }
    .map(|_| ())
}

/// The values that exist.
fn present<T: Copy>(values: &[Option<T>]) -> Vec<T> {
    let mut present = Vec::with_capacity(values.len());
    for value in values.iter().flatten() {
        present.push(*value);
    }
    present
}

/// For each row, whether there is a value, as Parquet's definition levels.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}
