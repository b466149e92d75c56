//! The admission of a flow at the node where it enters. While the flow is not admitted its host keeps its packets: one waits there, and
//! the application's further datagrams are refused, so that nothing that was sent is dropped.

use super::{Carried, Carrier, Entering};
use weir_base::{Bytes, Span, Time};
use weir_fabric::Wire;
use weir_overlay::admission::Admission;
use weir_overlay::{Admitted, FlowAt, Node};

/// The price of a flow that waits is looked at this often (digest X 1.5).
const REFRESH: Span = Span::from_millis(1);
/// The same while none of its receivers can be reached.
const UNREACHABLE: Span = Span::from_millis(10);

/// A flow that enters here.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) flow: u32,
    pub(super) counts: Vec<u32>,
    pub(super) at: FlowAt,
    /// What all its packets have in common.
    pub(super) admitted: Admitted,
    admission: Admission,
    /// Whether its host may send.
    pub(super) is_open: bool,
    /// When it is looked at again; [`Time::NEVER`] while it is open.
    pub(super) next: Time,
}

impl Entry {
    pub(super) fn new<P: Wire>(flow: &Entering, node: &mut Node<Carried<P>, Carrier>) -> Entry {
        Entry {
            flow: flow.flow,
            counts: flow.counts.clone(),
            at: node.open_flow(flow.to, flow.interested, flow.is_sensitive, flow.inner),
            admitted: Admitted { deadline: flow.deadline, ecn: 0, checksum: 0 },
            admission: Admission::new(flow.log, Time::ZERO),
            is_open: false,
            next: Time::ZERO,
        }
    }

    /// Its time has come. Returns whether it has opened.
    pub(super) fn look<P: Wire>(&mut self, node: &Node<Carried<P>, Carrier>, now: Time) -> bool {
        let (Some(k), Some(price)) = (node.k(), node.price(self.at)) else {
            self.next = now + UNREACHABLE;
            return false;
        };
        self.admission.update(k, price, now);
        self.settle(now);
        self.is_open
    }

    /// Its host has sent a packet.
    pub(super) fn has_sent<P: Wire>(&mut self, node: &Node<Carried<P>, Carrier>, bytes: u32, now: Time) {
        if let (Some(k), Some(price)) = (node.k(), node.price(self.at)) {
            self.admission.update(k, price, now);
        }
        self.admission.admitted(Bytes::new(bytes.into()), now);
        self.settle(now);
    }

    fn settle(&mut self, now: Time) {
        self.is_open = self.admission.is_open(now);
        let next = self.admission.next_time().min(now + REFRESH).max(now);
        self.next = if self.is_open { Time::NEVER } else { next };
    }

    /// The rate at which it is admitted, in bits per second.
    pub(super) fn rate(&self) -> u64 {
        self.admission.rate().bits_per_sec()
    }
}
