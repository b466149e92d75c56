//! A connection as one flow of an application of the Coordination Protocol: its packets begin with a CP header, which precedes the sealed
//! bytes, and leave at the rate that its aggregation point reports.

use super::{Connection, State};
use crate::flight::Reported;
use crate::send::Outgoing;
use weir_base::{Bytes, Time};
use weir_coord::guide::Guide;
use weir_coord::header::LONGEST;
use weir_coord::scheme::Own;

/// The reported rate that the connection follows, and the application's backlog that it reports.
#[derive(Debug)]
pub(super) struct Coordinated {
    guide: Guide,
    /// The application's frame in bytes, and how many of these are not written yet.
    frame: u64,
    unwritten: u64,
}

impl Coordinated {
    pub(super) fn new(guide: Guide) -> Coordinated {
        Coordinated { guide, frame: 0, unwritten: 0 }
    }
}

impl Connection {
    /// Whether all of its packets belong to one flow of an application, although its streams may be several flows of a lab.
    pub(crate) fn is_coordinated(&self) -> bool {
        self.coordinated.is_some()
    }

    /// The rate and window reported at present, for its flight; `None` without coordination.
    pub(super) fn reported(&self) -> Option<Reported> {
        let guide = &self.coordinated.as_ref()?.guide;
        let window = guide.send_buffer(self.payload + self.overhead, self.rtt.smoothed());
        Some(Reported { rate: guide.rate(), window })
    }

    /// Passes the rate reported at present to its flight.
    pub(super) fn follow(&mut self) {
        if let Some(reported) = self.reported() {
            self.flights.iter_mut().for_each(|flight| flight.follow(reported));
        }
    }

    /// Bytes that were written and are not acknowledged.
    fn unsettled(&self) -> u64 {
        self.outgoing.values().map(Outgoing::unsettled).sum()
    }

    /// How many of `bytes` a stream with segments of `segment` bytes may take. As for CP-RUDP, a stream holds at most what is sent in one
    /// and a half round trips (equation 6.2). Unless all bytes fit, the result is a multiple of `segment`.
    pub(super) fn may_write(&self, bytes: u64, segment: u32, unsettled: u64) -> u64 {
        let Some(Reported { window, .. }) = self.reported() else { return bytes };
        let room = window.get().saturating_sub(unsettled);
        if bytes <= room { bytes } else { room - room % u64::from(segment) }
    }

    /// The application has offered `bytes` to write, of which `taken` were accepted.
    pub(super) fn has_written(&mut self, bytes: u64, taken: u64, messages: bool) {
        let Some(coordinated) = &mut self.coordinated else { return };
        // An application offers the rest of a stream's frame again.
        if bytes != coordinated.unwritten {
            coordinated.frame = bytes;
        }
        coordinated.unwritten = if messages { 0 } else { bytes - taken };
    }

    /// The flow's state for the CP header.
    fn own(&self) -> Own {
        let Some(coordinated) = &self.coordinated else { return Own::default() };
        let left = coordinated.unwritten.saturating_add(self.unsettled());
        Own {
            frame: Bytes::new(coordinated.frame),
            left: Bytes::new(left),
            urgent: coordinated.guide.is_urgent() && left > 0,
        }
    }

    /// Inserts the CP header of a packet that leaves, which begins at `at` in these bytes.
    pub(crate) fn put_cp_header(&mut self, packet: &mut Vec<u8>, at: usize, now: Time) {
        let own = self.own();
        if let Some(Coordinated { guide, .. }) = &mut self.coordinated {
            packet.splice(at..at, [0; LONGEST].into_iter().take(guide.header_length()));
            guide.write(&own, &mut packet[at..], now);
        }
    }

    /// Appends a packet that asks the aggregation point for reports, if one is due. Returns whether it did.
    pub(crate) fn ask_point(&mut self, packet: &mut Vec<u8>, now: Time) -> bool {
        let (own, open) = (self.own(), self.state == State::Open);
        let coordinated = self.coordinated.as_mut().filter(|_| open);
        coordinated.is_some_and(|coordinated| coordinated.guide.refresh(&own, packet, now))
    }

    /// Reads the CP header of a packet that has arrived and returns its length; `None` if the packet is not for this flow.
    pub(crate) fn take_cp_header(&mut self, packet: &[u8], now: Time) -> Option<usize> {
        let Some(Coordinated { guide, .. }) = &mut self.coordinated else { return Some(0) };
        // Both ends use one version: packets with a longer header than expected would not fit.
        let length = guide.takes(packet, now)?;
        self.follow();
        Some(length)
    }

    /// When [`Connection::on_report_timer`] or [`Connection::ask_point`] is due.
    pub(super) fn reports_at(&self) -> Time {
        let coordinated = self.coordinated.as_ref().filter(|_| self.state != State::Over);
        let open = self.state == State::Open;
        coordinated.map_or(Time::NEVER, |coordinated| coordinated.guide.next_timer(open))
    }

    /// Halves the rate if no report has come for too long.
    pub(super) fn on_report_timer(&mut self, now: Time) {
        if let Some(coordinated) = &mut self.coordinated {
            coordinated.guide.on_timer(now);
            self.follow();
        }
    }

    /// The reported values, for the records.
    pub(super) fn report_state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.coordinated.iter().for_each(|coordinated| coordinated.guide.state(report));
    }
}
