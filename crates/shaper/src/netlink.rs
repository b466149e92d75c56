//! The requests of traffic control over rtnetlink. Each waits for the kernel's answer.

use crate::message::Message;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use std::io;

/// Requests (include/uapi/linux/rtnetlink.h, `RTM_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
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

/// How often a list is requested, if it changes while it is read.
const ATTEMPTS: usize = 10;

/// An rtnetlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink(weir_linux::netlink::Netlink);

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Netlink> {
        weir_linux::netlink::Netlink::open().map(Netlink)
    }

    /// Requests a change, and waits until it is made.
    pub(crate) fn change(&mut self, kind: Kind, how: How, message: &Message) -> io::Result<()> {
        let flags = match how {
            How::Add => NLM_F_CREATE | NLM_F_EXCL,
            How::Replace => NLM_F_CREATE | NLM_F_REPLACE,
            How::Delete => 0,
        };
        self.0.send(kind as u16, flags | NLM_F_ACK, &message.encode())?;
        self.0.receive(&mut |_| {}).map(|_| ())
    }

    /// Lists objects: all that match the message's device and parent.
    pub(crate) fn list(&mut self, kind: Kind, of: &Message) -> io::Result<Vec<Message>> {
        for _ in 0..ATTEMPTS {
            self.0.send(kind as u16, NLM_F_DUMP, &of.encode())?;
            let mut found = vec![];
            let whole = self.0.receive(&mut |bytes| found.extend(Message::decode(bytes)))?;
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
        self.0.sizes(index)
    }

    /// Makes a pair of veth devices in this namespace, with this queue length and MTU, for trials.
    pub(crate) fn add_scratch(&mut self, name: &str, queue: u32, mtu: u32) -> io::Result<()> {
        self.0.add_scratch(name, queue, mtu)
    }
}
