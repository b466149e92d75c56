//! Cells at random, over the whole space that both engines run. The session's seed and the cell's number alone decide the cell.
//!
//! Each lab is one that a person could write: numbers have two significant digits, and each property beyond a plain bulk
//! transfer is rare. A cell that the plan refuses is an error here.

use crate::cell::{Buffer, Cell, Extra, Group, Queue, Workload, plain, round};
use crate::id::Id;
use weir_base::Random;

/// Controllers that this kernel has, or that weir loads into it. Copa has no kernel form, and Circuit TCP stands apart, since it
/// has parameters.
const CONTROLLERS: [&str; 16] = [
    "newreno",
    "cubic",
    "bbr",
    "dctcp",
    "prague",
    "htcp",
    "vegas",
    "nice",
    "lp",
    "ledbat",
    "westwood",
    "westwood-lp",
    "ledbat-plus-plus",
    "apple-ledbat",
    "cdg",
    "yield",
];
/// Share of groups whose controller is one of the kernel's own three.
const KERNELS_OWN: f64 = 0.65;
/// Share of groups under Circuit TCP.
const CIRCUIT: f64 = 0.02;
/// Share of cells with a second group.
const SECOND: f64 = 0.45;
/// Share of cells with tail drop, of which the smaller part is counted in packets.
const TAIL_DROP: f64 = 0.45;
/// Smallest buffer in packets, but for rare cells.
const FEW_PACKETS: f64 = 4.0;

/// The cell of this name.
pub fn draw(id: Id) -> Cell {
    Drawer { random: Random::stream_of(id.seed, "judge", id.number), rate: 0.0, rtt: 0.0 }.cell(id)
}

struct Drawer {
    random: Random,
    /// Rate of the link, in Mbit/s.
    rate: f64,
    /// Base round-trip time, in ms.
    rtt: f64,
}

impl Drawer {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.chance(probability)
    }

    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.random.below(u64::from(most - least) + 1) as u32
    }

    /// A number whose logarithm is uniform, with two significant digits.
    fn log(&mut self, least: f64, most: f64) -> f64 {
        round(least * (most / least).powf(self.random.unit()), 2).clamp(least, most)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    /// A share of the link's rate, in Mbit/s.
    fn share(&mut self, least: f64, most: f64) -> f64 {
        let share = least + (most - least) * self.random.unit();
        round(self.rate * share, 2)
    }

    fn bdp(&self) -> f64 {
        self.rate * self.rtt / 12.0
    }

    fn cell(mut self, id: Id) -> Cell {
        self.rate = self.log(1.0, 1000.0);
        self.rtt = self.log(1.0, 300.0);
        let duration = self.between(12, 20);
        let mut groups = vec![self.group("a")];
        if self.chance(SECOND) {
            groups.push(self.group("b"));
        }
        let flows: u32 = groups.iter().map(|group| group.flows).sum();
        let extras = self.extras(duration);
        let queue = self.queue(flows);
        Cell {
            title: format!("Cell {id} of the judge"),
            duration,
            warmup: 2,
            rate: self.rate,
            rtt: self.rtt,
            queue,
            extras,
            groups,
        }
    }

    fn buffer(&mut self) -> Buffer {
        if self.chance(0.25) {
            let most = (8.0 * self.bdp()).clamp(20.0, 5000.0);
            let least = if self.chance(0.1) { 2.0 } else { FEW_PACKETS };
            return Buffer::Packets(self.log(least, most) as u32);
        }
        let factor = self.log(0.1, 8.0);
        if factor * self.bdp() < FEW_PACKETS && self.chance(0.9) {
            return Buffer::Packets(self.between(4, 20));
        }
        Buffer::Bdp(factor)
    }

    fn queue(&mut self, flows: u32) -> Queue {
        if self.chance(TAIL_DROP) {
            let buffer = self.buffer();
            return Queue::tail_drop(buffer);
        }
        let kind = self.pick(&[
            "pie",
            "codel",
            "fq-codel",
            "fq-pie",
            "pi2",
            "dualpi2",
            "red",
            "adaptive-red",
            "step",
            "strict-priority",
            "drr",
            "tbf",
            "htb",
        ]);
        let mut parameters: Vec<(String, String)> = vec![];
        let mut put = |key: &str, value: String| parameters.push((key.to_owned(), value));
        match kind {
            "pie" | "codel" | "fq-codel" | "fq-pie" | "pi2" | "dualpi2" if self.chance(0.3) => {
                put("target", format!("\"{} ms\"", plain(self.log(2.0, 50.0))));
            }
            "adaptive-red" if self.chance(0.3) => {
                put("target", format!("\"{} ms\"", plain(self.log(2.0, 50.0))))
            }
            "red" if self.chance(0.3) => {
                put("min", format!("\"{} packets\"", plain(self.log(5.0, 50.0).round())))
            }
            "step" => put("threshold", format!("\"{} packets\"", plain(self.log(5.0, 100.0).round()))),
            "tbf" => self.token_bucket(&mut put),
            "htb" => self.classes(flows, &mut put),
            _ => {}
        }
        let has_limit = !matches!(kind, "tbf" | "htb" | "strict-priority" | "drr");
        // RED's thresholds have to lie within its limit, so it keeps its default.
        let limited = has_limit && !kind.ends_with("red") && self.chance(0.3);
        let buffer = limited.then(|| self.buffer());
        Queue { kind: kind.into(), buffer, parameters }
    }

    /// A shaper below the link's rate, whose bucket holds a few packets.
    fn token_bucket(&mut self, put: &mut impl FnMut(&str, String)) {
        put("rate", format!("\"{} Mbit/s\"", plain(self.share(0.5, 0.95))));
        put("burst", format!("\"{} kB\"", plain(self.log(3.2, 60.0))));
        put("limit", format!("\"{} ms\"", plain(self.log(5.0, 200.0).max(50.0 / self.rate))));
    }

    /// One class for all flows, or one for each half of them that borrows from a common parent.
    fn classes(&mut self, flows: u32, put: &mut impl FnMut(&str, String)) {
        let whole = self.share(0.5, 0.95);
        let list =
            |from: u32, to: u32| (from..to).map(|flow| flow.to_string()).collect::<Vec<_>>().join(", ");
        let queue = "queue = { kind = \"tail-drop\", limit = \"100 packets\" }";
        let text = if flows < 2 {
            format!("[{{ name = \"all\", rate = \"{} Mbit/s\", {queue} }}]", plain(whole))
        } else {
            let first = round(whole * 0.3, 2);
            let second = round(whole * 0.6, 2);
            let half = flows / 2;
            format!(
                "[{{ name = \"all\", rate = \"{whole} Mbit/s\" }}, {{ name = \"one\", parent = \"all\", rate = \"{first} Mbit/s\", \
                 ceil = \"{whole} Mbit/s\", flows = [{}], {queue} }}, {{ name = \"two\", parent = \"all\", rate = \"{second} \
                 Mbit/s\", ceil = \"{whole} Mbit/s\", {queue} }}]",
                list(0, half)
            )
        };
        put("classes", text);
    }

    fn extras(&mut self, duration: u32) -> Vec<Extra> {
        let mut extras = vec![];
        if self.chance(0.15) {
            let burst = if self.chance(0.2) { self.between(2, 10) } else { 1 };
            extras.push(Extra::Loss { percent: self.log(0.01, 3.0), burst });
        }
        if self.chance(0.1) {
            let most = round(self.rtt * 0.3, 2).max(0.2);
            extras.push(Extra::Jitter { up_to: self.log(0.1, most), reorder: self.chance(0.4) });
        }
        if self.chance(0.06) {
            let rate = self.share(0.3, 0.9);
            // A burst of 5 to 100 ms at this rate, at least three packets.
            let burst = round((rate / 8.0 * self.log(5.0, 100.0)).max(4.5), 2);
            extras.push(Extra::Policer { rate, burst });
        }
        if self.chance(0.1) {
            let count = self.between(1, 3);
            let steps =
                (1..=count).map(|step| (duration * step / (count + 1), self.share(0.3, 1.5))).collect();
            extras.push(Extra::Schedule(steps));
        } else if self.chance(0.08) {
            let up = self.share(0.05, 0.5).max(0.1);
            extras.push(Extra::Up(up));
        }
        if self.chance(0.03) {
            extras.push(Extra::Ip6);
        }
        extras
    }

    fn workload(&mut self, name: &str) -> Workload {
        let bulk = if name == "a" { 0.85 } else { 0.5 };
        if self.chance(bulk) {
            return Workload::Bulk;
        }
        match self.random.below(5) {
            // What the link sends in 1 to 8 s.
            0 => {
                let seconds = self.log(1.0, 8.0);
                Workload::Transfer(round(self.rate * 125.0 * seconds, 2))
            }
            1 => Workload::Web(self.share(0.05, 0.3).max(0.05)),
            2 => {
                let answer = self.log(2.0, 200.0);
                Workload::Requests(answer, self.log(20.0, 500.0))
            }
            3 => {
                let rate = self.share(0.05, 0.4).clamp(0.05, 100.0);
                Workload::OnOff(rate, self.log(50.0, 2000.0))
            }
            // 5 to 30 % of the link, in thirty frames a second.
            _ => {
                let rate = self.share(0.05, 0.3).clamp(0.05, 50.0);
                Workload::Frames(round(rate * 125.0 / 30.0, 2), self.log(20.0, 300.0))
            }
        }
    }

    fn group(&mut self, name: &'static str) -> Group {
        let workload = self.workload(name);
        let second = name == "b";
        let (up, start) = (second && self.chance(0.2), if second && self.chance(0.2) { 4 } else { 0 });
        if !workload.is_stream() {
            return Group { name, cc: String::new(), flows: 1, workload, up, start, settings: vec![] };
        }
        let flows = match self.random.unit() {
            unit if unit < 0.5 => 1,
            unit if unit < 0.8 => self.between(2, 4),
            _ => self.between(5, 8),
        };
        let cc = self.controller(name);
        let settings = self.settings(&cc);
        Group { name, cc, flows, workload, up, start, settings }
    }

    fn controller(&mut self, name: &str) -> String {
        let own = self.chance(KERNELS_OWN);
        let other = self.pick(&CONTROLLERS).to_owned();
        // The kernel has one Circuit TCP with one set of parameters, so only one group may use it.
        if name == "a" && self.chance(CIRCUIT) {
            let rate = self.share(0.3, 0.9);
            return format!(
                "{{ kind = \"ctcp\", rate = \"{} Mbit/s\", rtt = \"{} ms\" }}",
                plain(rate),
                plain(self.rtt)
            );
        }
        if own { self.pick(&["newreno", "cubic", "cubic", "bbr"]).to_owned() } else { other }
    }

    fn settings(&mut self, cc: &str) -> Vec<(&'static str, String)> {
        let mut settings: Vec<(&'static str, String)> = vec![];
        let marks = matches!(cc, "dctcp" | "prague");
        if cc == "prague" {
            // The kernel's receiver cannot give Accurate ECN.
            settings.push(("feedback", "\"dctcp\"".into()));
        }
        if !marks && self.chance(0.2) {
            settings.push(("ecn", "true".into()));
        }
        if self.chance(0.12) {
            let kib = 1u64 << self.between(5, 14);
            settings.push(("send_buffer", size(kib)));
        }
        if self.chance(0.08) {
            let kib = 1u64 << self.between(5, 14);
            settings.push(("receive_buffer", size(kib)));
        }
        if self.chance(0.06) {
            settings.push(("sack", "false".into()));
        }
        if self.chance(0.04) {
            settings.push(("window_scaling", "false".into()));
        }
        if self.chance(0.05) {
            settings.push(("pacing", "true".into()));
        }
        if self.chance(0.03) {
            settings.push(("rto_min", "\"50 ms\"".into()));
        }
        if self.chance(0.06) {
            let rtt = round(self.rtt * (1.5 + 2.0 * self.random.unit()), 2);
            settings.push(("rtt", format!("\"{} ms\"", plain(rtt))));
        }
        settings
    }
}

/// A size in KiB or MiB.
fn size(kib: u64) -> String {
    if kib >= 1024 { format!("\"{} MiB\"", kib / 1024) } else { format!("\"{kib} KiB\"") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use weir_plan::Lab;

    const CELLS: u64 = 500;

    fn cells() -> impl Iterator<Item = (Id, Cell)> {
        (1..=CELLS).map(|number| Id { seed: number % 7, number }).map(|id| (id, draw(id)))
    }

    #[test]
    fn the_plan_takes_every_cell() {
        for (id, cell) in cells() {
            let text = cell.toml();
            let lab = Lab::from_str(&text, "lab.toml", Path::new("."), &[]);
            assert!(
                lab.is_ok(),
                "cell {id}:\n{text}\n{}",
                lab.err().map_or_else(String::new, |e| format!("{e:?}"))
            );
        }
    }

    #[test]
    fn seed_and_number_alone_decide_a_cell() {
        let id = Id { seed: 1, number: 7 };
        assert_eq!(draw(id), draw(id));
        assert_ne!(draw(id), draw(Id { seed: 2, number: 7 }));
        assert_ne!(draw(id), draw(Id { seed: 1, number: 8 }));
    }

    #[test]
    fn cells_reach_every_part_of_the_space() {
        let all: Vec<Cell> = cells().map(|(_, cell)| cell).collect();
        let set = |of: &dyn Fn(&Cell) -> Vec<String>| all.iter().flat_map(of).collect::<BTreeSet<String>>();
        let controllers = set(&|cell| {
            cell.groups
                .iter()
                .filter(|it| it.workload.is_stream())
                .map(|it| it.controller().to_owned())
                .collect()
        });
        assert_eq!(controllers.len(), CONTROLLERS.len() + 1, "{controllers:?}");
        assert_eq!(set(&|cell| vec![cell.queue.kind.clone()]).len(), 14);
        let workloads = set(&|cell| cell.groups.iter().map(|it| it.workload.name().to_owned()).collect());
        assert_eq!(workloads.len(), 6, "{workloads:?}");
        assert_eq!(set(&|cell| cell.extras.iter().map(|it| it.name().to_owned()).collect()).len(), 6);
        let settings = set(&|cell| {
            cell.groups.iter().flat_map(|it| &it.settings).map(|(key, _)| (*key).to_owned()).collect()
        });
        assert_eq!(settings.len(), crate::cell::SETTINGS.len() + 1, "{settings:?}");
        assert!(all.iter().any(|cell| cell.rate < 1.5) && all.iter().any(|cell| cell.rate > 800.0));
        assert!(all.iter().any(|cell| cell.rtt < 1.5) && all.iter().any(|cell| cell.rtt > 250.0));
        assert!(all.iter().any(|cell| cell.groups.iter().map(|it| it.flows).sum::<u32>() >= 14));
    }

    #[test]
    fn most_cells_have_few_extras() {
        let plain = |cell: &Cell| {
            cell.extras.is_empty()
                && cell.groups.iter().all(|it| it.settings.is_empty() && !it.up && it.start == 0)
        };
        let count = cells().filter(|(_, cell)| plain(cell)).count();
        assert!(count as f64 > 0.2 * CELLS as f64, "{count} of {CELLS}");
        let many = cells().filter(|(_, cell)| cell.extras.len() > 2).count();
        assert!(many < 20, "{many} of {CELLS}");
    }
}
