//! What an acknowledgement tells the controllers of a connection.

use crate::loss::Record;
use weir_base::{Span, Time};

/// The fate of one controller's packets by an acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct News {
    /// Packets that have arrived, and their bytes.
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// Packets that count as lost, and their bytes.
    pub(crate) lost: u32,
    pub(crate) lost_bytes: u64,
    /// Packets that were CE-marked.
    pub(crate) marked: u32,
    /// The highest packet number that arrived, and the offset at which that packet ends.
    pub(crate) number: u64,
    pub(super) end: u64,
    /// When the newest packet was sent, for the RTT.
    pub(super) sent_at: Option<Time>,
    /// For the delivery rate: packets delivered when the newest packet was sent, when the last of them was delivered, the time over which
    /// the packets were sent, and whether the application limited sending.
    pub(super) prior: Option<(u64, Time, Span, bool)>,
}

impl News {
    /// A packet has arrived that was in flight.
    pub(crate) fn arrived(&mut self, number: u64, record: &Record) {
        self.packets += 1;
        self.bytes += u64::from(record.bytes);
        self.number = number;
        self.end = self.end.max(record.end);
        self.sent_at = Some(record.at);
        self.prior = Some((
            record.delivered,
            record.delivered_at,
            record.at.since(record.first_sent_at),
            record.app_limited,
        ));
    }

    /// A packet counts as lost.
    pub(crate) fn was_lost(&mut self, record: &Record) {
        self.lost += 1;
        self.lost_bytes += u64::from(record.bytes);
    }
}

/// The connection's state when an acknowledgement has arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) now: Time,
    /// How long the receiver held back the acknowledgement of the newest packet.
    pub(crate) held: Span,
    /// How long that acknowledgement waited in queues on its way back.
    pub(crate) queued_back: Span,
    pub(crate) srtt: Option<Span>,
    /// Number of the next packet.
    pub(crate) next: u64,
}
