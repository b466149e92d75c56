//! Flows whose transport the kernel does not have: their endpoints run here, over UDP sockets.

use super::{Apps, Timer};
use crate::sockets::FlowSocket;
use std::cmp::Reverse;
use std::io;
use weir_base::Time;
use weir_engine::{record_counts, record_endpoint};
use weir_transport::Endpoint;
use weir_workload::End;

const ENDS: [End; 2] = [End::Sender, End::Receiver];

impl Apps<'_> {
    /// Hands an endpoint the packets that have arrived for it.
    pub(super) fn receive(&mut self, flow: usize, end: End) {
        let now = self.shared.clock.now();
        let Some(FlowSocket::Endpoint(socket)) = self.flows[flow].sockets.end(end) else { return };
        let received = socket.receive(&mut self.buffers, now);
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
        if socket.socket.end.next_timer() <= now {
            socket.socket.end.on_timer(now);
        }
        self.ready(flow, end);
    }

    /// Has a flow's endpoints send what they have to send, sees to their timers, and writes down what has happened to the sender.
    pub(super) fn flush(&mut self, flow: usize) {
        for end in ENDS {
            let now = self.shared.clock.now();
            let Some(FlowSocket::Endpoint(socket)) = self.flows[flow].sockets.end(end) else { continue };
            let sent: io::Result<()> = socket.flush(now);
            let due = socket.socket.end.next_timer();
            if due < socket.armed {
                socket.armed = due;
                self.timers.push(Reverse((due, Timer::Endpoint(end), flow)));
            }
            let counts = socket.socket.end.counts();
            let told = std::mem::replace(&mut socket.told, counts);
            if end == End::Sender && counts != told {
                record_counts(&mut self.relay, flow, told, counts, now);
            }
            if let Err(error) = sent {
                self.fail(flow, "send", &error);
            }
        }
    }

    /// Writes down the state of a flow's sending endpoint. Answers whether there is one.
    pub(super) fn sample_endpoint(&mut self, flow: usize, now: Time) -> bool {
        let drawn = self.flows[flow].drawn;
        let Some(FlowSocket::Endpoint(socket)) = &self.flows[flow].sockets.sender else { return false };
        record_endpoint(&mut self.relay, flow, &socket.socket.end, drawn, now);
        true
    }
}
