//! What the kernel says beside a frame of a packet socket (`PACKET_AUXDATA`, packet(7)).

/// Room for the control message of a frame: `struct tpacket_auxdata` behind a `struct cmsghdr`, in words of 8 bytes.
pub(crate) const BESIDE: usize = 8;
/// Length of `struct cmsghdr`.
const HEADER: usize = size_of::<libc::cmsghdr>();

/// What is known of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Auxdata {
    status: u32,
    control: u16,
    protocol: u16,
}

impl Auxdata {
    /// Reads the control message; `None` if it is another one. The option is the only one that is on.
    pub(crate) fn read(beside: &[u64; BESIDE]) -> Option<Auxdata> {
        let mut bytes = [0; 8 * BESIDE];
        for (to, word) in bytes.chunks_exact_mut(8).zip(beside) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let half = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
        // Level and kind of the control message stand behind its length.
        let (level, kind) = (word(HEADER - 8)? as libc::c_int, word(HEADER - 4)? as libc::c_int);
        if (level, kind) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
            return None;
        }
        Some(Auxdata { status: word(HEADER)?, control: half(HEADER + 16)?, protocol: half(HEADER + 18)? })
    }

    /// Whether the frame's transport checksum was left to the device that would have sent it.
    pub(crate) fn lacks_checksum(self) -> bool {
        self.status & libc::TP_STATUS_CSUMNOTREADY != 0
    }

    /// The VLAN tag that the kernel has taken out of the frame, if it has.
    pub(crate) fn tag(self) -> Option<[u8; 4]> {
        if self.status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let is_told = self.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let protocol = if is_told { self.protocol } else { libc::ETH_P_8021Q as u16 };
        let ([a, b], [c, d]) = (protocol.to_be_bytes(), self.control.to_be_bytes());
        Some([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control message with this status, VLAN control and protocol: `struct cmsghdr` with length 36, level 263 and kind 8; then status,
    /// two lengths, two offsets, control, protocol.
    fn beside(status: u32, control: u16, protocol: u16) -> [u64; BESIDE] {
        let mut bytes = [0; 8 * BESIDE];
        bytes[0] = 36;
        bytes[8..16].copy_from_slice(&[263u32.to_ne_bytes(), 8u32.to_ne_bytes()].concat());
        bytes[16..20].copy_from_slice(&status.to_ne_bytes());
        bytes[32..34].copy_from_slice(&control.to_ne_bytes());
        bytes[34..36].copy_from_slice(&protocol.to_ne_bytes());
        std::array::from_fn(|n| u64::from_ne_bytes(*bytes[8 * n..].first_chunk().unwrap()))
    }

    #[test]
    fn the_kernels_information_on_a_tag_is_read() {
        let tag = |status| Auxdata::read(&beside(status, 0x2007, 0x88a8)).unwrap().tag();
        assert_eq!(tag(1 << 4 | 1 << 6), Some([0x88, 0xa8, 0x20, 0x07]));
        assert_eq!((tag(1 << 4), tag(0)), (Some([0x81, 0, 0x20, 0x07]), None));
    }

    #[test]
    fn a_checksum_that_is_left_to_the_device_is_known() {
        let lacks = |status| Auxdata::read(&beside(status, 0, 0)).unwrap().lacks_checksum();
        assert_eq!((lacks(1 << 3), lacks(1)), (true, false));
        assert_eq!(Auxdata::read(&[0; BESIDE]), None);
    }
}
