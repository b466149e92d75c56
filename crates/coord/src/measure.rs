//! An AP's measurements of an application's outbound packets: packet length, throughput and number of flows (the FLOW
//! address, section 3.2.4).

use crate::Series;
use crate::path::{KIB, WEIGHT};
use weir_base::Span;

/// The measurements of one application.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    pub(crate) flows: Series,
    /// KiB/s.
    pub(crate) throughput: Series,
    /// Bytes.
    pub(crate) packet_size: Series,
    /// Bytes since the last tick.
    bytes: u64,
}

impl Default for Traffic {
    fn default() -> Traffic {
        let series = || Series::new(WEIGHT);
        Traffic { flows: series(), throughput: series(), packet_size: series(), bytes: 0 }
    }
}

impl Traffic {
    /// A packet of `length` bytes leaves for the other site.
    #[inline]
    pub(crate) fn left(&mut self, length: u32) {
        self.packet_size.add(length.into());
        self.bytes += u64::from(length);
    }

    /// Takes a sample of throughput and flows. `since` is the time since the last tick, `flows` the number of active flows.
    pub(crate) fn tick(&mut self, since: Span, flows: u32) {
        self.flows.add(flows.into());
        self.throughput.add(per_second(self.bytes, since));
        self.bytes = 0;
    }
}

/// Bytes in a span as KiB/s.
pub(crate) fn per_second(bytes: u64, span: Span) -> f64 {
    bytes as f64 / span.as_secs_f64().max(1e-9) / KIB
}
