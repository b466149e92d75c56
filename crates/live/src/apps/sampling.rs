//! What the application thread records once a sample period: the state of each connection, and the messages given up.

use super::{Apps, Driven};
use crate::sockets::FlowSocket;
use crate::tcp_info;
use std::os::fd::AsFd;
use weir_base::{Span, Time};
use weir_engine::{record_limits, record_notice, record_reported};
use weir_linux::clock::thread_time;
use weir_record::Recorder;

/// Share of a core that sampling `tcp_info` may take.
const SAMPLING_SHARE: f64 = 0.01;

impl Apps<'_> {
    pub(super) fn sample_transport(&mut self, flow: usize, now: Time) {
        if self.sample_endpoint(flow, now) {
            return;
        }
        let socket = self.flows[flow].sockets.sender.as_ref();
        if !self.flows[flow].role.is_stream() {
            if let Some(FlowSocket::Kernel(socket)) = socket {
                record_reported(&mut self.relay, flow, socket.flowshare(), now);
            }
            return;
        }
        if let Some(Ok((sample, limits))) =
            socket.map(|socket| tcp_info::sample(socket.as_fd(), flow as u32, now))
        {
            self.relay.transport(&sample);
            let many = self.run.groups[self.run.flows[flow].group].workload.has_random_arrivals();
            if let Some(limits) = limits.filter(|_| !many) {
                record_limits(&mut self.relay, flow, &limits, now);
            }
        }
    }

    /// Reports the messages that have been given up by now.
    pub(super) fn settle_messages(&mut self, now: Time) {
        for Driven { application, flows } in &mut self.driven {
            let relay = &mut self.relay;
            application.settle(now, &mut |flow, notice| {
                record_notice(relay, flows.start + flow, &notice, now);
            });
        }
    }

    /// Samples every open connection once a sample period, or less often if that would cost too much.
    pub(super) fn sample_transports(&mut self, now: Time) {
        if now < self.next_sample {
            return;
        }
        self.settle_messages(now.min(Time::ZERO + self.run.duration - Span::from_nanos(1)));
        let before = thread_time();
        for flow in 0..self.flows.len() {
            // A flow of datagrams opens nothing.
            let this = &self.flows[flow];
            if (this.opened || !this.role.is_stream()) && !this.over {
                self.sample_transport(flow, now);
            }
        }
        let cost = thread_time().saturating_sub(before);
        let sample = self.run.sample;
        let periods =
            (cost.as_secs_f64() / (SAMPLING_SHARE * sample.as_secs_f64().max(1e-6))).ceil().max(1.0);
        self.report.sampled_every = self.report.sampled_every.max(periods as u32);
        let missed = now.since(self.next_sample).as_nanos() / sample.as_nanos().max(1);
        self.next_sample += sample * (periods as u64 + missed);
    }
}
