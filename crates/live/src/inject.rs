//! Datagrams that the fabric sends itself, exactly at the times of the workload, so that unresponsive load is exact however
//! busy the hosts are. A socket of the receiving host receives them.

use crate::frame::{address_to_group, sum_up, udp_frame};
use crate::overlay::{Crossings, group_of};
use crate::packet::{LivePacket, Pool};
use crate::relay::Relay;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use weir_base::{Bytes, Dscp, Ecn, Time};
use weir_coord::layer::Layer;
use weir_engine::record_notice;
use weir_fabric::Fabric;
use weir_plan::{Ip, Run};
use weir_workload::{Application, End, Received, Role, Socket, Sockets, Trouble, Writes};

/// All flows of a run whose datagrams the fabric sends.
pub(crate) struct Injector {
    sources: Vec<Source>,
    /// When each source is due, soonest first.
    due: BinaryHeap<Reverse<(Time, usize)>>,
}

struct Source {
    application: Application,
    /// Number of the application's first flow.
    first: usize,
    flows: Vec<Sender>,
}

/// Builds a flow's datagrams.
struct Sender {
    flow: usize,
    from: usize,
    to: usize,
    /// The group that it sends to, in the place of `to`.
    group: Option<Ipv4Addr>,
    ip: Ip,
    ecn: Ecn,
    dscp: Dscp,
    /// Writes a header before the application's bytes; `None` if the flow has none.
    layer: Option<Layer>,
    /// The last frame built: frames of one flow differ only in length and in their head.
    frame: Vec<u8>,
}

impl Injector {
    /// The sources of a run, none of which has started.
    pub(crate) fn new(run: &Run) -> Injector {
        let mut injector = Injector { sources: vec![], due: BinaryHeap::new() };
        for (application, flows) in run.applications() {
            let group = &run.groups[run.flows[flows.start].group];
            let Role::Datagrams(datagrams) = group.workload.role() else { continue };
            if !datagrams.exact {
                continue;
            }
            let sender = |flow| Sender {
                flow,
                from: run.pair(flow).from,
                to: run.pair(flow).to,
                group: group_of(run, flow),
                ip: group.ip,
                ecn: datagrams.ecn,
                dscp: group.dscp,
                layer: run.layer(flow),
                frame: vec![],
            };
            let first = flows.start;
            let source = Source { application, first, flows: flows.map(sender).collect() };
            injector.due.push(Reverse((source.next_time(), injector.sources.len())));
            injector.sources.push(source);
        }
        injector
    }

    /// When a datagram is due next; [`Time::NEVER`] when none is.
    pub(crate) fn next_time(&self) -> Time {
        self.due.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Runs the source that is due next, at its due time, to which the fabric has been advanced.
    pub(crate) fn inject(
        &mut self,
        pool: &Pool,
        fabric: &mut Fabric<LivePacket>,
        crossings: &mut Crossings,
        relay: &mut Relay,
    ) {
        let Some(Reverse((now, index))) = self.due.pop() else { return };
        let Source { application, first, flows } = &mut self.sources[index];
        for flow in 0..flows.len() {
            if application.wake(flow) <= now {
                let mut sockets = Injected { flows, pool, fabric, crossings, now };
                application.on_timer(flow, now, &mut sockets, &mut |flow, notice| {
                    record_notice(relay, *first + flow, &notice, now);
                });
            }
        }
        let next = self.sources[index].next_time();
        if next < Time::NEVER {
            self.due.push(Reverse((next.max(now), index)));
        }
    }
}

impl Source {
    fn next_time(&self) -> Time {
        (0..self.flows.len()).map(|flow| self.application.wake(flow)).min().unwrap_or(Time::NEVER)
    }
}

/// The sockets of an application whose datagrams the fabric sends.
struct Injected<'a> {
    flows: &'a mut [Sender],
    pool: &'a Pool,
    fabric: &'a mut Fabric<LivePacket>,
    crossings: &'a mut Crossings,
    now: Time,
}

impl Sockets for Injected<'_> {
    type Socket<'a>
        = Injection<'a>
    where
        Self: 'a;

    fn at(&mut self, flow: usize, end: End) -> Option<Injection<'_>> {
        let sender = self.flows.get_mut(flow).filter(|_| end == End::Sender)?;
        Some(Injection {
            sender,
            pool: self.pool,
            fabric: self.fabric,
            crossings: self.crossings,
            now: self.now,
        })
    }
}

/// A socket whose datagrams the fabric sends. It can do nothing else.
struct Injection<'a> {
    sender: &'a mut Sender,
    pool: &'a Pool,
    fabric: &'a mut Fabric<LivePacket>,
    crossings: &'a mut Crossings,
    now: Time,
}

impl Socket for Injection<'_> {
    fn open(&mut self, _: Time) -> Result<(), Trouble> {
        Err(Trouble::unsupported("open a connection"))
    }
    fn is_open(&mut self) -> Result<bool, Trouble> {
        Ok(false)
    }
    fn write(&mut self, _: u64, _: &[u8], _: Time) -> Result<u64, Trouble> {
        Err(Trouble::unsupported("write a stream"))
    }
    fn keep_full(&mut self, _: Writes) -> Result<bool, Trouble> {
        Err(Trouble::unsupported("write a stream"))
    }

    fn send(&mut self, length: Bytes, head: &[u8], _: Time) -> Result<(), Trouble> {
        let Sender { flow, from, to, group, ip, ecn, dscp, ref mut layer, ref mut frame } = *self.sender;
        let head = layer.as_mut().map_or(head, |layer| layer.seal(head));
        let bytes = length.get() as usize;
        if frame.len() != bytes + crate::headers::ETHERNET {
            *frame = udp_frame(from, to, ip, flow, bytes, ecn);
            if let Some(group) = group {
                address_to_group(frame, group);
            }
        }
        let headers = crate::headers::ETHERNET + ip.header() as usize + crate::headers::UDP_HEADER;
        if let Some(room) = frame.get_mut(headers..headers + head.len()).filter(|room| *room != head) {
            room.copy_from_slice(head);
            sum_up(frame, ip);
        }
        if let Some(mut packet) = self.pool.packet(from, frame) {
            packet.set_dscp(dscp);
            for copy in self.crossings.enters(from, &mut packet, self.now) {
                self.fabric.sent_too(copy, length.get() as u32);
            }
            self.fabric.inject_exact(from, packet, self.now);
        }
        Ok(())
    }

    fn read(&mut self, _: Time, _: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble> {
        Ok(Received::default())
    }
    fn close(&mut self, _: Time) {}
}
