//! CP-UDP: datagrams with a header of the Coordination Protocol in front (section 3.3.1 of the coordination dissertation). The
//! aggregation points on the way count the flow as one of its application and measure the path by its packets; the flow itself
//! sends what its application says and adapts to nothing.
//!
//! [`Layer`] writes and reads the header. Live it stands between the application and the kernel's UDP socket.

use crate::endpoint::{Endpoint, Message, Read, Stream};
use crate::ranges::within;
use crate::{Body, End, Setup, Transport, udp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Ecn, Time};
use weir_coord::endpoint::{Endpoint as Coordinated, Identity};
use weir_coord::header::{FLOWS, Flags, LONGEST, Version};
use weir_coord::seal::Key;

/// The CP transport's number in the header; aggregation points do not look at it.
const PROTOCOL: u8 = 2;

/// Parameters of CP-UDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The application's id at the aggregation points (0 to 31).
    #[serde(deserialize_with = "application")]
    #[schemars(range(max = 31))]
    pub application: u8,
    /// Version of the header: 1, as published, has 20 bytes, 2 has 36.
    #[serde(deserialize_with = "version")]
    #[schemars(range(min = 1, max = 2))]
    pub version: u8,
    /// Key that is shared with the aggregation points, 32 hexadecimal digits. It takes version 2.
    #[schemars(with = "Option<String>")]
    pub key: Option<Key>,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { application: 0, version: 1, key: None }
    }
}

fn application<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 0..=31)
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 1..=2)
}

impl Parameters {
    fn version(&self) -> Version {
        if self.version == 2 || self.key.is_some() { Version::Two } else { Version::One }
    }

    /// The header's length in bytes.
    pub(crate) fn header_length(&self) -> u32 {
        self.version().length() as u32
    }

    /// The layer of one end of the flow of this number.
    pub(crate) fn layer(&self, flow: u64) -> Layer {
        let Parameters { application, key, .. } = *self;
        let flow = (flow % FLOWS as u64) as u8;
        let identity = Identity { application, flow, protocol: PROTOCOL, key, epoch: 0 };
        Layer {
            endpoint: Coordinated::new(identity, self.version(), &[]),
            head: Vec::with_capacity(2 * LONGEST),
        }
    }
}

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        datagrams
    }
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }
    fn application(&self) -> Option<u8> {
        Some(self.application)
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        let end = || Socket { layer: self.layer(setup.flow), socket: udp::Socket::new(setup.ecn) };
        [End::Other(Box::new(end())), End::Other(Box::new(end()))]
    }
}

/// What stands between an application and its UDP socket: it writes the CP header of each datagram and takes it off again.
#[derive(Debug)]
pub struct Layer {
    endpoint: Coordinated,
    head: Vec<u8>,
}

impl Layer {
    /// What a datagram begins with whose application's bytes begin with `head`: the CP header, then `head`.
    pub fn seal(&mut self, head: &[u8]) -> &[u8] {
        let length = self.endpoint.header_length();
        self.head.clear();
        self.head.resize(length, 0);
        self.endpoint.seal(Flags::default(), &mut self.head);
        self.head.extend_from_slice(head);
        &self.head
    }

    /// What follows the CP header of a datagram that has arrived; none where the header is missing, another flow's or forged.
    pub fn open<'a>(&mut self, head: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.endpoint.open(head, |_, _| {}).ok()?;
        head.get(length..)
    }
}

/// One end: a UDP socket behind a layer.
#[derive(Debug)]
struct Socket {
    layer: Layer,
    socket: udp::Socket,
}

impl Endpoint for Socket {
    fn open(&mut self, _: Time) {}
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time) {
        self.socket.receive(body, ecn, now);
    }
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        self.socket.transmit(into, now)
    }
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    fn on_timer(&mut self, _: Time) {}
    fn is_quiet(&self) -> bool {
        self.socket.is_quiet()
    }
    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64 {
        let head = self.layer.seal(message.head);
        self.socket.write(stream, Message { bytes: message.bytes, head }, now)
    }
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        let layer = &mut self.layer;
        self.socket.read(&mut |stream, read| {
            if let Some(head) = layer.open(read.head) {
                let header = (read.head.len() - head.len()) as u64;
                to(stream, Read { bytes: read.bytes - header, head });
            }
        });
    }
    fn close(&mut self, _: Option<Stream>, _: Time) {}
    fn is_open(&self) -> bool {
        true
    }
    fn finished(&self) -> bool {
        false
    }
    fn all_acknowledged(&self) -> bool {
        self.socket.all_acknowledged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> Parameters {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_datagram_has_a_header_of_its_version_and_is_read_without_it() {
        for (text, header) in [(r#"{ "application": 3 }"#, 20), (r#"{ "application": 3, "version": 2 }"#, 36)]
        {
            let parameters = parameters(text);
            assert_eq!(parameters.header_length(), header);
            let (mut here, mut there) = (parameters.layer(130), parameters.layer(130));
            let datagram = here.seal(b"frame").to_vec();
            assert_eq!(datagram.len(), header as usize + 5);
            let prefix = weir_coord::header::Prefix::read(&datagram).unwrap();
            assert_eq!((prefix.application, prefix.flow), (3, 2));
            assert_eq!(there.open(&datagram), Some(&b"frame"[..]));
            assert_eq!(parameters.layer(131).open(&datagram), None, "another flow's");
            assert_eq!(there.open(b"no header"), None);
        }
    }

    #[test]
    fn with_a_key_only_what_an_aggregation_point_has_sealed_is_read() {
        let parameters = parameters(r#"{ "key": "000102030405060708090a0b0c0d0e0f" }"#);
        let datagram = parameters.layer(1).seal(b"").to_vec();
        assert_eq!(datagram.len(), 36);
        assert_eq!(parameters.layer(1).open(&datagram), None, "sealed for the way out");
    }
}
