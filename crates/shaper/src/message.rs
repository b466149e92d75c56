//! Messages of traffic control (`struct tcmsg` with attributes, rtnetlink(7)) as bytes. Options are kept as the kernel writes them, so
//! that disciplines that weir does not know can be restored too.

use serde::{Deserialize, Serialize};

/// Attributes of every object (include/uapi/linux/rtnetlink.h, `TCA_*`).
pub(crate) const KIND: u16 = 1;
pub(crate) const OPTIONS: u16 = 2;
pub(crate) const STATS2: u16 = 7;
/// Counters in older and newer form, rate estimates and padding: these are not settings.
const COUNTERS: [u16; 5] = [3, 4, 5, STATS2, 9];
/// Length of `struct tcmsg`.
const HEADER: usize = 20;
/// The flag bits of an attribute's type (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
const FORM: u16 = 0xc000;

/// The handle of an object: a discipline is `major:0`, a class of it `major:minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u32);

impl Handle {
    /// The parent of a device's root discipline (`TC_H_ROOT`).
    pub const ROOT: Handle = Handle(u32::MAX);
    /// The parent of a device's ingress discipline, and of programs beside the root (`TC_H_INGRESS`, `TC_H_CLSACT`).
    pub(crate) const INGRESS: Handle = Handle(0xffff_fff1);
    /// No handle.
    pub const NONE: Handle = Handle(0);

    /// The handle of a discipline or class.
    pub const fn new(major: u16, minor: u16) -> Handle {
        Handle((major as u32) << 16 | minor as u32)
    }
    /// The number of the discipline.
    pub fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// The number of the class within it.
    pub fn minor(self) -> u16 {
        self.0 as u16
    }
}

impl std::fmt::Display for Handle {
    /// As `tc` writes it: hexadecimal, a discipline without its zero.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (*self, self.minor()) {
            (Handle::ROOT, _) => f.write_str("root"),
            (_, 0) => write!(f, "{:x}:", self.major()),
            (_, minor) => write!(f, "{:x}:{minor:x}", self.major()),
        }
    }
}

/// A discipline, a class or a filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Index of its device.
    pub index: u32,
    /// Its handle.
    pub handle: Handle,
    /// Handle of its parent.
    pub parent: Handle,
    /// For a class, the handle of its discipline; for a filter, priority and protocol.
    pub info: u32,
    /// Its attributes in their order.
    pub attributes: Vec<(u16, Vec<u8>)>,
}

impl Message {
    pub(crate) fn new(index: u32, handle: Handle, parent: Handle) -> Message {
        Message { index, handle, parent, info: 0, attributes: vec![] }
    }

    /// The message with a kind and its options, which are a structure or attributes.
    pub(crate) fn with(mut self, kind: &str, options: Vec<u8>) -> Message {
        self.attributes = vec![(KIND, [kind.as_bytes(), b"\0"].concat()), (OPTIONS, options)];
        self
    }

    pub(crate) fn attribute(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(has, _)| *has == kind).map(|(_, value)| value.as_slice())
    }

    /// Name of its kind: `htb`, `bfifo`, `u32`.
    pub(crate) fn kind(&self) -> &str {
        let name = self.attribute(KIND).and_then(|bytes| bytes.split(|byte| *byte == 0).next());
        name.and_then(|name| str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// Whether it has the same handle, parent and kind.
    pub(crate) fn is_called(&self, other: &Message) -> bool {
        (self.handle, self.parent, self.kind()) == (other.handle, other.parent, other.kind())
    }

    /// The message without counters: only settings.
    pub(crate) fn settings(mut self) -> Message {
        self.attributes.retain(|(kind, _)| !COUNTERS.contains(kind));
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for number in [self.index, self.handle.0, self.parent.0, self.info] {
            bytes.extend(number.to_ne_bytes());
        }
        for (kind, value) in &self.attributes {
            push(&mut bytes, *kind, value);
        }
        bytes
    }

    /// `None` if the bytes are shorter than the header.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
        let header = bytes.get(..HEADER)?;
        let number = |at: usize| word(header, at).unwrap_or(0);
        Some(Message {
            index: number(4),
            handle: Handle(number(8)),
            parent: Handle(number(12)),
            info: number(16),
            attributes: attributes(&bytes[HEADER..]),
        })
    }
}

/// The 32-bit number at an offset, in this machine's byte order; `None` if the bytes are too few.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The 64-bit number at an offset, in this machine's byte order; `None` if the bytes are too few.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Appends an attribute, padded to four bytes.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Decodes attributes, up to the first that is not whole.
pub(crate) fn attributes(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all = vec![];
    while let Some(header) = bytes.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & !FORM;
        let Some(value) = bytes.get(4..length) else { break };
        all.push((kind, value.to_vec()));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let message = Message::new(7, Handle::new(0x7765, 0), Handle::ROOT).with("bfifo", vec![1, 2, 3, 4]);
        let bytes = message.encode();
        // 20 bytes of header; "bfifo" with its zero in 10 bytes, padded to 12; 8 for the options.
        assert_eq!(bytes.len(), 40);
        assert_eq!(Message::decode(&bytes), Some(message.clone()));
        assert_eq!((message.kind(), message.attribute(OPTIONS)), ("bfifo", Some([1, 2, 3, 4].as_slice())));
    }

    #[test]
    fn no_bytes_make_the_reader_panic() {
        let message = Message::new(7, Handle::NONE, Handle::ROOT).with("tbf", vec![0; 9]);
        let bytes = message.encode();
        for end in 0..bytes.len() {
            let _ = Message::decode(&bytes[..end]);
        }
        // An attribute of length 0, and one that is longer than the bytes.
        assert_eq!(attributes(&[0, 0, 1, 0, 9, 9]), []);
        assert_eq!(attributes(&[200, 0, 1, 0, 9, 9]), []);
    }

    #[test]
    fn handles_are_written_as_tc_writes_them() {
        let written =
            [Handle::ROOT, Handle::new(0x7765, 0), Handle::new(0x7765, 31)].map(|it| it.to_string());
        assert_eq!(written, ["root", "7765:", "7765:1f"]);
    }
}
