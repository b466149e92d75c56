//! What is told to the controllers of a connection when an acknowledgement has come.

use crate::sliq::loss::Record;
use weir_base::{Span, Time};

/// What an acknowledgement tells of the packets of one controller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct News {
    /// Packets that have arrived, and their bytes.
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// Packets that turned out lost, and their bytes.
    pub(crate) lost: u32,
    pub(crate) lost_bytes: u64,
    /// Packets that were marked on their way.
    pub(crate) marked: u32,
    /// The highest number that arrived, and where it ends.
    pub(crate) number: u64,
    pub(super) end: u64,
    /// When the newest was sent, for the RTT.
    pub(super) sent_at: Option<Time>,
    /// For the delivery rate: what was delivered when the newest was sent, when, and over which time it was sent.
    pub(super) prior: Option<(u64, Time, Span, bool)>,
}

impl News {
    /// A packet has arrived that was under way.
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

/// What the connection knows when an acknowledgement has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) now: Time,
    /// How long the receiver held the newest packet's acknowledgement back.
    pub(crate) held: Span,
    pub(crate) srtt: Option<Span>,
    pub(crate) min_rtt: Option<Span>,
    /// Number of the next packet.
    pub(crate) next: u64,
}
