//! Two sites of one application for tests: an AP at each, endpoints at 10.1.0.f and 10.2.0.f, a path of 25 ms between.

use core::net::{IpAddr, Ipv4Addr};
use weir_base::Time;
use weir_coord::header::{self, Flags, Operation, Prefix, Report, Version};
use weir_coord::{Config, FiveTuple, Packet, Point, Side, Verdict};

/// Sites 1 and 2 as seen from site `own`, with more lines of the application's table.
pub(crate) fn config(own: u8, more: &str) -> Config {
    let other = 3 - own;
    Config::from_toml(&format!(
        "[[application]]\nid = 1\nname = \"one\"\nlocal = [\"10.{own}.0.0/16\"]\nlocal_ports = \"9000-9199\"\n\
         remote = [\"10.{other}.0.0/16\"]\nremote_ports = \"9000-9199\"\n{more}"
    ))
    .unwrap()
}

pub(crate) fn point(own: u8, more: &str) -> Point {
    Point::new(&config(own, more), 1, 1).unwrap()
}

/// The five-tuple from endpoint `flow` at site `from` to the endpoint `flow` at the other site.
pub(crate) fn tuple(from: u8, flow: u8) -> FiveTuple {
    let address = |site| IpAddr::V4(Ipv4Addr::new(10, site, 0, flow));
    let port = 9000 + u16::from(flow);
    FiveTuple {
        source: address(from),
        source_port: port,
        destination: address(3 - from),
        destination_port: port,
    }
}

pub(crate) fn prefix(version: Version, flow: u8, flags: Flags) -> Prefix {
    Prefix { version, application: 1, flow, protocol: 7, flags }
}

/// An endpoint's packet: a header with these operations and 64 bytes of payload.
pub(crate) fn packet(version: Version, flow: u8, flags: Flags, operations: &[Operation]) -> Vec<u8> {
    let mut bytes = vec![0; version.length() + 64];
    prefix(version, flow, flags).write(&mut bytes);
    let word = |j| operations.get(j).copied().unwrap_or(Operation::NOOP).word();
    header::set_words(version, &mut bytes, std::array::from_fn(word));
    bytes
}

pub(crate) fn pass(point: &mut Point, side: Side, tuple: FiveTuple, bytes: &mut [u8], now: Time) -> Verdict {
    let length = bytes.len() as u32 + 28;
    point.handle(Packet { side, tuple, length, payload: bytes, checksum: None }, now)
}

/// The reports of a header that has reached its endpoint.
pub(crate) fn reports(bytes: &[u8]) -> [Report; 4] {
    let prefix = Prefix::read(bytes).unwrap();
    header::words(prefix.version, bytes).map(Report::from_word)
}

pub(crate) fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}
