//! On/off traffic: UDP at a constant rate during on-times, and silence during off-times; their lengths are fixed or exponential. The
//! first packet leaves at the start, where an on-time begins.
//!
//! Packets keep their spacing in on-time: the rest of a gap at the end of an on-time passes in the next one. So the mean rate is
//! exactly the rate times on / (on + off), also for short times.

use crate::checks;
use crate::udp::Source;
use crate::{Action, Bytes, Datagrams, Ecn, Event, Parameters, Random, Role, Span, Time, Times, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{ParameterError, Rate};

/// Parameters of on/off UDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate during on-times, in IP bytes.
    pub rate: Rate,
    /// Mean length of an on-time; at least 1 ms.
    pub on: Span,
    /// Mean length of an off-time.
    pub off: Span,
    /// Distribution of these times: `fixed` or `exponential`.
    pub times: Times,
    /// Length of each IP packet, headers included: 28 bytes or more.
    pub packet: Bytes,
    /// ECN codepoint of each packet.
    pub ecn: Ecn,
    /// What sends the packets: `fabric` injects them at exact times, `socket` sends them as an application does.
    pub source: Source,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rate: Rate::from_mbit_per_sec(1),
            on: Span::from_secs(1),
            off: Span::from_secs(1),
            times: Times::Exponential,
            packet: Bytes::new(1500),
            ecn: Ecn::NotEct,
            source: Source::Fabric,
        }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::Datagrams(Datagrams { ecn: self.ecn, exact: self.source == Source::Fabric })
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, random: Random) -> Box<dyn Workload> {
        Box::new(OnOff {
            config: self.clone(),
            random,
            start: Time::ZERO,
            sent: 0,
            on_until: Span::ZERO,
            off: Span::ZERO,
            looking: false,
        })
    }
    fn faults(&self, mtu: Bytes) -> Vec<ParameterError> {
        let least = Span::from_millis(1);
        [
            checks::rate("rate", self.rate),
            checks::span("on", "an on-time", self.on, least),
            checks::span("off", "an off-time", self.off, Span::ZERO),
            checks::packet("packet", self.packet, Bytes::ZERO, mtu),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
    fn datagram(&self) -> Option<(Bytes, Bytes)> {
        Some((self.packet, Bytes::ZERO))
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        let (on, off) = (self.on.as_nanos(), self.off.as_nanos());
        let share = on as f64 / (on + off).max(1) as f64;
        Some(Bytes::new((self.rate.bytes_in(time).get() as f64 * share) as u64))
    }
}

#[derive(Debug)]
struct OnOff {
    config: Config,
    random: Random,
    start: Time,
    sent: u64,
    /// End of the current on-time, as the sum of on-times since the start.
    on_until: Span,
    /// Sum of the off-times so far.
    off: Span,
    /// Whether the current wait is to search further for the on-time of the next packet, not for that packet.
    looking: bool,
}

/// Largest number of on-times that are searched at once for the one in which the next packet is due. At a low rate there may be
/// millions before it.
const LOOK_AHEAD: usize = 1000;

impl OnOff {
    /// Waits until the next packet is due, or until the end of the last on-time that was searched.
    fn wait(&mut self) -> Action {
        let Config { rate, on, off, times, packet, .. } = self.config;
        let on_time = rate.time_to_send_all(packet, self.sent);
        for _ in 0..LOOK_AHEAD {
            if on_time < self.on_until {
                self.looking = false;
                return Action::WaitUntil(self.start + on_time + self.off);
            }
            self.off += times.draw(off, &mut self.random);
            self.on_until += times.draw(on, &mut self.random).max(Span::from_nanos(1));
        }
        self.looking = true;
        Action::WaitUntil(self.start + self.on_until.min(on_time) + self.off)
    }
}

impl Workload for OnOff {
    fn next(&mut self, event: Event, now: Time) -> Action {
        match event {
            Event::Start => {
                self.start = now;
                self.on_until =
                    self.config.times.draw(self.config.on, &mut self.random).max(Span::from_nanos(1));
                Action::Send(self.config.packet, None)
            }
            Event::Sent => {
                self.sent += 1;
                self.wait()
            }
            _ if self.looking => self.wait(),
            _ => Action::Send(self.config.packet, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::UDP_HEADERS;

    /// The times at which the first packets leave.
    fn departures(config: &Config, count: usize) -> Vec<Span> {
        let mut onoff = config.build(None, UDP_HEADERS, Random::stream(1, "test"));
        let start = Time::from_nanos(5);
        let mut now = start;
        let mut action = onoff.next(Event::Start, now);
        let mut times = vec![];
        while times.len() < count {
            assert_eq!(action, Action::Send(config.packet, None));
            times.push(now.since(start));
            let Action::WaitUntil(at) = onoff.next(Event::Sent, now) else {
                panic!("a pause follows each packet")
            };
            now = at;
            action = onoff.next(Event::Woken, now);
        }
        times
    }

    #[test]
    fn fixed_times_send_in_bursts_and_carry_the_rest_of_a_gap_over() {
        // 1500 bytes at 1.2 Mbit/s take 10 ms. In an on-time of 25 ms packets leave at 0, 10 and 20 ms; 25 ms of silence follow. The
        // rest of the gap, 5 ms, passes in the next on-time.
        let config = Config {
            rate: Rate::from_bits_per_sec(1_200_000),
            on: Span::from_millis(25),
            off: Span::from_millis(25),
            times: Times::Fixed,
            ..Config::default()
        };
        let millis: Vec<u64> = departures(&config, 7).iter().map(|time| time.as_millis()).collect();
        assert_eq!(millis, [0, 10, 20, 55, 65, 100, 110]);
    }

    #[test]
    fn a_packet_due_far_in_the_future_is_awaited_in_steps() {
        // 12,000 bits at 1 bit/s take 12,000 s: 12 million on-times of 1 ms and as many off-times.
        let config = Config {
            rate: Rate::from_bits_per_sec(1),
            on: Span::from_millis(1),
            off: Span::from_millis(1),
            times: Times::Fixed,
            ..Config::default()
        };
        let mut onoff = config.build(None, UDP_HEADERS, Random::stream(1, "test"));
        let mut now = Time::ZERO;
        let (mut action, mut steps) = (onoff.next(Event::Start, now), 0);
        action = match action {
            Action::Send(..) => onoff.next(Event::Sent, now),
            _ => action,
        };
        while let Action::WaitUntil(at) = action {
            assert!(at >= now && at.since(now) <= Span::from_secs(3));
            (now, steps) = (at, steps + 1);
            action = onoff.next(Event::Woken, now);
        }
        assert_eq!(now, Time::ZERO + Span::from_secs(24_000));
        assert!(matches!(action, Action::Send(..)) && steps >= 12_000, "{steps}");
    }

    #[test]
    fn the_mean_rate_is_the_share_of_time_that_is_on() {
        // 10 Mbit/s for a quarter of the time: 1500 bytes each 4.8 ms on average.
        let config = Config {
            rate: Rate::from_mbit_per_sec(10),
            on: Span::from_millis(5),
            off: Span::from_millis(15),
            ..Config::default()
        };
        let last = *departures(&config, 50_001).last().unwrap();
        let gap = last.as_millis_f64() / 50_000.0;
        assert!((gap - 4.8).abs() < 0.1, "{gap}");
    }
}
