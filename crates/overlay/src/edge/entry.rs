//! The admission of a flow at the node where it enters. While the flow is not admitted its driver keeps its packets.

use super::Entering;
use crate::admission::{Admission, Standing};
use crate::cat::Cat;
use crate::node::{Admitted, FlowAt, Node};
use crate::packet::{Body, Key};
use crate::utility::Seen;
use weir_base::{Bytes, Random, Span, Time};

/// The price of a flow that waits is looked at this often (digest X 1.5).
const REFRESH: Span = Span::from_millis(1);
/// The same while none of its receivers can be reached.
const UNREACHABLE: Span = Span::from_millis(10);

/// A flow that enters here.
#[derive(Debug)]
pub struct Entry {
    /// The node's name for it.
    pub at: FlowAt,
    /// What all its packets have in common.
    pub admitted: Admitted,
    /// Its admission.
    pub admission: Admission,
    /// The depth that it saw last, and the most since the planner was told.
    pub(super) price: Bytes,
    pub(super) peak: Bytes,
    /// Its bin, and the set of flows that are on together or not at all.
    pub(super) to: Key,
    pub(super) coupled: Option<u32>,
    /// Whether it may send.
    pub(super) is_open: bool,
    /// When it is looked at again; [`Time::NEVER`] while it is open and nothing is due.
    pub(super) next: Time,
}

impl Entry {
    pub(super) fn new<B: Body, C: Cat>(flow: &Entering, seed: u64, node: &mut Node<B, C>) -> Entry {
        let random = Random::stream_of(seed, "admission", flow.number);
        Entry {
            at: node.open_flow(flow.to, flow.interested, flow.is_sensitive, flow.inner),
            admitted: Admitted { deadline: flow.terms.deadline, ecn: 0, checksum: 0 },
            admission: Admission::new(flow.terms.clone(), random),
            price: Bytes::ZERO,
            peak: Bytes::ZERO,
            to: flow.to,
            coupled: flow.coupled,
            is_open: false,
            next: flow.terms.begins,
        }
    }

    /// Its time has come. Returns whether it has opened.
    pub(super) fn look<B: Body, C: Cat>(&mut self, node: &Node<B, C>, now: Time) -> bool {
        let was_open = self.is_open;
        if !self.update(node, now) {
            self.next = now + UNREACHABLE;
            return false;
        }
        self.settle(now);
        self.is_open && !was_open
    }

    /// It has sent a packet.
    pub(super) fn has_sent<B: Body, C: Cat>(&mut self, node: &Node<B, C>, bytes: u32, now: Time) {
        self.update(node, now);
        self.admission.admitted(Bytes::new(bytes.into()), now);
        self.settle(now);
    }

    /// Tells its admission what it sees. Returns false if no price is known.
    fn update<B: Body, C: Cat>(&mut self, node: &Node<B, C>, now: Time) -> bool {
        let (Some(k), Some(price)) = (node.k(), node.price(self.at)) else { return false };
        self.price = price;
        self.peak = self.peak.max(price);
        self.admission.update(&Seen { k, depth: price, loss: node.loss(self.at) }, now);
        true
    }

    /// Opens or closes it after its admission.
    pub(super) fn settle(&mut self, now: Time) {
        self.is_open = self.admission.is_open(now);
        let waits = !self.is_open && self.admission.standing() == Standing::On;
        let opens = if waits { self.admission.next_time().min(now + REFRESH) } else { Time::NEVER };
        self.next = opens.min(self.admission.due()).max(now);
    }

    /// Whether it may send.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The depth that it saw last.
    pub fn price(&self) -> Bytes {
        self.price
    }

    /// Where its packets go.
    pub fn to(&self) -> Key {
        self.to
    }
}
