//! What protects a node's packets and announcements against the nodes between: seals from edge to edge, and signatures.

use super::config::{Known, Plan};
use super::signing;
use crate::failure::Failure;
use std::collections::BTreeMap;
use weir_overlay::site::{Cover, Signature};
use weir_overlay::{Inner, NodeId};
use weir_sliq::envelope::Envelope;

/// Seals what programs send from the node where it enters to the node where it leaves, and signs what this node announces.
pub(super) struct Sealing<'a> {
    envelopes: BTreeMap<NodeId, Envelope>,
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
        let envelopes = others.map(envelope).collect::<Result<_, Failure>>()?;
        Ok(Sealing { envelopes, plan })
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
    fn seal(&mut self, to: NodeId, inner: &Inner, body: &mut Vec<u8>) -> bool {
        self.envelopes.get_mut(&to).is_some_and(|envelope| envelope.seal(&bound(inner), body))
    }
    fn open<'a>(&mut self, from: NodeId, inner: &Inner, body: &'a mut [u8]) -> Option<&'a [u8]> {
        self.envelopes.get_mut(&from)?.open(&bound(inner), body)
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
