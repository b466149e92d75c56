//! The layer of a coordinated flow between its application and its UDP socket, the simulator's or the kernel's.

use crate::Statistic;
use crate::cell::{Cell, Family};
use crate::endpoint::{Endpoint, Identity};
use crate::header::{Flags, LONGEST, Version};
use weir_base::{Rate, Span, Time};

/// The rate of a flowshare, in KiB/s.
const FLOWSHARE: Cell = Family::Bandwidth.cell(Statistic::Latest);
const KIB: u64 = 1024;

/// The layer between an application and its UDP socket: it writes the CP header of each outgoing datagram and removes it from each
/// arriving one.
#[derive(Debug)]
pub struct Layer {
    endpoint: Endpoint,
    head: Vec<u8>,
    /// Shortest time between two answers, and the time from which the next one may leave; `None` if it never answers.
    answers: Option<(Span, Time)>,
}

impl Layer {
    /// The layer of a flow's end.
    pub fn new(identity: Identity, version: Version) -> Layer {
        let head = Vec::with_capacity(2 * LONGEST);
        Layer { endpoint: Endpoint::new(identity, version, &[]), head, answers: None }
    }

    /// The layer of a flow's end that answers arriving datagrams, at most once in this time, and watches the rate of a flowshare. Answers
    /// are headers alone. They bring the aggregation points' probes and reports back to the sender of the datagrams.
    pub fn answering(identity: Identity, version: Version, interval: Span) -> Layer {
        let endpoint = Endpoint::new(identity, version, &[FLOWSHARE]);
        Layer { endpoint, answers: Some((interval, Time::ZERO)), ..Layer::new(identity, version) }
    }

    /// The first bytes of a datagram whose application's bytes begin with `head`: the CP header, then `head`.
    pub fn seal(&mut self, head: &[u8]) -> &[u8] {
        let length = self.endpoint.header_length();
        self.head.clear();
        self.head.resize(length, 0);
        self.endpoint.seal(Flags::default(), &mut self.head);
        self.head.extend_from_slice(head);
        &self.head
    }

    /// The answer to an arriving datagram with `bytes` bytes behind its header; `None` if none is due, or if it is an answer itself.
    pub fn answer(&mut self, bytes: u64, now: Time) -> Option<&[u8]> {
        let (interval, from) = self.answers.as_mut().filter(|(_, from)| bytes > 0 && *from <= now)?;
        *from = now + *interval;
        Some(self.seal(&[]))
    }

    /// Whether it answers arriving datagrams.
    pub fn answers(&self) -> bool {
        self.answers.is_some()
    }

    /// Whether an arrived datagram with `bytes` bytes behind its header is an answer, which is no datagram of the application.
    pub fn is_answer(&self, bytes: u64) -> bool {
        self.answers.is_some() && bytes == 0
    }

    /// The rate of a flowshare that the aggregation point has reported; `None` before a report.
    pub fn flowshare(&self) -> Option<Rate> {
        let kib = self.endpoint.value(FLOWSHARE).filter(|kib| *kib > 0)?;
        Some(Rate::from_bits_per_sec(u64::from(kib) * KIB * 8))
    }

    /// The bytes behind the CP header of an arriving datagram; `None` if the header is missing, forged or of another flow.
    pub fn open<'a>(&mut self, head: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.endpoint.open(head, |_, _| {}).ok()?;
        head.get(length..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_answers_datagrams_at_most_once_in_its_interval_and_no_answers() {
        let identity = Identity { application: 1, flow: 2, protocol: 2, key: None, epoch: 0 };
        let interval = Span::from_millis(40);
        let mut receiver = Layer::answering(identity, Version::One, interval);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let answer = receiver.answer(1000, at(0)).unwrap().to_vec();
        assert_eq!(answer.len(), Version::One.length());
        assert_eq!(receiver.answer(1000, at(39)), None);
        assert_eq!(receiver.answer(0, at(50)), None);
        assert!(receiver.answer(1000, at(40)).is_some());
        // The sender reads the answer, which is none of the application's datagrams.
        let mut sender = Layer::answering(identity, Version::One, interval);
        let rest = sender.open(&answer).unwrap().len() as u64;
        assert!(sender.is_answer(rest) && sender.answer(rest, at(60)).is_none());
        assert_eq!(sender.flowshare(), None, "no aggregation point has reported");
        assert_eq!(Layer::new(identity, Version::One).answer(1000, at(0)), None, "by default it does not");
    }
}
