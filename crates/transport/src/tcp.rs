//! TCP in the registry. The transport itself is `weir_tcp`.

use crate::{End, Transport};
use weir_base::Bytes;
use weir_endpoint::{FullPacket, Settings, Setup};
use weir_tcp::HEADER;
pub(crate) use weir_tcp::Parameters;

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        !datagrams
    }
    fn has_handshake(&self) -> bool {
        true
    }
    fn keys(&self) -> &'static [&'static str] {
        &Settings::KEYS
    }
    fn full_packet(&self, mtu: Bytes, ip_header: Bytes) -> Option<FullPacket> {
        let payload = mtu.saturating_sub(ip_header + Bytes::new(HEADER.into()));
        Some(FullPacket { payload, length: mtu })
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        // Not by `map`, which copies each end twice more.
        let [sender, receiver] = weir_tcp::ends(setup);
        [End::Tcp(sender), End::Tcp(receiver)]
    }
}
