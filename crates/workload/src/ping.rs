//! Echo requests over UDP, evenly spaced: the receiving host, or an echo station, sends each back, and the sending host measures the
//! time until then. A request that is not answered within its timeout is lost.

use crate::checks;
use crate::frames::PART_HEADER;
use crate::{
    Action, Bytes, Datagrams, Ecn, Event, Log, Parameters, Part, Random, Role, Span, Time, Workload,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::ParameterError;

/// The shortest time between two requests.
const SHORTEST: Span = Span::from_micros(10);

/// Parameters of echo requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Time from one request to the next.
    pub interval: Span,
    /// Length of each IP packet, headers included: 40 bytes or more. The default is that of ping(8).
    pub packet: Bytes,
    /// Time after which a request without an answer is lost.
    pub timeout: Span,
    /// ECN codepoint of each packet.
    pub ecn: Ecn,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            interval: Span::from_millis(100),
            packet: Bytes::new(84),
            timeout: Span::from_secs(2),
            ecn: Ecn::NotEct,
        }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::Echo(Datagrams { ecn: self.ecn, exact: false })
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Ping { interval: self.interval, packet: self.packet, due: Time::ZERO, number: 0 })
    }
    fn faults(&self, mtu: Bytes) -> Vec<ParameterError> {
        let interval = checks::span("interval", "the time between two requests", self.interval, SHORTEST);
        let timeout = checks::span("timeout", "a timeout", self.timeout, Span::from_millis(1));
        let packet = checks::packet("packet", self.packet, Bytes::new(PART_HEADER as u64), mtu);
        interval.into_iter().chain(timeout).chain(packet).collect()
    }
    fn datagram(&self) -> Option<(Bytes, Bytes)> {
        Some((self.packet, Bytes::new(PART_HEADER as u64)))
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        Some(Bytes::new(self.packet.get() * (time.as_nanos() / self.interval.as_nanos().max(1) + 1)))
    }
    fn log(&self, _: Time, _: Time, end: Time) -> Option<Log> {
        Some(Log::Echoes(EchoLog { timeout: self.timeout, end, waiting: VecDeque::new(), back: Vec::new() }))
    }
}

#[derive(Debug)]
struct Ping {
    interval: Span,
    packet: Bytes,
    due: Time,
    number: u32,
}

impl Workload for Ping {
    fn next(&mut self, event: Event, now: Time) -> Action {
        match event {
            Event::Sent => {
                self.number = self.number.wrapping_add(1);
                self.due += self.interval;
                Action::WaitUntil(self.due)
            }
            _ => {
                self.due = now;
                Action::Send(self.packet, Some(Part { frame: self.number, index: 0, parts: 1 }))
            }
        }
    }
}

/// An echo request whose fate is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoRecord {
    /// Number of the request, from 0.
    pub number: u32,
    /// The time that the answer took; `None` if there was no answer within the timeout.
    pub took: Option<Span>,
}

/// The requests of one flow: those not answered yet, at the sender, and those to be sent back, at the receiver.
#[derive(Debug, Clone)]
pub struct EchoLog {
    timeout: Span,
    end: Time,
    /// Number and sending time of each request, in the order of sending; the time is `None` once the request is answered.
    waiting: VecDeque<(u32, Option<Time>)>,
    /// Requests that the receiving end sends back: the first bytes of each, and the length of its payload.
    pub(crate) back: Vec<([u8; PART_HEADER], u64)>,
}

impl EchoLog {
    /// A request was sent.
    pub(crate) fn sent(&mut self, number: u32, now: Time) {
        self.waiting.push_back((number, Some(now)));
    }

    /// An answer has arrived. Returns the request's record; `None` if the number is unknown, or the request is already answered or lost.
    pub(crate) fn answered(&mut self, number: u32, now: Time) -> Option<EchoRecord> {
        let (first, _) = *self.waiting.front()?;
        let (_, sent) = self.waiting.get_mut(number.wrapping_sub(first) as usize)?;
        let took = now.since(sent.take()?);
        self.forget();
        Some(EchoRecord { number, took: (took <= self.timeout).then_some(took) })
    }

    /// Removes the oldest requests up to the first unanswered one.
    fn forget(&mut self) {
        while self.waiting.front().is_some_and(|(_, sent)| sent.is_none()) {
            self.waiting.pop_front();
        }
    }

    /// Reports the requests that count as lost by now. A request whose timeout is after the end of the run is not reported.
    pub(crate) fn settle(&mut self, now: Time, mut tell: impl FnMut(EchoRecord)) {
        let now = now.min(self.end);
        while let Some(&(number, sent)) = self.waiting.front() {
            if sent.is_some_and(|sent| sent + self.timeout > now) {
                break;
            }
            if sent.is_some() {
                tell(EchoRecord { number, took: None });
            }
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::UDP_HEADERS;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn requests_leave_evenly_and_are_numbered() {
        let mut ping = Config::default().build(None, UDP_HEADERS, Random::stream(1, "test"));
        let mut now = at(7);
        for number in 0..100 {
            let part = Part { frame: number, index: 0, parts: 1 };
            assert_eq!(ping.next(Event::Woken, now), Action::Send(Bytes::new(84), Some(part)));
            now += Span::from_millis(100);
            assert_eq!(ping.next(Event::Sent, now), Action::WaitUntil(now));
        }
        assert_eq!(now, at(10_007));
    }

    #[test]
    fn a_reply_counts_once_and_before_the_timeout_and_requests_without_one_are_lost() {
        let mut log = EchoLog {
            timeout: Span::from_millis(50),
            end: at(1000),
            waiting: VecDeque::new(),
            back: Vec::new(),
        };
        (0..5).for_each(|number| log.sent(number, at(10 * u64::from(number))));
        let took = |ms| Some(EchoRecord { number: 1, took: Some(Span::from_millis(ms)) });
        assert_eq!(log.answered(1, at(30)), took(20));
        assert_eq!(log.answered(1, at(31)), None, "twice");
        assert_eq!(log.answered(9, at(31)), None, "never asked");
        assert_eq!(log.answered(2, at(71)), Some(EchoRecord { number: 2, took: None }), "after 51 ms");
        let mut lost = vec![];
        log.settle(at(79), |record| lost.push(record.number));
        assert_eq!(lost, [0], "request 3 has until 80 ms");
        log.settle(at(2000), |record| lost.push(record.number));
        assert_eq!(lost, [0, 3, 4]);
        log.sent(5, at(960));
        log.settle(at(2000), |record| lost.push(record.number));
        assert_eq!(lost.len(), 3, "the run ends before its timeout");
    }
}
