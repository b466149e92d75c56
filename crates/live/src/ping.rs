//! An echo through an idle network (ICMP, RFC 792; ICMPv6, RFC 4443), which shows how close the live engine's round-trip time
//! is to the configured one. The far host's kernel answers. The near host measures from before the send call to the kernel's
//! receive stamp, as ping(8) does: the time that this process then takes to wake up is not part of it.

use crate::address::address_of;
use crate::frame::checksum;
use crate::pump::{Setup, pump};
use crate::relay::Relay;
use crate::testbed::Testbed;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use weir_base::{Span, not_started};
use weir_linux::clock::{Clock, claim_processor, nanos_of, timespec_of};
use weir_plan::Run;

/// Length of an echo's ICMP part: what ping(8) sends.
const LENGTH: usize = 64;
/// Types of request and reply.
const ECHO: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];
/// Length of an IPv4 header without options. A raw IPv4 socket delivers the header; a raw IPv6 socket does not.
const IP_HEADER: usize = 20;
/// Reads a socket's stamp of the packet received last (socket(7)); the first call switches stamps on.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
/// An echo that takes longer is lost.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sends `count` echoes between the hosts of a run's first group, one at a time with `pause` between them, through the run's
/// network without its traffic. Returns the round-trip time of each echo that was answered, in order.
///
/// # Errors
/// The testbed cannot be built.
pub fn ping(run: &Run, count: u16, pause: Span) -> io::Result<Vec<Span>> {
    let group =
        run.groups.first().ok_or_else(|| io::Error::other("a run without groups has no hosts to ping"))?;
    let pair = group.pairs.first().ok_or_else(|| io::Error::other("the first group has no hosts"))?;
    let testbed = Testbed::build(run)?;
    let host = testbed.hosts.iter().find(|host| host.node == pair.from);
    let host = host.ok_or_else(|| io::Error::other("the first group does not start at a host"))?;
    let (ring, sender) = testbed.open_sockets(run.network.mtu().get() as usize)?;
    let run = Run { flows: vec![], duration: Span::from_secs(3600), ..run.clone() };
    let clock = Clock::starting_in(Span::from_millis(20));
    let stop = AtomicBool::new(false);
    let setup = Setup {
        run: &run,
        clock,
        ring,
        sender,
        devices: testbed.hosts.iter().map(|host| (host.device, host.node)).collect(),
        relay: Relay(channel().0),
        counts: &[],
        cancel: &stop,
        packets: None,
        observer: None,
        changes: channel().1,
        beyond: None,
        elsewhere: &[],
    };
    std::thread::scope(|scope| {
        let pumping = std::thread::Builder::new().spawn_scoped(scope, || pump(setup)).map_err(not_started)?;
        let target = SocketAddr::new(address_of(pair.to, group.ip), 0);
        let times = host.namespace.inside(|| echo(target, count, pause, clock));
        stop.store(true, Ordering::Release);
        pumping.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")))?;
        times
    })
}

/// Sends echoes from the namespace that the calling thread is in.
fn echo(target: SocketAddr, count: u16, pause: Span, clock: Clock) -> io::Result<Vec<Span>> {
    let (family, protocol, types) = match target {
        SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, ECHO),
        SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, ECHO_V6),
    };
    let socket = rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol))?;
    rustix::net::connect(&socket, &target)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(TIMEOUT))?;
    claim_processor();
    let _ = stamp(&socket);
    std::thread::sleep(Duration::from_nanos(clock.until_start().as_nanos()));
    let mut times = Vec::with_capacity(count.into());
    for sequence in 1..=count {
        let sent = clock.now();
        rustix::net::send(&socket, &request(types[0], sequence), SendFlags::empty())?;
        if receive(&socket, types[1], sequence)? {
            times.push(clock.stamps().time(stamp(&socket)?).since(sent));
        }
        let _ = rustix::event::poll(&mut [], Some(&timespec_of(pause)));
    }
    Ok(times)
}

/// The kernel's receive stamp of the packet received last: nanoseconds of `CLOCK_REALTIME`.
fn stamp(socket: &OwnedFd) -> io::Result<u64> {
    let mut stamp = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer names a timespec, which is what this request fills in, and which lives until the call returns.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, &raw mut stamp) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(nanos_of(stamp.tv_sec, stamp.tv_nsec))
}

/// An echo request. The kernel itself writes the checksum of ICMPv6, which also covers the addresses (RFC 3542, section 3.1).
fn request(kind: u8, sequence: u16) -> [u8; LENGTH] {
    let mut packet = [0; LENGTH];
    packet[0] = kind;
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(&packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Waits for the answer to an echo; false when it does not come.
fn receive(socket: &OwnedFd, reply: u8, sequence: u16) -> io::Result<bool> {
    let mut packet = [0; IP_HEADER + LENGTH];
    loop {
        match rustix::net::recv(socket, &mut packet, RecvFlags::empty()) {
            Ok(_) => {
                let icmp = if reply == ECHO_V6[1] { &packet[..] } else { &packet[IP_HEADER..] };
                if icmp[0] == reply && icmp[6..8] == sequence.to_be_bytes() {
                    return Ok(true);
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
