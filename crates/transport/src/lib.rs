//! Connections: pure state machines with an explicit clock. Each transport is one module, an [`Endpoint`] and one line in the
//! registry below; whatever drives an endpoint needs to know nothing else.
#![forbid(unsafe_code)]

mod body;
pub mod coordination;
pub mod cp_udp;
mod end;
mod endpoint;
mod guide;
mod layer;
mod paced;
mod ranges;
pub mod rap;
pub mod rudp;
mod settings;
pub mod sliq;
pub mod tcp;
pub mod tfrc;
pub mod udp;

pub use body::{Body, Datagram};
pub use end::End;
pub use endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};
pub use layer::Layer;
pub use settings::{Buffer, RTO_MIN, Settings};

use weir_base::{Bytes, Ecn};

/// What the two ends of a flow's connection are made from, beside the transport's own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// What the group asks for; `None` where the transport has no use for any of it.
    pub settings: Option<&'a Settings>,
    /// Whether the application writes datagrams rather than a stream.
    pub datagrams: bool,
    /// The codepoint of datagrams.
    pub ecn: Ecn,
    /// Largest IP packet.
    pub mtu: Bytes,
    /// Length of the IP header in bytes.
    pub ip_header: u32,
    /// The run's seed.
    pub seed: u64,
    /// Number of the flow.
    pub flow: u64,
}

/// A full packet of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullPacket {
    /// What it carries for the application.
    pub payload: Bytes,
    /// The length of its IP packet.
    pub length: Bytes,
}

/// What a transport's parameters tell of it.
trait Transport {
    /// Whether it carries datagrams, or streams.
    fn carries(&self, datagrams: bool) -> bool;
    /// The keys of a traffic group that it has a use for.
    fn keys(&self) -> &'static [&'static str];
    /// The connection that a group's flows share, by its name, where the transport has streams and the group names one.
    fn connection(&self) -> Option<&str> {
        None
    }
    /// The application of the Coordination Protocol that its packets name.
    fn application(&self) -> Option<u8> {
        None
    }
    /// What stands between an application and a UDP socket at one end of the flow of this number, if anything does.
    fn layer(&self, flow: u64) -> Option<Layer> {
        let _ = flow;
        None
    }
    /// Bytes that such a layer puts before what the application sends in a datagram.
    fn layer_header(&self) -> u32 {
        0
    }
    /// What a full packet of a stream carries, where packets are of at most `mtu` bytes with an IP header of so many; `None` where that
    /// is not known beforehand.
    fn full_packet(&self, mtu: Bytes, ip_header: Bytes) -> Option<FullPacket> {
        let _ = (mtu, ip_header);
        None
    }
    /// The two ends of a flow's connection: at the host that sends the flow's data, and at the one that receives it. Neither is
    /// open.
    fn ends(&self, setup: &Setup<'_>) -> [End; 2];
    /// The same for packets of real bytes, which whoever is on their way could read and make; `None` where there is no randomness.
    #[cfg(feature = "seal")]
    fn protected_ends(&self, setup: &Setup<'_>) -> Option<[End; 2]> {
        Some(self.ends(setup))
    }
}

/// Declares the registry: the configuration enum, and what every transport's parameters tell.
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
        }
    };
}

transports! {
    Tcp(tcp) = "tcp" ("TCP"): "TCP as Linux runs it; live, the kernel's own";
    Udp(udp) = "udp" ("UDP"): "datagrams, with no congestion control";
    CpUdp(cp_udp) = "cp-udp" ("CP-UDP"): "datagrams with a header that aggregation points read, with no congestion control";
    Tfrc(tfrc) = "tfrc" ("TFRC"): "a stream without retransmissions at TFRC's rate (RFC 5348)";
    Rap(rap) = "rap" ("RAP"): "a stream without retransmissions at RAP's rate (Rejaie, Handley and Estrin 1999)";
    Rudp(rudp) = "rudp" ("CP-RUDP"): "a reliable stream at the rate that aggregation points report (CP-RUDP)";
    Sliq(sliq) = "sliq" ("SLIQ"): "streams and datagrams over lossy paths, each with its own reliability (the GNAT report)";
}

impl Config {
    /// Whether it carries datagrams, or streams.
    pub fn carries(&self, datagrams: bool) -> bool {
        self.transport().carries(datagrams)
    }
    /// The keys of a traffic group that it has a use for.
    pub fn keys(&self) -> &'static [&'static str] {
        self.transport().keys()
    }
    /// The connection that a group's flows share, by its name, where the transport has streams and the group names one.
    pub fn connection(&self) -> Option<&str> {
        self.transport().connection()
    }
    /// The application of the Coordination Protocol that its packets name.
    pub fn application(&self) -> Option<u8> {
        self.transport().application()
    }
    /// What stands between an application and a UDP socket at one end of the flow of this number, if anything does.
    pub fn layer(&self, flow: u64) -> Option<Layer> {
        self.transport().layer(flow)
    }
    /// Bytes that such a layer puts before what the application sends in a datagram.
    pub fn layer_header(&self) -> u32 {
        self.transport().layer_header()
    }
    /// What a full packet of a stream carries, where packets are of at most `mtu` bytes with an IP header of so many; `None` where that
    /// is not known beforehand.
    pub fn full_packet(&self, mtu: Bytes, ip_header: Bytes) -> Option<FullPacket> {
        self.transport().full_packet(mtu, ip_header)
    }
    /// The two ends of a flow's connection: at the host that sends the flow's data, and at the one that receives it. Neither is
    /// open.
    pub fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        self.transport().ends(setup)
    }
    /// The same for packets of real bytes, which are sealed if that is asked for; `None` where there is no randomness for keys.
    #[cfg(feature = "seal")]
    pub fn protected_ends(&self, setup: &Setup<'_>) -> Option<[End; 2]> {
        self.transport().protected_ends(setup)
    }
}
