//! The admission of a flow at the node where it enters. While the flow is not admitted its host keeps its packets: one waits there, and
//! the application's further datagrams are refused, so that nothing that was sent is dropped.

use super::{Carried, Carrier, Entering};
use weir_base::{Bytes, Random, Span, Time};
use weir_fabric::Wire;
use weir_overlay::admission::{Admission, Standing};
use weir_overlay::utility::Seen;
use weir_overlay::{Admitted, FlowAt, Key, Node};

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
    pub(super) admission: Admission,
    /// The depth that it saw last, and the most since the planner was told.
    pub(super) price: Bytes,
    pub(super) peak: Bytes,
    /// Its bin, and the set of flows that are on together or not at all.
    pub(super) to: Key,
    pub(super) coupled: Option<u32>,
    /// Whether its host may send.
    pub(super) is_open: bool,
    /// When it is looked at again; [`Time::NEVER`] while it is open and nothing is due.
    pub(super) next: Time,
}

impl Entry {
    pub(super) fn new<P: Wire>(flow: &Entering, seed: u64, node: &mut Node<Carried<P>, Carrier>) -> Entry {
        let random = Random::stream_of(seed, "admission", flow.flow.into());
        Entry {
            flow: flow.flow,
            counts: flow.counts.clone(),
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
    pub(super) fn look<P: Wire>(&mut self, node: &Node<Carried<P>, Carrier>, now: Time) -> bool {
        let was_open = self.is_open;
        if !self.update(node, now) {
            self.next = now + UNREACHABLE;
            return false;
        }
        self.settle(now);
        self.is_open && !was_open
    }

    /// Its host has sent a packet.
    pub(super) fn has_sent<P: Wire>(&mut self, node: &Node<Carried<P>, Carrier>, bytes: u32, now: Time) {
        self.update(node, now);
        self.admission.admitted(Bytes::new(bytes.into()), now);
        self.settle(now);
    }

    /// Tells its admission what it sees. Returns false if no price is known.
    fn update<P: Wire>(&mut self, node: &Node<Carried<P>, Carrier>, now: Time) -> bool {
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

    /// The rate at which it is admitted, in bits per second.
    pub(super) fn rate(&self) -> u64 {
        self.admission.rate().bits_per_sec()
    }
}
