//! Labs at random, as text: labs that a person could write, and many that no person would. The same number gives the same
//! lab. They are small, a few thousand packets each, and small in every other respect too: times and rates go together.

use std::fmt::Write;
use std::path::Path;
use weir_base::Random;

/// Most packets that the slowest link of a lab carries, about.
const PACKETS: f64 = 1500.0;

/// Files beside the labs: recorded links.
pub(crate) fn write_traces(folder: &Path) {
    let mut random = Random::stream(0, "traces");
    let mut at = 0;
    let opportunities: String = (0..200)
        .map(|_| {
            at += random.below(4);
            format!("{at}\n")
        })
        .collect();
    std::fs::write(folder.join("opportunities"), opportunities + "900\n").unwrap();
    let steps: String =
        (0..40).map(|step| format!("0.0{step:02},{} kbit/s\n", random.below(20_000))).collect();
    std::fs::write(folder.join("steps"), steps).unwrap();
}

/// A lab while it is being written.
pub(crate) struct Writer {
    random: Random,
    text: String,
    /// Rate of the slowest link, in bit/s.
    rate: f64,
    /// How long the run lasts, in microseconds.
    duration: u64,
    /// Round trip of the whole network, in microseconds.
    rtt: u64,
}

/// The lab of this number.
pub(crate) fn lab(number: u64) -> String {
    let mut random = Random::stream_of(20, "labs", number);
    // From 1 kbit/s to 1 Tbit/s, mostly in the middle.
    let exponent = if random.chance(0.15) { 3.0 + 9.0 * random.unit() } else { 5.0 + 3.0 * random.unit() };
    let rate = 10f64.powf(exponent);
    let longest = PACKETS * 12_000.0 / rate * 1e6;
    let duration = (longest * (0.1 + random.unit())).clamp(20.0, 2.5e6) as u64;
    // From far below a packet's time to beyond the end of the run.
    let rtt = (duration as f64 * 10f64.powf(-4.0 + 4.3 * random.unit())) as u64;
    let mut writer = Writer { random, text: String::from("format = 1\n"), rate, duration, rtt };
    writer.run(number);
    writer.network();
    writer.text
}

impl Writer {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.chance(probability)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.text, "{line}").unwrap();
    }

    /// With this probability, a line.
    fn maybe(&mut self, probability: f64, line: impl FnOnce(&mut Writer) -> String) {
        if self.chance(probability) {
            let line = line(self);
            self.line(line);
        }
    }

    /// A time up to this many microseconds, quoted.
    fn time(&mut self, most: u64) -> String {
        format!("'{} us'", self.random.below(most.max(1)))
    }

    /// The same, but never zero.
    fn some_time(&mut self, most: u64) -> String {
        format!("'{} us'", 1 + self.random.below(most.max(1)))
    }

    /// A rate of this many times the lab's, quoted.
    fn rate_of(&mut self, least: f64, most: f64) -> String {
        let rate = self.rate * (least + (most - least) * self.random.unit());
        format!("'{} bit/s'", (rate as u64).clamp(100, 1_000_000_000_000))
    }

    fn share(&mut self) -> String {
        let most = if self.chance(0.1) { 1.0 } else { 0.1 };
        format!("{:.4}", self.random.unit() * most)
    }

    fn run(&mut self, number: u64) {
        let duration = self.duration;
        self.line(format!("[run]\nduration = '{duration} us'\nseed = {number}"));
        let periods = 1 + self.random.below(30);
        self.line(format!("sample = '{} us'", (duration / periods).max(10)));
        self.maybe(0.5, |w| format!("warmup = {}", w.time(duration * 3 / 4)));
        let jitter = if self.chance(0.5) { "'0 us'".into() } else { self.time(duration / 20) };
        self.line(format!("start_jitter = {jitter}"));
        self.maybe(0.5, |w| {
            format!("host_jitter = {}", if w.chance(0.5) { "'0 s'".into() } else { w.time(duration / 100) })
        });
        self.maybe(0.2, |_| "ip = 6".into());
        self.maybe(0.2, |_| "round_trips = 'acknowledgements'".into());
        self.maybe(0.1, |_| "packets = true".into());
    }

    fn network(&mut self) {
        let base = format!("base_rtt = '{} us'", self.rtt.max(1));
        match self.random.below(8) {
            0..4 => {
                self.line("[dumbbell]");
                let rtt = self.rtt;
                self.link(&format!("rtt = '{rtt} us'"));
                self.traffic(&[]);
            }
            4 => {
                let links = 1 + self.random.below(3);
                self.line(format!("[chain]\n{base}"));
                for link in 0..links {
                    self.line(format!("[chain.links.l{link}]"));
                    self.delayed_link(links);
                }
                self.traffic(&[]);
            }
            5 => {
                let links = 1 + self.random.below(3);
                self.line(format!("[parking_lot]\nbottlenecks = {links}\n{base}"));
                self.delayed_link(links);
                let hops: Vec<String> = (1..=links).map(|hop| format!("hop = {hop}")).collect();
                self.traffic(&hops.iter().map(String::as_str).chain([""]).collect::<Vec<_>>());
            }
            6 => {
                self.line(format!("[star]\narms = 3\n{base}"));
                self.delayed_link(2);
                self.traffic(&[
                    "from = 'leaf1'\nto = 'leaf2'",
                    "from = 'leaf3'\nto = 'leaf2'",
                    "from = 'hub'\nto = 'leaf1'",
                ]);
            }
            _ => {
                self.line(format!("[graph]\nrouters = ['a', 'b', 'c']\nhosts = ['h']\n{base}"));
                for (name, from, to) in
                    [("ab", "a", "b"), ("bc", "b", "c"), ("ac", "a", "c"), ("ha", "h", "a")]
                {
                    self.line(format!("[graph.links.{name}]\nfrom = '{from}'\nto = '{to}'"));
                    self.delayed_link(2);
                }
                self.traffic(&[
                    "from = 'a'\nto = 'c'",
                    "from = 'a'\nto = 'c'\nvia = ['b']",
                    "from = 'a'\nto = 'c'\nvia = ['ab', 'bc']\nback = ['ac']",
                    "from = 'h'\nto = 'b'",
                    "from = 'c'\nto = 'h'",
                ]);
            }
        }
    }

    /// One of this many links, with a delay that may differ by direction.
    fn delayed_link(&mut self, links: u64) {
        let most = self.rtt / links + 1;
        let delay = match self.chance(0.7) {
            true => self.time(most),
            false => format!("{{ down = {}, up = {} }}", self.time(most), self.time(most)),
        };
        self.link(&format!("delay = {delay}"));
    }

    /// The properties of a link, after its name.
    fn link(&mut self, delay: &str) {
        self.line(delay);
        let traced = self.rate > 1e5 && self.rate < 1e8 && self.chance(0.15);
        let mut radio = false;
        if traced {
            let file = self.pick(&["opportunities", "steps"]);
            let repeat = self.pick(&["", ", repeat = false"]);
            self.line(format!("rate = {{ trace = '{file}'{repeat} }}"));
        } else {
            let (one, other) = (self.rate_of(1.0, 1.5), self.rate_of(0.2, 2.0));
            radio = self.rate > 1e6 && self.chance(0.1);
            match self.chance(0.7) {
                true => self.line(format!("rate = {one}")),
                false => self.line(format!("rate = {{ down = {one}, up = {other} }}")),
            }
        }
        if radio {
            let stations = self.random.below(4);
            let walk = self.pick(&["0 s", "1 ms", "7 ms"]);
            self.line(format!("wifi = {{ stations = {stations}, walk = '{walk}', max_packets = 20 }}"));
        }
        self.maybe(0.8, |w| {
            let queue = w.queue(true);
            if w.chance(0.8) {
                format!("queue = {queue}")
            } else {
                format!("queue = {{ down = {queue}, up = {} }}", w.queue(true))
            }
        });
        let duration = self.duration;
        self.maybe(0.15, |w| format!("loss = {}", w.share()));
        self.maybe(0.1, |w| format!("corrupt = {}", w.share()));
        self.maybe(0.1, |w| format!("duplicate = {{ down = {}, up = {} }}", w.share(), w.share()));
        self.maybe(0.15, |w| {
            let (up_to, reorder) = (w.time(duration / 10), w.chance(0.5));
            format!("jitter = {{ up_to = {up_to}, reorder = {reorder} }}")
        });
        self.maybe(0.2, |w| {
            let first = w.random.below(duration / 2);
            let (length, second) =
                (w.some_time(duration / 4), first + duration / 3 + w.random.below(duration));
            format!(
                "outage = [{{ at = '{first} us', for = {length} }}, {{ at = '{second} us', for = '9 us' }}]"
            )
        });
        self.maybe(0.2, |w| {
            let first = 1 + w.random.below(3);
            format!(
                "drop = {{ down = [{first}, {}], up = [{}] }}",
                first + 1 + w.random.below(50),
                1 + w.random.below(9)
            )
        });
        self.maybe(0.1, |w| {
            format!("reorder = [{{ packet = {}, by = {} }}]", 60 + w.random.below(60), 1 + w.random.below(9))
        });
        self.maybe(0.2, |w| format!("overhead = '{} B'", w.random.below(100)));
        self.maybe(0.3, |w| {
            let mut at = w.random.below(duration / 2);
            let changes: Vec<String> = (0..1 + w.random.below(4))
                .map(|_| {
                    at += 1 + w.random.below(duration);
                    let what = match w.random.below(if radio { 2 } else { 5 }) {
                        0 => format!("delay = {}", w.time(w.rtt)),
                        1 => format!("loss = {}", w.share()),
                        2 if traced => "rate = { trace = 'steps' }".into(),
                        2 => format!("rate = {}, delay = {}", w.rate_of(0.01, 1.0), w.time(w.rtt)),
                        _ => format!("rate = {}", w.rate_of(0.1, 3.0)),
                    };
                    format!("{{ at = '{at} us', {what} }}")
                })
                .collect();
            format!("schedule = [{}]", changes.join(", "))
        });
    }

    fn limit(&mut self) -> String {
        match self.random.below(4) {
            0 => format!("'{} packets'", 1 + self.random.below(200)),
            1 => format!("'{} B'", 1500 + self.random.below(100_000)),
            2 => self.some_time(self.duration / 5),
            _ => format!("'{:.2} bdp'", 0.1 + 3.0 * self.random.unit()),
        }
    }

    /// Any queue of the registry, often with a limit of its own.
    fn queue(&mut self, nested: bool) -> String {
        let members = weir_queue::Config::members();
        let member = &members[self.random.below(members.len() as u64) as usize];
        let mut parameters = vec![format!("kind = '{}'", member.name)];
        let properties =
            member.parameters.get("properties").and_then(|p| p.as_object()).cloned().unwrap_or_default();
        if properties.contains_key("limit") && self.chance(0.7) {
            parameters.push(format!("limit = {}", self.limit()));
        }
        if properties.contains_key("ecn") && member.name != "step" && self.chance(0.5) {
            parameters.push(format!("ecn = {}", self.chance(0.5)));
        }
        if properties.contains_key("target") && self.chance(0.3) {
            parameters.push(format!("target = {}", self.some_time(self.duration / 10 + 1000)));
        }
        if properties.contains_key("bands") && nested && self.chance(0.7) {
            let (first, second) = (self.queue(false), self.queue(false));
            let filter = self.pick(&["ecn = ['ect1', 'ce']", "ecn = ['ect0']"]);
            parameters.push(format!("bands = [{{ {filter}, queue = {first} }}, {{ queue = {second} }}]"));
        }
        format!("{{ {} }}", parameters.join(", "))
    }

    /// Groups, each at one of these places of the network.
    fn traffic(&mut self, places: &[&str]) {
        let duration = self.duration;
        for group in 0..1 + self.random.below(4) {
            self.line(format!("[traffic.g{group}]"));
            if !places.is_empty() {
                let place = self.pick(places).to_string();
                self.line(place);
            } else {
                self.maybe(0.2, |_| "direction = 'up'".into());
            }
            let (workload, tcp) = self.workload();
            self.line(format!("workload = {workload}"));
            self.maybe(0.2, |w| format!("flows = {}", 1 + w.random.below(4)));
            let start = if self.chance(0.5) { 0 } else { self.random.below(duration / 2) };
            self.line(format!("start = '{start} us'"));
            self.maybe(0.5, |w| {
                format!("stop = '{} us'", start + duration / 20 + 1 + w.random.below(duration))
            });
            self.maybe(0.2, |w| format!("rtt = '{} us'", 6 * w.rtt + w.random.below(w.rtt + 1)));
            self.maybe(0.2, |w| format!("ip = {}", w.pick(&["4", "6"])));
            if tcp {
                self.tcp();
            }
        }
    }

    fn tcp(&mut self) {
        let members = weir_control::Config::members();
        let cc = members[self.random.below(members.len() as u64) as usize].name;
        self.line(format!("cc = '{cc}'"));
        self.maybe(0.3, |w| format!("ecn = {}", w.pick(&["true", "false", "'ect0'", "'ect1'"])));
        self.maybe(0.1, |w| format!("feedback = '{}'", w.pick(&["classic", "dctcp", "accurate"])));
        self.maybe(0.1, |_| "window_scaling = false".into());
        self.maybe(0.15, |_| "sack = false".into());
        self.maybe(0.1, |w| format!("rto_min = '{} ms'", 5 + w.random.below(1500)));
        self.maybe(0.1, |_| "limited_transmit = false".into());
        self.maybe(0.1, |w| {
            let updates = w.pick(&["", "\nwindow_updates = true"]);
            format!("delayed_ack = '{} ms'{updates}", 1 + w.random.below(500))
        });
        self.maybe(0.2, |_| "pacing = true".into());
        self.maybe(0.2, |w| format!("send_buffer = '{} B'", 5000 + w.random.below(500_000)));
        self.maybe(0.2, |w| format!("receive_buffer = '{} B'", 5000 + w.random.below(500_000)));
        self.maybe(0.1, |w| {
            format!(
                "sender_clock = {{ skew_ppm = {}, tick = '{} ms' }}",
                w.random.below(500),
                1 + w.random.below(10)
            )
        });
    }

    fn size(&mut self, most: u64) -> String {
        format!("'{} B'", 1 + self.random.below(most))
    }

    /// A workload, and whether it speaks TCP.
    fn workload(&mut self) -> (String, bool) {
        let duration = self.duration;
        let seconds = duration as f64 / 1e6;
        let rate = self.rate_of(0.01, 1.5);
        let packet = 28 + self.random.below(1473);
        let udp = format!(
            "rate = {rate}, packet = '{packet} B', ecn = '{}', source = '{}'",
            self.pick(&["not-ect", "ect0", "ect1", "ce"]),
            self.pick(&["fabric", "socket"])
        );
        match self.random.below(10) {
            0..3 => (format!("{{ kind = 'bulk', writes = '{}' }}", self.pick(&["greedy", "blocking"])), true),
            3 => (format!("{{ kind = 'transfer', size = {} }}", self.size(500_000)), true),
            4 => {
                let flows = (1 + self.random.below(60)) as f64 / seconds;
                (format!("{{ kind = 'web', rate = {flows:.6}, size = {} }}", self.size(40_000)), true)
            }
            5 => {
                let (request, response) = (self.size(5_000), self.size(60_000));
                let think = if self.chance(0.3) { "'0 s'".into() } else { self.time(duration / 5) };
                (
                    format!(
                        "{{ kind = 'requests', request = {request}, response = {response}, think = {think} }}"
                    ),
                    true,
                )
            }
            6 => (format!("{{ kind = 'http', size = {} }}", self.size(300_000)), true),
            7 => (format!("{{ kind = 'udp', {udp} }}"), false),
            8 => {
                let (on, off) = (1000 + self.random.below(duration / 4 + 1), self.time(duration / 4));
                let times = self.pick(&["fixed", "exponential"]);
                (
                    format!("{{ kind = 'onoff', {udp}, on = '{on} us', off = {off}, times = '{times}' }}"),
                    false,
                )
            }
            _ => {
                let fps = ((1 + self.random.below(60)) as f64 / seconds).min(10_000.0);
                let (size, spread) = (self.size(20_000), self.random.unit() * 0.9);
                let pace = if self.chance(0.5) { "0 s" } else { "3 ns" };
                (
                    format!(
                        "{{ kind = 'frames', fps = {fps:.6}, size = {size}, spread = {spread:.3}, pace = '{pace}', deadline = '{} us' }}",
                        1000 + self.random.below(duration)
                    ),
                    false,
                )
            }
        }
    }
}
