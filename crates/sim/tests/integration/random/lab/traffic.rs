//! The traffic of a random lab: groups with their places, hosts and times, what their applications do, and the hosts' cards.

use super::Writer;

impl Writer {
    /// Groups, each at one of these places of the network.
    pub(super) fn traffic(&mut self, places: &[&str]) {
        for group in 0..1 + self.random.below(4) {
            self.line(format!("[traffic.g{group}]"));
            let place = if places.is_empty() { "" } else { self.pick(places) }.to_string();
            if place.is_empty() {
                self.maybe(0.2, |_| "direction = 'up'".into());
            }
            self.line(&place);
            let (workload, datagrams) = self.workload();
            self.line(format!("workload = {workload}"));
            // The flows get the values of a list in turn, and each value needs one.
            let least = if self.times() | self.place(group) | place.contains('[') { 4 } else { 1 };
            let flows = least + self.random.below(4);
            if least > 1 || self.chance(0.2) {
                self.line(format!("flows = {flows}"));
            }
            self.maybe(0.2, |w| format!("ip = {}", w.pick(&["4", "6"])));
            self.transport(datagrams, group);
        }
    }

    /// The host that a group sends from, or its round trips. Returns whether it has a list.
    fn place(&mut self, group: u64) -> bool {
        let list = match self.random.below(10) {
            0..2 => {
                // Hosts of a name stand at one place: mostly each has one group.
                let host = if self.chance(0.3) { "shared".to_string() } else { format!("h{group}") };
                self.line(format!("host = '{host}'"));
                self.hosts.insert(host);
                return false;
            }
            2 => false,
            3 => true,
            _ => return false,
        };
        let rtt = |w: &mut Writer| format!("'{} us'", 6 * w.rtt + w.random.below(w.rtt + 1));
        let rtt = if list { self.list(rtt) } else { rtt(self) };
        self.line(format!("rtt = {rtt}"));
        list
    }

    /// When a group's flows start and stop. Returns whether it has a list.
    fn times(&mut self) -> bool {
        let duration = self.duration;
        let first = if self.chance(0.5) { 0 } else { self.random.below(duration / 2) };
        let last = first + self.random.below(duration / 4 + 1);
        let (start, list) = match self.random.below(8) {
            0 => (format!("['{last} us', '{first} us']"), true),
            1 => (format!("{{ from = '{first} us', to = '{last} us' }}"), true),
            _ => (format!("'{first} us'"), false),
        };
        self.line(format!("start = {start}"));
        self.maybe(0.5, |w| format!("stop = '{} us'", last + duration / 20 + 1 + w.random.below(duration)));
        list
    }

    /// The cards of some of the hosts that groups share.
    pub(super) fn cards(&mut self) {
        for host in std::mem::take(&mut self.hosts) {
            if !self.chance(0.7) {
                continue;
            }
            let rate = self.rate_of(0.5, 20.0);
            self.line(format!("[nic.{host}]\nrate = {rate}"));
            self.maybe(0.5, |w| format!("queue = {}", w.queue(true)));
            self.maybe(0.2, |w| format!("refuses = {}", w.chance(0.5)));
            self.maybe(0.2, |w| format!("small_queues = {}", w.chance(0.5)));
            self.maybe(0.3, |w| format!("hosts = {}", 1 + w.random.below(3)));
        }
    }

    /// A workload, and whether it sends datagrams.
    fn workload(&mut self) -> (String, bool) {
        if self.chance(0.7) { (self.stream(), false) } else { (self.datagrams(), true) }
    }

    fn stream(&mut self) -> String {
        let duration = self.duration;
        match self.random.below(8) {
            0..3 => format!("{{ kind = 'bulk', writes = '{}' }}", self.pick(&["greedy", "blocking"])),
            3 => format!("{{ kind = 'transfer', size = {} }}", self.size(500_000)),
            4 => {
                let flows = (1 + self.random.below(60)) as f64 / (duration as f64 / 1e6);
                format!("{{ kind = 'web', rate = {flows:.6}, size = {} }}", self.size(40_000))
            }
            5 => {
                let (request, response) = (self.size(5_000), self.size(60_000));
                let think = if self.chance(0.3) { "'0 s'".into() } else { self.time(duration / 5) };
                format!(
                    "{{ kind = 'requests', request = {request}, response = {response}, think = {think} }}"
                )
            }
            6 => format!("{{ kind = 'http', size = {} }}", self.size(300_000)),
            _ => {
                let (size, swap) = (self.size(30_000), self.random.below(3));
                format!(
                    "{{ kind = 'ensembles', size = {size}, pattern = 'Mmm', dispersion = 0.5, swap = {swap} }}"
                )
            }
        }
    }

    fn datagrams(&mut self) -> String {
        let duration = self.duration;
        let codepoint = self.pick(&["not-ect", "ect0", "ect1", "ce"]).to_string();
        let (rate, source) = (self.rate_of(0.01, 1.5), self.pick(&["fabric", "socket"]).to_string());
        let packet = 28 + self.random.below(1473);
        let udp = format!("rate = {rate}, packet = '{packet} B', ecn = '{codepoint}', source = '{source}'");
        match self.random.below(4) {
            0 => format!("{{ kind = 'udp', {udp} }}"),
            1 => {
                let (on, off) = (1000 + self.random.below(duration / 4 + 1), self.time(duration / 4));
                let times = self.pick(&["fixed", "exponential"]);
                format!("{{ kind = 'onoff', {udp}, on = '{on} us', off = {off}, times = '{times}' }}")
            }
            2 => {
                let fps = ((1 + self.random.below(60)) as f64 / (duration as f64 / 1e6)).min(10_000.0);
                let (size, spread) = (self.size(20_000), self.random.unit() * 0.9);
                let pace = if self.chance(0.5) { "0 s" } else { "3 ns" };
                let deadline = 1000 + self.random.below(duration);
                format!(
                    "{{ kind = 'frames', fps = {fps:.6}, size = {size}, spread = {spread:.3}, pace = '{pace}', \
                     deadline = '{deadline} us', source = '{source}' }}"
                )
            }
            _ => {
                let interval = duration / 100 + 1 + self.random.below(duration);
                let (timeout, packet) = (1000 + self.random.below(duration), 40 + self.random.below(1400));
                format!(
                    "{{ kind = 'ping', interval = '{interval} us', packet = '{packet} B', timeout = '{timeout} us', \
                     ecn = '{codepoint}' }}"
                )
            }
        }
    }
}
