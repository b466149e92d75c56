//! Captures of a few packets before and after a queue.

use super::*;

/// A pcap file with nanosecond stamps and link type RAW.
#[derive(Clone)]
struct File(Vec<u8>);

impl File {
    fn new() -> File {
        let mut bytes = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
        File(bytes)
    }

    /// A UDP packet with this identification, at this time in microseconds; back if `is_back`.
    fn udp(mut self, micros: u32, identification: u8, is_back: bool, ecn: u8) -> File {
        let (from, to) = if is_back { (2, 1) } else { (1, 2) };
        let mut packet = vec![0x45, ecn, 0, 36, 0, identification, 0x40, 0, 64, 17, 0, 0];
        packet.extend([10, 0, 0, from, 10, 0, 0, to, 0, from, 0, to, 0, 16, 0, 0]);
        packet.extend([0; 8]);
        for word in [micros / 1_000_000, micros % 1_000_000 * 1000, 36, 36] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(packet);
        self
    }

    fn there(self, micros: u32, identification: u8) -> File {
        self.udp(micros, identification, false, 0)
    }

    fn back(self, micros: u32, identification: u8) -> File {
        self.udp(micros, identification, true, 0)
    }
}

fn open(files: &[File; 2]) -> [Capture<&[u8]>; 2] {
    [0, 1].map(|index| Capture::open(&files[index].0[..]).unwrap())
}

fn given(offset_ns: i64) -> Clocks {
    Clocks { offset_ns, known_by: KnownBy::Given }
}

/// The report, and the sojourn of each packet in microseconds.
fn compared(files: &[File; 2], clocks: Clocks) -> (CrossingReport, Vec<Option<u64>>) {
    let mut sojourns = vec![];
    let mut each = |passage: &Passage| {
        sojourns.push(passage.sojourn.map(Span::as_micros));
        Ok(())
    };
    let report = compare(open(files), clocks, Span::from_millis(100), &mut each).unwrap();
    (report, sojourns)
}

#[test]
fn each_packet_has_its_sojourn_or_is_lost() {
    let before = File::new().there(0, 1).there(10, 2).there(20, 3).there(30, 4);
    let after = File::new().there(500, 1).udp(700, 3, false, 3).there(900, 4);
    let (report, sojourns) = compared(&[before, after], given(0));
    // The third is marked. The second is known to be lost when both captures have ended.
    assert_eq!(sojourns, [Some(500), Some(680), Some(870), None]);
    assert_eq!((report.there.packets, report.there.lost, report.there.lost_bytes), (3, 1, 36));
    assert_eq!((report.there.marked, report.there.negative), (1, 0));
    assert_eq!((report.elsewhere, report.outside, report.ambiguous), ([0; 2], [0; 2], 0));
    // (500 + 680 + 870) / 3 us.
    assert!((report.there.sojourn_ms.unwrap().mean - 0.683_333).abs() < 1e-5);
}

#[test]
fn both_ways_are_told_apart_by_the_capture_that_has_a_packet_first() {
    let first = File::new().there(0, 1).back(900, 1).there(1000, 2);
    let second = File::new().there(300, 1).back(500, 1).back(600, 2).there(1400, 2);
    let (report, _) = compared(&[first, second], given(0));
    assert_eq!((report.there.packets, report.there.lost), (2, 0));
    assert_eq!((report.back.packets, report.back.lost), (1, 1));
}

#[test]
fn the_offset_of_clocks_is_half_way_between_the_least_times_of_both_directions() {
    // The second clock is 1 s ahead. Least times: 300 us there, 300 us back.
    let first = File::new().there(0, 1).back(900, 1).there(1000, 2).back(2000, 2);
    let second = File::new().there(1_000_300, 1).back(1_000_600, 1).there(1_001_500, 2).back(1_001_100, 2);
    let files = [first, second];
    let clocks = Clocks::estimate(|| Ok(open(&files)), Span::from_millis(100)).unwrap();
    let expected = Clocks { offset_ns: 1_000_000_000, known_by: KnownBy::BothDirections };
    assert_eq!(clocks, Some(expected));
    let (report, _) = compared(&files, expected);
    assert_eq!((report.there.packets, report.back.packets), (2, 2));
    assert_eq!(report.there.sojourn_ms.unwrap().max, 0.5);
}

#[test]
fn with_packets_in_one_direction_the_least_time_is_zero() {
    let first = File::new().there(0, 1).there(10, 2);
    let second = File::new().there(5_000_300, 1).there(5_000_250, 2);
    let files = [first, second];
    let clocks = Clocks::estimate(|| Ok(open(&files)), Span::from_millis(100)).unwrap();
    let expected = Clocks { offset_ns: 5_000_240_000, known_by: KnownBy::OneDirection };
    assert_eq!(clocks, Some(expected));
    let (report, sojourns) = compared(&files, expected);
    assert_eq!((report.there.packets, sojourns), (2, vec![Some(60), Some(0)]));
    let strangers = [File::new().there(0, 1), File::new().there(0, 2)];
    let none = Clocks::estimate(|| Ok(open(&strangers)), Span::from_millis(100)).unwrap();
    assert_eq!(none, None);
}

#[test]
fn packets_while_the_other_capture_did_not_run_are_not_lost() {
    let before = File::new().there(0, 1).there(1000, 2).there(2000, 3).there(9000, 4);
    let after = File::new().there(1500, 2).there(2500, 3);
    let (report, _) = compared(&[before, after], given(0));
    assert_eq!((report.there.packets, report.there.lost, report.outside), (2, 0, [2, 0]));
}

#[test]
fn equal_packets_are_taken_in_their_order_and_counted() {
    let before = File::new().there(0, 1).there(10, 1);
    let after = File::new().there(100, 1).there(200, 1);
    let (report, sojourns) = compared(&[before, after], given(0));
    assert_eq!((report.ambiguous, sojourns), (1, vec![Some(100), Some(190)]));
}

#[test]
fn what_takes_longer_than_the_longest_time_is_lost_and_arrives_from_nowhere() {
    let before = File::new().there(0, 1).there(10, 2).there(300_000, 3);
    let after = File::new().there(5, 1).there(200_010, 2).there(300_001, 3);
    let (report, _) = compared(&[before, after], given(0));
    assert_eq!((report.there.packets, report.there.lost), (2, 1));
    assert_eq!(report.elsewhere, [0, 1]);
}
