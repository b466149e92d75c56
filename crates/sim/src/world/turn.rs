//! The turn of one end of a connection: it sends what it has to send, and says what the driver is to see to.

use crate::flow::Outlet;
use crate::packet::{Pool, SimPacket};
use weir_base::Time;
use weir_fabric::Fabric;
use weir_transport::{Counts, Endpoint};
use weir_workload::End;

/// What an end has to say when it has had its turn.
pub(super) struct Turn {
    /// When its timer is due.
    pub(super) due: Time,
    pub(super) news: News,
}

/// What the driver is to see to.
pub(super) enum News {
    Nothing,
    /// At a receiving end, everything that the sender had has arrived.
    Finished,
    /// At a sending end, its events so far.
    Counts(Counts),
}

/// An end sends what it has to send.
#[inline(always)]
pub(super) fn turn<E: Endpoint>(
    endpoint: &mut E,
    end: End,
    outlet: Option<&Outlet>,
    pool: &mut Pool,
    fabric: &mut Fabric<SimPacket>,
    now: Time,
) -> Turn {
    // Of the two ends the receiving one mostly has nothing to send.
    if let Some(outlet) = outlet
        && (end == End::Sender || !endpoint.is_quiet())
    {
        transmit(endpoint, outlet, pool, fabric, now);
    }
    let news = match end {
        End::Sender => News::Counts(endpoint.counts()),
        End::Receiver if endpoint.finished() => News::Finished,
        End::Receiver => News::Nothing,
    };
    Turn { due: endpoint.next_timer(), news }
}

/// Hands every packet that an end wants to send to the fabric.
#[inline(never)]
pub(super) fn transmit<E: Endpoint>(
    endpoint: &mut E,
    outlet: &Outlet,
    pool: &mut Pool,
    fabric: &mut Fabric<SimPacket>,
    now: Time,
) {
    while transmit_one(endpoint, outlet, pool, fabric, now) {
        if outlet.answers && endpoint.is_quiet() {
            return;
        }
    }
}

/// Hands the next packet to the fabric; answers whether there is one.
#[inline(always)]
pub(super) fn transmit_one<E: Endpoint>(
    endpoint: &mut E,
    outlet: &Outlet,
    pool: &mut Pool,
    fabric: &mut Fabric<SimPacket>,
    now: Time,
) -> bool {
    let Outlet { address, datagrams, exact, .. } = *outlet;
    let mut packet = pool.take(datagrams, fabric);
    let Some(ecn) = endpoint.transmit(packet.body_mut(), now) else {
        pool.take_back(packet);
        return false;
    };
    packet.address(ecn, address);
    if exact {
        fabric.inject_exact(address.from.into(), packet, now);
    } else {
        fabric.inject(address.from.into(), packet, now);
    }
    true
}
