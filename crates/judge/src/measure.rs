//! What is compared: a table of measures, each with the bound within which the engines agree, and why it is that wide. A bound
//! has an absolute and a relative part; the wider one counts.

use std::collections::BTreeMap;
use weir_record::metrics::{completion, message, queue, rate, tcp};
use weir_record::{Metrics, RunSummary, Value};

/// A part of a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    /// This much in the measure's unit.
    Absolute(f64),
    /// This share of the kernel's value.
    Share(f64),
    /// A factor: the simulator's value may be so many times the kernel's, or as many times less.
    Factor(f64),
    /// The time of so many full packets at the bottleneck, in ms.
    Packets(f64),
}

/// The differences, live minus simulated, within which the engines agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The least, at most 0.
    pub low: f64,
    /// The largest, at least 0.
    pub high: f64,
}

/// What bounds depend on beside the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Time of a full packet at the bottleneck, in ms.
    pub packet_ms: f64,
    /// The share of the RTT by which the live network's packets came late, as the live runs themselves measured it.
    pub late: f64,
}

impl Part {
    fn limits(self, live: f64, packet_ms: f64) -> Limits {
        let even = |most: f64| Limits { low: -most, high: most };
        match self {
            Part::Absolute(most) => even(most),
            Part::Share(share) => even(share * live.abs()),
            // The simulator has between live / factor and live * factor.
            Part::Factor(factor) => {
                Limits { low: live.abs() * (1.0 - factor), high: live.abs() * (1.0 - 1.0 / factor) }
            }
            Part::Packets(count) => even(count * packet_ms),
        }
    }

    fn words(self, unit: &str) -> String {
        match self {
            Part::Absolute(most) if unit == "%" => format!("{most} points"),
            Part::Absolute(most) => format!("{most} {unit}").trim_end().to_owned(),
            Part::Share(share) => format!("{} %", 100.0 * share),
            Part::Factor(factor) => format!("a factor of {factor}"),
            Part::Packets(count) => format!("the time of {count} packets"),
        }
    }
}

/// What a measure is taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Each link that carries data.
    Links,
    /// Each group.
    Groups,
    /// The run as a whole.
    Run,
}

/// The number that a metric gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// The value, or the mean of a distribution.
    Mean,
    /// The 99th percentile of a distribution.
    P99,
    /// The count for each of the run's flows.
    PerFlow,
}

/// A measure.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Its name in documents.
    pub name: &'static str,
    /// The metric in `summary.json`.
    pub metric: &'static str,
    /// What it is taken of.
    pub of: Of,
    /// The number that is compared.
    pub number: Number,
    /// Its unit.
    pub unit: &'static str,
    /// Its bound.
    pub bound: &'static [Part],
    /// Whether flows have less of it in proportion as the RTT is longer, so that a late live network has less of it.
    pub slowed: bool,
    /// Why the bound is that wide.
    pub why: &'static str,
}

use Number::{Mean, P99, PerFlow};
use Of::{Groups, Links, Run};
use Part::{Absolute, Factor, Packets, Share};

/// Drops and marks, in percent of packets.
const SIGNALS: &[Part] = &[Factor(1.5), Absolute(0.2)];
const SIGNALS_WHY: &str = "window and square root of the rate of signals go together: a factor of 1.5 is a fifth of the window; \
                           below 0.2 points a few packets decide";

/// All measures.
pub const MEASURES: &[Measure] = &[
    Measure {
        name: "utilisation",
        metric: queue::UTILISATION.name,
        of: Links,
        number: Mean,
        unit: "%",
        bound: &[Absolute(3.0)],
        slowed: true,
        why: "the transient of the start is measured too, in runs of 12 s a tenth of a second is 1 point",
    },
    Measure {
        name: "queue delay",
        metric: queue::QUEUE_DELAY.name,
        of: Links,
        number: Mean,
        unit: "ms",
        bound: &[Share(0.15), Absolute(0.3), Packets(2.0)],
        slowed: false,
        why: "the bound of `weir compare`; hosts of real Linux send in bursts of two segments and wake up tenths of a millisecond late",
    },
    Measure {
        name: "p99 queue delay",
        metric: queue::QUEUE_DELAY.name,
        of: Links,
        number: P99,
        unit: "ms",
        bound: &[Share(0.2), Absolute(0.3), Packets(2.0)],
        slowed: false,
        why: "as the mean, and a tail scatters more",
    },
    Measure {
        name: "drops",
        metric: queue::DROP_PROBABILITY.name,
        of: Links,
        number: Mean,
        unit: "%",
        bound: SIGNALS,
        slowed: false,
        why: SIGNALS_WHY,
    },
    Measure {
        name: "marks",
        metric: queue::MARK_PROBABILITY.name,
        of: Links,
        number: Mean,
        unit: "%",
        bound: SIGNALS,
        slowed: false,
        why: SIGNALS_WHY,
    },
    Measure {
        name: "goodput share",
        metric: rate::GOODPUT_SHARE.name,
        of: Groups,
        number: Mean,
        unit: "%",
        bound: &[Absolute(10.0)],
        slowed: false,
        why: "the bound of `weir compare`: flows wander for longer than a run lasts",
    },
    Measure {
        name: "retransmissions",
        metric: tcp::RETRANSMISSION_PERCENT.name,
        of: Run,
        number: Mean,
        unit: "%",
        bound: SIGNALS,
        slowed: false,
        why: "as drops, from which they follow",
    },
    Measure {
        name: "spurious retransmissions",
        metric: tcp::SPURIOUS_RETRANSMISSIONS.name,
        of: Run,
        number: PerFlow,
        unit: "a flow",
        bound: &[Factor(1.5), Absolute(2.0)],
        slowed: false,
        why: "as drops; a single wrong timer is a few segments",
    },
    Measure {
        name: "timeouts",
        metric: tcp::TIMEOUTS.name,
        of: Run,
        number: PerFlow,
        unit: "a flow",
        bound: &[Factor(1.5), Absolute(1.0)],
        slowed: false,
        why: "a timeout is rare: one more or less decides nothing",
    },
    Measure {
        name: "completion time",
        metric: completion::COMPLETION_TIME.name,
        of: Groups,
        number: Mean,
        unit: "s",
        bound: &[Share(0.2), Absolute(0.01)],
        slowed: false,
        why: "sizes have a heavy tail; Linux wakes applications some milliseconds late",
    },
    Measure {
        name: "request time",
        metric: message::REQUEST_TIME.name,
        of: Groups,
        number: Mean,
        unit: "ms",
        bound: &[Share(0.2), Absolute(10.0)],
        slowed: false,
        why: "as completion times",
    },
    Measure {
        name: "frames in time",
        metric: message::FRAMES_ON_TIME.name,
        of: Groups,
        number: Mean,
        unit: "%",
        bound: &[Absolute(5.0)],
        slowed: false,
        why: "a frame near its deadline is in time or not by microseconds",
    },
];

impl Measure {
    /// The limits of the difference live minus simulated, for this live mean.
    pub fn limits(&self, live: f64, scale: Scale) -> Limits {
        let parts = self.bound.iter().map(|part| part.limits(live, scale.packet_ms));
        let limits = parts.fold(Limits { low: 0.0, high: 0.0 }, |a, b| Limits {
            low: a.low.min(b.low),
            high: a.high.max(b.high),
        });
        let late = if self.slowed { live.abs() * scale.late } else { 0.0 };
        Limits { low: limits.low - late, ..limits }
    }

    /// The bound in words.
    pub fn bound_in_words(&self) -> String {
        let parts: Vec<String> = self.bound.iter().map(|part| part.words(self.unit)).collect();
        parts.join(" or ")
    }

    /// The measure of these metrics; the outer `None` if the metric is not among them, the inner one if it is undefined.
    fn value(&self, metrics: &Metrics, flows: usize) -> Option<Option<f64>> {
        let (_, value) = metrics.iter().find(|(name, _)| *name == self.metric)?;
        Some(match (self.number, value) {
            (_, Value::Undefined) => None,
            (Mean, value) => value.scalar(),
            (P99, value) => value.distribution().map(|distribution| distribution.p99),
            (PerFlow, value) => value.scalar().map(|count| count / flows.max(1) as f64),
        })
    }
}

/// A measure, by its place in [`MEASURES`], and its subject: `queue delay of down`.
pub type Key = (usize, String);

/// What a live run's host did that a simulated one does not; nothing for a simulated run, and where it is not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Host {
    /// By how much packets left the network late on average, in ms.
    pub late_ms: f64,
    /// When other work kept the applications from their processor, and for how long, in ms.
    pub pauses: Vec<(f64, f64)>,
}

/// What is compared of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The run's seed.
    pub seed: u64,
    /// What its host did.
    pub host: Host,
    /// The value of each measure and subject. `None` is undefined.
    pub values: BTreeMap<Key, Option<f64>>,
}

impl Measured {
    /// All measures of a run.
    pub fn of(run: &RunSummary, host: Host) -> Measured {
        let flows: usize = run.groups.iter().map(|group| group.flows).sum();
        let mut values = BTreeMap::new();
        for (place, measure) in MEASURES.iter().enumerate() {
            let mut put = |of: &str, metrics: &Metrics| {
                if let Some(value) = measure.value(metrics, flows) {
                    values.insert((place, of.to_owned()), value);
                }
            };
            match measure.of {
                Run => put("", &run.metrics),
                Links => {
                    let carrying = run.queues.iter().filter(|queue| !queue.carries.is_empty());
                    carrying.for_each(|queue| put(&queue.link, &queue.metrics));
                }
                // One group has all of the goodput, and of two groups one share gives the other.
                Groups if measure.name == "goodput share" => {
                    let (groups, first) = (run.groups.len(), run.groups.first());
                    first
                        .filter(|_| groups > 1)
                        .into_iter()
                        .for_each(|group| put(&group.name, &group.metrics));
                }
                Groups => run.groups.iter().for_each(|group| put(&group.name, &group.metrics)),
            }
        }
        Measured { seed: run.seed, host, values }
    }
}

/// The values of some runs, each measure and subject apart.
pub fn gathered(runs: &[Measured]) -> BTreeMap<&Key, Vec<Option<f64>>> {
    let mut all: BTreeMap<&Key, Vec<Option<f64>>> = BTreeMap::new();
    for (key, value) in runs.iter().flat_map(|run| &run.values) {
        all.entry(key).or_default().push(*value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(name: &str) -> &'static Measure {
        MEASURES.iter().find(|measure| measure.name == name).unwrap()
    }

    fn scale(packet_ms: f64) -> Scale {
        Scale { packet_ms, late: 0.02 }
    }

    #[test]
    fn the_widest_part_of_a_bound_counts() {
        // 15 % of 40 ms are 6 ms; 15 % of 1 ms are less than 0.3 ms; at 1 Mbit/s two packets take 24 ms.
        let delay = measure("queue delay");
        assert_eq!(delay.limits(40.0, scale(0.12)), Limits { low: -6.0, high: 6.0 });
        assert_eq!(delay.limits(1.0, scale(0.12)), Limits { low: -0.3, high: 0.3 });
        assert_eq!(delay.limits(40.0, scale(12.0)), Limits { low: -24.0, high: 24.0 });
    }

    #[test]
    fn a_late_live_network_may_carry_less_by_its_lateness() {
        // Packets are late by 2 % of the RTT: 80 % of the link may be 1.6 points less, and no more than 3 points more.
        assert_eq!(measure("utilisation").limits(80.0, scale(0.1)), Limits { low: -4.6, high: 3.0 });
    }

    #[test]
    fn a_factor_bounds_the_simulators_value_on_both_sides_of_the_kernels() {
        // Live 3 %: the simulator may have 2 to 4.5 %, so the difference may be -1.5 to 1.
        let Limits { low, high } = measure("drops").limits(3.0, scale(0.1));
        assert!((low + 1.5).abs() < 1e-12 && (high - 1.0).abs() < 1e-12, "{low} {high}");
        assert_eq!(measure("drops").limits(0.0, scale(0.1)), Limits { low: -0.2, high: 0.2 });
    }

    #[test]
    fn every_metric_exists_or_is_on_its_way() {
        for measure in MEASURES.iter().filter(|measure| measure.name != "spurious retransmissions") {
            assert!(weir_record::metric(measure.metric).is_some(), "{}", measure.metric);
        }
    }
}
