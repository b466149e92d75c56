//! A node whose links to its neighbours are connections: what has come over them, what leaves, and what the node is told of them.

use super::cat::Carrier;
use super::hop::Arrived;
use super::{Carried, OverlayNode};
use weir_base::{Ecn, Time};
use weir_fabric::{NO_FLOW, Net, Rewrite, Wire};
use weir_overlay::message::header::LONGEST;

impl<P: Wire> OverlayNode<P> {
    /// When a connection has something to do.
    pub(super) fn hops_due(&self) -> Time {
        self.hops.iter().map(super::Hop::next_timer).min().unwrap_or(Time::NEVER)
    }

    /// Wakes the connections whose time has come.
    pub(super) fn wake_hops(&mut self, now: Time) {
        self.hops.iter_mut().for_each(|hop| hop.on_timer(now));
    }

    /// A packet of a connection has arrived: the node is handed what it has completed.
    pub(super) fn hear(&mut self, port: usize, net: &mut Net<'_, P>) {
        let mut arrived = Vec::new();
        self.hops[port].read(&mut arrived);
        for one in arrived {
            match one {
                Arrived::Signal(datagram) => {
                    self.call_once(0, net, |node, now, out| node.message(port, &datagram, now, out));
                }
                Arrived::Packet(notes, head, zeros) => {
                    let at = net.node();
                    let bare = Rewrite {
                        flow: NO_FLOW,
                        from: at,
                        to: at,
                        ecn: Ecn::NotEct,
                        cut: 0,
                        put: &head,
                        zeros,
                    };
                    let Some(mut packet) = net.build(&bare) else { continue };
                    packet.enter(notes.entered);
                    packet.waited(notes.waits);
                    let header = &head[..head.len().min(LONGEST)];
                    let carried = Carried::new(packet, head.len() as u32 + zeros);
                    self.call_once(1, net, |node, now, out| node.packet(port, header, carried, now, out));
                }
            }
        }
        self.call(0, net, |node, now, out| node.refill(now, out));
    }

    /// Sends what connections have to send, and tells the node how they are. Returns whether one of them has sent what waited, so that it
    /// may take more.
    pub(super) fn flush(&mut self, net: &mut Net<'_, P>) -> bool {
        let (now, at) = (net.now(), net.node());
        let mut has_sent = false;
        for (port, hop) in self.hops.iter_mut().enumerate() {
            let neighbour = &self.neighbours[port];
            while hop.transmit(now) {
                let (put, zeros) = (&hop.packet.head[..], hop.packet.zeros);
                let whole = Rewrite {
                    flow: NO_FLOW,
                    from: at,
                    to: neighbour.at,
                    ecn: Ecn::NotEct,
                    cut: 0,
                    put,
                    zeros,
                };
                if let Some(packet) = net.build(&whole) {
                    net.send(packet, neighbour.link);
                }
            }
            let reported = hop.reported(now);
            let told =
                self.node.as_mut().and_then(|node| node.replace_cat(port, Carrier::Reported(reported)));
            if let Some(Carrier::Reported(told)) = told {
                has_sent |= reported.waiting < told.waiting || reported.is_up && !told.is_up;
            }
        }
        has_sent
    }
}
