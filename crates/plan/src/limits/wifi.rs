//! Checks of a radio channel: the bounds of 802.11n, and settings that it excludes.

use crate::reader::Reader;
use weir_base::{Rate, Span};
use weir_fabric::{Link, Wifi};

/// Most other stations on a channel.
const MOST_STATIONS: u32 = 100;
/// The window of a block acknowledgement (IEEE Std 802.11-2012, clause 8.3.1.9).
const MOST_AGGREGATED: u32 = 64;
/// The longest A-MPDU of 802.11n (clause 8.4.2.58.3).
const LONGEST_AGGREGATE: u32 = 65_535;
/// The longest frame of an HT radio (`aPPDUMaxTime`, Table 20-25).
const LONGEST_AIRTIME: Span = Span::from_millis(10);
/// Slowest rate of a radio.
const SLOWEST_RADIO: Rate = Rate::from_bits_per_sec(100_000);

/// Checks a radio channel.
pub(super) fn check(reader: &mut Reader<'_>, path: &[&str], link: &Link) {
    let Some(wifi) = link.wifi else { return };
    let Wifi { stations, their_airtime, max_packets, max_bytes, max_airtime, walk } = wifi;
    let mut refuse = |wrong: bool, message: String, help: String| {
        if wrong {
            reader.wrong(path, message, help);
        }
    };
    refuse(
        stations > MOST_STATIONS,
        format!("{stations} other stations on a channel are too many"),
        format!("write at most {MOST_STATIONS}"),
    );
    let airtime = |key: &str| format!("write {key} above 0 s and up to {LONGEST_AIRTIME}");
    let bad = |span: Span| span.is_zero() || span > LONGEST_AIRTIME;
    refuse(
        bad(their_airtime),
        format!("a frame cannot be on the air for {their_airtime}"),
        airtime("their_airtime"),
    );
    refuse(
        bad(max_airtime),
        format!("a frame cannot be on the air for {max_airtime}"),
        airtime("max_airtime"),
    );
    refuse(
        max_packets == 0 || max_packets > MOST_AGGREGATED,
        format!("an aggregate cannot have {max_packets} packets"),
        format!("write from 1 to {MOST_AGGREGATED}"),
    );
    refuse(
        max_bytes == 0 || max_bytes > LONGEST_AGGREGATE,
        format!("an aggregate cannot have {max_bytes} bytes"),
        format!("write from 1 to {LONGEST_AGGREGATE}"),
    );
    refuse(
        !walk.is_zero() && walk < Span::from_millis(1),
        format!("a radio cannot change its modulation every {walk}"),
        "write 1 ms or more, or 0 s for never".into(),
    );
    let rates = link.rate.into_iter().chain(link.schedule.iter().filter_map(|change| change.rate));
    let slowest = rates.min().unwrap_or(SLOWEST_RADIO);
    refuse(
        slowest < SLOWEST_RADIO,
        format!("a radio cannot send at {slowest}"),
        format!("write a rate of {SLOWEST_RADIO} or more, or remove wifi"),
    );
    let opportunities = |trace: &weir_fabric::Playback| {
        trace.recording.as_ref().is_some_and(|trace| trace.is_opportunities())
    };
    refuse(
        link.traces().any(opportunities),
        "the trace says when packets leave, and the radio does too".into(),
        "remove one of the two, or take a trace of `seconds,rate` for the radio's rate".into(),
    );
    refuse(
        !walk.is_zero() && link.traces().next().is_some(),
        "both the trace and the walk change the radio's rate".into(),
        "remove one of the two".into(),
    );
}
