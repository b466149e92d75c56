//! CP-RUDP, the reliable transport of the coordination study (the coordination dissertation, sections 2.14, 6.4, appendices C and E):
//! a stream in order over datagrams without congestion control of its own. Its rate and its send buffer follow the reports of the
//! aggregation points; without them, the rate is fixed.
//!
//! Every transmission has a packet number of its own, which acknowledgements echo, so that the acknowledgement of a retransmission
//! differs from the original's. The source leaves the following rules open; these are our choices. Each data packet is acknowledged
//! at once. A transmission is lost when three later ones were echoed (`holes` has two other readings), or when its timeout (RFC 6298) has
//! passed. Lost segments are retransmitted before new data, within the same rate. There is no flow control: the rate is the only limit.

mod connection;
mod content;
mod pacer;
mod receiver;
mod sender;
mod wire;

use crate::{End, Transport};
use connection::Connection;
use pacer::Pacer;
use schemars::JsonSchema;
pub use sender::Holes;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::within;
use weir_base::{Ecn, Random, Rate};
use weir_coord::guide::Guide;
use weir_coord::participation::{self, Coordination, FIRST_RATE, Identity, MOST_RATE, address};
use weir_coord::scheme;
use weir_endpoint::{Endpoint, Setup};

/// The CP transport's number in the header.
const PROTOCOL: u8 = 1;

/// Parameters of CP-RUDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The application's id at the aggregation points (0 to 31). Without an id, the flow keeps `rate` and its packets have no CP header.
    #[serde(deserialize_with = "application")]
    #[schemars(range(max = 31))]
    pub application: Option<u8>,
    /// How the application's flows split its total rate.
    pub scheme: scheme::Config,
    /// The general-purpose address (0 to 249) at which the application's flows write their numbers for the scheme.
    #[serde(deserialize_with = "address")]
    #[schemars(range(max = 249))]
    pub address: u8,
    /// The flow's rate before the first report; without an application, its rate throughout.
    pub rate: Rate,
    /// The flow's maximum rate, whatever is reported.
    pub max_rate: Rate,
    /// Whether the flow declares itself urgent while it has data. The scheme `priority` splits the rate above the other flows' floors
    /// among the urgent flows.
    pub urgent: bool,
    /// Whether the send buffer is sized by the rate of a flowshare, as equation 6.2 is printed, instead of the flow's own rate.
    pub buffer_by_flowshare: bool,
    /// Largest random change of a gap between two packets, as a share (0 to 1) of its length. Flows with the same rate then do not send
    /// in step.
    #[serde(deserialize_with = "jitter")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// Number of packets that leave together (1 to 64), followed by a gap as long as all their gaps. TCP with delayed acknowledgements
    /// sends two. At most all but one of the packets of a round trip leave together, and one at a time while a loss is repaired.
    #[serde(deserialize_with = "burst")]
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
    /// Whether each message (a frame of an ensemble) begins in a packet of its own. Otherwise a packet may hold parts of two messages.
    pub messages_apart: bool,
    /// When the sender retransmits the first missing segment, which acknowledgements name: "unused" (when three later packets were
    /// echoed), "once" (when one later packet was echoed) or "each" (with each acknowledgement that names it).
    pub holes: Holes,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            application: None,
            scheme: participation::equal(),
            address: 0,
            rate: FIRST_RATE,
            max_rate: MOST_RATE,
            urgent: false,
            buffer_by_flowshare: false,
            jitter: 0.0,
            burst: 1,
            messages_apart: false,
            holes: Holes::default(),
        }
    }
}

impl Parameters {
    /// The guide that sets this flow's rate.
    fn guide(&self, identity: &Identity) -> Guide {
        let Parameters { rate, max_rate, address, urgent, .. } = *self;
        let Some(application) = self.application else { return Guide::fixed(rate.min(max_rate)) };
        let scheme = self.scheme.clone();
        let coordination = Coordination { application, scheme, address, rate, max_rate, urgent };
        let guide = Guide::new(&coordination, PROTOCOL, identity);
        if self.buffer_by_flowshare { guide.with_buffer_by_flowshare() } else { guide }
    }
}

/// The end of a connection that carries real bytes: each message and each read has all its bytes in `head`. IP packets are at most
/// `packet` bytes long, `ip_header` bytes of them the IP header.
pub fn carrier(
    parameters: &Parameters,
    identity: &Identity,
    packet: u32,
    ip_header: u32,
) -> Box<dyn Endpoint> {
    let guide = parameters.guide(identity);
    let random = Random::stream_of(identity.epoch.into(), "pacer", identity.flow.into());
    let pacer = Pacer::new(parameters.jitter, parameters.burst, random);
    Box::new(Connection::new(guide, pacer, packet, ip_header, Ecn::NotEct).carrying())
}

fn application<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    // Serialized parameters without an application have null here.
    struct Id(u8);
    impl<'de> Deserialize<'de> for Id {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
            participation::application(deserializer).map(Id)
        }
    }
    Ok(Option::<Id>::deserialize(deserializer)?.map(|Id(id)| id))
}

fn jitter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0..=1.0)
}

fn burst<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=64)
}

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        !datagrams
    }
    fn has_handshake(&self) -> bool {
        true
    }
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }
    fn application(&self) -> Option<u8> {
        self.application
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        [(); 2].map(|()| {
            let guide = self.guide(&Identity::in_lab(setup.flow));
            let packet = setup.mtu.get() as u32;
            let pacer =
                Pacer::new(self.jitter, self.burst, Random::stream_of(setup.seed, "pacer", setup.flow));
            let connection =
                Connection::new(guide, pacer, packet, setup.ip_header, setup.ecn).with_holes(self.holes);
            End::Other(Box::new(if self.messages_apart {
                connection.with_messages_apart()
            } else {
                connection
            }))
        })
    }
}
