//! Segments between the TCP proxies of two sites. They are packets of flows, as datagrams of programs are, but wait at their proxy for admission.

use super::datagram::PROTOCOL_TCP;
use super::flows::Waiting;
use super::{Outside, Site};
use crate::admission::Terms;
use crate::cat::Cat;
use crate::context::{CONTROL, Inner};
use crate::proxy::tcp::Admission;
use crate::site::Cover;
use weir_base::{Bytes, Time};

/// The flow of a stream's segments in one direction.
pub fn flow(source: (u32, u16), destination: (u32, u16)) -> Inner {
    let ((source, source_port), (destination, destination_port)) = (source, destination);
    Inner { source, destination, source_port, destination_port, protocol: PROTOCOL_TCP, dscp: 0 }
}

/// The flow in the other direction.
pub fn back(flow: &Inner) -> Inner {
    self::flow((flow.destination, flow.destination_port), (flow.source, flow.source_port))
}

/// The flow of those segments that only answer: they go before all other packets, and wait for no admission.
fn answers(flow: &Inner) -> Inner {
    Inner { dscp: CONTROL, ..*flow }
}

/// Whether packets of this flow are segments between proxies.
pub(super) fn is_segment(inner: &Inner) -> bool {
    inner.protocol == PROTOCOL_TCP
}

/// Whether packets of this flow only answer a stream.
pub(super) fn only_answers(inner: &Inner) -> bool {
    is_segment(inner) && inner.dscp == CONTROL
}

/// What the flow of a stream asks for: a stream has no deadline, since all of it must arrive.
pub(super) fn terms(inner: &Inner, of_service: Terms) -> Terms {
    if !is_segment(inner) {
        return of_service;
    }
    if only_answers(inner) {
        return Terms::elastic(Default::default());
    }
    Terms { deadline: None, ..of_service }
}

impl<C: Cat, S: Cover> Site<C, S> {
    /// What admission says of a stream's segments, by their [`flow`]. The flow is opened if it is new.
    pub fn admission(&mut self, flow: &Inner, now: Time, outside: &mut impl Outside) -> Admission {
        let at = self.flow_of(flow, now, outside);
        let Some((at, entry)) = at.and_then(|at| Some((at, self.edge.entry(at)?))) else {
            return Admission { is_open: false, rate: weir_base::Rate::from_bits_per_sec(0), waits: false };
        };
        let admission = Admission {
            is_open: entry.is_open(),
            rate: self.edge.rate(at),
            waits: self.edge.price(at) > Bytes::ZERO,
        };
        if let Some(flow) = self.flows.get_mut(at) {
            flow.used = now;
        }
        admission
    }

    /// A proxy sends a segment of a stream. One with data must have been admitted; one without waits for nothing.
    pub fn send_segment(
        &mut self,
        flow: &Inner,
        segment: &[u8],
        has_data: bool,
        now: Time,
        outside: &mut impl Outside,
    ) {
        let inner = if has_data { *flow } else { answers(flow) };
        let Some(at) = self.flow_of(&inner, now, outside) else { return };
        let (Some(flow), Some(entry)) = (self.flows.get_mut(at), self.edge.entry(at)) else { return };
        flow.used = now;
        let Some(body) = self.exit.seal(entry.to(), &inner, segment) else { return };
        self.send(at, Waiting { body, ecn: 0, checksum: 0 }, now, outside);
    }

    /// Moves the flows of streams that may send from now on to `into`.
    pub fn take_opened(&mut self, into: &mut Vec<Inner>) {
        into.append(&mut self.opened_streams);
    }

    /// A stream has ended, and its flows with it.
    pub fn close_stream(&mut self, flow: &Inner) {
        for inner in [*flow, answers(flow)] {
            if let Some(at) = self.flows.at(&inner) {
                self.close(at);
            }
        }
    }
}
