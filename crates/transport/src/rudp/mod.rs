//! CP-RUDP, the reliable transport of the coordination study (the coordination dissertation, sections 2.14, 6.4, appendices C and E):
//! a stream in order over datagrams without congestion control of its own. Its rate and its send buffer follow what the aggregation
//! points report (a fixed rate without them).
//!
//! Every transmission has a packet number of its own, which acknowledgements echo, so that a retransmission's acknowledgement is
//! told from the original's. The source leaves open what follows; these are our readings. Each data packet is acknowledged at
//! once. A transmission is lost when three later ones were echoed, or when its timeout (RFC 6298) has passed. What is lost is
//! retransmitted before new data, within the same rate. The receiver takes whatever comes: the rate is the only limit.

mod connection;
mod content;
mod pacer;
mod receiver;
mod sender;
mod wire;

use crate::coordination::{self, Coordination, FIRST_RATE, Identity, MOST_RATE, address};
use crate::guide::Guide;
use crate::ranges::within;
use crate::{End, Endpoint, Setup, Transport};
use connection::Connection;
use pacer::Pacer;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Ecn, Random, Rate};
use weir_coord::scheme;

/// The CP transport's number in the header.
const PROTOCOL: u8 = 1;

/// Parameters of CP-RUDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The application's id at the aggregation points (0 to 31); without one, the flow keeps `rate` and has no CP header.
    #[serde(deserialize_with = "application")]
    #[schemars(range(max = 31))]
    pub application: Option<u8>,
    /// How the application's flows split what it may send.
    pub scheme: scheme::Config,
    /// The general-purpose address (0 to 249) at which its flows write their numbers for the scheme.
    #[serde(deserialize_with = "address")]
    #[schemars(range(max = 249))]
    pub address: u8,
    /// The rate before the first report, and without aggregation points.
    pub rate: Rate,
    /// The most that the flow ever sends, whatever is reported.
    pub max_rate: Rate,
    /// Whether the flow says, while it has data, that it is urgent: the scheme `priority` then gives it what others do not keep.
    pub urgent: bool,
    /// Whether the send buffer is sized by the rate of a flowshare, as equation 6.2 is printed, and not by the flow's own rate.
    pub buffer_by_flowshare: bool,
    /// By which part of its length a gap between two packets may be longer or shorter, drawn for each, so that flows of one rate do not
    /// send in step.
    #[serde(deserialize_with = "jitter")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// How many packets leave together, with a gap as long as all of theirs behind them; at most all but one of those that a round
    /// trip takes, and one at a time while a loss is repaired. TCP with delayed acknowledgements sends two.
    #[serde(deserialize_with = "burst")]
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
    /// Whether each message, a frame of an ensemble, begins with a packet of its own. Otherwise a packet is filled up with the next one.
    pub messages_apart: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            application: None,
            scheme: coordination::equal(),
            address: 0,
            rate: FIRST_RATE,
            max_rate: MOST_RATE,
            urgent: false,
            buffer_by_flowshare: false,
            jitter: 0.0,
            burst: 1,
            messages_apart: false,
        }
    }
}

impl Parameters {
    /// What this flow's rate follows.
    fn guide(&self, identity: &Identity) -> Guide {
        let Parameters { rate, max_rate, address, urgent, .. } = *self;
        let Some(application) = self.application else { return Guide::fixed(rate.min(max_rate)) };
        let scheme = self.scheme.clone();
        let coordination = Coordination { application, scheme, address, rate, max_rate, urgent };
        let guide = Guide::new(&coordination, PROTOCOL, identity);
        if self.buffer_by_flowshare { guide.with_buffer_by_flowshare() } else { guide }
    }
}

/// The end of a connection that carries real bytes: what is written has all its bytes in `head`, and what is read. IP packets are at
/// most `packet` bytes long, `ip_header` of them the IP header.
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
    // Written out without an application, it is null.
    struct Id(u8);
    impl<'de> Deserialize<'de> for Id {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
            coordination::application(deserializer).map(Id)
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
            let connection = Connection::new(guide, pacer, packet, setup.ip_header, setup.ecn);
            End::Other(Box::new(if self.messages_apart {
                connection.with_messages_apart()
            } else {
                connection
            }))
        })
    }
}
