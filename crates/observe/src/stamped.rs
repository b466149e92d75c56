//! What packets with the report of a queue say of it (`ip_id.rs`), by the two kinds of packets that share a counter of drops: those with an ECN
//! codepoint, of which a queue under load marks most, and those without.

use crate::ip_id::Stamp;
use crate::packet::Packet;
use crate::times::Times;
use serde::Serialize;
use weir_base::{Ecn, Histogram};

/// The sums of a kind.
#[derive(Debug, Clone, Default)]
struct Kind {
    delays: Histogram,
    drops: u64,
    marks: u64,
    bytes: u64,
}

/// The state of reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stamped {
    /// Without a codepoint, and with one.
    kinds: [Kind; 2],
    without: u64,
}

/// What the packets of a capture report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StampedReport {
    /// Packets without an ECN codepoint.
    pub not_ecn: KindReport,
    /// Packets with one, marked ones included.
    pub ecn: KindReport,
    /// Packets that cannot report: those of IPv6, and IPv4 datagrams that may be fragmented.
    pub packets_without_report: u64,
}

/// What the packets of a kind report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindReport {
    /// Packets.
    pub packets: u64,
    /// Their IP bytes.
    pub ip_bytes: u64,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Drops over drops and packets, in percent; `null` without packets.
    pub drop_percent: Option<f64>,
    /// Marked packets (CE).
    pub marks: u64,
    /// Marked packets over packets, in percent; `null` without packets.
    pub mark_percent: Option<f64>,
    /// Delays in the queue. Each was rounded down, by up to 32.768 us, and beyond 8.4 ms by up to a part in 128.
    pub delay_ms: Option<Times>,
}

impl Stamped {
    pub(crate) fn count(&mut self, packet: &Packet) {
        let Some(identification) = packet.identification.filter(|_| packet.is_atomic) else {
            self.without += 1;
            return;
        };
        let Stamp { delay, drops } = Stamp::decode(identification);
        let kind = &mut self.kinds[usize::from(packet.ecn.is_capable())];
        kind.delays.record(delay);
        kind.drops += drops;
        kind.marks += u64::from(packet.ecn == Ecn::Ce);
        kind.bytes += u64::from(packet.length);
    }

    pub(crate) fn report(&self) -> StampedReport {
        let [not_ecn, ecn] = self.kinds.each_ref().map(Kind::report);
        StampedReport { not_ecn, ecn, packets_without_report: self.without }
    }
}

impl Kind {
    fn report(&self) -> KindReport {
        let packets = self.delays.count();
        let percent = |part: u64, all: u64| (all > 0).then(|| part as f64 * 100.0 / all as f64);
        KindReport {
            packets,
            ip_bytes: self.bytes,
            drops: self.drops,
            drop_percent: percent(self.drops, self.drops + packets),
            marks: self.marks,
            mark_percent: percent(self.marks, packets),
            delay_ms: Times::of(&self.delays),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use weir_base::{Span, Time};

    #[test]
    fn delays_drops_and_marks_are_summed_by_kind() {
        let mut stamped = Stamped::default();
        // ECN bits, flags, and the report: units of delay, and drops.
        let packets = [(0, 0x40, 2, 1), (0, 0x40, 4, 8), (2, 0x40, 1, 0), (3, 0x40, 1, 3), (0, 0, 9, 9)];
        for (ecn, flags, units, drops) in packets {
            let (identification, left) = Stamp { delay: Span::from_nanos(units << 15), drops }.encode();
            assert!(left <= 1);
            let [high, low] = identification.to_be_bytes();
            let bytes = [0x45, ecn, 0, 20, high, low, flags, 0, 64, 99, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let frame = Frame { at: Time::ZERO, link_type: 101, bytes: &bytes, length: 20 };
            stamped.count(&Packet::of(&frame).unwrap());
        }
        let StampedReport { not_ecn, ecn, packets_without_report } = stamped.report();
        assert_eq!((not_ecn.packets, not_ecn.ip_bytes, not_ecn.drops, not_ecn.marks), (2, 40, 9, 0));
        // 9 of 11; mean delay (2 + 4) / 2 units.
        assert!((not_ecn.drop_percent.unwrap() - 81.818).abs() < 0.001);
        assert_eq!(not_ecn.delay_ms.unwrap().mean, 0.098_304);
        assert_eq!((ecn.packets, ecn.drops, ecn.marks, ecn.mark_percent), (2, 3, 1, Some(50.0)));
        assert_eq!(packets_without_report, 1);
    }
}
