//! The transports of a random lab, with their parameters.

use super::Writer;

impl Writer {
    /// A group's transport, for a stream or for datagrams.
    pub(super) fn transport(&mut self, datagrams: bool, group: u64) {
        match (datagrams, self.random.below(10)) {
            (false, 0..5) => self.tcp(),
            (true, 0..5) => {}
            (_, 5..8) => self.sliq(datagrams, group),
            (true, _) => {
                let (application, version) = (self.random.below(3), 1 + self.random.below(2));
                self.line(format!(
                    "transport = {{ kind = 'cp-udp', application = {application}, version = {version} }}"
                ));
            }
            (false, 8) => self.rudp(),
            (false, _) => {
                let (kind, own) = match self.chance(0.5) {
                    true => ("tfrc", format!("discounting = {}", self.chance(0.5))),
                    false => ("rap", format!("fine_grain = {}", self.chance(0.5))),
                };
                let packet = 100 + self.random.below(1401);
                self.line(format!("transport = {{ kind = '{kind}', packet = '{packet} B', {own} }}"));
            }
        }
    }

    fn scheme(&mut self) -> &'static str {
        self.pick(&["equal", "weighted", "frames", "priority", "ensemble"])
    }

    fn rudp(&mut self) {
        let (rate, most) = (self.rate_of(0.01, 0.5), self.rate_of(0.5, 3.0));
        let mut parameters = vec![format!("kind = 'rudp', rate = {rate}, max_rate = {most}")];
        if self.chance(0.7) {
            let (application, scheme) = (self.random.below(3), self.scheme());
            parameters.push(format!("application = {application}, scheme = '{scheme}'"));
            parameters.push(format!("urgent = {}", self.chance(0.3)));
            parameters.push(format!("buffer_by_flowshare = {}", self.chance(0.3)));
        }
        parameters.push(format!("jitter = {:.3}, burst = {}", self.random.unit(), 1 + self.random.below(64)));
        parameters.push(format!("messages_apart = {}", self.chance(0.3)));
        parameters.push(format!("holes = '{}'", self.pick(&["unused", "once", "each"])));
        self.line(format!("transport = {{ {} }}", parameters.join(", ")));
    }

    fn sliq(&mut self, datagrams: bool, group: u64) {
        let duration = self.duration;
        let coordinated = self.chance(0.2);
        let mut parameters =
            vec!["kind = 'sliq'".to_string(), format!("stream = {}", self.sliq_stream(datagrams))];
        if coordinated {
            let (rate, most) = (self.rate_of(0.01, 0.5), self.rate_of(0.5, 3.0));
            let (application, scheme) = (self.random.below(3), self.scheme());
            parameters.push(format!(
                "coordination = {{ application = {application}, scheme = '{scheme}', rate = {rate}, \
                 max_rate = {most}, urgent = {} }}",
                self.chance(0.3)
            ));
        } else {
            if self.chance(0.2) {
                parameters.push(format!("second = '{}'", self.controller()));
            }
            parameters.push(format!("fast_start = '{}'", self.pick(&["never", "long", "always"])));
        }
        if self.chance(0.15) {
            let name = if self.chance(0.3) { "one".to_string() } else { format!("c{group}") };
            parameters.push(format!("connection = '{name}'"));
        }
        if self.chance(0.3) {
            parameters.push(format!("keepalive = '{} ms'", 20 + self.random.below(500)));
        }
        if self.chance(0.4) {
            parameters.push(format!("idle = {}", self.time(duration / 2)));
        }
        if self.chance(0.2) {
            parameters.push("seal = 'noise'".into());
        }
        parameters.push(format!("search_mtu = {}", self.chance(0.3)));
        self.line(format!("transport = {{ {} }}", parameters.join(", ")));
        if !coordinated {
            self.congestion();
        }
    }

    fn sliq_stream(&mut self, datagrams: bool) -> String {
        let duration = self.duration;
        let mut parameters = match self.random.below(6) {
            0..3 => vec![],
            3 => vec!["delivery = 'best-effort'".to_string()],
            4 => vec![format!("delivery = 'semi-reliable', limit = {}", self.random.below(4))],
            _ => {
                let (deadline, target) = (self.some_time(duration), 0.5 + self.random.unit() * 0.4999);
                vec![format!("delivery = 'arq-fec', deadline = {deadline}, target = {target:.4}")]
            }
        };
        if self.chance(0.3) {
            parameters.push(format!("order = '{}'", self.pick(&["written", "any"])));
        }
        if self.chance(0.3) {
            parameters.push(format!("priority = {}", self.random.below(8)));
        }
        if self.chance(0.3) {
            parameters.push(format!("queue = {}", self.size(300_000)));
        }
        if datagrams && self.chance(0.3) {
            parameters.push(format!("drop = '{}'", self.pick(&["newest", "oldest"])));
        }
        format!("{{ {} }}", parameters.join(", "))
    }

    fn controller(&mut self) -> &'static str {
        let members = weir_control::Config::members();
        members[self.random.below(members.len() as u64) as usize].name
    }

    /// The keys of a group whose transport has a congestion controller. Returns whether it is asked to use ECN.
    fn congestion(&mut self) -> bool {
        let cc = self.controller();
        let ecn = self.chance(0.3).then(|| self.pick(&["true", "false", "'ect0'", "'ect1'"]).to_string());
        self.line(format!("cc = '{cc}'"));
        ecn.iter().for_each(|ecn| self.line(format!("ecn = {ecn}")));
        ecn.is_some_and(|ecn| ecn != "false")
    }

    fn tcp(&mut self) {
        if self.congestion() {
            self.maybe(0.3, |w| format!("feedback = '{}'", w.pick(&["classic", "dctcp", "accurate"])));
        }
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
}
