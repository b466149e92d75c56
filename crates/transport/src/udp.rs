//! UDP (RFC 768): each write is a datagram that leaves at once, each arriving datagram is read once. There are no acknowledgements.

use crate::{End, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Ecn, Rate, Time};
use weir_coord::layer::Layer;
use weir_endpoint::{Body, Datagram, Setup};
use weir_endpoint::{Endpoint, Message, Part, Read, Stream};

/// UDP has no parameters of its own: the workload sets the ECN codepoint of datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {}

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        datagrams
    }
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        let most = if setup.admitted { 1 } else { usize::MAX };
        [Socket { most, ..Socket::new(setup.ecn) }, Socket::new(setup.ecn)].map(End::Udp)
    }
}

/// A UDP socket.
#[derive(Debug)]
pub struct Socket {
    /// The layer that writes and reads a header between the application and the socket; `None` without a header.
    layer: Option<Layer>,
    /// The codepoint of each datagram that it sends.
    ecn: Ecn,
    /// Datagrams that are written and not yet sent.
    outgoing: VecDeque<Datagram>,
    /// The most of them; further ones are refused, as by a socket that does not block.
    most: usize,
    /// Datagrams that have arrived and are not yet read, without the layer's header.
    arrived: VecDeque<Datagram>,
    /// Datagrams whose buffers are reused.
    spare: Vec<Datagram>,
}

impl Socket {
    /// A socket that sends datagrams with this codepoint.
    pub fn new(ecn: Ecn) -> Socket {
        Socket::behind(None, ecn)
    }

    /// A socket behind a layer.
    pub(crate) fn behind(layer: Option<Layer>, ecn: Ecn) -> Socket {
        Socket {
            layer,
            ecn,
            outgoing: VecDeque::new(),
            most: usize::MAX,
            arrived: VecDeque::new(),
            spare: Vec::new(),
        }
    }
}

/// A datagram in a spare buffer, or in a new one if there is none.
fn buffered(spare: &mut Vec<Datagram>, head: &[u8], bytes: u32) -> Datagram {
    let mut datagram = spare.pop().unwrap_or_default();
    datagram.set(head, bytes);
    datagram
}

impl Endpoint for Socket {
    fn open(&mut self, _: Time) {}

    fn receive(&mut self, body: &Body, _: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        let Some(layer) = &mut self.layer else {
            self.arrived.push_back(buffered(&mut self.spare, &datagram.head, datagram.payload()));
            return;
        };
        let Some(head) = layer.open(&datagram.head) else { return };
        let bytes = datagram.payload() - (datagram.head.len() - head.len()) as u32;
        if let Some(answer) = layer.answer(bytes.into(), now) {
            self.outgoing.push_back(buffered(&mut self.spare, answer, answer.len() as u32));
        }
        if !layer.is_answer(bytes.into()) {
            self.arrived.push_back(buffered(&mut self.spare, head, bytes));
        }
    }

    fn transmit(&mut self, into: &mut Body, _: Time) -> Option<Ecn> {
        let mut datagram = self.outgoing.pop_front()?;
        std::mem::swap(into.datagram_mut(), &mut datagram);
        self.spare.push(datagram);
        Some(self.ecn)
    }

    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    fn on_timer(&mut self, _: Time) {}

    fn is_quiet(&self) -> bool {
        self.outgoing.is_empty()
    }

    fn write(&mut self, _: Stream, message: Message<'_>, _: Time) -> u64 {
        let Ok(bytes) = u32::try_from(message.bytes) else { return 0 };
        if self.outgoing.len() >= self.most {
            return 0;
        }
        let head = match &mut self.layer {
            Some(layer) => layer.seal(message.head),
            None => message.head,
        };
        self.outgoing.push_back(buffered(&mut self.spare, head, bytes));
        message.bytes
    }

    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        while let Some(datagram) = self.arrived.pop_front() {
            let (bytes, head) = (datagram.payload().into(), &datagram.head[..]);
            to(Stream(0), Read { bytes, head, due: None });
            self.spare.push(datagram);
        }
    }

    fn close(&mut self, _: Option<Stream>, _: Time) {}

    fn is_open(&self) -> bool {
        true
    }

    fn finished(&self) -> bool {
        false
    }

    fn all_acknowledged(&self) -> bool {
        self.outgoing.is_empty()
    }

    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        if let Some(rate) = self.sending_rate(Time::ZERO) {
            report(Part::Controller(0), "reported_rate_mbps", rate.mbit_per_sec());
        }
    }

    fn sending_rate(&self, _: Time) -> Option<Rate> {
        self.layer.as_ref()?.flowshare()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Time;

    #[test]
    fn a_host_that_is_not_admitted_keeps_one_datagram_and_refuses_the_next() {
        let mut here = Socket { most: 1, ..Socket::new(Ecn::NotEct) };
        let written =
            [1000, 1000].map(|bytes| here.write(Stream(0), Message { bytes, head: b"" }, Time::ZERO));
        assert_eq!(written, [1000, 0]);
        let mut body = Body::Segment(Default::default());
        assert_eq!(here.transmit(&mut body, Time::ZERO), Some(Ecn::NotEct));
        assert_eq!(here.write(Stream(0), Message { bytes: 1000, head: b"" }, Time::ZERO), 1000);
    }

    #[test]
    fn a_datagram_leaves_at_once_and_is_read_once() {
        let (mut here, mut there) = (Socket::new(Ecn::Ect1), Socket::new(Ecn::NotEct));
        let mut body = Body::Segment(Default::default());
        assert_eq!(here.transmit(&mut body, Time::ZERO), None);
        assert_eq!(here.write(Stream(0), Message { bytes: 1000, head: b"first" }, Time::ZERO), 1000);
        assert!(!here.is_quiet());
        assert_eq!(here.transmit(&mut body, Time::ZERO), Some(Ecn::Ect1));
        assert_eq!(body.length(), 1008);
        there.receive(&body, Ecn::Ect1, Time::ZERO);
        let mut read = vec![];
        there.read(&mut |_, message| read.push((message.bytes, message.head.to_vec())));
        there.read(&mut |_, message| read.push((message.bytes, message.head.to_vec())));
        assert_eq!(read, [(1000, b"first".to_vec())]);
        assert!(here.is_quiet() && here.all_acknowledged());
    }
}
