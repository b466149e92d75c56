//! Columns: how the fields of a record are stored in columns of a table and loaded from them. A [`Batch`] holds some rows of
//! one table, column by column, without an allocation for each row; the writer, the reader and the export work on batches.

use crate::packed::PackedHistogram;
use crate::types::{Component, FlowEventKind, MessageFate, MessageKind};
use std::ops::Range;
use std::slice::IterMut;
use std::sync::Arc;
use weir_base::{Bytes, CODEPOINTS, Ecn, Rate, Span, Time};
use weir_fabric::PacketEvent;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name, with the unit.
    pub(crate) name: String,
    /// The kind of its values.
    pub(crate) kind: Kind,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Unsigned integers of 64 bits.
    Integer,
    /// Unsigned integers of 64 bits, or none.
    OptionalInteger,
    /// Doubles.
    Real,
    /// Doubles, or none.
    OptionalReal,
    /// One of few names.
    Name,
    /// A packed histogram.
    Histogram,
}

impl Kind {
    /// Approximate bytes of a value of this kind in a batch.
    fn bytes(self) -> usize {
        match self {
            Kind::Integer | Kind::Real => 8,
            Kind::OptionalInteger | Kind::OptionalReal => 16,
            Kind::Name => 4,
            Kind::Histogram => 128,
        }
    }
}

/// The values of one column in a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    /// The bits of unsigned integers, in Parquet's own type.
    Integer(Vec<i64>),
    OptionalInteger(Vec<Option<i64>>),
    Real(Vec<f64>),
    OptionalReal(Vec<Option<f64>>),
    /// Indices into the names.
    Name(Vec<u32>, Vec<Arc<str>>),
    /// The bytes of all rows, and the end of each row's bytes in them.
    Histogram(Vec<u8>, Vec<usize>),
}

impl Values {
    /// No values, with memory for those of this many rows.
    fn new(kind: Kind, rows: usize) -> Values {
        match kind {
            Kind::Integer => Values::Integer(Vec::with_capacity(rows)),
            Kind::OptionalInteger => Values::OptionalInteger(Vec::with_capacity(rows)),
            Kind::Real => Values::Real(Vec::with_capacity(rows)),
            Kind::OptionalReal => Values::OptionalReal(Vec::with_capacity(rows)),
            Kind::Name => Values::Name(Vec::with_capacity(rows), Vec::new()),
            Kind::Histogram => Values::Histogram(Vec::new(), Vec::with_capacity(rows)),
        }
    }
}

impl Values {
    /// Appends some rows of another column of the same kind; returns false if its kind is another.
    pub(crate) fn append(&mut self, from: &Values, rows: Range<usize>) -> bool {
        match (self, from) {
            (Values::Integer(to), Values::Integer(from)) => to.extend_from_slice(&from[rows]),
            (Values::OptionalInteger(to), Values::OptionalInteger(from)) => to.extend_from_slice(&from[rows]),
            (Values::Real(to), Values::Real(from)) => to.extend_from_slice(&from[rows]),
            (Values::OptionalReal(to), Values::OptionalReal(from)) => to.extend_from_slice(&from[rows]),
            (Values::Name(codes, names), Values::Name(from, from_names)) => {
                // Each name is looked up when a row first uses it, so that the names are in the order of the rows.
                let mut known: Vec<Option<u32>> = vec![None; from_names.len()];
                codes.extend(from[rows].iter().map(|&code| {
                    let code = code as usize;
                    *known[code].get_or_insert_with(|| place_of(names, code, &from_names[code]) as u32)
                }));
            }
            (Values::Histogram(bytes, ends), Values::Histogram(from, from_ends)) => {
                let end = |row: usize| if row == 0 { 0 } else { from_ends[row - 1] };
                let (first, moved) = (end(rows.start), bytes.len());
                bytes.extend_from_slice(&from[first..end(rows.end)]);
                ends.extend(from_ends[rows].iter().map(|end| end - first + moved));
            }
            _ => return false,
        }
        true
    }
}

/// Index of a name in `names`, to which a new name is added; `last` is the index of the name before. Records repeat the same
/// few names in the same order, so that it is nearly always the next name, the first after the last, or the same.
#[inline]
pub(crate) fn place_of(names: &mut Vec<Arc<str>>, last: usize, name: &str) -> usize {
    let is = |place: usize| names.get(place).is_some_and(|known| **known == *name);
    let next = if last + 1 < names.len() { last + 1 } else { 0 };
    if is(next) {
        next
    } else if is(last) {
        last
    } else {
        place_among_all(names, name)
    }
}

#[inline(never)]
fn place_among_all(names: &mut Vec<Arc<str>>, name: &str) -> usize {
    names.iter().position(|known| **known == *name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    })
}

/// Rows of one table, by column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    pub(crate) columns: Vec<Values>,
    pub(crate) rows: usize,
}

/// Records that are put into columns at once: few enough that they stay in the cache while one column after the other is filled.
const RECORDS_AT_ONCE: usize = 256;

impl Batch {
    /// A batch without rows.
    pub(crate) fn new(columns: &[Column]) -> Batch {
        Batch::with_room(columns.iter().map(|column| column.kind), 0)
    }

    /// A batch without rows, with memory for this many.
    pub(crate) fn with_room(kinds: impl Iterator<Item = Kind>, rows: usize) -> Batch {
        Batch { columns: kinds.map(|kind| Values::new(kind, rows)).collect(), rows: 0 }
    }

    /// These records, by column.
    pub(crate) fn of_records<T: Store>(records: &[T]) -> Batch {
        let mut batch = Batch::with_room(T::kinds(), records.len());
        for some in records.chunks(RECORDS_AT_ONCE) {
            let mut columns = batch.columns.iter_mut();
            T::put(some, &mut columns);
            debug_assert!(columns.next().is_none(), "records put values into each column");
        }
        batch.rows = records.len();
        batch
    }

    /// A batch of these columns, each with this many rows.
    pub(crate) fn of(columns: Vec<Values>, rows: usize) -> Batch {
        Batch { columns, rows }
    }

    /// Adds all its rows to `records`.
    pub(crate) fn load<T: Load>(&self, records: &mut Vec<T>) -> Result<(), String> {
        // Memory is reserved at once, not in steps.
        records.reserve(self.rows);
        for row in 0..self.rows {
            records.push(T::get(&mut Row::new(self, row))?);
        }
        Ok(())
    }
}

/// Number of rows in a row group: about 8 MiB of values, to bound the memory of long runs.
pub(crate) fn rows_in_group(columns: &[Column]) -> usize {
    const GROUP_BYTES: usize = 8 << 20;
    GROUP_BYTES / columns.iter().map(|c| c.kind.bytes()).sum::<usize>().max(1)
}

/// The exported columns of a histogram beside count and mean: percentiles, with smallest and largest at the ends.
pub(crate) const PERCENTILES: [(&str, f64); 7] =
    [("min", 0.0), ("p1", 0.01), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p99", 0.99), ("max", 1.0)];

/// The names of a column's exported columns. `delay_ns_histogram` becomes `delay_count`, `delay_mean_ns`, `delay_p1_ns`, ...
pub(crate) fn exported_names(column: &Column) -> Vec<String> {
    if column.kind != Kind::Histogram {
        return vec![column.name.clone()];
    }
    let base = column.name.trim_end_matches("_ns_histogram");
    let percentiles = PERCENTILES.iter().map(|(name, _)| format!("{base}_{name}_ns"));
    [format!("{base}_count"), format!("{base}_mean_ns")].into_iter().chain(percentiles).collect()
}

/// A record that can be stored in a table.
pub(crate) trait Store: Sized {
    /// For each field, its columns and its description.
    fn fields() -> Vec<(Vec<Column>, &'static str)>;
    /// The kind of each column.
    fn kinds() -> impl Iterator<Item = Kind>;
    /// Appends the records' values to each column.
    fn put(records: &[Self], columns: &mut IterMut<'_, Values>);
}

/// A record that can be loaded from a table.
pub(crate) trait Load: Sized {
    /// Takes one value from each column.
    fn get(row: &mut Row<'_>) -> Result<Self, String>;
}

/// One row of a batch, read from left to right.
pub(crate) struct Row<'a> {
    batch: &'a Batch,
    row: usize,
    next: usize,
}

impl<'a> Row<'a> {
    /// Row number `row`, which must exist in the batch.
    pub(crate) fn new(batch: &'a Batch, row: usize) -> Row<'a> {
        Row { batch, row, next: 0 }
    }

    #[inline(always)]
    fn column(&mut self) -> Result<&'a Values, String> {
        self.next += 1;
        self.batch.columns.get(self.next - 1).ok_or_else(|| "a column is missing".into())
    }
    #[cold]
    #[inline(never)]
    fn wrong<T>(&self) -> Result<T, String> {
        Err(format!("column {} of row {} has a value of another type", self.next, self.row + 1))
    }
    #[inline(always)]
    fn integer(&mut self) -> Result<u64, String> {
        match self.column()? {
            Values::Integer(values) => Ok(values[self.row] as u64),
            _ => self.wrong(),
        }
    }
    #[inline(always)]
    fn optional_integer(&mut self) -> Result<Option<u64>, String> {
        match self.column()? {
            Values::OptionalInteger(values) => Ok(values[self.row].map(|v| v as u64)),
            _ => self.wrong(),
        }
    }
    #[inline]
    fn index(&mut self) -> Result<u32, String> {
        self.integer()?.try_into().or_else(|_| self.wrong())
    }
    #[inline]
    fn name(&mut self) -> Result<&'a Arc<str>, String> {
        match self.column()? {
            Values::Name(codes, names) => Ok(&names[codes[self.row] as usize]),
            _ => self.wrong(),
        }
    }
    fn one_of<T: Copy>(&mut self, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, String> {
        let found = self.name()?;
        all.iter().copied().find(|&one| name(one) == &**found).map_or_else(|| self.wrong(), Ok)
    }
}

/// A field of a record, stored in one or more columns.
pub(crate) trait Field {
    /// The kinds of its columns.
    const KINDS: &'static [Kind];
    fn columns(name: &str, out: &mut Vec<Column>);
    /// Appends the values of this field in some records to its columns, the next ones of `columns`.
    fn put<'a>(values: impl Iterator<Item = &'a Self> + Clone, columns: &mut IterMut<'_, Values>)
    where
        Self: 'a;
}

/// A field that can be loaded from its columns.
pub(crate) trait GetField: Sized {
    fn get(row: &mut Row<'_>) -> Result<Self, String>;
}

/// A field of one column: the column's kind, the value that is stored, and how the field is loaded.
macro_rules! field {
    (@append Name, $stored:expr, $to:expr) => {
        if let Some(Values::Name(codes, names)) = $to {
            append_names($stored, codes, names);
        }
    };
    (@append Histogram, $stored:expr, $to:expr) => {
        if let Some(Values::Histogram(bytes, ends)) = $to {
            $stored.for_each(|histogram| {
                histogram.write(bytes);
                ends.push(bytes.len());
            });
        }
    };
    (@append $kind:ident, $stored:expr, $to:expr) => {
        if let Some(Values::$kind(to)) = $to {
            to.extend($stored);
        }
    };
    ($type:ty, $kind:ident, |$value:ident| $stored:expr, |$row:ident| $get:expr) => {
        impl Field for $type {
            const KINDS: &'static [Kind] = &[Kind::$kind];
            fn columns(name: &str, out: &mut Vec<Column>) {
                out.push(Column { name: name.into(), kind: Kind::$kind });
            }
            fn put<'a>(values: impl Iterator<Item = &'a $type> + Clone, columns: &mut IterMut<'_, Values>) {
                let stored = values.map(|$value| $stored);
                field!(@append $kind, stored, columns.next());
            }
        }
        impl GetField for $type {
            #[inline]
            fn get($row: &mut Row<'_>) -> Result<$type, String> {
                $get
            }
        }
    };
}

field!(u64, Integer, |v| *v as i64, |row| row.integer());
field!(u32, Integer, |v| i64::from(*v), |row| row.index());
field!(Time, Integer, |v| v.as_nanos() as i64, |row| row.integer().map(Time::from_nanos));
field!(Span, Integer, |v| v.as_nanos() as i64, |row| row.integer().map(Span::from_nanos));
field!(Bytes, Integer, |v| v.get() as i64, |row| row.integer().map(Bytes::new));
field!(f64, Real, |v| *v, |row| match row.column()? {
    Values::Real(values) => Ok(values[row.row]),
    _ => row.wrong(),
});
field!(Option<f64>, OptionalReal, |v| *v, |row| match row.column()? {
    Values::OptionalReal(values) => Ok(values[row.row]),
    _ => row.wrong(),
});
field!(Option<u64>, OptionalInteger, |v| v.map(|v| v as i64), |row| row.optional_integer());
field!(Option<u32>, OptionalInteger, |v| v.map(i64::from), |row| {
    match row.optional_integer()?.map(u32::try_from) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => row.wrong(),
    }
});
field!(Option<Rate>, OptionalInteger, |v| v.map(|v| v.bits_per_sec() as i64), |row| {
    Ok(row.optional_integer()?.map(Rate::from_bits_per_sec))
});
field!(Option<Span>, OptionalInteger, |v| v.map(|v| v.as_nanos() as i64), |row| {
    Ok(row.optional_integer()?.map(Span::from_nanos))
});
field!(Option<Time>, OptionalInteger, |v| v.map(|v| v.as_nanos() as i64), |row| {
    Ok(row.optional_integer()?.map(Time::from_nanos))
});
field!(Ecn, Name, |v| v.name(), |row| row.one_of(&CODEPOINTS, Ecn::name));
field!(FlowEventKind, Name, |v| v.name(), |row| row.one_of(&FlowEventKind::ALL, FlowEventKind::name));
field!(MessageKind, Name, |v| v.name(), |row| row.one_of(&MessageKind::ALL, MessageKind::name));
field!(MessageFate, Name, |v| v.name(), |row| row.one_of(&MessageFate::ALL, MessageFate::name));
field!(PacketEvent, Name, |v| v.name(), |row| row.one_of(&PacketEvent::ALL, PacketEvent::name));
field!(Arc<str>, Name, |v| &**v, |row| row.name().cloned());
field!(PackedHistogram, Histogram, |v| v, |row| match row.column()? {
    Values::Histogram(bytes, ends) => {
        let start = if row.row == 0 { 0 } else { ends[row.row - 1] };
        PackedHistogram::from_bytes(&bytes[start..ends[row.row]]).map_or_else(|| row.wrong(), Ok)
    }
    _ => row.wrong(),
});

/// Appends the codes of some names, of which new ones are added to `names`.
fn append_names<'a>(some: impl Iterator<Item = &'a str>, codes: &mut Vec<u32>, names: &mut Vec<Arc<str>>) {
    let mut last = codes.last().map_or(0, |&code| code as usize);
    codes.extend(some.map(|name| {
        last = place_of(names, last, name);
        last as u32
    }));
}

/// Appends each of `N` counters to a column of its own.
fn append_counters<'a, const N: usize>(
    values: impl Iterator<Item = &'a [u64; N]> + Clone,
    columns: &mut IterMut<'_, Values>,
) {
    for number in 0..N {
        field!(@append Integer, values.clone().map(|counts| counts[number] as i64), columns.next());
    }
}

/// A counter by codepoint takes four columns: `arrived_packets_not_ect`, `..._ect1`, `..._ect0`, `..._ce`.
impl Field for [u64; 4] {
    const KINDS: &'static [Kind] = &[Kind::Integer; 4];
    fn columns(name: &str, out: &mut Vec<Column>) {
        for codepoint in CODEPOINTS {
            out.push(Column {
                name: format!("{name}_{}", codepoint.name().replace('-', "_")),
                kind: Kind::Integer,
            });
        }
    }
    fn put<'a>(values: impl Iterator<Item = &'a Self> + Clone, columns: &mut IterMut<'_, Values>) {
        append_counters(values, columns);
    }
}
impl GetField for [u64; 4] {
    #[inline]
    fn get(row: &mut Row<'_>) -> Result<[u64; 4], String> {
        Ok([row.integer()?, row.integer()?, row.integer()?, row.integer()?])
    }
}

/// Drops by their reason take three columns: `dropped_packets_full`, `..._signal`, `..._overload`.
impl Field for [u64; 3] {
    const KINDS: &'static [Kind] = &[Kind::Integer; 3];
    fn columns(name: &str, out: &mut Vec<Column>) {
        for reason in ["full", "signal", "overload"] {
            out.push(Column { name: format!("{name}_{reason}"), kind: Kind::Integer });
        }
    }
    fn put<'a>(values: impl Iterator<Item = &'a Self> + Clone, columns: &mut IterMut<'_, Values>) {
        append_counters(values, columns);
    }
}
impl GetField for [u64; 3] {
    #[inline]
    fn get(row: &mut Row<'_>) -> Result<[u64; 3], String> {
        Ok([row.integer()?, row.integer()?, row.integer()?])
    }
}

/// A component takes two columns: its kind, and the index of its link, flow or station.
impl Field for Component {
    const KINDS: &'static [Kind] = &[Kind::Name, Kind::Integer];
    fn columns(name: &str, out: &mut Vec<Column>) {
        out.push(Column { name: name.into(), kind: Kind::Name });
        out.push(Column { name: format!("{name}_index"), kind: Kind::Integer });
    }
    fn put<'a>(values: impl Iterator<Item = &'a Self> + Clone, columns: &mut IterMut<'_, Values>) {
        let parts = values.map(|component| match component {
            Component::Queue(link) => ("queue", *link),
            Component::Controller(flow) => ("controller", *flow),
            Component::Station(station) => ("station", *station),
        });
        field!(@append Name, parts.clone().map(|(name, _)| name), columns.next());
        field!(@append Integer, parts.map(|(_, index)| i64::from(index)), columns.next());
    }
}
impl GetField for Component {
    fn get(row: &mut Row<'_>) -> Result<Component, String> {
        match &**row.name()? {
            "queue" => row.index().map(Component::Queue),
            "controller" => row.index().map(Component::Controller),
            "station" => row.index().map(Component::Station),
            _ => row.wrong(),
        }
    }
}
