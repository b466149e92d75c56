//! A table by column, as programs for data frames take it: the tidy tables of a summary, and the records of a run. The columns are
//! those of the exported files ([`crate::export`]); a histogram becomes count, mean, smallest, percentiles and largest.

use crate::error::RecordError;
use crate::gathered::Gathered;
use crate::packed::PackedHistogram;
use crate::reader::RunReader;
use crate::summary::Summary;
use crate::table::{Batch, Column, PERCENTILES, Values, exported_names};
use crate::tables::Table;
use crate::tidy::{Tidy, table};
use std::mem::discriminant;
use std::path::Path;
use std::sync::Arc;
use weir_base::{Histogram, Span};

/// A table by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The columns, each with as many cells as there are rows.
    pub columns: Vec<FrameColumn>,
    /// Number of rows.
    pub rows: usize,
}

/// A column of a [`Frame`].
#[derive(Debug, Clone, PartialEq)]
pub struct FrameColumn {
    /// Its name, with the unit.
    pub name: String,
    /// Its values.
    pub cells: Cells,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Whole numbers.
    Integers(Vec<u64>),
    /// Whole numbers, or none.
    OptionalIntegers(Vec<Option<u64>>),
    /// Numbers.
    Reals(Vec<f64>),
    /// Numbers, or none.
    OptionalReals(Vec<Option<f64>>),
    /// Names: for each row the index of its name in the list.
    Names(Vec<u32>, Vec<Arc<str>>),
}

impl Frame {
    /// A tidy table of a summary.
    pub fn tidy(tidy: Tidy, summary: &Summary) -> Frame {
        let (columns, batch) = table(tidy, summary);
        // A tidy table has no histograms, the only values that may be malformed.
        Frame::of(&columns, batch).unwrap_or(Frame { columns: vec![], rows: 0 })
    }

    /// The rows of a table in the records of one run; none if the run has no such record.
    ///
    /// # Errors
    /// The run was not finished, or its file cannot be read or does not match its checksum.
    pub fn of_run(folder: &Path, table: Table) -> Result<Frame, RecordError> {
        let columns = table.columns();
        let reader = RunReader::open(folder)?;
        let mut whole = Batch::new(&columns);
        reader.batches(table, |batch| {
            for (to, from) in whole.columns.iter_mut().zip(&batch.columns) {
                if !to.append(from, 0..batch.rows) {
                    return Err("a column has values of another type".into());
                }
            }
            whole.rows += batch.rows;
            Ok(())
        })?;
        Frame::of(&columns, whole).map_err(|what| RecordError::corrupt(&reader.path(table), what))
    }

    /// The rows of a table in the records of a run that were read from a shard.
    ///
    /// # Errors
    /// A histogram cannot be read.
    pub fn of_gathered(run: &Gathered, table: Table) -> Result<Frame, RecordError> {
        let batch = run.batches[table as usize].clone();
        Frame::of(&table.columns(), batch).map_err(|what| RecordError::corrupt(Path::new(table.name()), what))
    }

    /// Appends the rows of another frame of the same table.
    ///
    /// # Errors
    /// The frame, if its columns are others.
    pub fn append(&mut self, other: Frame) -> Result<(), Frame> {
        let alike = |(own, other): (&FrameColumn, &FrameColumn)| {
            own.name == other.name && discriminant(&own.cells) == discriminant(&other.cells)
        };
        let columns = self.columns.iter().zip(&other.columns);
        if self.columns.len() != other.columns.len() || !columns.into_iter().all(alike) {
            return Err(other);
        }
        for (own, other) in self.columns.iter_mut().zip(other.columns) {
            own.cells.append(other.cells);
        }
        self.rows += other.rows;
        Ok(())
    }

    fn of(columns: &[Column], batch: Batch) -> Result<Frame, String> {
        let rows = batch.rows;
        let mut all = Vec::new();
        for (column, values) in columns.iter().zip(batch.columns) {
            let names = exported_names(column).into_iter();
            all.extend(names.zip(cells(values)?).map(|(name, cells)| FrameColumn { name, cells }));
        }
        Ok(Frame { columns: all, rows })
    }
}

impl Cells {
    /// Appends the cells of a column of the same kind.
    fn append(&mut self, other: Cells) {
        match (self, other) {
            (Cells::Integers(own), Cells::Integers(other)) => own.extend(other),
            (Cells::OptionalIntegers(own), Cells::OptionalIntegers(other)) => own.extend(other),
            (Cells::Reals(own), Cells::Reals(other)) => own.extend(other),
            (Cells::OptionalReals(own), Cells::OptionalReals(other)) => own.extend(other),
            (Cells::Names(own, names), Cells::Names(other, others)) => {
                let moved = names.len() as u32;
                own.extend(other.into_iter().map(|code| code + moved));
                names.extend(others);
            }
            _ => {}
        }
    }
}

/// The exported columns of a column.
fn cells(values: Values) -> Result<Vec<Cells>, String> {
    Ok(match values {
        Values::Integer(values) => {
            vec![Cells::Integers(values.into_iter().map(|value| value as u64).collect())]
        }
        Values::OptionalInteger(values) => {
            let values = values.into_iter().map(|value| value.map(|value| value as u64));
            vec![Cells::OptionalIntegers(values.collect())]
        }
        Values::Real(values) => vec![Cells::Reals(values)],
        Values::OptionalReal(values) => vec![Cells::OptionalReals(values)],
        Values::Name(codes, names) => vec![Cells::Names(codes, names)],
        Values::Histogram(bytes, ends) => histograms(&bytes, &ends)?,
    })
}

fn histograms(bytes: &[u8], ends: &[usize]) -> Result<Vec<Cells>, String> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let read = |(start, end): (usize, &usize)| PackedHistogram::from_bytes(&bytes[start..*end]);
    let packed: Option<Vec<PackedHistogram>> = starts.zip(ends).map(read).collect();
    let all: Vec<Histogram> =
        packed.ok_or("a histogram cannot be read")?.iter().map(PackedHistogram::unpack).collect();
    let nanos = |of: &dyn Fn(&Histogram) -> Option<Span>| {
        Cells::OptionalIntegers(all.iter().map(|histogram| of(histogram).map(Span::as_nanos)).collect())
    };
    let mut columns =
        vec![Cells::Integers(all.iter().map(Histogram::count).collect()), nanos(&Histogram::mean)];
    columns.extend(PERCENTILES.iter().map(|(name, p)| match *name {
        "min" => nanos(&Histogram::min),
        "max" => nanos(&Histogram::max),
        _ => nanos(&|histogram| histogram.percentile(*p)),
    }));
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParquetRecorder;
    use crate::testing::{busy_records, replay};

    fn names(frame: &Frame) -> Vec<&str> {
        frame.columns.iter().map(|column| column.name.as_str()).collect()
    }

    #[test]
    fn a_frame_of_a_run_has_the_columns_of_the_export_whether_in_a_folder_or_a_shard() {
        let (run, records) = (tempfile::tempdir().unwrap(), busy_records());
        let mut recorder = ParquetRecorder::create(run.path()).unwrap();
        replay(&records, &mut recorder);
        recorder.finish().unwrap();
        let gathered = Gathered::from(&records);
        for table in Table::ALL {
            let frame = Frame::of_run(run.path(), table).unwrap();
            let exported = table.dictionary().into_iter().map(|described| described.column);
            assert_eq!(names(&frame), exported.collect::<Vec<_>>(), "{table:?}");
            assert!(frame.rows > 0, "{table:?}");
            if table != Table::Packets {
                assert_eq!(frame, Frame::of_gathered(&gathered, table).unwrap());
            }
        }
    }

    #[test]
    fn a_histogram_becomes_count_mean_and_percentiles() {
        let frame = Frame::of_gathered(&Gathered::from(&busy_records()), Table::Delays).unwrap();
        let first = |name: &str| {
            let column = frame.columns.iter().find(|column| column.name == name).unwrap();
            match &column.cells {
                Cells::Integers(values) => Some(values[0]),
                Cells::OptionalIntegers(values) => values[0],
                other => panic!("{other:?}"),
            }
        };
        // The first holds 1, 3 and 20 ms.
        assert_eq!((first("delay_count"), first("delay_mean_ns")), (Some(3), Some(8_000_000)));
        assert_eq!((first("delay_min_ns"), first("delay_max_ns")), (Some(1_000_000), Some(20_000_000)));
    }

    #[test]
    fn rows_of_two_frames_follow_each_other_with_their_own_names() {
        let column = |name: &str, cells| FrameColumn { name: name.into(), cells };
        let of = |name: &str, numbers: Vec<u64>| {
            let rows = numbers.len();
            let names = Cells::Names(vec![0; rows], vec![name.into()]);
            Frame { columns: vec![column("run", names), column("n", Cells::Integers(numbers))], rows }
        };
        let mut both = of("a", vec![1, 2]);
        both.append(of("b", vec![3])).unwrap();
        let names = Cells::Names(vec![0, 0, 1], vec!["a".into(), "b".into()]);
        let columns = vec![column("run", names), column("n", Cells::Integers(vec![1, 2, 3]))];
        assert_eq!(both, Frame { columns, rows: 3 });
        let other = Frame { columns: vec![column("run", Cells::Reals(vec![]))], rows: 0 };
        assert_eq!((both.append(other.clone()), both.rows), (Err(other), 3));
    }

    #[test]
    fn a_run_without_records_of_a_table_has_an_empty_frame() {
        let run = tempfile::tempdir().unwrap();
        ParquetRecorder::create(run.path()).unwrap().finish().unwrap();
        let frame = Frame::of_run(run.path(), Table::Links).unwrap();
        assert_eq!(frame.rows, 0);
        assert_eq!(frame.columns.len(), Table::Links.dictionary().len());
    }
}
