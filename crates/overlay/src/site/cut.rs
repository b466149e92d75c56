//! What a site does with datagrams in parts: it cuts them, sends their repairs, and lets those leave that are whole.

use super::datagram::{Fate, Read};
use super::exit::Exit;
use super::flows::Waiting;
use super::parts::{Whole, flow, joined, split};
use super::service::service_of;
use super::{Cover, Outside, Service, Site};
use crate::cat::Cat;
use crate::context::Inner;
use crate::packet::Flow;
use crate::proxy::udp::Code;
use crate::proxy::udp::sending::Sending;
use weir_base::{Bytes, Time};

impl<S: Cover> Exit<S> {
    /// A part of a datagram of the flow `whole` has come for here, in a packet of `flow`. What is whole with it leaves.
    pub(super) fn part(
        &mut self,
        (flow, whole): (Flow, Inner),
        part: (&[u8], Fate, Option<Time>),
        now: Time,
        outside: &mut impl Outside,
    ) {
        let (mut incoming, code) = (std::mem::take(&mut self.incoming), self.code);
        incoming.part((flow, whole), part, code, now, |datagram| self.leave_whole(datagram, outside));
        self.incoming = incoming;
    }

    /// Datagrams that have waited for their predecessors for long enough leave.
    pub(super) fn release(&mut self, now: Time, outside: &mut impl Outside) {
        let mut incoming = std::mem::take(&mut self.incoming);
        incoming.on_timer(now, |datagram| self.leave_whole(datagram, outside));
        self.incoming = incoming;
    }

    fn leave_whole(&mut self, (whole, fate, joined): Whole<'_>, outside: &mut impl Outside) {
        match split(whole, joined) {
            Some((body, checksum)) => self.write(whole, Fate { checksum, ..fate }, body, outside),
            None => self.counts.malformed += 1,
        }
    }
}

impl<C: Cat, S: Cover> Site<C, S> {
    /// The flow in which a datagram is carried: that of parts, if its service wants that, or it is too long.
    pub(super) fn carried_as(&self, read: &Read<'_>) -> Inner {
        let length = Bytes::new(read.body.len() as u64);
        let services = &self.config.services;
        let is_usual = |service: &Service| !service.is_proxied() && service.chunk.is_none();
        if length <= self.config.longest && services.iter().all(is_usual) {
            return read.inner;
        }
        let service = service_of(services, &read.inner).map(|at| &services[at]);
        let most = service.and_then(|service| service.chunk).unwrap_or(Bytes::new(u64::MAX));
        let is_cut = length > most.min(self.config.longest);
        if is_cut || service.is_some_and(Service::is_proxied) { flow(&read.inner) } else { read.inner }
    }

    /// Cuts a datagram into parts, which wait for their admission.
    pub(super) fn cut(&mut self, at: usize, read: &Read<'_>, now: Time) {
        let mut whole = std::mem::take(&mut self.exit.whole);
        joined(read, &mut whole);
        if read.ecn == 0 {
            self.parts(at, 0, |sending, code, send| sending.packet(&whole, code, now, send));
        } else {
            // A packet has one ECN field, so that a marked datagram is joined to no other one.
            self.parts(at, 0, |sending, code, send| {
                sending.flush(code, now, send);
                true
            });
            self.parts(at, read.ecn, |sending, code, send| sending.packet_apart(&whole, code, now, send));
        }
        self.exit.whole = whole;
    }

    /// Sends what has waited for long enough: repairs of groups, and datagrams for others to be joined to.
    pub(super) fn repair(&mut self, now: Time, outside: &mut impl Outside) {
        while let Some(at) = self.flows.repairs.pop(now) {
            self.parts(at, 0, |sending, code, send| {
                sending.on_timer(code, now, send);
                true
            });
            self.send_waiting(at, now, outside);
        }
    }

    /// Lets the parts wait that `work` makes, which says whether it could. They have this ECN field.
    fn parts(
        &mut self,
        at: usize,
        ecn: u8,
        work: impl FnOnce(&mut Sending, &dyn Code, &mut dyn FnMut(&[u8])) -> bool,
    ) {
        let (Some(flow), Some(entry)) = (self.flows.get_mut(at), self.edge.entry(at)) else { return };
        let Some(mut sending) = flow.sending.take() else { return };
        let (exit, to, inner) = (&mut self.exit, entry.to(), *flow.inner());
        let fits = work(&mut sending, self.config.code, &mut |part| {
            let Some(body) = exit.seal(to, &inner, part) else { return };
            if let Some(overflow) = flow.push(Waiting { body, ecn, checksum: 0 }) {
                exit.counts.overflowed += 1;
                exit.keep(overflow.body);
            }
        });
        exit.counts.too_long += u64::from(!fits);
        let closes = sending.next_time();
        flow.sending = Some(sending);
        self.flows.repairs.set(at, closes);
    }
}
