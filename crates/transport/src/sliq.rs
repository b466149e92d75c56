//! SLIQ in the registry. The transport itself is `weir_sliq`.

use crate::{End, Transport};
use weir_base::Bytes;
use weir_endpoint::{FullPacket, Setup};
pub(crate) use weir_sliq::Parameters;

impl Transport for Parameters {
    fn carries(&self, _: bool) -> bool {
        true
    }
    /// A connection that flows share may be open when a flow begins.
    fn has_handshake(&self) -> bool {
        self.connection.is_none()
    }
    fn keys(&self) -> &'static [&'static str] {
        if self.coordination.is_some() { &[] } else { &["cc", "ecn"] }
    }
    fn application(&self) -> Option<u8> {
        Some(self.coordination.as_ref()?.application)
    }
    fn connection(&self) -> Option<&str> {
        self.connection.as_deref()
    }
    fn full_packet(&self, mtu: Bytes, ip_header: Bytes) -> Option<FullPacket> {
        Some(weir_sliq::full_packet(self, mtu, ip_header))
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        weir_sliq::ends(self, setup).map(End::Other)
    }
    #[cfg(feature = "seal")]
    fn protected_ends(&self, setup: &Setup<'_>) -> Option<[End; 2]> {
        Some(weir_sliq::protected_ends(self, setup)?.map(End::Other))
    }
}
