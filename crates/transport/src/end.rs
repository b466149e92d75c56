//! One end of a connection of any transport, as the value that drivers hold.

use crate::Config;
use std::any::Any;
use weir_base::{Bytes, Ecn, Rate, Time};
use weir_endpoint::{Body, Counts, Endpoint, Limits, Message, Part, Read, Sample, Setup, Stream};

/// An endpoint of any transport. TCP and UDP are dispatched without an indirect call. The tag has a byte of its own, which is faster
/// to read than a niche in a variant.
#[allow(clippy::large_enum_variant)]
#[repr(u8)]
pub enum End {
    /// TCP.
    Tcp(weir_tcp::Connection),
    /// UDP.
    Udp(crate::udp::Socket),
    /// Another transport.
    Other(Box<dyn Endpoint>),
}

impl End {
    /// The end of another flow whose stream joins this connection; `None` if it cannot, or has another transport.
    pub fn join(&mut self, config: &Config, setup: &Setup<'_>) -> Option<End> {
        Endpoint::join(self, config.parameters(), setup).map(End::Other)
    }
}

macro_rules! each {
    ($end:expr, $method:ident($($argument:expr),*)) => {
        match $end {
            End::Tcp(end) => Endpoint::$method(end, $($argument),*),
            End::Udp(end) => Endpoint::$method(end, $($argument),*),
            End::Other(end) => end.$method($($argument),*),
        }
    };
}

impl Endpoint for End {
    fn join(&mut self, parameters: &dyn Any, setup: &Setup<'_>) -> Option<Box<dyn Endpoint>> {
        each!(self, join(parameters, setup))
    }
    fn open(&mut self, now: Time) {
        each!(self, open(now));
    }
    #[inline(always)]
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time) {
        each!(self, receive(body, ecn, now));
    }
    #[inline(always)]
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        each!(self, transmit(into, now))
    }
    #[inline]
    fn next_timer(&self) -> Time {
        each!(self, next_timer())
    }
    fn on_timer(&mut self, now: Time) {
        each!(self, on_timer(now));
    }
    #[inline]
    fn is_quiet(&self) -> bool {
        each!(self, is_quiet())
    }
    fn refused(&mut self, now: Time) -> bool {
        each!(self, refused(now))
    }
    fn small_queue(&self) -> u64 {
        each!(self, small_queue())
    }
    fn throttled(&mut self, now: Time) {
        each!(self, throttled(now));
    }
    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64 {
        each!(self, write(stream, message, now))
    }
    fn keep_full(&mut self, stream: Stream, greedy: bool) -> bool {
        each!(self, keep_full(stream, greedy))
    }
    #[inline]
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        each!(self, read(to));
    }
    fn close(&mut self, stream: Option<Stream>, now: Time) {
        each!(self, close(stream, now));
    }
    #[inline]
    fn is_open(&self) -> bool {
        each!(self, is_open())
    }
    #[inline]
    fn finished(&self) -> bool {
        each!(self, finished())
    }
    fn all_acknowledged(&self) -> bool {
        each!(self, all_acknowledged())
    }
    #[inline]
    fn counts(&self) -> Counts {
        each!(self, counts())
    }
    #[inline]
    fn retransmitted(&self) -> Option<u64> {
        each!(self, retransmitted())
    }
    #[inline]
    fn sample(&self) -> Option<Sample> {
        each!(self, sample())
    }
    fn limits(&self, now: Time) -> Option<Limits> {
        each!(self, limits(now))
    }
    fn unsent(&self) -> Bytes {
        each!(self, unsent())
    }
    fn sending_rate(&self, now: Time) -> Option<Rate> {
        each!(self, sending_rate(now))
    }
    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        each!(self, state(report));
    }
}
