//! The nine tables: for each record type, its table's name and its columns. This is the record schema; a column added
//! here is written, read and exported. What is on disk changes with it, so [`FORMAT`] must be raised.

use crate::packed::PackedHistogram;
use crate::table::{Batch, Column, Field, GetField, Kind, Load, Row, Store};
use crate::types::{
    DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, RttSample, StateSample,
    TransportSample,
};
use std::sync::Arc;

/// Version of the record schema; a reader refuses another.
pub(crate) const FORMAT: u32 = 4;

/// A table of a run's records; each is a file `<name>.parquet`, absent when the run has no such record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// [`LinkSample`]s.
    Links,
    /// [`DelaySample`]s.
    Delays,
    /// [`FlowSample`]s.
    Flows,
    /// [`RttSample`]s.
    Rtts,
    /// [`TransportSample`]s.
    Transport,
    /// [`StateSample`]s.
    States,
    /// [`FlowEvent`]s.
    Events,
    /// [`Message`]s.
    Messages,
    /// [`PacketRecord`]s.
    Packets,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 9] = [
        Table::Links,
        Table::Delays,
        Table::Flows,
        Table::Rtts,
        Table::Transport,
        Table::States,
        Table::Events,
        Table::Messages,
        Table::Packets,
    ];

    /// Those that metrics are computed from.
    pub const FOR_METRICS: [Table; 8] = [
        Table::Links,
        Table::Delays,
        Table::Flows,
        Table::Rtts,
        Table::Transport,
        Table::States,
        Table::Events,
        Table::Messages,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        ["links", "delays", "flows", "rtts", "transport", "states", "events", "messages", "packets"]
            [self as usize]
    }

    /// Its file in a run's folder.
    pub fn file(self) -> String {
        format!("{}.parquet", self.name())
    }

    pub(crate) fn columns(self) -> Vec<Column> {
        match self {
            Table::Links => LinkSample::columns(),
            Table::Delays => <DelaySample>::columns(),
            Table::Flows => FlowSample::columns(),
            Table::Rtts => <RttSample>::columns(),
            Table::Transport => TransportSample::columns(),
            Table::States => <StateSample>::columns(),
            Table::Events => FlowEvent::columns(),
            Table::Messages => Message::columns(),
            Table::Packets => PacketRecord::columns(),
        }
    }
}

/// Whose rows a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Those of one run.
    OfOneRun,
    /// Those of the runs of a shard, one run after the other, each row with the run's place in the shard before it.
    OfAShard,
}

impl Rows {
    /// The columns of a table's file.
    pub(crate) fn columns(self, table: Table) -> Vec<Column> {
        let place = Column { name: "run".into(), kind: Kind::Integer };
        let place = (self == Rows::OfAShard).then_some(place);
        place.into_iter().chain(table.columns()).collect()
    }
}

/// `table!(Record { field: type = "column", ... })`; a field of several columns appends to the name. A record that is
/// written as one type and read back as another names both: `table!(Record<Written, Read> { ... })`.
macro_rules! table {
    (@store $Record:ty { $($field:ident: $type:ty = $column:literal),+ $(,)? }) => {
        impl Store for $Record {
            fn columns() -> Vec<Column> {
                let mut columns = Vec::new();
                $(<$type as Field>::columns($column, &mut columns);)+
                columns
            }
            #[inline]
            fn put(&self, batch: &mut Batch) {
                $(self.$field.put(batch);)+
            }
        }
    };
    (@load $Record:ident, $Read:ty { $($field:ident: $type:ty = $column:literal),+ $(,)? }) => {
        impl Load for $Read {
            #[inline]
            fn get(row: &mut Row<'_>) -> Result<Self, String> {
                Ok($Record { $($field: <$type as GetField>::get(row)?,)+ })
            }
        }
    };
    ($Record:ident $fields:tt) => {
        table!(@store $Record $fields);
        table!(@load $Record, $Record $fields);
    };
    ($Record:ident<$Written:ty, $Read:ty> $fields:tt) => {
        table!(@store $Record<$Written> $fields);
        table!(@store $Record<$Read> $fields);
        table!(@load $Record, $Record<$Read> $fields);
    };
}

table!(LinkSample {
    at: weir_base::Time = "at_ns",
    link: u32 = "link",
    arrived: [u64; 4] = "arrived_packets",
    dropped: [u64; 4] = "dropped_packets",
    marked: [u64; 4] = "marked_packets",
    sent: [u64; 4] = "sent_packets",
    sent_bytes: [u64; 4] = "sent_bytes",
    dropped_full: u64 = "dropped_full_packets",
    dropped_signal: u64 = "dropped_signal_packets",
    dropped_overload: u64 = "dropped_overload_packets",
    lost: u64 = "lost_packets",
    forwarded: u64 = "forwarded_packets",
    duplicated: u64 = "duplicated_packets",
    corrupted: u64 = "corrupted_packets",
    busy: weir_base::Span = "busy_ns",
    capacity: weir_base::Bytes = "capacity_bytes",
    backlog_packets: u32 = "backlog_packets",
    backlog_bytes: weir_base::Bytes = "backlog_bytes",
});

table!(DelaySample<weir_base::Histogram, PackedHistogram> {
    at: weir_base::Time = "at_ns",
    link: u32 = "link",
    class: weir_base::Ecn = "class",
    delay: PackedHistogram = "delay_ns_histogram",
});

table!(FlowSample {
    at: weir_base::Time = "at_ns",
    flow: u32 = "flow",
    sent_packets: u64 = "sent_packets",
    sent_bytes: u64 = "sent_bytes",
    retransmitted: u64 = "retransmitted_packets",
    refused: u64 = "refused_packets",
    received_packets: u64 = "received_packets",
    received_bytes: u64 = "received_bytes",
    received_ce: u64 = "received_ce_packets",
    first_packet: Option<weir_base::Time> = "first_packet_ns",
    last_arrival: Option<weir_base::Time> = "last_arrival_ns",
    last_data: Option<weir_base::Time> = "last_data_ns",
    read_bytes: u64 = "read_bytes",
    rtt_count: u64 = "rtt_samples",
    rtt_sum: u64 = "rtt_sum_ns",
    rtt_min: weir_base::Span = "rtt_min_ns",
    rtt_max: weir_base::Span = "rtt_max_ns",
});

table!(RttSample<weir_base::Histogram, PackedHistogram> {
    at: weir_base::Time = "at_ns",
    group: u32 = "group",
    rtt: PackedHistogram = "rtt_ns_histogram",
});

table!(TransportSample {
    at: weir_base::Time = "at_ns",
    flow: u32 = "flow",
    cwnd: f64 = "cwnd_segments",
    ssthresh: Option<f64> = "ssthresh_segments",
    in_flight: f64 = "in_flight_segments",
    srtt: weir_base::Span = "srtt_ns",
    min_rtt: weir_base::Span = "min_rtt_ns",
    rto: weir_base::Span = "rto_ns",
    pacing_rate: Option<weir_base::Rate> = "pacing_rate_bit_per_s",
    delivery_rate: Option<weir_base::Rate> = "delivery_rate_bit_per_s",
    retransmissions: u64 = "retransmitted_segments_total",
    timeouts: Option<u64> = "timeouts_total",
});

table!(StateSample<&'static str, Arc<str>> {
    at: weir_base::Time = "at_ns",
    of: crate::Component = "component",
    name: Arc<str> = "name",
    value: f64 = "value",
});

table!(FlowEvent { at: weir_base::Time = "at_ns", flow: u32 = "flow", kind: crate::FlowEventKind = "event" });

table!(Message {
    at: weir_base::Time = "at_ns",
    flow: u32 = "flow",
    kind: crate::MessageKind = "kind",
    number: u64 = "number",
    fate: crate::MessageFate = "fate",
    took: Option<weir_base::Span> = "took_ns",
});

table!(PacketRecord {
    at: weir_base::Time = "at_ns",
    link: u32 = "link",
    flow: u32 = "flow",
    fate: crate::PacketFate = "fate",
    length: u32 = "length_bytes",
    class: weir_base::Ecn = "class",
    sojourn: weir_base::Span = "sojourn_ns",
    sequence: Option<u32> = "sequence",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_its_own_name_and_times_carry_their_unit() {
        for table in Table::ALL {
            let columns = table.columns();
            let mut names: Vec<_> = columns.iter().map(|c| c.name.clone()).collect();
            assert_eq!(names[0], "at_ns");
            names.sort();
            names.dedup();
            assert_eq!(names.len(), columns.len(), "{}", table.name());
        }
    }
}
