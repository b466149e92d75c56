//! The tables: for each record type, its table's name and its columns. This is the record schema; a column added
//! here is written, read and exported. What is on disk changes with it, so [`FORMAT`] must be raised.

use crate::packed::PackedHistogram;
use crate::table::{Column, Field, GetField, Kind, Load, Row, Store, Values};
use crate::types::{
    DecisionRecord, DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, RttSample,
    StateSample, TransitSample, TransportSample,
};
use std::slice::IterMut;
use std::sync::Arc;
use weir_fabric::{FlowCounters, LinkCounters};

/// Version of the record schema; a reader refuses another.
pub(crate) const FORMAT: u32 = 7;

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
    /// [`TransitSample`]s.
    Transits,
    /// [`TransportSample`]s.
    Transport,
    /// [`StateSample`]s.
    States,
    /// [`FlowEvent`]s.
    Events,
    /// [`DecisionRecord`]s.
    Decisions,
    /// [`Message`]s.
    Messages,
    /// [`PacketRecord`]s.
    Packets,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 11] = [
        Table::Links,
        Table::Delays,
        Table::Flows,
        Table::Rtts,
        Table::Transits,
        Table::Transport,
        Table::States,
        Table::Events,
        Table::Decisions,
        Table::Messages,
        Table::Packets,
    ];

    /// The tables from which metrics and series are computed: all but the packets, of which there may be millions.
    pub(crate) const BUT_PACKETS: [Table; 10] = [
        Table::Links,
        Table::Delays,
        Table::Flows,
        Table::Rtts,
        Table::Transits,
        Table::Transport,
        Table::States,
        Table::Events,
        Table::Decisions,
        Table::Messages,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        [
            "links",
            "delays",
            "flows",
            "rtts",
            "transits",
            "transport",
            "states",
            "events",
            "decisions",
            "messages",
            "packets",
        ][self as usize]
    }

    /// Its file in a run's folder.
    pub fn file(self) -> String {
        format!("{}.parquet", self.name())
    }

    /// For each field, its columns and its description.
    fn fields(self) -> Vec<(Vec<Column>, &'static str)> {
        match self {
            Table::Links => LinkSample::fields(),
            Table::Delays => <DelaySample<PackedHistogram>>::fields(),
            Table::Flows => FlowSample::fields(),
            Table::Rtts => <RttSample<PackedHistogram>>::fields(),
            Table::Transits => <TransitSample<PackedHistogram>>::fields(),
            Table::Transport => TransportSample::fields(),
            Table::States => <StateSample<Arc<str>>>::fields(),
            Table::Events => FlowEvent::fields(),
            Table::Decisions => <DecisionRecord<Arc<str>>>::fields(),
            Table::Messages => Message::fields(),
            Table::Packets => PacketRecord::fields(),
        }
    }

    pub(crate) fn columns(self) -> Vec<Column> {
        self.fields().into_iter().flat_map(|(columns, _)| columns).collect()
    }
}

/// A column of a table and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The column's name in exports.
    pub column: String,
    /// Its description.
    pub what: &'static str,
}

impl Table {
    /// The data dictionary: the columns of this table's export, in order, each with its description.
    pub fn dictionary(self) -> Vec<Described> {
        let described = |(columns, what): &(Vec<Column>, &'static str)| -> Vec<Described> {
            let names = columns.iter().flat_map(crate::table::exported_names);
            names.map(|column| Described { column, what }).collect()
        };
        self.fields().iter().flat_map(described).collect()
    }
}

/// Whether a file holds the rows of one run or of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The rows of one run.
    OfOneRun,
    /// The rows of a shard, one run after the other; the first column is the run's index in the shard.
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

/// `table!(Record { field: type = "column": "description", ... })`; a field of several columns appends to the name. A generic
/// record names the parameter that is stored: `table!(Record<Kept> { ... })`. `..part: Type { ... }` is a field whose own
/// fields are columns.
macro_rules! table {
    (@store $Record:ty { $($($path:ident).+: $type:ty = $column:literal: $what:literal),+ $(,)? }) => {
        impl Store for $Record {
            fn fields() -> Vec<(Vec<Column>, &'static str)> {
                let mut fields = Vec::new();
                $({
                    let mut columns = Vec::new();
                    <$type as Field>::columns($column, &mut columns);
                    fields.push((columns, $what));
                })+
                fields
            }
            fn kinds() -> impl Iterator<Item = Kind> {
                [$(<$type as Field>::KINDS),+].into_iter().flatten().copied()
            }
            fn put(records: &[Self], columns: &mut IterMut<'_, Values>) {
                $(<$type as Field>::put(records.iter().map(|record| &record.$($path).+), columns);)+
            }
        }
    };
    (@load $Record:ident, $Read:ty { $($field:ident: $type:ty = $column:literal: $what:literal),+ $(,)? }) => {
        impl Load for $Read {
            #[inline]
            fn get(row: &mut Row<'_>) -> Result<Self, String> {
                Ok($Record { $($field: <$type as GetField>::get(row)?,)+ })
            }
        }
    };
    ($Record:ident {
        $($first:ident: $First:ty = $at:literal: $says:literal,)+
        ..$part:ident: $Part:ident { $($inner:ident: $type:ty = $column:literal: $what:literal,)+ }
        $($last:ident: $Last:ty = $end:literal: $told:literal,)+
    }) => {
        table!(@store $Record {
            $($first: $First = $at: $says,)+ $($part.$inner: $type = $column: $what,)+ $($last: $Last = $end: $told,)+
        });
        impl Load for $Record {
            #[inline]
            fn get(row: &mut Row<'_>) -> Result<Self, String> {
                Ok($Record {
                    $($first: <$First as GetField>::get(row)?,)+
                    $part: $Part { $($inner: <$type as GetField>::get(row)?,)+ },
                    $($last: <$Last as GetField>::get(row)?,)+
                })
            }
        }
    };
    ($Record:ident $fields:tt) => {
        table!(@store $Record $fields);
        table!(@load $Record, $Record $fields);
    };
    ($Record:ident<$Kept:ty> $fields:tt) => {
        table!(@store $Record<$Kept> $fields);
        table!(@load $Record, $Record<$Kept> $fields);
    };
}

table!(LinkSample {
    at: weir_base::Time = "at_ns": "End of the sample period, from the start of the run; counters are those of the period.",
    link: u32 = "link": "The link: its place in the list of links in run.json.",
    ..counters: LinkCounters {
        arrived: [u64; 4] = "arrived_packets": "Packets that reached the queue, by codepoint on arrival.",
        dropped: [u64; 4] = "dropped_packets": "Of those, dropped by the queue.",
        marked: [u64; 4] = "marked_packets": "Of those, marked CE by the queue.",
        sent: [u64; 4] = "sent_packets": "Packets whose transmission began, by codepoint on arrival.",
        sent_bytes: [u64; 4] = "sent_bytes": "Bytes of those, link overhead included.",
        dropped_for: [u64; 3] = "dropped_packets": "Of the drops, those at the queue's limit (full), those by which the AQM signals congestion (signal), and those made because marking no longer holds the queue (overload).",
        lost: u64 = "lost_packets": "Packets that the link itself lost, scripted or at random.",
        forwarded: u64 = "forwarded_packets": "Packets that the link transmitted and did not lose itself.",
        duplicated: u64 = "duplicated_packets": "Packets that the link sent twice.",
        corrupted: u64 = "corrupted_packets": "Packets that the link damaged.",
        busy: weir_base::Span = "busy_ns": "Time of the period in which the link was sending.",
        capacity: weir_base::Bytes = "capacity_bytes": "What the link could have sent in the period at its rate.",
    }
    backlog_packets: u32 = "backlog_packets": "Packets in the queue at the end of the period.",
    backlog_bytes: weir_base::Bytes = "backlog_bytes": "Their bytes.",
});

table!(DelaySample<PackedHistogram> {
    at: weir_base::Time = "at_ns": "End of the sample period, from the start of the run.",
    link: u32 = "link": "The link: its place in the list of links in run.json.",
    class: weir_base::Ecn = "class": "Codepoint of the packets on arrival at the queue.",
    delay: PackedHistogram = "delay_ns_histogram": "Arrival at the queue to start of transmission, of the packets whose transmission began in the period.",
});

table!(FlowSample {
    at: weir_base::Time = "at_ns": "End of the sample period, from the start of the run; counters are those of the period. A flow has no row of a period in which nothing happened to it.",
    flow: u32 = "flow": "The flow: its place in the list of flows in run.json.",
    ..counters: FlowCounters {
        sent_packets: u64 = "sent_packets": "Data packets that left the sending host.",
        sent_bytes: u64 = "sent_bytes": "Their IP bytes.",
        retransmitted: u64 = "retransmitted_packets": "Of those packets, the retransmitted ones, as their TCP headers or their transport tell.",
        refused: u64 = "refused_packets": "Number of times that the sending host's card refused data, which stayed unsent.",
        received_packets: u64 = "received_packets": "Data packets that reached the receiving host.",
        received_bytes: u64 = "received_bytes": "Their IP bytes.",
        received_ce: u64 = "received_ce_packets": "Of those packets, the ones with CE.",
        first_packet: Option<weir_base::Time> = "first_packet_ns": "When the first packet of any kind reached the receiving host or left it in the period.",
        last_arrival: Option<weir_base::Time> = "last_arrival_ns": "When the last packet of any kind reached the receiving host in the period.",
        last_data: Option<weir_base::Time> = "last_data_ns": "When the last data packet reached the receiving host in the period.",
        rtt_count: u64 = "rtt_samples": "RTT samples: segments that were sent once and acknowledged.",
        rtt_sum: u64 = "rtt_sum_ns": "Their sum.",
        rtt_min: weir_base::Span = "rtt_min_ns": "The smallest of these RTTs; 0 without samples.",
        rtt_max: weir_base::Span = "rtt_max_ns": "The largest of these RTTs.",
    }
    read_bytes: u64 = "read_bytes": "Bytes that the receiving application read.",
});

table!(RttSample<PackedHistogram> {
    at: weir_base::Time = "at_ns": "End of the sample period, from the start of the run.",
    group: u32 = "group": "The traffic group: its place in the list of groups in run.json.",
    rtt: PackedHistogram = "rtt_ns_histogram": "RTTs of all flows of the group in the period, of segments sent once.",
});

table!(TransitSample<PackedHistogram> {
    at: weir_base::Time = "at_ns": "End of the sample period, from the start of the run.",
    flow: u32 = "flow": "The flow: its place in the list of flows in run.json.",
    admitted: u64 = "admitted_packets": "Packets for the flow's receiver that the overlay admitted.",
    in_time: u64 = "in_time_packets": "Packets that it gave back at the receiver's node within their deadline; all of them without one.",
    links: u64 = "passed_links": "Links between nodes that the packets it gave back had passed, added up.",
    hops: PackedHistogram = "hops_histogram": "Links that each of these packets had passed; a link counts as a millisecond.",
    times: PackedHistogram = "transit_ns_histogram": "From the sending host to the receiver's node, of packets given back in the period.",
    waits: PackedHistogram = "wait_ns_histogram": "What of that the packets waited in the queues of nodes.",
});

table!(TransportSample {
    at: weir_base::Time = "at_ns": "When the state was read, from the start of the run.",
    flow: u32 = "flow": "The flow: its place in the list of flows in run.json.",
    cwnd: f64 = "cwnd_segments": "Congestion window.",
    ssthresh: Option<f64> = "ssthresh_segments": "Slow-start threshold; empty before the first loss.",
    in_flight: f64 = "in_flight_segments": "Segments in flight.",
    srtt: weir_base::Span = "srtt_ns": "Smoothed RTT.",
    min_rtt: weir_base::Span = "min_rtt_ns": "Smallest RTT that the transport knows of.",
    rto: weir_base::Span = "rto_ns": "Retransmission timeout.",
    pacing_rate: Option<weir_base::Rate> = "pacing_rate_bit_per_s": "Pacing rate, where there is one.",
    delivery_rate: Option<weir_base::Rate> = "delivery_rate_bit_per_s": "Delivery rate that the transport measured.",
    retransmissions: u64 = "retransmitted_segments_total": "Segments retransmitted since the start.",
    timeouts: Option<u64> = "timeouts_total": "Retransmission timeouts since the start, where known.",
    spurious: Option<u64> = "spurious_segments_total": "Segments retransmitted since the start that had arrived, as the receiver reports by DSACK, where known.",
});

table!(StateSample<Arc<str>> {
    at: weir_base::Time = "at_ns": "When the state was read, from the start of the run.",
    of: crate::Component = "component": "Component whose state it is: the queue of a link, or the controller of a flow, with its place in run.json.",
    name: Arc<str> = "name": "The state's name, with the unit.",
    value: f64 = "value": "Its value.",
});

table!(FlowEvent { at: weir_base::Time = "at_ns": "When it happened, from the start of the run.", flow: u32 = "flow": "The flow: its place in the list of flows in run.json.", kind: crate::FlowEventKind = "event": "What happened to the flow." });

table!(DecisionRecord<Arc<str>> {
    at: weir_base::Time = "at_ns": "When it was decided, from the start of the run.",
    flow: u32 = "flow": "The flow: its place in the list of flows in run.json.",
    by: Arc<str> = "by": "What decided: the flow's own admission (flow), or the planner of its node (planner).",
    standing: Arc<str> = "standing": "How the flow stands from then on: on, off, triaged, loss-triaged, unreachable, ended.",
    rule: Arc<str> = "rule": "The rule, which says what the numbers are (docs/overlay.md).",
    value: f64 = "value": "What was compared.",
    bound: f64 = "bound": "With what.",
});

table!(Message {
    at: weir_base::Time = "at_ns": "When its outcome became known, from the start of the run.",
    flow: u32 = "flow": "The flow: its place in the list of flows in run.json.",
    kind: crate::MessageKind = "kind": "A request with its answer, a media frame, an echo, or a part of an ensemble: a flow's frame (part), the gap before its next one (stall), the whole (ensemble).",
    number: u64 = "number": "Its number in the flow, from 0.",
    fate: crate::MessageFate = "fate": "Its outcome.",
    took: Option<weir_base::Span> = "took_ns": "How long it took, from the request's first byte or the frame's due time; empty if it never ended.",
});

table!(PacketRecord {
    at: weir_base::Time = "at_ns": "When its fate was decided, from the start of the run.",
    link: u32 = "link": "The link: its place in the list of links in run.json.",
    flow: u32 = "flow": "The flow: its place in the list of flows in run.json.",
    fate: crate::PacketEvent = "fate": "What the link did with it.",
    length: u32 = "length_bytes": "IP length.",
    class: weir_base::Ecn = "class": "Codepoint on arrival at the queue.",
    sojourn: weir_base::Span = "sojourn_ns": "Arrival at the queue to start of transmission, or to the drop.",
    sequence: Option<u32> = "sequence": "TCP sequence number, of TCP segments.",
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

    #[test]
    fn the_dictionary_describes_every_exported_column() {
        for table in Table::ALL {
            let exported: Vec<String> =
                table.columns().iter().flat_map(crate::table::exported_names).collect();
            let described: Vec<String> = table.dictionary().into_iter().map(|one| one.column).collect();
            assert_eq!(described, exported, "{}", table.name());
            assert!(table.dictionary().iter().all(|one| one.what.ends_with('.')), "{}", table.name());
        }
    }
}
