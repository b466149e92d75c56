//! The transports of labs. Each is one module, an [`weir_endpoint::Endpoint`] and one line in the registry below; a driver needs to know that trait only.
//!
//! TCP and SLIQ are crates of their own (`weir_tcp`, `weir_sliq`); `tcp.rs` and `sliq.rs` register them. The small ones are here.
#![forbid(unsafe_code)]

pub mod cp_udp;
mod end;
mod paced;
pub mod rap;
pub mod relay;
pub mod rudp;
mod sliq;
mod tcp;
pub mod tfrc;
pub mod udp;

pub use end::End;

use std::any::Any;
use weir_base::Bytes;
use weir_coord::layer::Layer;
use weir_endpoint::{FullPacket, Setup};

/// The properties of a transport that follow from its parameters.
trait Transport {
    /// Whether it carries datagrams (`true`) or streams (`false`).
    fn carries(&self, datagrams: bool) -> bool;
    /// The keys of a traffic group that it uses.
    fn keys(&self) -> &'static [&'static str];
    /// Name of the connection that a group's flows share; `None` if the transport has one stream or the group names none.
    fn connection(&self) -> Option<&str> {
        None
    }
    /// Whether the data of each flow waits for a handshake of a round trip.
    fn has_handshake(&self) -> bool {
        false
    }
    /// Id of the Coordination Protocol's application in its packets; `None` without coordination.
    fn application(&self) -> Option<u8> {
        None
    }
    /// The layer between an application and a UDP socket at one end of flow number `flow`; `None` without a layer.
    fn layer(&self, flow: u64) -> Option<Layer> {
        let _ = flow;
        None
    }
    /// Bytes of the layer's header in each datagram; zero without a layer.
    fn layer_header(&self) -> u32 {
        0
    }
    /// A full packet of a stream, if packets are at most `mtu` bytes long, `ip_header` bytes of them the IP header; `None` if its
    /// size is not known beforehand.
    fn full_packet(&self, mtu: Bytes, ip_header: Bytes) -> Option<FullPacket> {
        let _ = (mtu, ip_header);
        None
    }
    /// The two ends of a flow's connection: at the host that sends the flow's data, and at the host that receives it. Neither is
    /// open.
    fn ends(&self, setup: &Setup<'_>) -> [End; 2];
    /// The same for packets of real bytes, which others on the path could read or forge; `None` if no randomness is available.
    #[cfg(feature = "seal")]
    fn protected_ends(&self, setup: &Setup<'_>) -> Option<[End; 2]> {
        Some(self.ends(setup))
    }
}

/// Declares the registry: the configuration enum, and the dispatch to every transport's parameters.
macro_rules! transports {
    ($($Variant:ident($module:ident) = $name:literal $(($title:literal))? : $summary:literal;)+) => {
        weir_base::registry! {
            /// A transport and its parameters, as a lab file names it.
            pub enum Config: "transport" {
                $($Variant($module::Parameters) = $name $(($title))? : $summary;)+
            }
        }

        impl Config {
            fn transport(&self) -> &dyn Transport {
                match self {
                    $(Config::$Variant(parameters) => parameters,)+
                }
            }

            /// The parameters of the transport, as [`weir_endpoint::Endpoint::join`] takes them.
            pub(crate) fn parameters(&self) -> &dyn Any {
                match self {
                    $(Config::$Variant(parameters) => parameters,)+
                }
            }
        }
    };
}

transports! {
    Tcp(tcp) = "tcp" ("TCP"): "TCP as Linux implements it; on the live engine, the kernel's own";
    Udp(udp) = "udp" ("UDP"): "Datagrams without congestion control";
    CpUdp(cp_udp) = "cp-udp" ("CP-UDP"): "Datagrams without congestion control, with a header that aggregation points read";
    Tfrc(tfrc) = "tfrc" ("TFRC"): "A stream at TFRC's rate, without retransmissions (RFC 5348)";
    Rap(rap) = "rap" ("RAP"): "A stream at RAP's rate, without retransmissions (Rejaie, Handley and Estrin 1999)";
    Rudp(rudp) = "rudp" ("CP-RUDP"): "A reliable stream at the rate that aggregation points report (CP-RUDP)";
    Relay(relay) = "relay" ("TCP over the overlay"): "A stream as two TCP proxies of the overlay carry it, each packet admitted by its priority (the GNAT report)";
    Sliq(sliq) = "sliq" ("SLIQ"): "Streams and datagrams over lossy paths, each with a reliability of its own (the GNAT report)";
}

impl Config {
    /// Whether it carries datagrams (`true`) or streams (`false`).
    pub fn carries(&self, datagrams: bool) -> bool {
        self.transport().carries(datagrams)
    }
    /// The keys of a traffic group that it uses.
    pub fn keys(&self) -> &'static [&'static str] {
        self.transport().keys()
    }
    /// Name of the connection that a group's flows share; `None` if the transport has one stream or the group names none.
    pub fn connection(&self) -> Option<&str> {
        self.transport().connection()
    }
    /// Whether the data of each flow waits for a handshake of a round trip.
    pub fn has_handshake(&self) -> bool {
        self.transport().has_handshake()
    }
    /// Id of the Coordination Protocol's application in its packets; `None` without coordination.
    pub fn application(&self) -> Option<u8> {
        self.transport().application()
    }
    /// The layer between an application and a UDP socket at one end of flow number `flow`; `None` without a layer.
    pub fn layer(&self, flow: u64) -> Option<Layer> {
        self.transport().layer(flow)
    }
    /// Bytes of the layer's header in each datagram; zero without a layer.
    pub fn layer_header(&self) -> u32 {
        self.transport().layer_header()
    }
    /// A full packet of a stream, if packets are at most `mtu` bytes long, `ip_header` bytes of them the IP header; `None` if its
    /// size is not known beforehand.
    pub fn full_packet(&self, mtu: Bytes, ip_header: Bytes) -> Option<FullPacket> {
        self.transport().full_packet(mtu, ip_header)
    }
    /// The two ends of a flow's connection: at the host that sends the flow's data, and at the host that receives it. Neither is
    /// open.
    pub fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        self.transport().ends(setup)
    }
    /// The same for packets of real bytes, which are sealed if configured; `None` if no randomness for keys is available.
    #[cfg(feature = "seal")]
    pub fn protected_ends(&self, setup: &Setup<'_>) -> Option<[End; 2]> {
        self.transport().protected_ends(setup)
    }
}
