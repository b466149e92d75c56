//! Many losses in one window. Acknowledgements are compressed while data is missing, but each range that has arrived is reported while it
//! is among the first SACK blocks, as in Linux (`tcp_sack_compress_send_ack`). So the sender retransmits only what was lost.

use crate::pair::{Pair, Script, config};
use weir_base::{Bytes, Rate, Span};
use weir_tcp::Config;

/// The packets with data that are dropped: each second one of eighty in the second round trip.
fn dropped() -> Vec<u64> {
    (200..280).step_by(2).collect()
}

fn pair() -> Pair {
    // The receive window does not open any further then: each step would demand an acknowledgement.
    let fixed = Bytes::new(512 << 10);
    let config = Config { initial_window: 100, receive_buffer: (fixed, fixed), ..config("newreno") };
    let losses = Script { drop: dropped(), data_only: true, ..Script::default() };
    Pair::new(config, Span::from_millis(40), Some(Rate::from_mbit_per_sec(100)), losses, Script::default())
}

#[test]
fn what_has_arrived_between_many_losses_is_not_retransmitted() {
    let info = pair().transfer(400 * 1448, Span::from_secs(5));
    assert_eq!((info.sample.retransmitted, info.sample.timeouts), (dropped().len() as u64, 0));
}

#[test]
fn two_ranges_between_losses_are_reported_by_one_acknowledgement() {
    let mut pair = pair();
    pair.transfer(400 * 1448, Span::from_secs(5));
    // By the newest block: the losses reach to the 280th segment.
    let within = |blocks: &[(u32, u32)]| blocks.first().is_some_and(|newest| newest.1 <= 1 + 280 * 1448);
    let acknowledgements = pair.back.log.iter().filter(|(_, segment, _)| within(segment.sack.blocks()));
    // Forty ranges arrive. The first three duplicates leave one by one.
    let count = acknowledgements.count();
    assert!((20..=24).contains(&count), "{count}");
}
