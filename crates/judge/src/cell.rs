//! A cell of the judge: a dumbbell with one or two groups of flows, described by types, written as a lab that a person could
//! write, and as a flat list of keys for the decision tree.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// What the judge runs on both engines.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its title.
    pub title: String,
    /// Length of a run, in seconds.
    pub duration: u32,
    /// Length of the part that is not measured, in seconds: so short that the start's transient is measured in part.
    pub warmup: u32,
    /// Rate of the bottleneck, in Mbit/s.
    pub rate: f64,
    /// Base round-trip time, in ms.
    pub rtt: f64,
    /// The queue in front of the bottleneck, in both directions.
    pub queue: Queue,
    /// What else the link does.
    pub extras: Vec<Extra>,
    /// One or two groups.
    pub groups: Vec<Group>,
}

/// A queue of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Its name in labs.
    pub kind: String,
    /// Its limit; `None` is the discipline's default.
    pub buffer: Option<Buffer>,
    /// Other parameters, as TOML.
    pub parameters: Vec<(String, String)>,
}

/// How much a queue holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Buffer {
    /// Bandwidth-delay products.
    Bdp(f64),
    /// Packets.
    Packets(u32),
}

/// A property of the link beyond rate, delay and queue.
#[derive(Debug, Clone, PartialEq)]
pub enum Extra {
    /// Random loss on the way down.
    Loss {
        /// Share of packets, in percent.
        percent: f64,
        /// Mean length of a burst in packets; 1 for independent losses.
        burst: u32,
    },
    /// Random delay.
    Jitter {
        /// The longest, in ms.
        up_to: f64,
        /// Whether packets overtake each other.
        reorder: bool,
    },
    /// A policer in front of the link.
    Policer {
        /// Its rate, in Mbit/s.
        rate: f64,
        /// Its burst, in kB.
        burst: f64,
    },
    /// Changes of the rate: seconds and Mbit/s.
    Schedule(Vec<(u32, f64)>),
    /// Another rate on the way up, in Mbit/s.
    Up(f64),
    /// IPv6 instead of IPv4.
    Ip6,
}

/// A group of flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// Its controller, as labs name it.
    pub cc: String,
    /// How many flows it has.
    pub flows: u32,
    /// What its applications do.
    pub workload: Workload,
    /// Whether its data flows up, against the other group's.
    pub up: bool,
    /// When its flows start, in seconds.
    pub start: u32,
    /// Settings of its connections, key and TOML.
    pub settings: Vec<(&'static str, String)>,
}

/// What an application does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Workload {
    /// A stream that always has data to send.
    Bulk,
    /// A stream of this many kB.
    Transfer(f64),
    /// Short flows with this load, in Mbit/s.
    Web(f64),
    /// Requests with answers of this many kB, and think times of this many ms.
    Requests(f64, f64),
    /// UDP at this rate in Mbit/s, on and off for this many ms.
    OnOff(f64, f64),
    /// Media frames of this many kB, thirty a second, with a deadline in ms.
    Frames(f64, f64),
}

impl Workload {
    /// Its name in labs.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Bulk => "bulk",
            Workload::Transfer(_) => "transfer",
            Workload::Web(_) => "web",
            Workload::Requests(..) => "requests",
            Workload::OnOff(..) => "onoff",
            Workload::Frames(..) => "frames",
        }
    }
    /// Whether TCP carries it.
    pub fn is_stream(self) -> bool {
        !matches!(self, Workload::OnOff(..) | Workload::Frames(..))
    }
}

/// A value of a key of the decision tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
}

/// A number without trailing zeros.
pub fn plain(number: f64) -> String {
    format!("{number}")
}

/// A rate with its unit.
fn rate(mbit: f64) -> String {
    match mbit {
        rate if rate >= 1000.0 => format!("{} Gbit/s", plain(round(rate / 1000.0, 2))),
        rate if rate < 1.0 => format!("{} kbit/s", plain(round(rate * 1000.0, 2))),
        rate => format!("{} Mbit/s", plain(rate)),
    }
}

/// A number with this many significant digits.
pub fn round(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits.saturating_sub(1)).parse().unwrap_or(number)
}

impl Buffer {
    fn text(self) -> String {
        match self {
            Buffer::Bdp(factor) => format!("\"{} bdp\"", plain(factor)),
            Buffer::Packets(count) => format!("\"{count} packets\""),
        }
    }
}

impl Queue {
    /// Tail drop with this limit.
    pub fn tail_drop(buffer: Buffer) -> Queue {
        Queue { kind: "tail-drop".into(), buffer: Some(buffer), parameters: Vec::new() }
    }

    /// As TOML.
    pub fn toml(&self) -> String {
        let limit = self.buffer.iter().map(|buffer| format!("limit = {}", buffer.text()));
        let rest = self.parameters.iter().map(|(key, value)| format!("{key} = {value}"));
        let inner: Vec<String> = limit.chain(rest).collect();
        match inner.is_empty() {
            true => format!("\"{}\"", self.kind),
            false => format!("{{ kind = \"{}\", {} }}", self.kind, inner.join(", ")),
        }
    }
}

impl Workload {
    fn toml(self) -> String {
        let name = self.name();
        let rest = match self {
            Workload::Bulk => String::new(),
            Workload::Transfer(kb) => format!(", size = \"{} kB\"", plain(kb)),
            Workload::Web(load) => format!(", load = \"{}\"", rate(load)),
            Workload::Requests(kb, think) => {
                format!(", response = \"{} kB\", think = \"{} ms\"", plain(kb), plain(think))
            }
            Workload::OnOff(mbit, ms) => {
                format!(", rate = \"{}\", on = \"{} ms\", off = \"{} ms\"", rate(mbit), plain(ms), plain(ms))
            }
            Workload::Frames(kb, deadline) => {
                format!(", size = \"{} kB\", deadline = \"{} ms\"", plain(kb), plain(deadline))
            }
        };
        format!("{{ kind = \"{name}\"{rest} }}")
    }
}

impl Extra {
    /// Its name in the tree and in descriptions.
    pub fn name(&self) -> &'static str {
        match self {
            Extra::Loss { .. } => "loss",
            Extra::Jitter { .. } => "jitter",
            Extra::Policer { .. } => "policer",
            Extra::Schedule(_) => "schedule",
            Extra::Up(_) => "slower way up",
            Extra::Ip6 => "IPv6",
        }
    }

    fn words(&self) -> String {
        match self {
            Extra::Loss { percent, burst: 1 } => format!("loss {} %", plain(*percent)),
            Extra::Loss { percent, burst } => format!("loss {} % in bursts of {burst}", plain(*percent)),
            Extra::Jitter { up_to, reorder: true } => format!("reordering by up to {} ms", plain(*up_to)),
            Extra::Jitter { up_to, .. } => format!("jitter {} ms", plain(*up_to)),
            Extra::Policer { rate: mbit, .. } => format!("policer {}", rate(*mbit)),
            Extra::Schedule(steps) => {
                let steps: Vec<String> =
                    steps.iter().map(|(at, mbit)| format!("{} at {at} s", rate(*mbit))).collect();
                format!("then {}", steps.join(", "))
            }
            Extra::Up(mbit) => format!("up {}", rate(*mbit)),
            Extra::Ip6 => "IPv6".into(),
        }
    }
}

impl Cell {
    /// The lab file.
    pub fn toml(&self) -> String {
        let mut text = format!("format = 1\ntitle = \"{}\"\n\n[run]\n", self.title);
        let mut line = |line: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        };
        line(format!("duration = \"{} s\"\nwarmup = \"{} s\"", self.duration, self.warmup));
        if self.extras.contains(&Extra::Ip6) {
            line("ip = 6".into());
        }
        line("\n[dumbbell]".into());
        match self.extras.iter().find_map(|extra| if let Extra::Up(up) = extra { Some(*up) } else { None }) {
            Some(up) => line(format!("rate = {{ down = \"{}\", up = \"{}\" }}", rate(self.rate), rate(up))),
            None => line(format!("rate = \"{}\"", rate(self.rate))),
        }
        line(format!("rtt = \"{} ms\"\nqueue = {}", plain(self.rtt), self.queue.toml()));
        for extra in &self.extras {
            match extra {
                Extra::Loss { percent, burst: 1 } => line(format!("loss = \"{} %\"", plain(*percent))),
                Extra::Loss { percent, burst } => {
                    line(format!("loss = {{ mean = \"{} %\", burst = {burst} }}", plain(*percent)));
                }
                Extra::Jitter { up_to, reorder: false } => line(format!("jitter = \"{} ms\"", plain(*up_to))),
                Extra::Jitter { up_to, .. } => {
                    line(format!("jitter = {{ up_to = \"{} ms\", reorder = true }}", plain(*up_to)));
                }
                Extra::Schedule(steps) => {
                    let steps: Vec<String> = steps
                        .iter()
                        .map(|(at, mbit)| format!("{{ at = \"{at} s\", rate = \"{}\" }}", rate(*mbit)))
                        .collect();
                    line(format!("schedule = [{}]", steps.join(", ")));
                }
                Extra::Policer { .. } | Extra::Up(_) | Extra::Ip6 => {}
            }
        }
        for extra in &self.extras {
            if let Extra::Policer { rate: mbit, burst } = extra {
                line(format!(
                    "\n[stations.policer]\nat = \"left\"\nlinks = [\"down\"]\nkind = \"policer\"\nrate = \"{}\"\nburst = \"{} kB\"",
                    rate(*mbit),
                    plain(*burst)
                ));
            }
        }
        for group in &self.groups {
            line(group.toml());
        }
        text
    }

    /// The lab in a line.
    pub fn line(&self) -> String {
        let mut parts = vec![rate(self.rate), format!("{} ms", plain(self.rtt))];
        parts.push(match self.queue.buffer {
            Some(Buffer::Bdp(factor)) => format!("{} of {} BDP", self.queue.kind, plain(factor)),
            Some(Buffer::Packets(count)) => format!("{} of {count} packets", self.queue.kind),
            None => self.queue.kind.clone(),
        });
        parts.extend(self.extras.iter().map(Extra::words));
        let groups: Vec<String> = self.groups.iter().map(Group::words).collect();
        format!("{}: {}", parts.join(", "), groups.join(" and "))
    }

    /// Whether sizes and times of flows, or of a source that pauses, are drawn from the seed.
    pub fn draws_traffic(&self) -> bool {
        self.groups.iter().any(|group| matches!(group.workload, Workload::Web(_) | Workload::OnOff(..)))
    }

    /// Time of a full packet at the bottleneck, in ms.
    pub fn packet_ms(&self) -> f64 {
        PACKET_BITS / (self.rate * 1000.0)
    }

    /// Bandwidth-delay product in packets.
    pub fn bdp(&self) -> f64 {
        self.rate * self.rtt * 1000.0 / PACKET_BITS
    }

    /// The cell as a flat list of keys and values, the same keys for every cell.
    pub fn keys(&self) -> Vec<(String, Value)> {
        let bdp = self.bdp();
        let (limit, packets) = match self.queue.buffer {
            Some(Buffer::Bdp(factor)) => (factor, factor * bdp),
            Some(Buffer::Packets(count)) => (f64::from(count) / bdp.max(1e-9), f64::from(count)),
            None => (1000.0 / bdp.max(1e-9), 1000.0),
        };
        let flows: u32 = self.groups.iter().map(|group| group.flows).sum();
        let number = |key: &str, value: f64| (key.to_owned(), Value::Number(round(value, 3)));
        let name = |key: &str, value: &str| (key.to_owned(), Value::Name(value.to_owned()));
        let mut keys = vec![
            number("rate (Mbit/s)", self.rate),
            number("rtt (ms)", self.rtt),
            number("BDP (packets)", bdp),
            number("limit (BDP)", limit),
            number("limit (packets)", packets),
            number("flows", f64::from(flows)),
            name("queue", &self.queue.kind),
        ];
        for extra in ["loss", "jitter", "policer", "schedule", "slower way up", "IPv6"] {
            let has = self.extras.iter().any(|it| it.name() == extra);
            keys.push(name(extra, if has { "yes" } else { "no" }));
        }
        let loss = self.extras.iter().find_map(|extra| match extra {
            Extra::Loss { percent, .. } => Some(*percent),
            _ => None,
        });
        keys.push(number("loss (%)", loss.unwrap_or(0.0)));
        let reorders = self.extras.iter().any(|extra| matches!(extra, Extra::Jitter { reorder: true, .. }));
        keys.push(name("reordering", if reorders { "yes" } else { "no" }));
        for group in ["a", "b"] {
            let of = self.groups.iter().find(|it| it.name == group);
            let cc = of.map_or("none", |it| if it.workload.is_stream() { it.controller() } else { "UDP" });
            keys.push(name(&format!("controller of {group}"), cc));
            keys.push(name(&format!("workload of {group}"), of.map_or("none", |it| it.workload.name())));
        }
        for setting in SETTINGS {
            let has = self.groups.iter().any(|it| it.settings.iter().any(|(key, _)| *key == setting));
            keys.push(name(setting, if has { "yes" } else { "no" }));
        }
        let up = self.groups.iter().any(|it| it.up);
        keys.push(name("both ways", if up { "yes" } else { "no" }));
        keys
    }
}

/// The settings of connections that a cell may have.
pub const SETTINGS: [&str; 8] =
    ["send_buffer", "receive_buffer", "sack", "ecn", "window_scaling", "pacing", "rto_min", "rtt"];

impl Group {
    /// The name of its controller alone.
    pub fn controller(&self) -> &str {
        self.cc
            .split('"')
            .find(|part| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !part.is_empty())
            .unwrap_or(&self.cc)
    }

    fn toml(&self) -> String {
        let mut text = format!("\n[traffic.{}]", self.name);
        let mut line = |line: String| {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{line}");
        };
        if self.workload.is_stream() {
            line(match self.cc.starts_with('{') {
                true => format!("cc = {}", self.cc),
                false => format!("cc = \"{}\"", self.cc),
            });
        }
        if self.flows > 1 {
            line(format!("flows = {}", self.flows));
        }
        if self.workload != Workload::Bulk {
            line(format!("workload = {}", self.workload.toml()));
        }
        if self.up {
            line("direction = \"up\"".into());
        }
        if self.start > 0 {
            line(format!("start = \"{} s\"", self.start));
        }
        for (key, value) in &self.settings {
            line(format!("{key} = {value}"));
        }
        text
    }

    fn words(&self) -> String {
        let mut words = match (self.flows, self.workload.is_stream()) {
            (1, true) => self.controller().to_owned(),
            (flows, true) => format!("{flows} {}", self.controller()),
            (1, false) => self.workload.name().to_owned(),
            (flows, false) => format!("{flows} {}", self.workload.name()),
        };
        if self.workload.is_stream() && self.workload != Workload::Bulk {
            let _ = write!(words, " {}", self.workload.name());
        }
        if self.up {
            words.push_str(" up");
        }
        if self.start > 0 {
            let _ = write!(words, " from {} s", self.start);
        }
        let settings: Vec<String> =
            self.settings.iter().map(|(key, value)| format!("{key} {}", value.trim_matches('"'))).collect();
        if !settings.is_empty() {
            let _ = write!(words, " ({})", settings.join(", "));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BBR alone behind half a BDP.
    pub(crate) fn plain_cell() -> Cell {
        Cell {
            title: "BBR alone".into(),
            duration: 20,
            warmup: 2,
            rate: 200.0,
            rtt: 30.0,
            queue: Queue::tail_drop(Buffer::Bdp(0.5)),
            extras: vec![],
            groups: vec![Group {
                name: "a",
                cc: "bbr".into(),
                flows: 1,
                workload: Workload::Bulk,
                up: false,
                start: 0,
                settings: vec![],
            }],
        }
    }

    #[test]
    fn a_plain_cell_is_the_lab_that_a_person_would_write() {
        let expected = "format = 1\ntitle = \"BBR alone\"\n\n[run]\nduration = \"20 s\"\nwarmup = \"2 s\"\n\n[dumbbell]\n\
                        rate = \"200 Mbit/s\"\nrtt = \"30 ms\"\nqueue = { kind = \"tail-drop\", limit = \"0.5 bdp\" }\n\n\
                        [traffic.a]\ncc = \"bbr\"\n";
        assert_eq!(plain_cell().toml(), expected);
        assert_eq!(plain_cell().line(), "200 Mbit/s, 30 ms, tail-drop of 0.5 BDP: bbr");
    }

    #[test]
    fn every_cell_has_the_same_keys() {
        let mut other = plain_cell();
        other.extras = vec![Extra::Loss { percent: 1.0, burst: 1 }, Extra::Ip6];
        let names = |cell: &Cell| cell.keys().into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(names(&plain_cell()), names(&other));
    }
}
