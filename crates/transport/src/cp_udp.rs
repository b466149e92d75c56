//! CP-UDP: datagrams that begin with a header of the Coordination Protocol (section 3.3.1 of the coordination dissertation). The
//! aggregation points on the path count the flow among the flows of its application and measure the path with its packets. The
//! flow itself sends what its application writes and has no congestion control.
//!
//! [`Layer`] writes and reads the header.

use crate::{End, Transport, udp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Span, within};
use weir_coord::endpoint::Identity;
use weir_coord::header::Version;
use weir_coord::layer::Layer;
use weir_coord::participation::{self, application};
use weir_coord::seal::Key;
use weir_endpoint::Setup;

/// The CP transport's number in the header; aggregation points ignore it.
const PROTOCOL: u8 = 2;

/// Parameters of CP-UDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The application's id at the aggregation points (0 to 31).
    #[serde(deserialize_with = "application")]
    #[schemars(range(max = 31))]
    pub application: u8,
    /// Version of the header: version 1, as published, has 20 bytes, version 2 has 36.
    #[serde(deserialize_with = "version")]
    #[schemars(range(min = 1, max = 2))]
    pub version: u8,
    /// The application's key at the aggregation points, 32 hexadecimal digits. With a key, the header is of version 2 and sealed.
    #[schemars(with = "Option<String>", example = &"00112233445566778899aabbccddeeff")]
    pub key: Option<Key>,
    /// The receiving end answers datagrams with a header alone, at most once in this time. Only then do aggregation points measure the path
    /// of an application whose flows are all datagrams, and report to their senders. By default it does not answer.
    #[schemars(with = "Option<String>", example = &"00112233445566778899aabbccddeeff")]
    pub answers: Option<Span>,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { application: 0, version: 1, key: None, answers: None }
    }
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 1..=2)
}

impl Parameters {
    fn version(&self) -> Version {
        if self.version == 2 || self.key.is_some() { Version::Two } else { Version::One }
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
    fn layer(&self, flow: u64) -> Option<Layer> {
        let Parameters { application, key, .. } = *self;
        let flow = participation::Identity::in_lab(flow).flow;
        let identity = Identity { application, flow, protocol: PROTOCOL, key, epoch: 0 };
        Some(match self.answers {
            Some(interval) => Layer::answering(identity, self.version(), interval),
            None => Layer::new(identity, self.version()),
        })
    }
    fn layer_header(&self) -> u32 {
        self.version().length() as u32
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        let end = || End::Udp(udp::Socket::behind(self.layer(setup.flow), setup.ecn));
        [end(), end()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> Parameters {
        serde_json::from_str(text).unwrap()
    }
    fn layer(parameters: &Parameters, flow: u64) -> Layer {
        parameters.layer(flow).unwrap()
    }

    #[test]
    fn a_datagram_carries_the_header_of_its_version_and_is_delivered_without_it() {
        for (text, header) in [(r#"{ "application": 3 }"#, 20), (r#"{ "application": 3, "version": 2 }"#, 36)]
        {
            let parameters = parameters(text);
            assert_eq!(parameters.layer_header(), header);
            let (mut here, mut there) = (layer(&parameters, 130), layer(&parameters, 130));
            let datagram = here.seal(b"frame").to_vec();
            assert_eq!(datagram.len(), header as usize + 5);
            let prefix = weir_coord::header::Prefix::read(&datagram).unwrap();
            assert_eq!((prefix.application, prefix.flow), (3, 2));
            assert_eq!(there.open(&datagram), Some(&b"frame"[..]));
            assert_eq!(layer(&parameters, 131).open(&datagram), None, "another flow's");
            assert_eq!(there.open(b"no header"), None);
        }
    }

    #[test]
    fn with_a_key_a_datagram_that_no_aggregation_point_has_sealed_is_refused() {
        let parameters = parameters(r#"{ "key": "000102030405060708090a0b0c0d0e0f" }"#);
        let datagram = layer(&parameters, 1).seal(b"").to_vec();
        assert_eq!(datagram.len(), 36);
        assert_eq!(layer(&parameters, 1).open(&datagram), None, "sealed for the way out");
    }
}
