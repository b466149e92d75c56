//! Foreign load of the processors, and packets that the kernel dropped outside the fabric: both make live results invalid.

use serde_json::{Map, Value};
use std::io;
use std::time::{Duration, Instant};
use weir_linux::clock::process_time;
use weir_linux::namespace::Namespace;
use weir_linux::netlink::Netlink;

/// Ticks a second in /proc/stat: `USER_HZ`, 100 on every architecture that Linux still supports.
const TICKS: f64 = 100.0;

/// Share of all processors that other programs may use during a run. A larger share holds up the hosts' kernel, which the
/// pump's lateness does not show: with 1.07 of two processors taken by programs of the lowest priority, two flows behind
/// FQ-CoDel at 50 Mbit/s and 40 ms arrived in bursts and waited 5.7 ms on average, against 1.9 ms on the idle machine.
const FOREIGN_SHARE: f64 = 0.5;

/// The state of all processors at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    at: Instant,
    /// Busy ticks of all processors, steal not included.
    busy: f64,
    /// Ticks that the hypervisor gave to others.
    steal: f64,
    own: f64,
}

/// Processor time used between two moments, in cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    /// By other processes, and by the kernel for them.
    pub foreign: f64,
    /// ValueSelector away by the hypervisor.
    pub steal: f64,
}

impl Usage {
    /// Why this load makes a run invalid; `None` if it does not.
    pub(crate) fn verdict(&self, processors: usize) -> Option<String> {
        let allowed = FOREIGN_SHARE * processors as f64;
        let taken = self.foreign + self.steal;
        (taken > allowed).then(|| {
            format!(
                "machine load: others had {taken:.2} of {processors} processors, allowed {allowed:.1}: hosts were held up"
            )
        })
    }
}

impl Load {
    /// Reads the load; `children` is the time that processes of the run have used beside this one. `None` if /proc/stat cannot be read or has another format.
    pub(crate) fn now(children: Duration) -> Option<Load> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        // user nice system idle iowait irq softirq steal (proc_stat(5)); guest time is in user already.
        let ticks: Vec<f64> =
            text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let &[user, nice, system, _, _, irq, softirq, steal, ..] = ticks.as_slice() else { return None };
        Some(Load {
            at: Instant::now(),
            busy: user + nice + system + irq + softirq,
            steal,
            own: process_time().as_secs_f64() + children.as_secs_f64(),
        })
    }

    /// Processor time used since an earlier moment.
    pub(crate) fn since(&self, earlier: &Load) -> Usage {
        let elapsed = self.at.duration_since(earlier.at).max(Duration::from_millis(1)).as_secs_f64();
        let own = (self.own - earlier.own) / elapsed;
        Usage {
            foreign: ((self.busy - earlier.busy) / TICKS / elapsed - own).max(0.0),
            steal: (self.steal - earlier.steal) / TICKS / elapsed,
        }
    }
}

/// Packets that the kernel's per-processor backlogs dropped since boot (second column of softnet_stat, hexadecimal).
pub(crate) fn backlog_drops() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_whitespace().nth(1).and_then(|word| u64::from_str_radix(word, 16).ok()))
        .sum()
}

/// Counters of TCP and UDP for packets that reached the host and were dropped there, for want of room or because they were
/// damaged (`snmp4_net_list` in net/ipv4/proc.c).
const HOST_DROPS: [(&str, &str); 8] = [
    ("TcpExt", "TCPBacklogDrop"),
    ("TcpExt", "TCPRcvQDrop"),
    ("TcpExt", "PFMemallocDrop"),
    ("TcpExt", "TCPOFODrop"),
    // Not InErrs: it also counts a retransmitted SYN-ACK, as after a lost ACK.
    ("Tcp", "InCsumErrors"),
    ("Udp", "RcvbufErrors"),
    ("Udp", "MemErrors"),
    ("Udp", "InCsumErrors"),
];

/// The same counters of UDP over IPv6 (`snmp6_udp6_list` in net/ipv6/proc.c). TCP over IPv6 shares its counters with IPv4.
const HOST_DROPS_V6: [&str; 3] = ["Udp6RcvbufErrors", "Udp6MemErrors", "Udp6InCsumErrors"];

/// Packets dropped in a host by its sockets and by its device: each cause that occurred, with its count.
///
/// # Errors
/// The namespace cannot be entered.
pub(crate) fn host_drops(namespace: &Namespace, device: &str) -> io::Result<Map<String, Value>> {
    namespace.inside(|| {
        let mut drops = Map::new();
        let text = ["netstat", "snmp"]
            .map(|file| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default())
            .concat();
        for (table, counter) in HOST_DROPS {
            if let Some(count) = counter_of(&text, table, counter).filter(|count| *count > 0) {
                drops.insert(format!("{table}.{counter}"), count.into());
            }
        }
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
        for counter in HOST_DROPS_V6 {
            if let Some(count) = counter_of_v6(&text, counter).filter(|count| *count > 0) {
                drops.insert(counter.into(), count.into());
            }
        }
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
        let counters = Netlink::open()?.counters(rustix::net::netdevice::name_to_index(&socket, device)?)?;
        for (name, count) in [("rx_dropped", counters.rx_dropped), ("tx_dropped", counters.tx_dropped)] {
            if count > 0 {
                drops.insert(format!("{device}.{name}"), count.into());
            }
        }
        Ok(drops)
    })
}

/// One counter of the tables of /proc/net/snmp and netstat: a line of names, then a line of values, both begun by the
/// table's name.
fn counter_of(text: &str, table: &str, counter: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(": ")).filter(|(name, _)| *name == table);
    let (names, values) = (lines.next()?.1, lines.next()?.1);
    let place = names.split(' ').position(|name| name == counter)?;
    values.split(' ').nth(place)?.parse().ok()
}

/// One counter of /proc/net/snmp6: a name and a value a line.
fn counter_of_v6(text: &str, counter: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    pairs.find(|(name, _)| *name == counter)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_ipv6_is_found_by_its_name() {
        let text = "Udp6InErrors                    \t1\nUdp6RcvbufErrors                \t22\n";
        assert_eq!(counter_of_v6(text, "Udp6RcvbufErrors"), Some(22));
        assert_eq!(counter_of_v6(text, "Udp6"), None);
    }

    #[test]
    fn a_counter_is_found_by_table_and_name() {
        let text = "TcpExt: A B C\nTcpExt: 1 2 3\nIpExt: A B\nIpExt: 7 8\nUdp: A\nUdp: 9\n";
        assert_eq!(counter_of(text, "TcpExt", "C"), Some(3));
        assert_eq!(counter_of(text, "IpExt", "B"), Some(8));
        assert_eq!(counter_of(text, "Udp", "B"), None);
        assert_eq!(counter_of(text, "Tcp", "A"), None);
    }

    #[test]
    fn a_run_is_invalid_if_other_processes_used_over_half_of_the_processors() {
        let usage = |foreign, steal| Usage { foreign, steal };
        assert_eq!(usage(0.8, 0.2).verdict(2), None);
        let reason = "machine load: others had 1.10 of 2 processors, allowed 1.0: hosts were held up";
        assert_eq!(usage(1.0, 0.1).verdict(2).as_deref(), Some(reason));
        assert_eq!(usage(1.0, 0.1).verdict(4), None);
    }

    #[test]
    fn a_processor_is_used_at_most_completely() {
        let Some(before) = Load::now(Duration::ZERO) else { return };
        std::thread::sleep(Duration::from_millis(50));
        let usage = Load::now(Duration::ZERO).unwrap().since(&before);
        let cores = weir_engine::cores() as f64;
        // /proc/stat counts in hundredths of a second.
        assert!(usage.foreign >= 0.0 && usage.foreign <= cores * 1.5 + 0.5, "{usage:?}");
    }
}
