//! An rtnetlink socket for traffic control. Each request waits for the kernel's answer.

use crate::message::{Message, attributes, push, word};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NLMSG_DONE, NLMSG_ERROR,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// Requests (include/uapi/linux/rtnetlink.h, `RTM_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    NewLink = 16,
    GetLink = 18,
    NewQdisc = 36,
    DeleteQdisc = 37,
    GetQdisc = 38,
    NewClass = 40,
    DeleteClass = 41,
    GetClass = 42,
    NewFilter = 44,
    DeleteFilter = 45,
    GetFilter = 46,
}

/// How a change treats an existing object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Adds an object; it must not exist.
    Add,
    /// Adds an object, or replaces the existing one.
    Replace,
    /// Deletes an object.
    Delete,
}

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct ifinfomsg`; IFLA_MTU and IFLA_TXQLEN (include/uapi/linux/if_link.h).
const LINK: usize = 16;
const MTU: u16 = 4;
const QUEUE: u16 = 13;
/// How often a list is requested, if it changes while it is read.
const ATTEMPTS: usize = 10;

/// An rtnetlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Requests a change, and waits until it is made.
    pub(crate) fn change(&mut self, kind: Kind, how: How, message: &Message) -> io::Result<()> {
        let flags = match how {
            How::Add => NLM_F_CREATE | NLM_F_EXCL,
            How::Replace => NLM_F_CREATE | NLM_F_REPLACE,
            How::Delete => 0,
        };
        self.send(kind, flags | NLM_F_ACK, &message.encode())?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    /// Lists objects: all that match the message's device and parent.
    pub(crate) fn list(&mut self, kind: Kind, of: &Message) -> io::Result<Vec<Message>> {
        for _ in 0..ATTEMPTS {
            self.send(kind, NLM_F_DUMP, &of.encode())?;
            let mut found = vec![];
            let whole = self.receive(&mut |bytes| found.extend(Message::decode(bytes)))?;
            if whole {
                // A list of disciplines holds those of every device.
                found.retain(|message| message.index == of.index);
                return Ok(found);
            }
        }
        Err(io::Error::other("the shapers of the device changed while they were read"))
    }

    /// The MTU of a device in bytes, and its queue length in packets.
    pub(crate) fn sizes(&mut self, index: u32) -> io::Result<(u32, u32)> {
        let mut body = vec![0; LINK];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        self.send(Kind::GetLink, NLM_F_ACK, &body)?;
        let mut told = vec![];
        self.receive(&mut |bytes| told.extend(bytes.get(LINK..).map(attributes)))?;
        let of = |kind: u16| {
            let (_, value) = told.iter().flatten().find(|(has, _)| *has == kind)?;
            word(value, 0)
        };
        of(MTU).zip(of(QUEUE)).ok_or_else(|| io::Error::other("the kernel reports no MTU for the device"))
    }

    /// Makes a pair of veth devices in this namespace, with this queue length and MTU, for trials.
    pub(crate) fn add_scratch(&mut self, name: &str, queue: u32, mtu: u32) -> io::Result<()> {
        /// IFLA_IFNAME, IFLA_LINKINFO with IFLA_INFO_KIND (include/uapi/linux/if_link.h).
        const NAME: u16 = 3;
        const INFO: u16 = 18;
        const INFO_KIND: u16 = 1;
        let mut body = vec![0; LINK];
        push(&mut body, NAME, &[name.as_bytes(), b"\0"].concat());
        push(&mut body, MTU, &mtu.to_ne_bytes());
        push(&mut body, QUEUE, &queue.to_ne_bytes());
        let mut info = vec![];
        push(&mut info, INFO_KIND, b"veth\0");
        push(&mut body, INFO, &info);
        self.send(Kind::NewLink, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &body)?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    fn send(&mut self, kind: Kind, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend((kind as u16).to_ne_bytes());
        bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        self.socket.send(&bytes, 0).map(|_| ())
    }

    /// Reads an answer to its end. Returns false if the kernel says that the list changed while it was read.
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut whole = true;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let mut rest = answer.as_slice();
            while let Some(header) = rest.get(..HEADER) {
                let length = (word(header, 0).unwrap_or(0) as usize).clamp(HEADER, rest.len());
                let body = &rest[HEADER..length];
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                if word(header, 8) != Some(self.sequence) {
                    continue;
                }
                whole &= u16::from_ne_bytes([header[6], header[7]]) & NLM_F_DUMP_INTR == 0;
                match u16::from_ne_bytes([header[4], header[5]]) {
                    NLMSG_ERROR => {
                        let code = word(body, 0).unwrap_or(0).cast_signed();
                        return if code == 0 { Ok(whole) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    NLMSG_DONE => {
                        // A list that failed half-way ends with an error (netlink_dump_done).
                        let code = word(body, 0).unwrap_or(0).cast_signed();
                        return if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(whole) };
                    }
                    _ => each(body),
                }
            }
        }
    }
}
