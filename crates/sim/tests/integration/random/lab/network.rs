//! The network of a random lab: its shape, its links, their queues, and the stations at its routers.

use super::Writer;

impl Writer {
    pub(super) fn network(&mut self) {
        let base = format!("base_rtt = '{} us'", self.rtt.max(1));
        match self.random.below(8) {
            0..4 => {
                self.line("[dumbbell]");
                let rtt = self.rtt;
                self.link(&format!("rtt = '{rtt} us'"));
                self.stations(&["left", "right"].map(|router| (router, "'down', 'up'")));
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
                self.stations(&[("hub", "")]);
                self.traffic(&[
                    "from = 'leaf1'\nto = 'leaf2'",
                    "from = 'leaf3'\nto = 'leaf2'",
                    "from = 'hub'\nto = 'leaf1'",
                    "from = 'hub'\nto = ['leaf1', 'leaf2', 'leaf3']",
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
                self.stations(&[("a", "'ab', 'ab-up'"), ("b", "'bc', 'bc-up'"), ("c", "'ac', 'ac-up'")]);
                self.traffic(&[
                    "from = 'a'\nto = 'c'",
                    "from = 'a'\nto = 'c'\nvia = ['b']",
                    "from = 'a'\nto = 'c'\nvia = ['ab', 'bc']\nback = ['ac']",
                    "from = 'h'\nto = 'b'",
                    "from = 'c'\nto = 'h'",
                    "from = 'a'\nto = ['b', 'c']",
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
            1 => format!("'{:.2} bdp'", 0.1 + 3.0 * self.random.unit()),
            _ => self.limit_in_bytes(),
        }
    }

    fn limit_in_bytes(&mut self) -> String {
        if self.chance(0.5) {
            format!("'{} B'", 1500 + self.random.below(100_000))
        } else {
            self.some_time(self.duration / 5)
        }
    }

    /// Any queue of the registry, often with a limit of its own.
    pub(super) fn queue(&mut self, nested: bool) -> String {
        let members = weir_queue::Config::members();
        let member = &members[self.random.below(members.len() as u64) as usize];
        let mut parameters = vec![format!("kind = '{}'", member.name)];
        let properties =
            member.parameters.get("properties").and_then(|p| p.as_object()).cloned().unwrap_or_default();
        if properties.contains_key("limit") && self.chance(0.7) {
            // A token bucket counts bytes.
            let limit = if member.name == "tbf" { self.limit_in_bytes() } else { self.limit() };
            parameters.push(format!("limit = {limit}"));
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

    /// Machines at these routers, at most one at each. An aggregation point needs the names of links to and from others.
    fn stations(&mut self, routers: &[(&str, &str)]) {
        for (router, path) in routers {
            if !self.chance(0.2) {
                continue;
            }
            self.line(format!("[stations.at-{router}]\nat = '{router}'"));
            let duration = self.duration;
            match self.random.below(if path.is_empty() { 3 } else { 6 }) {
                0 => {
                    let (rate, burst, excess) =
                        (self.rate_of(0.1, 1.5), self.size(60_000), self.size(60_000));
                    self.line(format!("kind = 'policer'\nrate = {rate}\nburst = {burst}"));
                    self.maybe(0.5, |_| format!("excess_burst = {excess}"));
                }
                1 => {
                    self.line("kind = 'ecn-bleacher'");
                    for from in ["not_ect", "ect0", "ect1", "ce"] {
                        self.maybe(0.5, |w| {
                            format!("{from} = '{}'", w.pick(&["not-ect", "ect0", "ect1", "ce"]))
                        });
                    }
                }
                2 => self.line("kind = 'echo'"),
                _ => {
                    self.line(format!("kind = 'aggregation-point'\nlinks = [{path}]"));
                    let applications: Vec<String> = (0..1 + self.random.below(3))
                        .map(|id| {
                            let estimator = self.pick(&["tfrc", "rap"]);
                            format!("{{ id = {id}, estimator = '{estimator}' }}")
                        })
                        .collect();
                    self.line(format!("application = [{}]", applications.join(", ")));
                    self.maybe(0.3, |w| format!("flow_lifetime = {}", w.some_time(duration)));
                    self.maybe(0.3, |w| format!("loss_interval = {}", w.some_time(duration)));
                    self.maybe(0.3, |w| format!("reflections_per_second = {}", w.random.below(2000)));
                }
            }
        }
    }
}
