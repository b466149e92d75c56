//! All flows of a capture, in memory that does not grow with the capture: a table of flows up to a given number, each of a bounded size.

use crate::flow::{Flow, Key};
use crate::packet::{Packet, Skipped};
use crate::rate::{Period, Periods, elapsed};
use crate::stamped::Stamped;
use crate::{Capture, Frame};
use std::collections::HashMap;
use std::io::{self, Read};
use weir_base::{Ecn, Span, Time};

/// What an analysis is to do.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Most flows that are told apart; packets of further ones are counted together.
    pub most_flows: usize,
    /// The period over which peak rates and the series are taken; not zero.
    pub period: Span,
    /// Whether the identifications of IPv4 are the report of a queue. They tell nothing of a flow then.
    pub is_stamped: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { most_flows: 100_000, period: Span::from_secs(1), is_stamped: false }
    }
}

/// The state of an analysis, which takes packets in the order of the capture.
#[derive(Debug)]
pub struct Analysis {
    pub(crate) settings: Settings,
    pub(crate) flows: Vec<Flow>,
    latest: HashMap<Key, usize>,
    pub(crate) periods: Periods<Period>,
    pub(crate) skipped: [u64; Skipped::ALL.len()],
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
    pub(crate) beyond_most_flows: u64,
    /// Packets with an earlier time than the packet before them.
    pub(crate) out_of_order: u64,
    pub(crate) first: Option<Time>,
    pub(crate) last: Time,
    newest: Time,
    pub(crate) stamped: Stamped,
}

impl Analysis {
    /// An analysis of nothing so far.
    pub fn new(settings: Settings) -> Analysis {
        let settings = Settings { period: settings.period.max(Span::from_nanos(1)), ..settings };
        Analysis {
            settings,
            flows: vec![],
            latest: HashMap::new(),
            periods: Periods::new(settings.period),
            skipped: Default::default(),
            packets: 0,
            ip_bytes: 0,
            beyond_most_flows: 0,
            out_of_order: 0,
            first: None,
            last: Time::ZERO,
            newest: Time::ZERO,
            stamped: Stamped::default(),
        }
    }

    /// Takes all packets of a capture that are left.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn read<R: Read>(&mut self, capture: &mut Capture<R>) -> io::Result<()> {
        while let Some(frame) = capture.next_frame()? {
            self.frame(&frame);
        }
        Ok(())
    }

    /// Takes a packet.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        let start = *self.first.get_or_insert(frame.at);
        self.out_of_order += u64::from(frame.at < self.newest);
        self.newest = frame.at;
        self.last = self.last.max(frame.at);
        match Packet::of(frame) {
            Ok(mut packet) => {
                if self.settings.is_stamped {
                    self.stamped.count(&packet);
                    packet.identification = None;
                }
                self.packet(start, frame.at, &packet);
            }
            Err(why) => self.skipped[why as usize] += 1,
        }
    }

    fn packet(&mut self, start: Time, at: Time, packet: &Packet) {
        self.packets += 1;
        self.ip_bytes += u64::from(packet.length);
        let since_start = elapsed(start, at);
        let cell = self.periods.at(since_start);
        cell.packets += 1;
        cell.ip_bytes += u64::from(packet.length);
        cell.marks += u64::from(packet.ecn == Ecn::Ce);
        let (key, is_back) = Key::of(packet);
        let sender = usize::from(is_back);
        let known = self.latest.get(&key).copied();
        let known = known.filter(|&index| !self.flows[index].is_ended_by(packet, sender));
        let index = match known {
            Some(index) => index,
            None if self.flows.len() < self.settings.most_flows => {
                self.flows.push(Flow::new(key, packet, at, sender));
                self.latest.insert(key, self.flows.len() - 1);
                self.flows.len() - 1
            }
            None => {
                self.beyond_most_flows += 1;
                return;
            }
        };
        let flow = &mut self.flows[index];
        let before = flow.directions[sender].retransmissions();
        flow.count(at, packet, sender);
        let again = flow.directions[sender].retransmissions() - before;
        flow.peaks[sender].count(since_start.as_nanos() / self.settings.period.as_nanos(), packet.length);
        if again > 0 {
            self.periods.at(since_start).retransmissions += again;
        }
    }
}
