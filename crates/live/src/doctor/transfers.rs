//! Settings that keep large transfers below the rate of their path, after F. Alali's study of circuits (University of Virginia,
//! 2016; numbers in brackets are its sections): this host's value, its cost, and how to mend it.

use super::{Check, Status, check};
use rustix::time::ClockId;
use weir_base::{Bytes, Rate, Span};
use weir_linux::namespace::{Namespace, sysctl};
use weir_shaper::{Class, Device, Handle, Match, Step, Tbf};

/// RTT of the study's wide-area path (3.3). Costs are computed for it.
const RTT: Span = Span::from_millis(26);
/// Less than this is a bottleneck for a host that has a card of 1 Gbit/s.
const ENOUGH: Rate = Rate::from_mbit_per_sec(1000);
/// The largest window without scaling (RFC 9293).
const UNSCALED: u64 = 65_535;
/// `CONFIG_HZ` of most distributions.
const TICKS: u64 = 250;

/// The rate of one connection with a buffer of this many bytes, of which the kernel uses half for the window (4.3).
fn carried(buffer: u64) -> Rate {
    Rate::from_bytes_in(Bytes::new(buffer / 2), RTT)
}

/// A rate in Mbit/s, with one decimal.
fn rounded(rate: Rate) -> String {
    format!("{:.1} Mbit/s", rate.mbit_per_sec())
}

/// Makes all these checks, in some milliseconds.
pub(super) fn checks() -> Vec<Check> {
    let value = |name: &str| sysctl(name).unwrap_or_default();
    let mut all = vec![window_scaling(&value("ipv4.tcp_window_scaling"))];
    all.extend(buffers(&value("ipv4.tcp_rmem"), &value("ipv4.tcp_wmem"), &value("ipv4.tcp_moderate_rcvbuf")));
    all.push(timers(resolution()));
    all.push(shapers());
    all
}

fn window_scaling(value: &str) -> Check {
    let name = "window scaling";
    if value != "0" {
        return check(name, Status::Ok, "on", "");
    }
    let most = rounded(Rate::from_bytes_in(Bytes::new(UNSCALED), RTT));
    let finding =
        format!("off: a window is at most {UNSCALED} bytes, {most} at a round trip of {RTT} (4.3.4)");
    check(name, Status::Warn, finding, "`sysctl net.ipv4.tcp_window_scaling=1`")
}

/// Buffers of receiver and sender. With self-tuning off the receiver's stays at its first value (4.3.5).
fn buffers(receive: &str, send: &str, tuning: &str) -> Vec<Check> {
    let values = |text: &str| -> Vec<u64> { text.split(' ').filter_map(|word| word.parse().ok()).collect() };
    let one = |name, key: &str, value: Option<&u64>, section: &str| {
        let most = carried(*value?);
        let told = rounded(most);
        let finding = format!("one connection carries {told} at most at a round trip of {RTT} ({section})");
        Some(match most >= ENOUGH {
            true => check(name, Status::Ok, finding, ""),
            false => check(
                name,
                Status::Warn,
                finding,
                format!("raise net.ipv4.{key} to twice the window: `weir circuit plan` prints the value"),
            ),
        })
    };
    let (receive, send) = (values(receive), values(send));
    let received = if tuning == "0" { receive.get(1) } else { receive.get(2) };
    let mut all = vec![];
    all.extend(one("receive buffer", "tcp_rmem", received, "4.3.2"));
    all.extend(one("send buffer", "tcp_wmem", send.get(2), "4.3.3"));
    if tuning == "0" {
        let finding = "off: receive buffers stay at the second value of net.ipv4.tcp_rmem (4.3.5)";
        all.push(check("buffer tuning", Status::Warn, finding, "`sysctl net.ipv4.tcp_moderate_rcvbuf=1`"));
    }
    all
}

/// How fine the kernel's timers are: one nanosecond, or a tick.
fn resolution() -> Span {
    let resolution = rustix::time::clock_getres(ClockId::Monotonic);
    Span::from_secs(resolution.tv_sec.unsigned_abs()) + Span::from_nanos(resolution.tv_nsec.unsigned_abs())
}

fn timers(resolution: Span) -> Check {
    let name = "shapers' timers";
    if resolution < Span::from_micros(1) {
        return check(name, Status::Ok, "high resolution: a shaper sends packet by packet (4.4.3)", "");
    }
    let burst = Bytes::new(ENOUGH.bits_per_sec() / 8 / TICKS);
    let finding = format!("a tick of {resolution}: at {ENOUGH} a shaper sends {burst} at once (4.4.3)");
    check(name, Status::Warn, finding, "use a kernel with CONFIG_HIGH_RES_TIMERS, or plan with --hz")
}

/// Tries to set up the shapers of a circuit on a device in a temporary namespace.
fn shapers() -> Check {
    let name = "shapers";
    let tried = Namespace::new().and_then(|namespace| {
        namespace.inside(|| {
            let mut device = Device::scratch("weir-try", 1000, 1500).map_err(std::io::Error::other)?;
            let missing = steps().into_iter().filter(|(_, step)| device.apply(step).is_err());
            Ok(missing.map(|(what, _)| what).collect::<Vec<_>>())
        })
    });
    match tried {
        Ok(missing) if missing.is_empty() => {
            check(name, Status::Ok, "TBF, HTB, bfifo and u32 can be set up", "")
        }
        Ok(missing) => check(
            name,
            Status::Warn,
            format!("the kernel refuses {}: no circuit can be set up here", missing.join(", ")),
            "use a kernel with CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_HTB, CONFIG_NET_SCH_FIFO and CONFIG_NET_CLS_U32",
        ),
        Err(error) => check(name, Status::Warn, format!("cannot be tried: {error}"), "run as root"),
    }
}

fn steps() -> [(&'static str, Step); 5] {
    const TREE: Handle = Handle::new(2, 0);
    const LEAF: Handle = Handle::new(2, 1);
    let (rate, burst) = (Rate::from_mbit_per_sec(10), Bytes::new(15_140));
    let tbf = Tbf { rate, burst, limit: burst, peakrate: None, mtu: burst };
    let class =
        Class { handle: LEAF, parent: TREE, rate, ceil: rate, burst, cburst: burst, quantum: burst, prio: 0 };
    let matches = Match { address: [10, 0, 0, 1].into(), length: 32, port: None };
    [
        ("TBF", Step::Tbf { handle: Handle::new(1, 0), parent: Handle::ROOT, tbf }),
        ("HTB", Step::Htb { handle: TREE, parent: Handle::ROOT, default: 0, direct_limit: 1000 }),
        ("HTB classes", Step::Class(class)),
        ("bfifo", Step::Bfifo { handle: Handle::new(3, 0), parent: LEAF, limit: burst }),
        ("u32", Step::Filter { parent: TREE, matches, class: LEAF }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_setting_is_given_for_26_ms() {
        let off = window_scaling("0");
        // 65,535 bytes in 26 ms.
        assert!(off.finding.contains("20.2 Mbit/s at a round trip of 26 ms"), "{}", off.finding);
        assert_eq!(window_scaling("1").status, Status::Ok);
        // Half of 6,291,456 bytes in 26 ms are 968 Mbit/s; half of 6.5 MB are 1 Gbit/s.
        let usual = buffers("4096 131072 6291456", "4096 16384 6500000", "1");
        assert_eq!((usual[0].status, usual[1].status, usual.len()), (Status::Warn, Status::Ok, 2));
        assert!(usual[0].finding.starts_with("one connection carries 967.9 Mbit/s"), "{}", usual[0].finding);
        let fixed = buffers("4096 131072 67108864", "4096 16384 6500000", "0");
        assert_eq!((fixed[0].status, fixed[2].name), (Status::Warn, "buffer tuning"));
        assert!(fixed[0].finding.starts_with("one connection carries 20.2 Mbit/s"), "{}", fixed[0].finding);
    }

    #[test]
    fn a_coarse_timer_costs_bursts() {
        assert_eq!(timers(Span::from_nanos(1)).status, Status::Ok);
        // 1 Gbit/s for 4 ms.
        assert!(
            timers(Span::from_millis(4)).finding.contains("sends 500 kB at once"),
            "{:?}",
            timers(Span::from_millis(4))
        );
    }
}
