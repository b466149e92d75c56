//! Whatever segments reach a TCP proxy, it neither panics nor stands still, and what it holds stays bounded. What it reads it writes again so
//! that it reads back the same.

use weir_base::{Bytes, Rate, Span, Time};
use weir_overlay::proxy::tcp::{Admission, Part, Relay, SILENCE, Segment, WINDOW};

/// Drives a proxy. A piece is a byte for its kind, a byte for its length, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    let mut now = Time::ZERO;
    let mut relay = Relay::new(Bytes::new(1200), now);
    let (mut rest, mut taken) = (data, 0);
    while let [kind, length, after @ ..] = rest {
        let (piece, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        let open =
            Admission { is_open: kind & 1 == 0, rate: Rate::from_mbit_per_sec(8), waits: kind & 2 == 0 };
        match kind >> 2 & 7 {
            0..=2 => {
                if let Ok((segment, data)) = Segment::decode(piece, 0) {
                    let mut again = vec![];
                    segment.encode(&mut again);
                    again.extend_from_slice(data);
                    assert_eq!(Segment::decode(&again, 0).map(|read| read.0), Ok(segment));
                    relay.receive(&segment, &open, now);
                }
            }
            3 => {
                // A part like those of a peer, at a place that the piece names.
                let part = Part { from: 100 * u64::from(*length), bytes: 100, ends: piece.len() > 100 };
                let (echo, next) = (u32::from(*length), 50 * u64::from(kind >> 5));
                let segment = Segment { echo, next, window: 1 << 20, part: Some(part), ..Segment::default() };
                relay.receive(&segment, &open, now);
            }
            4 => {
                let room = relay.room();
                taken += room.get();
                relay.take(room);
            }
            5 => {
                let ready = relay.ready();
                relay.give(ready, now);
                relay.acknowledged(u64::from(*length) * 100, now);
            }
            6 if *length > 250 => relay.end(),
            6 if *length > 245 => relay.reset(),
            _ => now += Span::from_micros(1 << (length % 24)),
        }
        let mut left = 10_000;
        while relay.next(&open, now).is_some() {
            left -= 1;
            assert!(left > 0, "it never rests");
        }
        assert!(relay.next_time() > now || relay.gone().is_some(), "its next time has come already");
        assert!(relay.held() <= WINDOW && relay.ready() <= relay.held());
        assert!(relay.delivered().get() <= taken);
    }
    now += SILENCE;
    let shut = Admission { is_open: false, rate: Rate::default(), waits: true };
    while relay.next(&shut, now).is_some() {}
    assert!(relay.gone().is_some() || relay.is_done(), "nobody was heard for so long");
}
