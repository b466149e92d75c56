//! The turn of one end of a connection: it sends its packets, and reports events to the driver.

use super::bounds::MOST_IN_ONE_TURN;
use crate::flow::Outlet;
use crate::packet::{Pool, SimPacket};
use weir_base::Time;
use weir_endpoint::{Counts, Endpoint};
use weir_fabric::Fabric;
use weir_workload::End;

/// The result of an end's turn.
pub(super) struct Turn {
    /// When its timer is due.
    pub(super) due: Time,
    pub(super) news: News,
}

/// An event that the driver must handle.
pub(super) enum News {
    Nothing,
    /// At a receiving end: all data of the sender has arrived.
    Finished,
    /// At a sending end: the counts of its events have changed.
    Counts,
    /// It has sent too many packets at one instant, and has more.
    Endless,
}

/// Sends the packets that an end has to send.
#[inline(always)]
pub(super) fn turn<E: Endpoint>(
    endpoint: &mut E,
    end: End,
    told: &Counts,
    outlet: Option<&Outlet>,
    pool: &mut Pool,
    fabric: &mut Fabric<SimPacket>,
    now: Time,
) -> Turn {
    if let Some(outlet) = outlet
        && !endpoint.is_quiet()
        && !transmit(endpoint, outlet, pool, fabric, now)
    {
        return Turn { due: Time::NEVER, news: News::Endless };
    }
    let news = match end {
        End::Sender if endpoint.counts() != *told => News::Counts,
        End::Sender => News::Nothing,
        End::Receiver if endpoint.finished() => News::Finished,
        End::Receiver => News::Nothing,
    };
    Turn { due: endpoint.next_timer(), news }
}

/// Hands every packet that an end wants to send to the fabric. Returns `false` if they have no end.
#[inline(always)]
pub(super) fn transmit<E: Endpoint>(
    endpoint: &mut E,
    outlet: &Outlet,
    pool: &mut Pool,
    fabric: &mut Fabric<SimPacket>,
    now: Time,
) -> bool {
    let mut more = MOST_IN_ONE_TURN;
    while transmit_one(endpoint, outlet, pool, fabric, now) {
        more -= 1;
        if endpoint.is_quiet() || more == 0 {
            return more > 0;
        }
    }
    true
}

/// Hands the next packet to the fabric; returns whether there was one. A function of its own: compiled into the loop of [`transmit`], it
/// would have to prepare for all of its rare cases at every call.
#[inline(never)]
pub(super) fn transmit_one<E: Endpoint>(
    endpoint: &mut E,
    outlet: &Outlet,
    pool: &mut Pool,
    fabric: &mut Fabric<SimPacket>,
    now: Time,
) -> bool {
    let Outlet { address, datagrams, exact, .. } = outlet;
    let mut packet = pool.take(*datagrams, fabric);
    let Some(ecn) = endpoint.transmit(packet.body_mut(), now) else {
        pool.take_back(packet);
        return false;
    };
    packet.address(ecn, address);
    if *exact {
        fabric.inject_exact(address.from.into(), packet, now);
    } else {
        fabric.inject(address.from.into(), packet, now);
    }
    true
}
