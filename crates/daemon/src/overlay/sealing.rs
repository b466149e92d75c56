//! What protects a node's packets and announcements against the nodes between: seals from edge to edge, and signatures.

use super::config::{Known, Plan};
use super::signing;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weir_overlay::site::{Cover, Signature};
use weir_overlay::{Inner, Key, NodeId};
use weir_sliq::envelope::Envelope;

/// Seals what programs send from the node where it enters to the node where it leaves, and signs what this node announces.
pub(super) struct Sealing<'a> {
    envelopes: BTreeMap<NodeId, Envelope>,
    /// The own messages to groups, and those of other nodes; `None` and empty without a key for groups.
    to_groups: Option<Envelope>,
    from_groups: BTreeMap<NodeId, Envelope>,
    plan: &'a Plan,
}

impl Sealing<'_> {
    /// For the node of this plan, which has started in this epoch.
    ///
    /// # Errors
    /// The key of a node is no public key.
    pub(super) fn new(plan: &Plan, epoch: u32) -> Result<Sealing<'_>, Failure> {
        let others = plan.nodes.iter().filter(|(id, _)| **id != plan.id);
        let envelope = |(id, node): (&NodeId, &Known)| {
            let envelope = Envelope::between(&plan.keys.pair, &node.key.0, epoch).ok_or_else(|| {
                let help = "give what `weir overlay keygen` printed there";
                Failure::bad_input(format!("the key of node {:?} is no public key", node.name), help)
            })?;
            Ok((*id, envelope))
        };
        let envelopes = others.clone().map(envelope).collect::<Result<_, Failure>>()?;
        let (mut to_groups, mut from_groups) = (None, BTreeMap::new());
        if let Some(group) = &plan.groups.key {
            to_groups = Envelope::to_group(&group.pair, &plan.keys.public.0, epoch);
            let of =
                |(id, node): (&NodeId, &Known)| Some((*id, Envelope::from_group(&group.pair, &node.key.0)?));
            from_groups.extend(others.filter_map(of));
        }
        Ok(Sealing { envelopes, to_groups, from_groups, plan })
    }
}

/// The fields of a flow as they are authenticated.
fn bound(inner: &Inner) -> [u8; 14] {
    let mut bound = [0; 14];
    bound[..4].copy_from_slice(&inner.source.to_be_bytes());
    bound[4..8].copy_from_slice(&inner.destination.to_be_bytes());
    bound[8..10].copy_from_slice(&inner.source_port.to_be_bytes());
    bound[10..12].copy_from_slice(&inner.destination_port.to_be_bytes());
    (bound[12], bound[13]) = (inner.protocol, inner.dscp);
    bound
}

impl Cover for Sealing<'_> {
    fn seal(&mut self, to: Key, inner: &Inner, body: &mut Vec<u8>) -> bool {
        let envelope = match to {
            Key::Node(to) => self.envelopes.get_mut(&to),
            Key::Group(_) => self.to_groups.as_mut(),
        };
        envelope.is_some_and(|envelope| envelope.seal(&bound(inner), body))
    }
    fn open<'a>(&mut self, from: NodeId, inner: &Inner, body: &'a mut [u8]) -> Option<&'a [u8]> {
        let is_to_group = Ipv4Addr::from_bits(inner.destination).is_multicast();
        let envelopes = if is_to_group { &mut self.from_groups } else { &mut self.envelopes };
        envelopes.get_mut(&from)?.open(&bound(inner), body)
    }
    fn signs(&self) -> bool {
        true
    }
    fn sign(&mut self, announcement: &[u8]) -> Signature {
        self.plan.signing.sign(announcement)
    }
    fn verify(&mut self, origin: NodeId, announcement: &[u8], signature: &Signature) -> bool {
        self.plan.nodes.get(&origin).is_some_and(|node| signing::verify(&node.sign, announcement, signature))
    }
}
