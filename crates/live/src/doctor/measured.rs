//! Measures what this host does to a transfer over a shaped path, with connections between two namespaces that last 350 ms
//! each. Numbers in brackets are sections of F. Alali's study of circuits (University of Virginia, 2016).

use super::{Check, Status, check};
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_base::{Bytes, Rate, Span};
use weir_linux::device::index_of_name;
use weir_linux::ethtool::{missing_offloads, switch_offloads_off};
use weir_linux::namespace::Namespace;
use weir_linux::netlink::{End, Mac, Netlink};
use weir_linux::tcp_info::losses;
use weir_shaper::{Device, Handle, Step, Tbf};

/// How long a connection sends, and how much of that is its start, which is not counted.
const LASTS: Duration = Duration::from_millis(350);
const START: Duration = Duration::from_millis(100);
/// Both ends of the pair of devices.
const DEVICES: [&str; 2] = ["weir-a", "weir-b"];
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const MACS: [Mac; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// Rate of the tried shaper; its bucket; and the payload's share of a frame, 1448 of 1514 bytes. The bucket is twice the
/// largest packet of many segments (45 frames): with a bucket of one such packet, tokens overflowed while the shaper waited for
/// its timer, and 914 of 956 Mbit/s were carried.
const SHAPED: Rate = Rate::from_mbit_per_sec(1000);
const BUCKET: Bytes = Bytes::new(2 * 68_130);
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;
/// Smallest share of the shaper's payload rate that raises no warning.
const ENOUGH: f64 = 0.99;
/// A shaper with room for few packets, and the number of connections that fill it: TCP small queues let each connection have
/// some packets in it.
const NARROW: Rate = Rate::from_mbit_per_sec(100);
const NARROW_LIMIT: Bytes = Bytes::new(15_140);
const MANY: usize = 10;

/// Makes all these checks, in about a second and a half.
pub(super) fn checks() -> Vec<Check> {
    let measured = Pair::new().and_then(|pair| {
        let free = pair.carries(1)?.rate;
        let shaper = pair.shaped(SHAPED, Bytes::new(1 << 20), 1)?;
        let narrow = pair.shaped(NARROW, NARROW_LIMIT, MANY)?;
        pair.switch_offloads_off()?;
        Ok(vec![
            offloads(free, pair.carries(1)?.rate, &devices_without()),
            shaper_carries(&shaper),
            refusals(&narrow),
        ])
    });
    measured.unwrap_or_else(|error| {
        vec![check("measured transfers", Status::Warn, format!("cannot be made: {error}"), "run as root")]
    })
}

/// What connections carried between the two hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Carried {
    rate: Rate,
    retransmitted: u64,
    /// Packets that the shaper had no room for.
    refused: u64,
}

fn offloads(with: Rate, without: Rate, devices: &[(String, Vec<&str>)]) -> Check {
    let share = without.bits_per_sec() as f64 / with.bits_per_sec().max(1) as f64;
    let finding = format!(
        "between two hosts of this machine one connection carries {:.1} Gbit/s, and {:.1} without tso, gso and gro, {:.0} % (4.5.2)",
        with.mbit_per_sec() / 1e3,
        without.mbit_per_sec() / 1e3,
        share * 100.0
    );
    match devices {
        [] => check("offloads", Status::Ok, finding, ""),
        devices => {
            let each =
                |(device, missing): &(String, Vec<&str>)| format!("{device} has {} off", missing.join(", "));
            let told: Vec<String> = devices.iter().map(each).collect();
            let commands = devices.iter().map(|(device, missing)| {
                let on: Vec<String> = missing.iter().map(|what| format!("{what} on")).collect();
                format!("`ethtool -K {device} {}`", on.join(" "))
            });
            let advice =
                format!("{}; not where packets are captured", commands.collect::<Vec<_>>().join(", "));
            check("offloads", Status::Warn, format!("{finding}; {}", told.join(", ")), advice)
        }
    }
}

fn shaper_carries(carried: &Carried) -> Check {
    let most = SHAPED.mbit_per_sec() * PAYLOAD_SHARE;
    let share = carried.rate.mbit_per_sec() / most;
    let finding = format!(
        "through a shaper of {SHAPED} a connection carries {:.1} of {most:.1} Mbit/s of payload, {:.1} % (4.4.3)",
        carried.rate.mbit_per_sec(),
        share * 100.0
    );
    match share >= ENOUGH {
        true => check("shaped transfer", Status::Ok, finding, ""),
        false => check(
            "shaped transfer",
            Status::Warn,
            finding,
            "timers, soft interrupts or programs are late: stop other work, pin the transfer (`taskset`), or give the shaper a larger burst",
        ),
    }
}

fn refusals(carried: &Carried) -> Check {
    let Carried { retransmitted, refused, .. } = *carried;
    let finding = format!(
        "{MANY} connections through a shaper with room for {NARROW_LIMIT}: {refused} packets refused, {retransmitted} retransmitted (3.5.1)"
    );
    match retransmitted == 0 {
        true => check("refusals", Status::Ok, finding, ""),
        false => check(
            "refusals",
            Status::Warn,
            finding,
            "this kernel loses packets that exceed a shaper's queue: make the queue as long as the window, as `weir circuit plan` does",
        ),
    }
}

/// Network cards that have offloads switched off, with the names of those offloads.
fn devices_without() -> Vec<(String, Vec<&'static str>)> {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let cards = entries.filter(|entry| Path::new(&entry.path()).join("device").exists());
    let names = cards.filter_map(|entry| entry.file_name().into_string().ok());
    let without = names.filter_map(|name| Some((missing_offloads(&name).ok()?, name)));
    without.filter(|(missing, _)| !missing.is_empty()).map(|(missing, name)| (name, missing)).collect()
}

/// Two hosts with a pair of devices.
struct Pair {
    hosts: [Namespace; 2],
}

impl Pair {
    fn new() -> io::Result<Pair> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        let end = |at: usize, namespace| End { name: DEVICES[at], mac: MACS[at], namespace };
        hosts[0]
            .inside(|| Netlink::open()?.add_veth(&end(0, None), &end(1, Some(hosts[1].as_fd())), 1500))?;
        for (at, host) in hosts.iter().enumerate() {
            host.inside(|| {
                let (mut netlink, other) = (Netlink::open()?, IpAddr::from(ADDRESSES[1 - at]));
                let device = index_of_name(DEVICES[at]).ok_or(io::ErrorKind::NotFound)?;
                netlink.set_up(device)?;
                netlink.add_address(device, ADDRESSES[at].into())?;
                netlink.add_neighbour(device, other, MACS[1 - at])?;
                netlink.add_route(device, None, other)
            })?;
        }
        Ok(Pair { hosts })
    }

    fn switch_offloads_off(&self) -> io::Result<()> {
        self.hosts
            .iter()
            .zip(DEVICES)
            .try_for_each(|(host, device)| host.inside(|| switch_offloads_off(device)))
    }

    /// What `connections` parallel connections carry while this shaper is at the sender's device.
    fn shaped(&self, rate: Rate, limit: Bytes, connections: usize) -> io::Result<Carried> {
        const ROOT: Handle = Handle::new(1, 0);
        let open = || Device::open(DEVICES[0]).map_err(io::Error::other);
        let burst = BUCKET.min(limit);
        let tbf = Tbf { rate, burst, limit, peakrate: None, mtu: burst };
        self.hosts[0].inside(|| {
            open()?.apply(&Step::Tbf { handle: ROOT, parent: Handle::ROOT, tbf }).map_err(io::Error::other)
        })?;
        let carried = self.carries(connections);
        let refused = self.hosts[0].inside(|| {
            let mut device = open()?;
            let counters = device.counters(&[ROOT]).map_err(io::Error::other)?;
            device.apply(&Step::RemoveRoot).map_err(io::Error::other)?;
            Ok(counters.first().copied().flatten().map_or(0, |counters| counters.drops))
        })?;
        Ok(Carried { refused, ..carried? })
    }

    /// What `connections` parallel connections carry.
    fn carries(&self, connections: usize) -> io::Result<Carried> {
        let listener = self.hosts[1].inside(|| TcpListener::bind((IpAddr::from(ADDRESSES[1]), 0)))?;
        let to = listener.local_addr()?;
        std::thread::scope(|scope| {
            let pairs = (0..connections).map(|_| {
                let stream = self.hosts[0].inside(|| TcpStream::connect(to))?;
                // All transfers use the same control, whatever the system's default. A kernel without CUBIC keeps its default.
                let _ = rustix::net::sockopt::set_tcp_congestion(&stream, "cubic");
                Ok((stream, listener.accept()?.0))
            });
            let pairs: Vec<(TcpStream, TcpStream)> = pairs.collect::<io::Result<_>>()?;
            let began = Instant::now();
            let work = pairs.into_iter().map(|(near, far)| {
                let sending = scope.spawn(move || send(near, began));
                (sending, scope.spawn(move || receive(far, began)))
            });
            let (mut retransmitted, mut bits) = (0, 0);
            for (sending, receiving) in work.collect::<Vec<_>>() {
                let panicked = || io::Error::other("measuring panicked");
                retransmitted += sending.join().map_err(|_| panicked())??;
                bits += receiving.join().map_err(|_| panicked())??.bits_per_sec();
            }
            Ok(Carried { rate: Rate::from_bits_per_sec(bits), retransmitted, refused: 0 })
        })
    }
}

/// Sends until [`LASTS`] is over. Returns the number of retransmitted segments.
fn send(mut stream: TcpStream, began: Instant) -> io::Result<u64> {
    let bytes = [0; 1 << 16];
    while began.elapsed() < LASTS {
        stream.write_all(&bytes)?;
    }
    Ok(losses(&stream)?.retransmitted)
}

/// Receives until the other end closes. Returns the rate after [`START`].
fn receive(mut stream: TcpStream, began: Instant) -> io::Result<Rate> {
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 18]);
    let (mut first, mut last) = (None, Duration::ZERO);
    loop {
        let read = stream.read(&mut buffer)?;
        let at = began.elapsed();
        if read == 0 {
            break;
        }
        match first {
            None if at >= START => first = Some(at),
            None => {}
            Some(_) if at <= LASTS => (bytes, last) = (bytes + read as u64, at),
            Some(_) => {}
        }
    }
    let took = last.saturating_sub(first.unwrap_or_default());
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
    Ok(if bytes == 0 {
        Rate::default()
    } else {
        Rate::from_bytes_in(Bytes::new(bytes), Span::from_nanos(nanos))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disabled_setting_is_reported_with_its_cost_and_how_to_enable_it() {
        let (fast, slow) = (Rate::from_mbit_per_sec(40_000), Rate::from_mbit_per_sec(4_000));
        assert_eq!(offloads(fast, slow, &[]).status, Status::Ok);
        let told = offloads(fast, slow, &[("eth0".into(), vec!["tso", "gro"])]);
        assert!(
            told.finding.contains("carries 40.0 Gbit/s, and 4.0 without")
                && told.finding.contains("eth0 has tso, gro off")
        );
        assert!(told.advice.contains("`ethtool -K eth0 tso on gro on`"), "{told:?}");
    }

    #[test]
    fn a_late_shaper_and_a_kernel_that_loses_packets_are_reported() {
        let carried = |mbits, retransmitted| Carried {
            rate: Rate::from_mbit_per_sec(mbits),
            retransmitted,
            refused: 7,
        };
        assert_eq!(shaper_carries(&carried(950, 0)).status, Status::Ok);
        // 946 of 956.4 are 98.9 %.
        let late = shaper_carries(&carried(946, 0));
        assert!(late.status == Status::Warn && late.finding.contains("98.9 %"), "{late:?}");
        assert_eq!(refusals(&carried(95, 0)).status, Status::Ok);
        let lost = refusals(&carried(95, 3));
        assert!(
            lost.status == Status::Warn && lost.finding.contains("7 packets refused, 3 retransmitted"),
            "{lost:?}"
        );
    }
}
