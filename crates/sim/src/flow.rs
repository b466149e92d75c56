//! One flow: the addresses of its hosts, and the two ends of its connection, which are its application's sockets.

use crate::packet::FlowAddress;
use weir_base::Time;
use weir_endpoint::{Counts, Endpoint};
use weir_engine::EndSocket;
use weir_plan::{Card, Pair, Run};
use weir_workload::{End, Sockets};

/// A UDP header (RFC 768).
const UDP_HEADER: u64 = 8;

/// Timers of a flow: those of its sending and its receiving end, by `End as usize`, and the application's.
pub(crate) const TIMERS: usize = 3;
pub(crate) const APPLICATION: usize = 2;

/// A flow of the run.
pub(crate) struct Flow {
    /// How packets of its two ends leave their hosts: the sender's, then the receiver's.
    outlets: [Outlet; 2],
    /// Index of the application that drives it, in the world's `driven`.
    pub(crate) application: u32,
    /// Whether the application is to be asked when an end has moved, for each of the two.
    asks: [bool; 2],
    /// Whether nothing but an end's own packets and timer depends on its moves, for each of the two: no application is to be asked, no
    /// other flow shares its connection, and its packets leave by no card.
    alone: [bool; 2],
    /// Whether it is one of many flows with random arrivals: then its connection is dropped when it is complete.
    pub(crate) random_arrivals: bool,
    /// The card of its sending host, with the flow's backlog in it; `None` if the host has no card.
    pub(crate) card: Option<InCard>,
    /// Whether its ends or its application may have done anything in the present sample period.
    moved: bool,
    /// Its two ends; `None` while it has no connection.
    ends: Option<Box<[EndSocket; 2]>>,
    /// The counts that were recorded as events so far.
    pub(crate) told: Counts,
    /// Index of the connection that it shares with other flows, in the world's `shared`; `None` if it shares none.
    shares: Option<u32>,
    /// For each of its timers, the time for which it is in the event queue; [`Time::NEVER`] if it is not there.
    pub(crate) armed: [Time; TIMERS],
    /// What [`Flow::retransmitted`] was when its connection was dropped.
    retransmitted_before: u64,
}

/// How packets of one of a flow's ends leave its host.
#[derive(Clone, Copy)]
pub(crate) struct Outlet {
    /// Their source and destination.
    pub(crate) address: FlowAddress,
    pub(crate) datagrams: bool,
    /// Whether the network itself sends them, each at the exact time that the workload asks for.
    pub(crate) exact: bool,
}

/// A flow's backlog in the card of its sending host. A host behind an overlay node has a card as well: the node admits its packets.
pub(crate) struct InCard {
    pub(crate) card: Card,
    /// Bytes of the flow's longest IP packet.
    pub(crate) mtu: u32,
    /// Whether an overlay node admits the flow.
    pub(crate) admitted: bool,
    /// IP bytes in the card's queue.
    pub(crate) waiting: u64,
    /// Whether the sender is held back until a packet has left the card.
    pub(crate) held: bool,
}

impl InCard {
    fn new(card: Card, mtu: u32) -> InCard {
        InCard { card, mtu, admitted: false, waiting: 0, held: false }
    }

    /// In place of a card, the overlay node that admits the flow.
    fn admitted(mtu: u32) -> InCard {
        let card = Card { refuses: true, small_queues: false, shaper: None };
        InCard { admitted: true, ..InCard::new(card, mtu) }
    }
}

impl Flow {
    pub(crate) fn new(run: &Run, number: usize, application: usize) -> Flow {
        let group = &run.groups[run.flows[number].group];
        let exact = group.workload.role().datagrams().is_some_and(|datagrams| datagrams.exact);
        let Pair { from, to, .. } = run.pair(number);
        let datagrams = group.tcp().is_none();
        let mtu = run.mtu(number).get() as u32;
        let outlet = |from: usize, to: usize| Outlet {
            address: FlowAddress {
                flow: number as u32,
                from: from as u16,
                to: to as u16,
                ip: group.ip,
                dscp: group.dscp,
            },
            datagrams,
            exact,
        };
        Flow {
            outlets: [outlet(from, to), outlet(to, from)],
            application: application as u32,
            asks: [false; 2],
            alone: [false; 2],
            random_arrivals: group.workload.has_random_arrivals(),
            card: match run.groups[run.flows[number].group].overlay {
                Some(_) => Some(InCard::admitted(mtu)),
                None => run.network.nodes[from].card.map(|card| InCard::new(card, mtu)),
            },
            moved: false,
            ends: None,
            told: Counts::default(),
            shares: None,
            armed: [Time::NEVER; TIMERS],
            retransmitted_before: 0,
        }
    }

    /// It shares a connection with other flows: that of this index.
    pub(crate) fn share(&mut self, connection: usize) {
        self.shares = Some(connection as u32);
        self.ask_at(self.asks);
    }

    /// Index of the connection that it shares with other flows; `None` if it shares none.
    #[inline]
    pub(crate) fn shares(&self) -> Option<usize> {
        self.shares.map(|connection| connection as usize)
    }

    /// From now on the application is to be asked when these of the two ends have moved.
    pub(crate) fn ask_at(&mut self, asks: [bool; 2]) {
        self.asks = asks;
        let alone = |end: End| !asks[end as usize] && self.shares.is_none() && !self.has_card(end);
        self.alone = [End::Sender, End::Receiver].map(alone);
    }

    /// Whether the application is to be asked when this end has moved.
    #[inline]
    pub(crate) fn asks(&self, end: End) -> bool {
        self.asks[end as usize]
    }

    /// The flow begins: it gets its two ends.
    pub(crate) fn begin(&mut self, run: &Run, number: usize) {
        let headers = u64::from(self.outlets[0].address.ip.header()) + UDP_HEADER;
        self.ends = run.ends(number).map(|ends| sockets(ends, headers));
    }

    /// The flow begins as one more stream of another flow's connection.
    pub(crate) fn join(&mut self, run: &Run, number: usize, other: &mut Flow) {
        let headers = u64::from(self.outlets[0].address.ip.header()) + UDP_HEADER;
        let ends = other.ends.as_mut().map(|ends| ends.each_mut().map(|socket| &mut socket.end));
        let ends = ends.and_then(|ends| run.join(number, ends));
        self.ends = ends.map(|ends| sockets(ends, headers));
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.ends.is_some()
    }

    /// Which of its ends is at this host.
    #[inline]
    pub(crate) fn end_at(&self, host: usize) -> End {
        if host == usize::from(self.outlets[0].address.from) { End::Sender } else { End::Receiver }
    }

    /// How packets of one of its ends leave.
    #[inline]
    pub(crate) fn outlet(&self, end: End) -> Outlet {
        self.outlets[end as usize]
    }

    /// Whether packets of one of its ends leave by a card.
    #[inline]
    pub(crate) fn has_card(&self, end: End) -> bool {
        end == End::Sender && self.card.is_some()
    }

    /// Whether nothing but an end's own packets and timer depends on its moves.
    #[inline]
    pub(crate) fn is_alone(&self, end: End) -> bool {
        self.alone[end as usize]
    }

    /// Whether one of its timers is to be put into the event queue, so that it fires at `due` or before. If so, notes that it is there.
    #[inline]
    pub(crate) fn arms(&mut self, timer: usize, due: Time) -> bool {
        let armed = &mut self.armed[timer];
        let earlier = due < *armed;
        if earlier {
            *armed = due;
        }
        earlier
    }

    /// One of its ends, how its packets leave, and the counts of the flow that were recorded.
    #[inline(always)]
    pub(crate) fn end_to_move(&mut self, end: End) -> Option<(&mut weir_transport::End, &Outlet, &Counts)> {
        self.moved = true;
        Some((&mut self.ends.as_mut()?[end as usize].end, &self.outlets[end as usize], &self.told))
    }

    /// One of its ends, and how its packets leave.
    #[inline]
    pub(crate) fn end_and_outlet(&mut self, end: End) -> Option<(&mut weir_transport::End, &Outlet)> {
        self.moved = true;
        Some((&mut self.ends.as_mut()?[end as usize].end, &self.outlets[end as usize]))
    }

    #[inline]
    pub(crate) fn end(&mut self, end: End) -> Option<&mut weir_transport::End> {
        self.moved = true;
        Some(&mut self.ends.as_mut()?[end as usize].end)
    }

    /// The sending end and the card of its host; `None` if there is no card or no connection.
    pub(crate) fn sender_and_card(&mut self) -> Option<(&mut weir_transport::End, &mut InCard)> {
        self.moved = true;
        Some((&mut self.ends.as_mut()?[End::Sender as usize].end, self.card.as_mut()?))
    }

    /// Whether it may have anything to record of the present sample period. A packet of a flow that shares its connection may carry data
    /// of another one.
    #[inline]
    pub(crate) fn has_moved(&self) -> bool {
        self.moved || self.shares.is_some()
    }

    /// A new sample period begins.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.moved = false;
    }

    /// The sending end.
    pub(crate) fn sender(&self) -> Option<&weir_transport::End> {
        Some(&self.ends.as_ref()?[End::Sender as usize].end)
    }

    /// Data packets that its sending transport has retransmitted, as far as packet headers do not tell it.
    pub(crate) fn retransmitted(&self) -> u64 {
        self.sender().map_or(self.retransmitted_before, |sender| sender.retransmitted().unwrap_or(0))
    }

    /// Drops the connection if both ends have everything acknowledged that they sent, their FINs included: there may be thousands
    /// of flows with random arrivals.
    #[cold]
    pub(crate) fn give_back(&mut self) {
        if self.ends.as_ref().is_some_and(|ends| ends.iter().all(|socket| socket.end.all_acknowledged())) {
            self.retransmitted_before = self.retransmitted();
            self.ends = None;
        }
    }
}

/// The two ends of a flow as sockets.
fn sockets([sender, receiver]: [weir_transport::End; 2], headers: u64) -> Box<[EndSocket; 2]> {
    Box::new([EndSocket::new(sender, headers), EndSocket::new(receiver, headers)])
}

/// The sockets of an application: the ends of the flows that it drives.
pub(crate) struct Ends<'a>(pub(crate) &'a mut [Flow]);

impl Sockets for Ends<'_> {
    type Socket<'a>
        = &'a mut EndSocket
    where
        Self: 'a;

    #[inline]
    fn at(&mut self, flow: usize, end: End) -> Option<&mut EndSocket> {
        let flow = self.0.get_mut(flow)?;
        flow.moved = true;
        Some(&mut flow.ends.as_mut()?[end as usize])
    }
}
