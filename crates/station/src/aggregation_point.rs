//! An aggregation point of the Coordination Protocol in a lab: `weir_coord::Point` at a router. Packets that arrive over one of the links
//! named in the station's configuration come from the path; all others come from the local site. The station sees only packets that pass
//! these links.
//!
//! An application's endpoints are the lab's flows whose transport names the application's number, and no others.

use crate::{Coordinated, Parameters, StationContext};
use core::net::SocketAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{ParameterError, Time};
use weir_coord::config::{Ports, Prefix};
use weir_coord::point::Counters;
use weir_coord::seal::Key;
use weir_coord::{FiveTuple, Packet, Point, Refusal, Side, Verdict, estimator, filter, header};
use weir_fabric::{DatagramView, Net, Station, Wire};

/// Parameters of an aggregation point.
pub(crate) type Config = weir_coord::Config<Application>;

/// An application that an aggregation point serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// The application's number, 0 to 31. The transports of its flows name the same number.
    #[schemars(range(max = 31))]
    pub id: u8,
    /// Maximum number of its flows, 1 to 128.
    #[serde(default = "all_flows")]
    #[schemars(range(min = 1, max = 128))]
    pub flows: u8,
    /// Key that the aggregation point shares with the application's endpoints, 32 hexadecimal digits. Without a key, headers are not
    /// authenticated.
    #[serde(default)]
    #[schemars(with = "Option<String>", example = &"00112233445566778899aabbccddeeff")]
    pub key: Option<Key>,
    /// How the rate of a flowshare is estimated.
    #[serde(default = "tfrc")]
    pub estimator: estimator::Config,
    /// Which packets the estimator uses.
    #[serde(default)]
    pub filter: filter::Config,
}

const fn all_flows() -> u8 {
    header::FLOWS as u8
}

fn tfrc() -> estimator::Config {
    estimator::Config::Tfrc(Default::default())
}

/// The point's configuration for a lab with these endpoints. Applications without endpoints are left out.
fn room(config: &Config, coordinated: &[Coordinated]) -> weir_coord::Config {
    let of = |application: &Application| {
        let own = || coordinated.iter().filter(|flows| flows.application == application.id);
        let hosts: Vec<Prefix> = own().flat_map(|flows| &flows.hosts).copied().map(Prefix::from).collect();
        let first = own().map(|flows| *flows.ports.start()).min()?;
        let last = own().map(|flows| *flows.ports.end()).max()?;
        let ports = Ports::new(first, last)?;
        Some(weir_coord::config::Application {
            id: application.id,
            name: application.id.to_string(),
            local: hosts.clone(),
            local_ports: ports,
            remote: hosts,
            remote_ports: ports,
            flows: application.flows,
            key: application.key,
            estimator: application.estimator.clone(),
            filter: application.filter.clone(),
        })
    };
    config.with(config.application.iter().filter_map(of).collect())
}

impl Parameters for Config {
    fn fault(&self, placed: bool) -> Option<ParameterError> {
        let fault = |key, message: &str, help: &str| Some(ParameterError::new(key, message, help));
        if !placed {
            let help = "write links = [..] with the links to and from the other aggregation point: [\"down\", \"up\"]";
            return fault("links", "an aggregation point needs to know which links belong to the path", help);
        }
        if self.application.is_empty() {
            let help = "write application = [{ id = 1 }], and transport = { kind = \"rudp\", application = 1 } in the traffic";
            return fault("application", "an aggregation point without applications does nothing", help);
        }
        let anyone = |application: &Application| Coordinated {
            application: application.id,
            hosts: vec![[0, 0, 0, 0].into()],
            ports: 0..=u16::MAX,
        };
        let all: Vec<Coordinated> = self.application.iter().map(anyone).collect();
        let error = room(self, &all).check().err()?;
        fault("application", &error.message, error.help.as_deref().unwrap_or_default())
    }
}

/// The state of an aggregation point.
#[derive(Debug)]
pub(crate) struct AggregationPoint {
    point: Point,
    /// Whether the point serves only one application: the names of its measurements then omit the application's number.
    only: bool,
}

impl AggregationPoint {
    pub(crate) fn new(config: &Config, place: &StationContext) -> AggregationPoint {
        let room = room(config, &place.coordinated);
        let only = room.application.len() == 1;
        // Plans check the parameters; a point with wrong ones would serve no application.
        let nobody = || Point::new(&weir_coord::Config::default(), place.seed, 0);
        let point = Point::new(&room, place.seed, 0).or_else(|_| nobody());
        AggregationPoint { point: point.expect("a configuration without applications is sound"), only }
    }
}

fn tuple(source: SocketAddr, destination: SocketAddr) -> FiveTuple {
    FiveTuple {
        source: source.ip(),
        source_port: source.port(),
        destination: destination.ip(),
        destination_port: destination.port(),
    }
}

impl<P: Wire> Station<P> for AggregationPoint {
    fn packet(&mut self, mut packet: P, from: Option<usize>, net: &mut Net<'_, P>) {
        let side = if from.is_some_and(|link| net.is_at(link)) { Side::Path } else { Side::Local };
        let length = packet.wire_length();
        let Some(DatagramView { source, destination, head, checksum }) = packet.datagram() else {
            return net.forward(packet);
        };
        let mut sum = checksum.as_ref().map(|sum| u16::from_be_bytes(**sum));
        let tuple = tuple(source, destination);
        let whole = Packet { side, tuple, length, payload: head, checksum: sum.as_mut() };
        let verdict = self.point.handle(whole, net.now());
        if let Some((field, sum)) = checksum.zip(sum) {
            *field = sum.to_be_bytes();
        }
        match verdict {
            Verdict::Pass | Verdict::Forward => net.forward(packet),
            Verdict::Return if packet.turn_round() => net.forward(packet),
            Verdict::Return | Verdict::Absorb | Verdict::Refuse(_) => net.discard(packet),
        }
    }

    fn next_timer(&self) -> Time {
        self.point.next_timer().unwrap_or(Time::NEVER)
    }

    fn on_timer(&mut self, net: &mut Net<'_, P>) {
        self.point.on_timer(net.now());
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let Counters { outbound, inbound, returned, absorbed, refused, .. } = self.point.counters();
        report("outbound_packets", *outbound as f64);
        report("inbound_packets", *inbound as f64);
        report("returned_packets", *returned as f64);
        report("absorbed_packets", *absorbed as f64);
        for (refusal, name) in Refusal::ALL {
            let count = refused[refusal as usize];
            if count > 0 {
                report(name, count as f64);
            }
        }
        for (id, application) in self.point.applications() {
            application.state(&mut |name, value| match self.only {
                true => report(name, value),
                false => report(&format!("application_{id}_{name}"), value),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str, placed: bool) -> String {
        serde_json::from_str::<Config>(text)
            .unwrap()
            .fault(placed)
            .map_or("none".into(), |fault| fault.message)
    }

    #[test]
    fn invalid_configurations_of_an_aggregation_point_are_refused_before_a_run() {
        assert_eq!(fault(r#"{ "application": [{ "id": 1 }, { "id": 2 }] }"#, true), "none");
        assert!(
            fault(r#"{ "application": [{ "id": 1 }] }"#, false).contains("which links belong to the path")
        );
        assert!(fault("{}", true).contains("without applications"));
        assert!(
            fault(r#"{ "application": [{ "id": 1 }, { "id": 1 }] }"#, true).contains("both have the id 1")
        );
        assert!(fault(r#"{ "application": [{ "id": 32 }] }"#, true).contains("does not fit the header"));
        assert!(
            fault(r#"{ "application": [{ "id": 1 }], "loss_interval": "0 s" }"#, true).contains("is zero")
        );
    }

    #[test]
    fn an_application_consists_only_of_the_endpoints_that_the_lab_names() {
        let config: Config =
            serde_json::from_str(r#"{ "application": [{ "id": 1 }, { "id": 2 }] }"#).unwrap();
        let flows = Coordinated {
            application: 2,
            hosts: vec!["10.0.0.3".parse().unwrap(), "10.0.0.4".parse().unwrap()],
            ports: 23_002..=23_004,
        };
        let whole = room(&config, &[flows]);
        let [application] = &whole.application[..] else { panic!("{whole:?}") };
        assert_eq!((application.id, application.local_ports.to_string()), (2, "23002-23004".into()));
        assert_eq!(application.remote[1].to_string(), "10.0.0.4");
        assert!(whole.check().is_ok());
    }
}
