//! A connection as one flow of an application of the Coordination Protocol: its packets begin with a CP header, outside of what protects them,
//! and leave at the rate that its aggregation point reports.

use super::{Connection, State};
use crate::guide::Guide;
use crate::sliq::flight::Reported;
use crate::sliq::send::Outgoing;
use weir_base::{Bytes, Time};
use weir_coord::header::LONGEST;
use weir_coord::scheme::Own;

/// What the connection follows, and what it says of itself.
#[derive(Debug)]
pub(super) struct Coordinated {
    guide: Guide,
    /// What the application writes: its size, and what of it is not taken yet.
    frame: u64,
    unwritten: u64,
}

impl Coordinated {
    pub(super) fn new(guide: Guide) -> Coordinated {
        Coordinated { guide, frame: 0, unwritten: 0 }
    }
}

impl Connection {
    /// Whether all of its packets are of one flow, although its streams may be several flows' of a lab.
    pub(crate) fn is_coordinated(&self) -> bool {
        self.coordinated.is_some()
    }

    /// What is reported at present, for its flight.
    pub(super) fn reported(&self) -> Option<Reported> {
        let guide = &self.coordinated.as_ref()?.guide;
        let window = guide.send_buffer(self.payload + self.overhead, self.rtt.smoothed());
        Some(Reported { rate: guide.rate(), window })
    }

    /// Its packets leave as is reported at present.
    pub(super) fn follow(&mut self) {
        if let Some(reported) = self.reported() {
            self.flights.iter_mut().for_each(|flight| flight.follow(reported));
        }
    }

    /// Bytes that were written and are not acknowledged.
    fn unsettled(&self) -> u64 {
        self.outgoing.values().map(Outgoing::unsettled).sum()
    }

    /// How much of so many bytes a stream of such segments may take: as for CP-RUDP, no more of it than is sent in one and a half round trips is
    /// neither waiting nor unacknowledged (equation 6.2). What is not all of the bytes are full segments.
    pub(super) fn may_write(&self, bytes: u64, segment: u32, unsettled: u64) -> u64 {
        let Some(Reported { window, .. }) = self.reported() else { return bytes };
        let room = window.get().saturating_sub(unsettled);
        if bytes <= room { bytes } else { room - room % u64::from(segment) }
    }

    /// The application has so much to write, of which so much was taken.
    pub(super) fn has_written(&mut self, bytes: u64, taken: u64, messages: bool) {
        let Some(coordinated) = &mut self.coordinated else { return };
        // It comes again with what is left of a stream's frame.
        if bytes != coordinated.unwritten {
            coordinated.frame = bytes;
        }
        coordinated.unwritten = if messages { 0 } else { bytes - taken };
    }

    /// What it says of itself.
    fn own(&self) -> Own {
        let Some(coordinated) = &self.coordinated else { return Own::default() };
        let left = coordinated.unwritten.saturating_add(self.unsettled());
        Own {
            frame: Bytes::new(coordinated.frame),
            left: Bytes::new(left),
            urgent: coordinated.guide.is_urgent() && left > 0,
        }
    }

    /// A packet leaves that stands in these bytes from `at` on: it gets its CP header.
    pub(crate) fn put_cp_header(&mut self, packet: &mut Vec<u8>, at: usize, now: Time) {
        let own = self.own();
        if let Some(Coordinated { guide, .. }) = &mut self.coordinated {
            packet.splice(at..at, [0; LONGEST].into_iter().take(guide.header_length()));
            guide.write(&own, &mut packet[at..], now);
        }
    }

    /// Appends a packet that asks the aggregation point for reports, if one is due. Answers whether it is.
    pub(crate) fn ask_point(&mut self, packet: &mut Vec<u8>, now: Time) -> bool {
        let (own, open) = (self.own(), self.state == State::Open);
        let coordinated = self.coordinated.as_mut().filter(|_| open);
        coordinated.is_some_and(|coordinated| coordinated.guide.refresh(&own, packet, now))
    }

    /// Takes the CP header of a packet that has arrived; answers its length, none where the packet is not for this flow.
    pub(crate) fn take_cp_header(&mut self, packet: &[u8], now: Time) -> Option<usize> {
        let Some(Coordinated { guide, .. }) = &mut self.coordinated else { return Some(0) };
        // Both ends speak one version: packets with a longer header than was reckoned with would not fit.
        let length = guide.takes(packet, now)?;
        self.follow();
        Some(length)
    }

    /// When [`Connection::on_report_timer`] is due.
    pub(super) fn reports_at(&self) -> Time {
        let coordinated = self.coordinated.as_ref().filter(|_| self.state == State::Open);
        coordinated.map_or(Time::NEVER, |coordinated| coordinated.guide.next_timer())
    }

    /// No report may have come for too long.
    pub(super) fn on_report_timer(&mut self, now: Time) {
        if let Some(coordinated) = &mut self.coordinated {
            coordinated.guide.on_timer(now);
            self.follow();
        }
    }

    /// What was reported, for the records.
    pub(super) fn report_state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.coordinated.iter().for_each(|coordinated| coordinated.guide.state(report));
    }
}
