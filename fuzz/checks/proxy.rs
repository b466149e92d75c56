//! Whatever datagrams reach the receiving UDP proxy, it does not panic, does not hold them for ever, and what it reads it writes again as it
//! was.

use weir_base::{Span, Time};
use weir_overlay::proxy::udp::Code;
use weir_overlay::proxy::udp::receiving::Receiving;
use weir_overlay::proxy::udp::trailer::Trailers;

/// A code whose repair is a copy of the last source: it restores one.
#[derive(Debug)]
struct Copies;

impl Code for Copies {
    fn encode(&self, sources: &[&[u8]], _: usize, repair: &mut Vec<u8>) {
        repair.clear();
        repair.extend_from_slice(sources.last().copied().unwrap_or_default());
    }
    fn restore(&self, sources: &mut [Option<Vec<u8>>], repairs: &[(usize, &[u8])]) -> bool {
        let missing: Vec<usize> = (0..sources.len()).filter(|at| sources[*at].is_none()).collect();
        let (&[at], Some((_, repair))) = (&missing[..], repairs.first()) else { return false };
        sources[at] = Some(repair.to_vec());
        true
    }
}

/// A piece is a byte for the time that passes, a byte for its length, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    let (mut receiving, mut now, mut released) = (Receiving::default(), Time::ZERO, 0);
    let mut rest = data;
    while let [passes, length, after @ ..] = rest {
        let (piece, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        now += Span::from_millis(u64::from(*passes));
        if let Ok((payload, trailers)) = Trailers::decode(piece) {
            let mut again = payload.to_vec();
            trailers.encode(&mut again);
            assert_eq!(again, piece, "it writes what it reads");
        }
        receiving.datagram(piece, None, &Copies, now, |packet, _| released += packet.len());
        receiving.on_timer(now, |packet, _| released += packet.len());
    }
    receiving.on_timer(now + Span::from_secs(100), |packet, _| released += packet.len());
    assert!(receiving.next_time() == Time::NEVER, "nothing stays for ever");
    // A repair may restore as many bytes as came.
    assert!(released <= 2 * data.len(), "no more is released than came");
}
