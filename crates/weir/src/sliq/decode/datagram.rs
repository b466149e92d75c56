//! A captured datagram of UDP, and the same with another payload (RFC 768, RFC 791, RFC 8200).

use weir_observe::{Frame, Packet, UDP};
use weir_overlay::site::datagram::checksum;

/// Length of UDP's header.
const HEADER: usize = 8;

/// A whole datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram<'a> {
    /// The IP header, with its extensions.
    ip: &'a [u8],
    ports: [u16; 2],
    pub(super) payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// That of a frame whose bytes from the IP header on are `ip`; `None` if it is something else, or was cut by the snap length.
    pub(super) fn of(frame: &Frame<'a>, ip: &'a [u8]) -> Option<Datagram<'a>> {
        let (packet, behind) = Packet::with_bytes(frame).ok()?;
        let header = ip.len() - behind.len();
        // Short frames are padded.
        let whole = ip.get(..packet.length as usize).filter(|_| packet.protocol == UDP)?;
        let payload = whole.get(header + HEADER..)?;
        Some(Datagram { ip: &ip[..header], ports: packet.ports, payload })
    }

    /// The same datagram with this payload, from the IP header on.
    pub(super) fn with(&self, payload: &[u8]) -> Vec<u8> {
        let is_six = self.ip[0] >> 4 == 6;
        let length = (HEADER + payload.len()) as u16;
        let mut packet = self.ip.to_vec();
        if is_six {
            let behind = self.ip.len() as u16 - 40 + length;
            packet[4..6].copy_from_slice(&behind.to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&(self.ip.len() as u16 + length).to_be_bytes());
            packet[10..12].fill(0);
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let at = packet.len();
        for number in [self.ports[0], self.ports[1], length, 0] {
            packet.extend(number.to_be_bytes());
        }
        packet.extend_from_slice(payload);
        if is_six {
            // IPv6 has no datagrams without a checksum; that of IPv4 is left out (RFC 8200, section 8.1).
            let pseudo =
                [&packet[8..40], &u32::from(length).to_be_bytes(), &[0, 0, 0, UDP], &packet[at..]].concat();
            let sum = match checksum(&pseudo) {
                0 => 0xffff,
                sum => sum,
            };
            packet[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Time;

    /// The link type of packets that begin with their IP header (LINKTYPE_RAW).
    const RAW: u16 = 101;

    fn frame(bytes: &[u8]) -> Frame<'_> {
        Frame { at: Time::ZERO, link_type: RAW, bytes, length: bytes.len() as u32 }
    }

    #[test]
    fn a_datagram_gets_another_payload_with_right_lengths_and_checksums() {
        let mut four = vec![0x45, 0, 0, 34, 0, 7, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        four.extend([0x59, 0xd7, 0x59, 0xd7, 0, 14, 0, 0]);
        four.extend(b"sealed");
        // Two bytes of padding, as behind short frames.
        four.extend([0, 0]);
        let plain = Datagram::of(&frame(&four), &four).unwrap();
        assert_eq!(plain.payload, b"sealed");
        let plain = plain.with(b"said");
        assert_eq!((&plain[2..4], &plain[24..26], &plain[28..]), (&[0, 32][..], &[0, 12][..], &b"said"[..]));
        assert_eq!(checksum(&plain[..20]), 0);
        let again = Datagram::of(&frame(&plain), &plain).unwrap();
        assert_eq!((again.ports, again.payload), ([0x59d7; 2], &b"said"[..]));

        let mut six = vec![0x60, 0, 0, 0, 0, 14, UDP, 64];
        six.extend([0xfd; 32]);
        six.extend(&four[20..34]);
        let plain = Datagram::of(&frame(&six), &six).unwrap().with(b"said");
        assert_eq!((&plain[4..6], &plain[48..]), (&[0, 12][..], &b"said"[..]));
        let pseudo = [&plain[8..40], &[0, 0, 0, 12, 0, 0, 0, UDP], &plain[40..]].concat();
        assert_eq!(checksum(&pseudo), 0);
    }

    #[test]
    fn what_is_no_whole_datagram_is_left_as_it_is() {
        let mut tcp = vec![0x45, 0, 0, 40, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        tcp.extend([0; 20]);
        assert!(Datagram::of(&frame(&tcp), &tcp).is_none());
        let cut = [
            0x45, 0, 0, 34, 0, 7, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4, 0, 14, 0, 0,
            b's',
        ];
        assert!(Datagram::of(&frame(&cut), &cut).is_none());
    }
}
