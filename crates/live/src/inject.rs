//! Datagrams that the fabric sends itself, at the very times that the workload asks for, so that unresponsive load is
//! exact whatever the hosts are busy with. A socket of the receiving host takes them in.

use crate::packet::{LivePacket, Pool, sum_up, udp_frame};
use crate::relay::Relay;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_base::{Ecn, Time};
use weir_fabric::Fabric;
use weir_plan::{Ip, Run};
use weir_record::{FlowEvent, FlowEventKind, Recorder};
use weir_workload::{Action, Event, Needs, Part, Workload};

/// All flows of a run whose datagrams the fabric sends.
pub(crate) struct Injector {
    sources: Vec<Source>,
    /// When each source is due, soonest first.
    due: BinaryHeap<Reverse<(Time, usize)>>,
}

struct Source {
    workload: Box<dyn Workload>,
    flow: usize,
    from: usize,
    to: usize,
    ip: Ip,
    ecn: Ecn,
    stop: Time,
    started: bool,
    /// The datagram as it was last built: those of one flow differ only in length, and in the part of a frame.
    frame: Vec<u8>,
}

impl Injector {
    /// The sources of a run, none of which has started.
    pub(crate) fn new(run: &Run) -> Injector {
        let mut injector = Injector { sources: vec![], due: BinaryHeap::new() };
        for (index, flow) in run.flows.iter().enumerate() {
            let group = &run.groups[flow.group];
            let Needs::Datagrams { ecn, exact: true } = group.workload.needs() else { continue };
            injector.due.push(Reverse((Time::ZERO + flow.start, injector.sources.len())));
            injector.sources.push(Source {
                workload: run.workload(index),
                flow: index,
                from: group.from,
                to: group.to,
                ip: group.ip,
                ecn,
                stop: Time::ZERO + flow.stop.unwrap_or(run.duration).min(run.duration),
                started: false,
                frame: vec![],
            });
        }
        injector
    }

    /// When a datagram is due next; [`Time::NEVER`] when none is.
    pub(crate) fn next_time(&self) -> Time {
        self.due.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Does what is due next, at the time at which it is due; the fabric stands at that time.
    pub(crate) fn inject(&mut self, pool: &Pool, fabric: &mut Fabric<LivePacket>, relay: &mut Relay) {
        let Some(Reverse((now, index))) = self.due.pop() else { return };
        let source = &mut self.sources[index];
        if now >= source.stop {
            return;
        }
        let mut event = Event::Woken;
        if !std::mem::replace(&mut source.started, true) {
            event = Event::Start;
            relay.event(&FlowEvent { at: now, flow: source.flow as u32, kind: FlowEventKind::Started });
        }
        loop {
            match source.workload.next(event, now) {
                Action::Send(bytes) => {
                    source.send(bytes.get() as usize, None, pool, fabric, now);
                    event = Event::Sent;
                }
                Action::SendPart(bytes, part) => {
                    source.send(bytes.get() as usize, Some(part), pool, fabric, now);
                    event = Event::Sent;
                }
                Action::WaitUntil(at) => {
                    self.due.push(Reverse((at.max(now), index)));
                    return;
                }
                // A datagram workload does nothing else; one that closes is done.
                _ => return,
            }
        }
    }
}

impl Source {
    fn send(
        &mut self,
        bytes: usize,
        part: Option<Part>,
        pool: &Pool,
        fabric: &mut Fabric<LivePacket>,
        now: Time,
    ) {
        if self.frame.len() != bytes + crate::packet::ETHERNET {
            self.frame = udp_frame(self.from, self.to, self.ip, self.flow, bytes, self.ecn);
        }
        let headers = crate::packet::ETHERNET + self.ip.header() as usize + crate::packet::UDP_HEADER;
        let payload = &mut self.frame[headers..];
        if let Some((part, room)) = part.zip(payload.first_chunk_mut()) {
            *room = part.header();
            sum_up(&mut self.frame, self.ip);
        }
        if let Some(packet) = pool.packet(&self.frame) {
            fabric.inject_exact(self.from, packet, now);
        }
    }
}
