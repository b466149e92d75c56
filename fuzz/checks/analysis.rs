//! Whatever a capture holds, reading it gives packets and then an end, and the counts of its flows add up. The same bytes are also taken as
//! packets without a file around them, so that the analysis of flows is reached without a valid header.

use weir_base::{Span, Time};
use weir_observe::{Analysis, Capture, Clocks, Ended, Frame, KnownBy, Passage, Settings, Unread, compare};

/// Few flows, so that the bound on them is reached.
const FLOWS: usize = 4;

/// Reads bytes as a capture, and as packets.
pub(crate) fn check(data: &[u8]) {
    if let Ok(mut capture) = Capture::open(data) {
        let mut analysis = analysis();
        analysis.read(&mut capture).expect("bytes in memory can be read");
        let is_within = |at_byte: u64| at_byte < data.len() as u64;
        match capture.ended() {
            Ended::Complete => assert_eq!(capture.position(), data.len() as u64),
            Ended::Cut { at_byte } | Ended::Damaged { at_byte, .. } => assert!(is_within(*at_byte)),
        }
        let Unread { packets_without_time, packets_without_interface, .. } = capture.unread();
        assert!((packets_without_time + packets_without_interface) * 12 <= data.len() as u64);
        verify(&analysis);
        compare_with_itself(data, analysis.report().totals().packets);
    }
    let mut analysis = analysis();
    let mut rest = data;
    // A link type, a time that has passed, and a length: then a packet.
    while let [link_type, passed, length, behind @ ..] = rest {
        let length = usize::from(*length).min(behind.len());
        let (bytes, next) = behind.split_at(length);
        let at = Time::from_nanos(u64::from(*passed) << 22);
        analysis.frame(&Frame { at, link_type: (*link_type).into(), bytes, length: length as u32 });
        rest = next;
    }
    verify(&analysis);
}

/// A capture has all packets of itself, whatever their times are.
fn compare_with_itself(data: &[u8], packets: u64) {
    let [Ok(first), Ok(second)] = [Capture::open(data), Capture::open(data)] else { return };
    let clocks = Clocks { offset_ns: 0, known_by: KnownBy::Given };
    let mut passed = 0;
    let mut each = |_: &Passage| {
        passed += 1;
        Ok(())
    };
    let report = compare([first, second], clocks, Span::MAX, &mut each).expect("bytes in memory can be read");
    assert_eq!(report.there.packets + report.back.packets, packets);
    assert_eq!((report.there.lost, report.back.lost, passed), (0, 0, packets));
    assert_eq!((report.elsewhere, report.outside), ([0; 2], [0; 2]));
}

fn analysis() -> Analysis {
    Analysis::new(Settings { most_flows: FLOWS, ..Settings::default() })
}

/// Every packet is of a flow or of further ones, and no direction has more late segments than segments.
fn verify(analysis: &Analysis) {
    let report = analysis.report();
    let totals = report.totals();
    assert!(totals.flows <= FLOWS);
    let mut packets = totals.packets_of_further_flows;
    for direction in report.flows().flat_map(|flow| [flow.there, flow.back]) {
        packets += direction.packets;
        assert_eq!(direction.ecn.values().sum::<u64>(), direction.packets);
        if let Some(tcp) = direction.tcp {
            assert!(tcp.retransmissions + tcp.reordered + tcp.copies <= direction.segments);
            assert!(tcp.spurious_retransmissions <= tcp.retransmissions);
            assert!(tcp.retransmitted_bytes <= direction.payload_bytes);
        }
    }
    assert_eq!(packets, totals.packets);
    assert_eq!(report.series().1.iter().map(|period| period.packets).sum::<u64>(), totals.packets);
}
