//! The two ends of a connection from a group's settings, and a connection as an [`Endpoint`].

use super::{Config, Connection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Clock, Ecn, Random, Time};
use weir_endpoint::{Body, Buffer, Counts, Endpoint, Limits, Message, Part, Read, Sample, Setup, Stream};

/// TCP's parameters are keys of the traffic group: `cc`, `ecn`, `feedback` and so on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {}

/// Bytes of a TCP header with timestamps (RFC 9293, RFC 7323 appendix A).
pub const HEADER: u32 = 20 + 12;

/// The two ends of a flow's connection: at the host that sends the flow's data, and at the host that receives it. Neither is open.
///
/// # Panics
/// Without settings, which every group whose transport is TCP has.
pub fn ends(setup: &Setup<'_>) -> [Connection; 2] {
    let settings = setup.settings.expect("a plan gives settings to every group whose transport has keys");
    let buffer = |buffer: Buffer| (buffer.initial, buffer.max);
    let mut random = Random::stream_of(setup.seed, "connection", setup.flow);
    let mut clocks = Random::stream_of(setup.seed, "clock", setup.flow);
    let mut end = |clock: Clock| {
        Connection::server(Config {
            mss: (setup.mtu.get() - u64::from(setup.ip_header + HEADER)) as u16,
            ecn: settings.ecn,
            window_scaling: settings.window_scaling,
            sack: settings.sack,
            rto_min: settings.rto_min,
            limited_transmit: settings.limited_transmit,
            delayed_ack: settings.delayed_ack,
            window_updates: settings.window_updates,
            pacing: settings.pacing,
            send_buffer: buffer(settings.send_buffer),
            receive_buffer: buffer(settings.receive_buffer),
            clock: clock.started(&mut clocks),
            initial_sequence: random.bits() as u32,
            seed: random.bits(),
            ..Config::with_signals(settings.cc.clone(), (settings.codepoint, settings.feedback))
        })
    };
    [end(settings.sender_clock), end(settings.receiver_clock)]
}

impl Endpoint for Connection {
    fn open(&mut self, now: Time) {
        Connection::open(self, now);
    }
    #[inline(always)]
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time) {
        if let Body::Segment(segment) = body {
            self.on_segment(segment, ecn, now);
        }
    }
    #[inline(always)]
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        self.transmit_into(into.segment_mut(), now)
    }
    #[inline]
    fn next_timer(&self) -> Time {
        Connection::next_timer(self)
    }
    fn on_timer(&mut self, now: Time) {
        Connection::on_timer(self, now);
    }
    #[inline]
    fn is_quiet(&self) -> bool {
        Connection::is_quiet(self)
    }
    fn refused(&mut self, now: Time) -> bool {
        Connection::refused(self, now)
    }
    fn small_queue(&self) -> u64 {
        Connection::small_queue(self)
    }
    fn throttled(&mut self, now: Time) {
        Connection::throttled(self, now);
    }
    fn write(&mut self, _: Stream, message: Message<'_>, _: Time) -> u64 {
        Connection::write(self, message.bytes)
    }
    fn keep_full(&mut self, _: Stream, greedy: bool) -> bool {
        self.write_forever(greedy);
        true
    }
    #[inline]
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        let bytes = self.take_read();
        if bytes > 0 {
            to(Stream(0), Read { bytes, head: &[], due: None });
        }
    }
    fn close(&mut self, _: Option<Stream>, _: Time) {
        Connection::close(self);
    }
    #[inline]
    fn is_open(&self) -> bool {
        Connection::is_open(self)
    }
    #[inline]
    fn finished(&self) -> bool {
        Connection::finished(self)
    }
    fn all_acknowledged(&self) -> bool {
        Connection::all_acknowledged(self)
    }
    #[inline]
    fn counts(&self) -> Counts {
        let [timeouts, recoveries, undos] = Connection::counts(self);
        Counts { timeouts, recoveries, undos }
    }
    #[inline]
    fn sample(&self) -> Option<Sample> {
        Some(self.info()?.sample)
    }
    fn limits(&self, now: Time) -> Option<Limits> {
        Connection::limits(self, now)
    }
    fn unsent(&self) -> Bytes {
        Bytes::new(Connection::unsent(self))
    }
    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        if let Some(controller) = self.controller() {
            controller.state(&mut |name, value| report(Part::Controller(0), name, value));
        }
    }
}
