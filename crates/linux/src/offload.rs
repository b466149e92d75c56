//! The header by which the kernel and a process tell each other what is still to be done to a packet (`struct virtio_net_hdr` of
//! linux/virtio_net.h), in the byte order of this machine.

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the transport checksum is to be filled in; its field has the sum of the pseudo-header.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_UDP_L4`: a bundle of UDP datagrams; and the bit that says ECN.
pub(crate) const UDP_BUNDLE: u8 = 5;
pub(crate) const WITH_ECN: u8 = 0x80;

/// What is to be done to a packet; by default nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offload {
    pub(crate) flags: u8,
    pub(crate) kind: u8,
    /// Length of all headers.
    pub(crate) headers: u16,
    /// Length of the payload of each packet of a bundle.
    pub(crate) segment: u16,
    /// Where the bytes begin that the checksum covers, and where among these it stands.
    pub(crate) checksum_start: u16,
    pub(crate) checksum_offset: u16,
}

impl Offload {
    /// Its length in bytes.
    pub(crate) const LENGTH: usize = size_of::<Offload>();

    /// Its bytes.
    pub(crate) fn bytes(self) -> [u8; Offload::LENGTH] {
        let mut bytes = [self.flags, self.kind, 0, 0, 0, 0, 0, 0, 0, 0];
        let numbers = [self.headers, self.segment, self.checksum_start, self.checksum_offset];
        for (place, number) in bytes[2..].chunks_exact_mut(2).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }
}
