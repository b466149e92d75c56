//! UDP at a constant rate: packets of one size, evenly spaced, without congestion control. By default the fabric injects them at the
//! exact times, so that a live run has the lab's load; with a socket as the source, the error of the gaps is reported.

use crate::checks;
use crate::{Action, Bytes, Datagrams, Ecn, Event, Parameters, Random, Role, Span, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{ParameterError, Rate};

/// Parameters of constant-rate UDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate in IP bytes.
    pub rate: Rate,
    /// Length of each IP packet, headers included: 28 bytes or more.
    pub packet: Bytes,
    /// ECN codepoint of each packet.
    pub ecn: Ecn,
    /// What sends the packets: `fabric` injects them at exact times (live runs then have no sender noise), `socket` sends them as an
    /// application does.
    pub source: Source,
}

/// What sends the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The fabric, at exact times.
    Fabric,
    /// A socket of the sending host.
    Socket,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rate: Rate::from_mbit_per_sec(1),
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
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Udp { rate: self.rate, packet: self.packet, start: Time::ZERO, sent: 0 })
    }
    fn faults(&self, mtu: Bytes) -> Vec<ParameterError> {
        let rate = checks::rate("rate", self.rate);
        rate.into_iter().chain(checks::packet("packet", self.packet, Bytes::ZERO, mtu)).collect()
    }
    fn datagram(&self) -> Option<(Bytes, Bytes)> {
        Some((self.packet, Bytes::ZERO))
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        Some(self.rate.bytes_in(time))
    }
}

#[derive(Debug)]
struct Udp {
    rate: Rate,
    packet: Bytes,
    start: Time,
    sent: u64,
}

impl Udp {
    /// When the next packet is due; computed from the start, so that rounding does not accumulate.
    fn due(&self) -> Time {
        self.start + self.rate.time_to_send_all(self.packet, self.sent)
    }
}

impl Workload for Udp {
    fn next(&mut self, event: Event, now: Time) -> Action {
        match event {
            Event::Start => {
                self.start = now;
                Action::Send(self.packet, None)
            }
            Event::Sent => {
                self.sent += 1;
                Action::WaitUntil(self.due())
            }
            _ => Action::Send(self.packet, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::UDP_HEADERS;

    #[test]
    fn packets_leave_evenly_and_rounding_errors_do_not_accumulate() {
        // 1500 bytes at 7 Mbit/s take 1.714285... ms; the packet after 7000 is due after exactly 12 s.
        let config = Config { rate: Rate::from_mbit_per_sec(7), ..Config::default() };
        let mut udp = config.build(None, UDP_HEADERS, Random::stream(1, "test"));
        let start = Time::from_nanos(5);
        assert_eq!(udp.next(Event::Start, start), Action::Send(Bytes::new(1500), None));
        let mut due = start;
        for _ in 0..7000 {
            let Action::WaitUntil(at) = udp.next(Event::Sent, due) else {
                panic!("a pause follows each packet")
            };
            due = at;
            assert_eq!(udp.next(Event::Woken, due), Action::Send(Bytes::new(1500), None));
        }
        assert_eq!(due, start + Span::from_secs(12));
    }
}
