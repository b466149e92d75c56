//! Flows whose transport the kernel does not have: their endpoints run here, over UDP sockets.

use super::{Apps, Timer};
use crate::sockets::FlowSocket;
use std::cmp::Reverse;
use std::io;
use weir_base::Time;
use weir_endpoint::Endpoint;
use weir_engine::{record_counts, record_endpoint};
use weir_workload::End;

const ENDS: [End; 2] = [End::Sender, End::Receiver];

impl Apps<'_> {
    /// Hands an endpoint the packets that have arrived for it.
    pub(super) fn receive(&mut self, flow: usize, end: End) {
        let Some(FlowSocket::Endpoint(socket)) = self.flows[flow].sockets.end(end) else { return };
        let received = socket.receive(&mut self.buffers, &self.shared.clock);
        if let Err(error) = received {
            self.fail(flow, "receive", &error);
        }
    }

    /// An endpoint's timer has fired.
    pub(super) fn endpoint_timer(&mut self, flow: usize, end: End, at: Time, now: Time) {
        let Some(FlowSocket::Endpoint(socket)) = self.flows[flow].sockets.end(end) else { return };
        if socket.armed != at {
            return;
        }
        socket.armed = Time::NEVER;
        if socket.endpoint().next_timer() <= now {
            socket.endpoint().on_timer(now);
        }
        self.moved(flow, end);
    }

    /// A flow's socket may have news for its application, and so may the sockets of flows that share its connection.
    pub(super) fn moved(&mut self, flow: usize, end: End) {
        match self.flows[flow].connection {
            None => self.ready(flow, end),
            Some(connection) => {
                for other in 0..self.sharing[connection].len() {
                    self.ready(self.sharing[connection][other], end);
                }
            }
        }
    }

    /// Lets a flow's endpoints send what is ready. Where flows share a connection, a packet of one may let another go on, so
    /// all send until none has anything left.
    pub(super) fn flush(&mut self, flow: usize) {
        let Some(connection) = self.flows[flow].connection else {
            self.flush_one(flow);
            return;
        };
        loop {
            let mut sent = false;
            for other in 0..self.sharing[connection].len() {
                sent |= self.flush_one(self.sharing[connection][other]);
            }
            if !sent {
                return;
            }
        }
    }

    /// Lets a flow's endpoints send what is ready, arms their timers, and records the sender's new counts. Returns whether
    /// anything was sent.
    fn flush_one(&mut self, flow: usize) -> bool {
        let mut any = false;
        for end in ENDS {
            let now = self.shared.clock.now();
            let Some(FlowSocket::Endpoint(socket)) = self.flows[flow].sockets.end(end) else { continue };
            let sent: io::Result<bool> = socket.flush(&self.shared.clock);
            let due = socket.endpoint().next_timer();
            if due < socket.armed {
                socket.armed = due;
                self.timers.push(Reverse((due, Timer::Endpoint(end), flow)));
            }
            if let (End::Sender, Some(packets)) = (end, socket.endpoint().retransmitted()) {
                self.counts[flow].set_retransmitted(packets);
            }
            let counts = socket.endpoint().counts();
            let told = std::mem::replace(&mut socket.told, counts);
            if end == End::Sender && counts != told {
                record_counts(&mut self.relay, flow, told, counts, now);
            }
            match sent {
                Ok(sent) => any |= sent,
                Err(error) => self.fail(flow, "send", &error),
            }
        }
        any
    }

    /// Records the state of a flow's sending endpoint. Returns whether there is one.
    pub(super) fn sample_endpoint(&mut self, flow: usize, now: Time) -> bool {
        let random_arrivals = self.flows[flow].random_arrivals;
        let Some(FlowSocket::Endpoint(socket)) = &mut self.flows[flow].sockets.sender else { return false };
        record_endpoint(&mut self.relay, flow, socket.endpoint(), random_arrivals, now);
        true
    }
}
