//! A sender on a shared radio channel: a model of 802.11n (IEEE Std 802.11-2012) at 5 GHz, 20 MHz, one spatial stream, long
//! guard interval, best effort. Before each transmission it contends with other stations for the channel; then it sends
//! waiting packets as one aggregate (A-MPDU), which all arrive at its end, and awaits the block acknowledgement.
//!
//! Not modelled: a channel that both directions of a link share, frames that the radio damages and their retransmission,
//! hidden stations, RTS/CTS, rate control that follows losses. docs/links.md describes the consequences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Rate, Span, Time};

/// A slot of the contention (Table 18-17, OFDM PHY, 20 MHz).
const SLOT: Span = Span::from_micros(9);
/// Short interframe space (Table 18-17).
const SIFS: Span = Span::from_micros(16);
/// Arbitration interframe space of best effort: SIFS and 3 slots (Table 8-105, AIFSN 3).
const AIFS: Span = Span::from_micros(16 + 3 * 9);
/// Smallest and largest contention window of best effort (Table 8-105: aCWmin and aCWmax).
const CW_MIN: u32 = 15;
const CW_MAX: u32 = 1023;
/// Preamble and header of an HT-mixed frame with one stream (clause 20.3.9): L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4,
/// HT-LTF 4 us.
const PREAMBLE: Span = Span::from_micros(36);
/// An OFDM symbol with long guard interval (Table 20-6).
const SYMBOL: u64 = 4_000;
/// Service field and tail bits around the data (Table 20-6).
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// A compressed block acknowledgement of 32 bytes at 24 Mbit/s (clause 8.3.1.9): preamble 20 us and 3 symbols.
const BLOCK_ACK: Span = Span::from_micros(20 + 3 * 4);
/// Bytes that an A-MPDU adds to each packet: QoS MAC header 26, LLC and SNAP 8, FCS 4 (clause 8.2.3), delimiter 4 (clause
/// 8.6.1).
const MPDU_OVERHEAD: u64 = 26 + 8 + 4 + 4;
/// Speeds of MCS 0 to 7 relative to the fastest (Table 20-30: 6.5 to 65 Mbit/s), in tenths.
const MCS: [u64; 8] = [1, 2, 3, 4, 6, 8, 9, 10];

/// A link that sends as an 802.11n station. The link's `rate` is that of the radio; contention, preambles and
/// acknowledgements reduce the throughput below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wifi {
    /// Other stations on the channel that always have something to send.
    pub stations: u32,
    /// Duration of each transmission of those stations, acknowledgement included.
    pub their_airtime: Span,
    /// Maximum number of packets in an aggregate: a block acknowledgement has room for 64.
    pub max_packets: u32,
    /// Maximum length of an aggregate in bytes: 802.11n's longest A-MPDU has 65535.
    pub max_bytes: u32,
    /// Longest airtime of an aggregate. Drivers keep it short: Linux's ath9k, to 4 ms.
    pub max_airtime: Span,
    /// Interval at which the radio may change its modulation: one step down, no step or one step up at random, between a
    /// tenth of `rate` and `rate` (MCS 0 to 7), beginning at `rate`. "0 s", the default, turns it off.
    pub walk: Span,
}

impl Default for Wifi {
    fn default() -> Wifi {
        Wifi {
            stations: 0,
            their_airtime: Span::from_millis(2),
            max_packets: 64,
            max_bytes: 65_535,
            max_airtime: Span::from_millis(4),
            walk: Span::ZERO,
        }
    }
}

impl Wifi {
    /// Bytes that a packet of this many bytes takes in an A-MPDU, padded to whole words.
    fn mpdu(bytes: u64) -> u64 {
        (bytes + MPDU_OVERHEAD).next_multiple_of(4)
    }

    /// Airtime of this many bytes of MPDUs, preamble included.
    fn airtime(bytes: u64, rate: Rate) -> Span {
        let bits = 8 * u128::from(bytes) + u128::from(SERVICE_AND_TAIL);
        // A symbol carries the rate times its length, in whole bits.
        let bits_per_symbol = (u128::from(rate.bits_per_sec()) * u128::from(SYMBOL) / 1_000_000_000).max(1);
        let symbols = u64::try_from(bits.div_ceil(bits_per_symbol)).unwrap_or(u64::MAX / SYMBOL);
        PREAMBLE + Span::from_nanos(symbols.saturating_mul(SYMBOL).min(Span::MAX.as_nanos() / 2))
    }
}

/// An aggregate that is being put together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Aggregate {
    packets: u32,
    bytes: u64,
}

impl Aggregate {
    /// Whether a packet of up to `longest` bytes may still join; the first always may.
    pub(crate) fn takes(&self, longest: u64, wifi: &Wifi, rate: Rate) -> bool {
        let bytes = self.bytes + Wifi::mpdu(longest);
        self.packets == 0
            || (self.packets < wifi.max_packets
                && bytes <= u64::from(wifi.max_bytes)
                && Wifi::airtime(bytes, rate) <= wifi.max_airtime)
    }

    /// Adds a packet of this many bytes.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += Wifi::mpdu(bytes);
    }

    /// How long it is on the air.
    pub(crate) fn airtime(&self, rate: Rate) -> Span {
        Wifi::airtime(self.bytes, rate)
    }
}

/// From the end of an aggregate until the channel is free again: the block acknowledgement.
pub(crate) const ACKNOWLEDGED: Span = Span::from_micros(SIFS.as_micros() + BLOCK_ACK.as_micros());

/// The link's sender and the stations that it contends with.
#[derive(Debug)]
pub(crate) struct Radio {
    pub(crate) wifi: Wifi,
    /// Contention window and remaining slots of each station: the link's sender first, then the others.
    backoff: Vec<(u32, u32)>,
    random: Random,
    walk: Option<Walk>,
}

impl Radio {
    /// `rate` is the radio's fastest.
    pub(crate) fn new(wifi: Wifi, seed: u64, index: u64) -> Radio {
        let mut random = Random::stream_of(seed, "wifi", index);
        let backoff = (0..=wifi.stations).map(|_| (CW_MIN, slots(&mut random, CW_MIN))).collect();
        let walk = (!wifi.walk.is_zero()).then(|| Walk {
            every: wifi.walk,
            next: Time::ZERO + wifi.walk,
            step: MCS.len() - 1,
            random: Random::stream_of(seed, "wifi walk", index),
            since: Time::ZERO,
            sum: 0,
        });
        Radio { wifi, backoff, random, walk }
    }

    /// Time until the station wins the channel. Stations count down together; the first wins, and the others keep their
    /// remaining slots. If several are first, they collide: nothing arrives, and each draws again from a window twice as
    /// wide (clause 9.19.2.5).
    pub(crate) fn contend(&mut self) -> Span {
        let mut waited = Span::ZERO;
        loop {
            let least = self.backoff.iter().map(|(_, left)| *left).min().unwrap_or(0);
            waited += AIFS + SLOT * u64::from(least);
            let first = self.backoff.iter().filter(|(_, left)| *left == least).count();
            let own = self.backoff.first().is_some_and(|(_, left)| *left == least);
            for (window, left) in &mut self.backoff {
                if *left == least {
                    *window = if first == 1 { CW_MIN } else { (2 * *window + 1).min(CW_MAX) };
                    *left = slots(&mut self.random, *window);
                } else {
                    *left -= least;
                }
            }
            if own && first == 1 {
                return waited;
            }
            waited += self.wifi.their_airtime;
        }
    }

    /// The radio's present rate; `best` is its rate at MCS 7.
    pub(crate) fn rate(&mut self, best: Rate, now: Time) -> Rate {
        match &mut self.walk {
            None => best,
            Some(walk) => {
                walk.advance(now);
                walk.of(best)
            }
        }
    }

    /// The capacity of a radio of this best rate since the last call, in bits times nanoseconds per second; `None` if its
    /// rate does not walk.
    pub(crate) fn take_capacity(&mut self, best: Rate, now: Time) -> Option<u128> {
        let walk = self.walk.as_mut()?;
        walk.advance(now);
        Some(std::mem::take(&mut walk.sum) * u128::from(best.bits_per_sec()) / 10)
    }
}

/// A random number of slots, up to the window.
fn slots(random: &mut Random, window: u32) -> u32 {
    random.below(u64::from(window) + 1) as u32
}

/// The random walk of a radio's modulation.
#[derive(Debug)]
struct Walk {
    every: Span,
    /// When it may change next.
    next: Time,
    /// Place in [`MCS`].
    step: usize,
    random: Random,
    /// The time up to which `sum` is counted, and the sum since it was last taken: tenths of the best rate, times
    /// nanoseconds.
    since: Time,
    sum: u128,
}

impl Walk {
    fn advance(&mut self, now: Time) {
        while self.next <= now {
            self.count(self.next);
            self.next += self.every;
            let last = MCS.len() - 1;
            self.step = match self.random.below(3) {
                0 => self.step.saturating_sub(1),
                1 => self.step,
                _ => (self.step + 1).min(last),
            };
        }
        self.count(now);
    }

    fn count(&mut self, until: Time) {
        self.sum += u128::from(MCS[self.step]) * u128::from(until.since(self.since).as_nanos());
        self.since = until;
    }

    fn of(&self, best: Rate) -> Rate {
        Rate::from_bits_per_sec((u128::from(best.bits_per_sec()) * u128::from(MCS[self.step]) / 10) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEST: Rate = Rate::from_mbit_per_sec(65);

    #[test]
    fn the_airtime_of_an_aggregate_is_a_whole_number_of_symbols() {
        // 1500 + 42 = 1542, padded to 1544 bytes: 12,374 bits in symbols of 260 are 48 of 4 us.
        assert_eq!((Wifi::mpdu(1500), Wifi::airtime(1544, BEST)), (1544, Span::from_micros(36 + 48 * 4)));
        assert_eq!(ACKNOWLEDGED, Span::from_micros(48));
    }

    #[test]
    fn an_aggregate_is_bounded_in_packets_bytes_and_time() {
        let count = |wifi: Wifi, rate| {
            let mut aggregate = Aggregate::default();
            (0..)
                .take_while(|_| aggregate.takes(1500, &wifi, rate).then(|| aggregate.add(1500)).is_some())
                .count()
        };
        let long = Wifi { max_airtime: Span::from_secs(1), ..Wifi::default() };
        assert_eq!(count(long, BEST), 65_535 / 1544);
        assert_eq!(count(Wifi { max_packets: 7, ..long }, BEST), 7);
        // 4 ms less the preamble are 991 symbols of 260 bits: 32,204 bytes.
        assert_eq!(count(Wifi::default(), BEST), 20);
        assert_eq!(count(Wifi { max_bytes: 100, ..long }, BEST), 1, "one packet always goes");
    }

    #[test]
    fn a_radio_waits_for_the_mean_backoff_alone_and_gets_a_fair_share_among_others() {
        let mean = |stations: u32| {
            let mut radio = Radio::new(Wifi { stations, ..Wifi::default() }, 1, 0);
            (0..20_000).map(|_| radio.contend().as_micros() as f64).sum::<f64>() / 20_000.0
        };
        // 43 us and 7.5 slots of 9 us on average.
        assert!((mean(0) - (43.0 + 67.5)).abs() < 1.0, "{}", mean(0));
        // Each of the four wins as often: three transmissions of 2 ms of others before one of its own, some collisions more.
        assert!((6_000.0..8_500.0).contains(&mean(3)), "{}", mean(3));
    }

    #[test]
    fn a_random_walk_stays_on_its_rates_and_its_capacity_is_their_integral() {
        let wifi = Wifi { walk: Span::from_millis(10), ..Wifi::default() };
        let mut radio = Radio::new(wifi, 1, 0);
        let mut sum = 0u128;
        let mut seen = std::collections::BTreeSet::new();
        for step in 1..=20_000u64 {
            let rate = radio.rate(BEST, Time::from_nanos((step - 1) * 10_000_000)).bits_per_sec();
            seen.insert(rate);
            sum += u128::from(rate) * 10_000_000;
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), MCS.map(|tenths| 6_500_000 * tenths));
        assert_eq!(
            radio.take_capacity(BEST, Time::from_nanos(200_000_000_000 - 1)),
            Some(
                sum - {
                    let last = radio.rate(BEST, Time::from_nanos(200_000_000_000 - 1)).bits_per_sec();
                    u128::from(last)
                }
            )
        );
    }
}
