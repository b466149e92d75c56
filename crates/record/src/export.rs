//! A run's tables as CSV or JSON, for tools that do not read Parquet. The columns are those of the tables; a histogram
//! becomes count, mean, smallest, percentiles and largest. JSON is an array of objects, one on each line.

use crate::error::RecordError;
use crate::gathered::Gathered;
use crate::packed::PackedHistogram;
use crate::reader::RunReader;
use crate::table::{Batch, Column, PERCENTILES, Values, exported_names};
use crate::tables::Table;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use weir_base::{Histogram, Span};

/// A format of exported files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Comma-separated values, with column names on the first line (RFC 4180).
    Csv,
    /// JSON, an array of objects.
    Json,
}

impl ExportFormat {
    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::Csv => "csv",
            ExportFormat::Json => "json",
        }
    }
}

/// Writes every table that a run has, as CSV and as JSON, to a folder, which is made if it does not exist. Returns the paths
/// of the files.
///
/// # Errors
/// The records cannot be read, or a file cannot be written.
pub fn export(run: &Path, to: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let mut files = export_as(run, to, ExportFormat::Csv)?;
    files.extend(export_as(run, to, ExportFormat::Json)?);
    Ok(files)
}

/// Writes every table that a run has in one format.
///
/// # Errors
/// As [`export`].
pub fn export_as(run: &Path, to: &Path, format: ExportFormat) -> Result<Vec<PathBuf>, RecordError> {
    let reader = RunReader::open(run)?;
    let tables = Table::ALL.into_iter().filter(|table| reader.has(*table));
    export_tables(tables, to, format, |table, each| reader.batches(table, each))
}

/// Writes the tables of a run whose records are in memory, from a shard, as [`export`] does.
///
/// # Errors
/// A file cannot be written.
pub fn export_gathered(run: &Gathered, to: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let of = |table: Table| &run.batches[table as usize];
    let mut files = Vec::new();
    for format in [ExportFormat::Csv, ExportFormat::Json] {
        let tables = Table::ALL.into_iter().filter(|table| of(*table).rows > 0);
        files.extend(export_tables(tables, to, format, |table, each| {
            each(of(table)).map_err(|what| RecordError::corrupt(to, what))
        })?);
    }
    Ok(files)
}

/// Called with each batch of a table's rows.
type Each<'a> = &'a mut dyn FnMut(&Batch) -> Result<(), String>;

fn export_tables(
    tables: impl Iterator<Item = Table>,
    to: &Path,
    format: ExportFormat,
    batches: impl Fn(Table, Each<'_>) -> Result<(), RecordError>,
) -> Result<Vec<PathBuf>, RecordError> {
    std::fs::create_dir_all(to).map_err(RecordError::io(to))?;
    let mut files = Vec::new();
    for table in tables {
        let path = to.join(format!("{}.{}", table.name(), format.extension()));
        export_table(|each| batches(table, each), table, &path, format)?;
        files.push(path);
    }
    Ok(files)
}

fn export_table(
    batches: impl FnOnce(Each<'_>) -> Result<(), RecordError>,
    table: Table,
    path: &Path,
    format: ExportFormat,
) -> Result<(), RecordError> {
    write_batches(batches, &table.columns(), path, format)
}

/// Writes a table of other columns than a record's.
pub(crate) fn write_batch(
    columns: &[Column],
    batch: &Batch,
    path: &Path,
    format: ExportFormat,
) -> Result<(), RecordError> {
    write_batches(|each| each(batch).map_err(|what| RecordError::corrupt(path, what)), columns, path, format)
}

fn write_batches(
    batches: impl FnOnce(Each<'_>) -> Result<(), RecordError>,
    columns: &[Column],
    path: &Path,
    format: ExportFormat,
) -> Result<(), RecordError> {
    let names: Vec<String> = columns.iter().flat_map(exported_names).collect();
    let file = new_file(path).map_err(RecordError::io(path))?;
    let mut out = Output { out: BufWriter::new(file), format, names, rows: 0 };
    out.begin().map_err(RecordError::io(path))?;
    // A failed write ends the reading, and its error is returned.
    let mut failed = None;
    let read = batches(&mut |batch| {
        let mut cells = Vec::new();
        for row in 0..batch.rows {
            cells.clear();
            exported_cells(batch, row, &mut cells)?;
            if let Err(error) = out.row(&cells) {
                let text = error.to_string();
                failed = Some(error);
                return Err(text);
            }
        }
        Ok(())
    });
    match failed {
        Some(error) => Err(RecordError::io(path)(error)),
        None => read.and_then(|()| out.end().map_err(RecordError::io(path))),
    }
}

/// A new file, replacing an earlier one of its name; a link is replaced, not followed.
fn new_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// An exported value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell<'a> {
    Nothing,
    Integer(u64),
    Real(f64),
    Name(&'a str),
}

fn exported_cells<'a>(batch: &'a Batch, row: usize, out: &mut Vec<Cell<'a>>) -> Result<(), String> {
    for values in &batch.columns {
        match values {
            Values::Integer(v) => out.push(Cell::Integer(v[row] as u64)),
            Values::OptionalInteger(v) => out.push(v[row].map_or(Cell::Nothing, |v| Cell::Integer(v as u64))),
            Values::Real(v) => out.push(Cell::Real(v[row])),
            Values::OptionalReal(v) => out.push(v[row].map_or(Cell::Nothing, Cell::Real)),
            Values::Name(codes, names) => out.push(Cell::Name(&names[codes[row] as usize])),
            Values::Histogram(bytes, ends) => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                let packed = PackedHistogram::from_bytes(&bytes[start..ends[row]])
                    .ok_or("a histogram cannot be read")?;
                histogram_cells(&packed.unpack(), out);
            }
        }
    }
    Ok(())
}

fn histogram_cells(histogram: &Histogram, out: &mut Vec<Cell<'_>>) {
    let nanos = |span: Option<Span>| span.map_or(Cell::Nothing, |span| Cell::Integer(span.as_nanos()));
    out.push(Cell::Integer(histogram.count()));
    out.push(nanos(histogram.mean()));
    for (name, p) in PERCENTILES {
        out.push(nanos(match name {
            "min" => histogram.min(),
            "max" => histogram.max(),
            _ => histogram.percentile(p),
        }));
    }
}

/// A text as a field of CSV (RFC 4180, section 2).
fn quoted(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}

struct Output<W: Write> {
    out: W,
    format: ExportFormat,
    names: Vec<String>,
    rows: u64,
}

impl<W: Write> Output<W> {
    fn begin(&mut self) -> io::Result<()> {
        match self.format {
            ExportFormat::Csv => {
                let names: Vec<_> = self.names.iter().map(|name| quoted(name)).collect();
                writeln!(self.out, "{}", names.join(","))
            }
            ExportFormat::Json => write!(self.out, "["),
        }
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match self.format {
            ExportFormat::Csv => self.csv_row(cells)?,
            ExportFormat::Json => self.json_row(cells)?,
        }
        self.rows += 1;
        Ok(())
    }

    fn csv_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                write!(self.out, ",")?;
            }
            match cell {
                Cell::Nothing => {}
                Cell::Integer(value) => write!(self.out, "{value}")?,
                Cell::Real(value) => write!(self.out, "{value}")?,
                Cell::Name(name) => write!(self.out, "{}", quoted(name))?,
            }
        }
        writeln!(self.out)
    }

    fn json_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        write!(self.out, "{}\n{{", if self.rows > 0 { "," } else { "" })?;
        for (index, (name, cell)) in self.names.iter().zip(cells).enumerate() {
            write!(self.out, "{}", if index > 0 { "," } else { "" })?;
            serde_json::to_writer(&mut self.out, name)?;
            write!(self.out, ":")?;
            match cell {
                Cell::Integer(value) => write!(self.out, "{value}")?,
                // JSON cannot write numbers that are not finite.
                Cell::Real(value) if value.is_finite() => serde_json::to_writer(&mut self.out, value)?,
                Cell::Nothing | Cell::Real(_) => write!(self.out, "null")?,
                Cell::Name(name) => serde_json::to_writer(&mut self.out, name)?,
            }
        }
        write!(self.out, "}}")
    }

    fn end(mut self) -> io::Result<()> {
        if self.format == ExportFormat::Json {
            writeln!(self.out, "\n]")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{busy_records, replay};
    use crate::{ParquetRecorder, Records};

    fn exported(format: ExportFormat) -> (Records, tempfile::TempDir, Vec<PathBuf>) {
        let (run, records) = (tempfile::tempdir().unwrap(), busy_records());
        let mut recorder = ParquetRecorder::create(run.path()).unwrap();
        replay(&records, &mut recorder);
        recorder.finish().unwrap();
        let to = tempfile::tempdir().unwrap();
        let files = export_as(run.path(), &to.path().join("export"), format).unwrap();
        (records, to, files)
    }

    #[test]
    fn an_export_has_csv_and_json_of_existing_tables_only() {
        let (run, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut recorder = ParquetRecorder::create(run.path()).unwrap();
        replay(&Records { events: busy_records().events, ..Records::default() }, &mut recorder);
        recorder.finish().unwrap();
        let files = export(run.path(), to.path()).unwrap();
        assert_eq!(files, ["events.csv", "events.json"].map(|name| to.path().join(name)));
        assert!(export(to.path(), run.path()).is_err(), "no records there");
    }

    #[test]
    fn csv_has_a_line_for_each_record_and_empty_cells_for_missing_values() {
        let (records, _to, files) = exported(ExportFormat::Csv);
        assert_eq!(files.len(), Table::ALL.len());
        let text = std::fs::read_to_string(&files[Table::Transport as usize]).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), records.transport.len() + 1);
        assert!(lines[0].starts_with("at_ns,flow,cwnd_segments,ssthresh_segments,"));
        assert_eq!(lines[3], "100000000,2,1,,3,21000000,20000000,221000000,,3000000,0,,");
    }

    #[test]
    fn json_is_one_document_and_histograms_become_percentiles() {
        let (records, _to, files) = exported(ExportFormat::Json);
        for file in &files {
            let rows: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            assert!(!rows.is_empty());
        }
        let text = std::fs::read(&files[Table::Delays as usize]).unwrap();
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap();
        assert_eq!(rows.len(), records.delays.len());
        // The first holds 1, 3 and 20 ms.
        assert_eq!((&rows[0]["delay_count"], &rows[0]["delay_mean_ns"]), (&3.into(), &8_000_000.into()));
        assert_eq!(
            (&rows[0]["delay_min_ns"], &rows[0]["delay_max_ns"]),
            (&1_000_000.into(), &20_000_000.into())
        );
        assert_eq!(rows[0]["class"], "ect1");
    }
}
