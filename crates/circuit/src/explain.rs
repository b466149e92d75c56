//! A plan in words: each setting with its value, its reason, and the source.

use crate::burst::Reason;
use crate::{Control, Layer, Plan, Timers};
use serde::Serialize;
use weir_base::{Bytes, Rate};

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The setting's name, as in `tc`, `sysctl` or `weir describe`.
    pub name: &'static str,
    /// Its value, as these commands read it.
    pub value: String,
    /// The reason for the value.
    pub reason: String,
    /// The source of the reason: a section of the thesis, or another source.
    pub source: &'static str,
}

/// Campus and top-of-rack switches hold 1 to 10 MB (section 5).
const SWITCH_BUFFER: Bytes = Bytes::new(10_000_000);

/// A size in bytes, with a rounded form beside it.
fn size(bytes: Bytes) -> String {
    match bytes.get() {
        exact @ 0..10_000 => format!("{exact} B"),
        exact @ 10_000..10_000_000 => format!("{exact} B ({:.1} kB)", exact as f64 / 1e3),
        exact => format!("{exact} B ({:.1} MB)", exact as f64 / 1e6),
    }
}

/// A rate with about four significant digits, for a person.
fn rate(rate: Rate) -> String {
    let mbit = rate.mbit_per_sec();
    match mbit {
        1000.0.. => format!("{:.3} Gbit/s", mbit / 1000.0),
        100.0.. => format!("{mbit:.1} Mbit/s"),
        10.0.. => format!("{mbit:.2} Mbit/s"),
        _ => format!("{mbit:.3} Mbit/s"),
    }
}

fn triple(values: [u64; 3]) -> String {
    format!("{} {} {}", values[0], values[1], values[2])
}

impl Plan {
    /// The ceiling of the goodput, as text for a person.
    pub fn told_ceiling(&self) -> String {
        rate(self.ceiling)
    }

    /// The plan line by line.
    pub fn rows(&self) -> Vec<Row> {
        let row = |name, value, reason, source| Row { name, value, reason, source };
        let mut rows = vec![self.control_row(), self.window_row()];
        rows.extend(self.shaper_rows());
        rows.extend(self.memory_rows());
        let (offloads, reason) = if self.request.offloads {
            (
                "tso, gso, gro on",
                "single packets cost the host more; only a capture of single packets needs offloads off",
            )
        } else {
            ("tso, gso, gro off", "as requested; single packets cost the host more (944 Mbit/s fell to 891)")
        };
        rows.push(row("offloads", offloads.into(), reason.into(), "4.5.2"));
        if self.request.timers == Timers::Fine {
            rows.push(row(
                "high-resolution timers",
                "CONFIG_HIGH_RES_TIMERS=y".into(),
                "without them the burst must cover all packets due in one tick (--hz)".into(),
                "4.4.3",
            ));
        }
        rows.push(row(
            "net.ipv4.tcp_window_scaling",
            "1".into(),
            "without it a window is at most 65,535 bytes".into(),
            "4.3.4",
        ));
        rows.extend(self.outcome_rows());
        rows
    }

    fn control_row(&self) -> Row {
        let (value, reason, source) = match self.control {
            Control::Ctcp => ("ctcp", "the rate is reserved, so the sender need not probe for it", "3.2.1"),
            Control::Htcp => {
                ("htcp", "background traffic has priority: the transfer must respond to losses", "3.5.3")
            }
        };
        Row { name: "congestion control", value: value.into(), reason: reason.into(), source }
    }

    fn window_row(&self) -> Row {
        let percent = if self.control == Control::Ctcp { self.request.window_percent } else { 200 };
        let held = size(self.bdp);
        let (name, mut reason, source) = match self.control {
            Control::Ctcp => ("fcwnd", format!("{percent} % of the path's BDP, {held}"), "3.5.1"),
            Control::Htcp => (
                "largest cwnd",
                format!("twice the path's BDP, {held}: half of it, after a loss, still fills the path"),
                "3.5.3",
            ),
        };
        if self.window.get() == 1 << 30 {
            reason += "; bounded by 1 GiB, the most that TCP can advertise (RFC 7323): use parallel streams";
        } else if self.window > SWITCH_BUFFER {
            reason += "; more than switches buffer (1 to 10 MB, section 5): only for a reserved path";
        }
        Row {
            name,
            value: format!("{}, {} segments", size(self.window), self.window_segments),
            reason,
            source,
        }
    }

    fn shaper_rows(&self) -> Vec<Row> {
        let row = |name, value, reason, source| Row { name, value, reason, source };
        let layer = match self.request.layer {
            Layer::Frame => "the circuit's rate, in frames without checksum as tc counts them",
            Layer::Wire => "the circuit's rate without preamble, checksum and gap, which tc does not count",
            Layer::Packet => "the circuit's rate with the Ethernet header, which tc counts",
        };
        let exactly = format!("{}bit", self.shaper_rate.bits_per_sec());
        let burst = match self.burst_reason {
            Reason::Packet => ("one packet: high-resolution timers wake the shaper for each", "4.4.3"),
            Reason::Late => {
                ("the packets due while this host, busy with other work, wakes the shaper late", "4.4.3")
            }
            Reason::Tick => ("rate / HZ: all packets due in one tick leave at once", "4.4.3"),
            Reason::Offloads => {
                ("the largest offloaded packet, with the headers of each segment", "Linux qdisc_pkt_len_init")
            }
        };
        let alone = "the rate: the circuit's class is at the root and borrows no rate";
        let waits = "the whole window and a burst of other traffic, so that no packet is refused: Circuit TCP would lose each one";
        vec![
            row("htb rate", exactly.clone(), layer.into(), "3.2.2"),
            row("htb ceil", exactly, alone.into(), "3.5.2"),
            row("htb burst, cburst", size(self.burst), burst.0.into(), burst.1),
            row("bfifo limit", size(self.limit), waits.into(), "3.5.1"),
        ]
    }

    fn memory_rows(&self) -> Vec<Row> {
        let row = |name, value, reason: &str, source| Row { name, value, reason: reason.into(), source };
        vec![
            row(
                "net.ipv4.tcp_wmem",
                triple(self.tcp_wmem),
                "at the sender: twice the window, since the kernel uses half for data",
                "4.3.3",
            ),
            row(
                "net.ipv4.tcp_rmem",
                triple(self.tcp_rmem),
                "at the receiver: twice the window from the start, since a fixed window does not wait for the buffer to grow",
                "4.3.2",
            ),
            row(
                "net.ipv4.tcp_mem",
                triple(self.tcp_mem),
                "at least, in pages: both buffers below the first threshold, the other two in the kernel's proportion",
                "tcp(7)",
            ),
        ]
    }

    fn outcome_rows(&self) -> Vec<Row> {
        let row = |name, value, reason, source| Row { name, value, reason, source };
        let (payload, frame) = (self.headers.payload.get(), self.headers.frame.get());
        let mut rows = vec![row(
            "ceiling",
            rate(self.ceiling),
            format!("each frame of {frame} bytes carries {payload} of payload: no transfer can be faster"),
            "3.5.3",
        )];
        if self.expected < self.ceiling {
            rows.push(row(
                "expected goodput",
                rate(self.expected),
                "one window each round trip; the window is smaller than the path's BDP".into(),
                "3.5.1",
            ));
        }
        rows.push(row(
            "standing delay",
            format!("{:.3} ms", self.standing_delay.as_millis_f64()),
            "the part of the window above the path's BDP waits in the shaper".into(),
            "3.5.1",
        ));
        if let Some(queue) = self.start_up_queue {
            rows.push(row(
                "start-up queue",
                size(queue),
                "the token bucket starts full: the first burst leaves at the card's rate".into(),
                "4.4.2",
            ));
        }
        rows
    }
}
