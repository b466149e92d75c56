//! The parameters of DualPI2, and the documented sets of them.

use crate::{Limit, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};
use weir_base::{Bytes, Span};

/// Parameters of DualPI2, named as Linux and RFC 9332 name them. What is left out comes from the preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Config {
    /// Where all other parameters come from that are not written. `rfc9332`: RFC 9332, appendix A, which is what Linux 6.17 and
    /// later have as defaults. `thesis`: the DualPI2 of "Destruction Testing: Ultra-Low Delay using Dual Queue Coupled AQM"
    /// (University of Oslo, 2017), section 11.1: limit 1000 packets, alpha 5/16, beta 50/16, time-shifted by 30 ms. `weir`:
    /// `rfc9332` with `step_burst`, `overload_control`, `overload_priority` and `limit_patience` switched on
    /// (docs/dualpi2-weir.md).
    pub preset: Preset,
    /// How much both queues hold together.
    pub limit: Limit,
    /// How many IP bytes both queues hold together, whatever `limit` is; not limited when it is left out.
    pub memory_limit: Option<Bytes>,
    /// The delay to hold in the classic queue.
    pub target: Span,
    /// How often the base probability p' is computed anew; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub tupdate: Span,
    /// Weight of the distance from the target, in 1/s, on p'; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub alpha: f64,
    /// Weight of the change since the last update, in 1/s, on p'; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub beta: f64,
    /// k: L4S packets are marked with probability k p', classic ones signalled with p'^2; 0 to 255.
    #[serde(deserialize_with = "parameter::coupling")]
    pub coupling_factor: f64,
    /// Above this, an L4S packet is marked as it leaves: a time is compared with its sojourn, a number of packets or bytes with
    /// what is left in the L4S queue.
    pub step_thresh: Limit,
    /// Over this time above `step_thresh` the probability of a mark rises from nothing to one, a ramp instead of a step
    /// (RFC 9332, appendix A.1, `laqm`); only with a `step_thresh` in time.
    pub ramp: Span,
    /// A packet of a burst is spared from the step up to this time above `step_thresh`: one that leaves within `burst_window`
    /// after the L4S queue was last empty. "0 s" spares none; only with a `step_thresh` in time.
    pub step_burst: Span,
    /// How long after the L4S queue was last empty its packets are taken for a burst, not for a standing queue.
    pub burst_window: Span,
    /// An L4S packet that found fewer packets than this in the L4S queue is spared from the step.
    pub min_qlen_step: u32,
    /// With less than so many packets of the MTU queued, p' gives no signals.
    pub min_backlog: u32,
    /// Which packets go into the L4S queue.
    pub ecn_mask: Mask,
    /// Which queue is served next when both hold packets.
    pub scheduler: Scheduler,
    /// Share of the link that weighted round robin leaves to the classic queue; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub classic_protection: f64,
    /// How much longer than an L4S packet a classic one must have waited to go first, in a time-shifted FIFO.
    pub t_shift: Span,
    /// Whether p' decides when a packet arrives, instead of when it leaves.
    pub drop_early: bool,
    /// Whether in overload L4S packets are dropped with the classic probability. If not, p' is held at 1/k at most, and only the
    /// limit drops L4S packets.
    pub drop_overload: bool,
    /// L4S marking probability k p' from which the queue is overloaded; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub l_drop: f64,
    /// What decides how many L4S packets are dropped in overload, with `drop_overload`.
    pub overload_control: OverloadControl,
    /// The delay of the L4S queue that a separate controller holds by drops.
    pub overload_target: Span,
    /// Which queue weighted round robin prefers while a separate controller drops from the L4S queue.
    pub overload_priority: OverloadPriority,
    /// When a queue has lost packets for lack of room for so long, throughout, p' rises at once to what drops as many; "0 s"
    /// is never.
    pub limit_patience: Span,
    /// What marks L4S packets that are not dropped in overload.
    pub overload_marking: OverloadMarking,
    /// Which delay p' is computed from.
    pub delay: Delay,
}

impl crate::Parameters for Config {
    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit), ("step_thresh", self.step_thresh)]
    }
}

/// A documented set of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Preset {
    /// RFC 9332, and Linux 6.17 and later.
    #[default]
    #[serde(alias = "linux")]
    Rfc9332,
    /// The study of 2017.
    Thesis,
    /// What beats the study.
    Weir,
}

/// Which packets are L4S.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Mask {
    /// ECT(1) and CE (RFC 9331).
    L4sEct,
    /// All ECN-capable ones, as suits DCTCP with ECT(0).
    AnyEct,
}

/// Which queue is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Scheduler {
    /// Weighted round robin by bytes with `classic_protection`.
    Wrr,
    /// The packet that has waited longer, `t_shift` added to that of L4S.
    TimeShifted,
    /// Always L4S.
    Strict,
}

/// How L4S packets are dropped in overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OverloadControl {
    /// From `l_drop` on, with the probability of classic drops, p'^2; not at all below.
    Coupled,
    /// With the square of a probability q of a controller of their own that holds `overload_target`; classic packets are dropped
    /// with the square of the larger of p' and q / k.
    Separate,
}

/// Which queue goes first in overload of the L4S queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OverloadPriority {
    /// L4S, as ever.
    L4s,
    /// Classic: the weights of the round robin change places.
    Classic,
}

/// Marks of L4S packets in overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OverloadMarking {
    /// The coupled probability, which is one then: all are marked.
    Coupled,
    /// Only `step_thresh`.
    Step,
}

/// The delay that the controller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Delay {
    /// That of the packet that has waited longest in either queue.
    Longest,
    /// That of the classic queue; that of the L4S queue only while there is no classic packet.
    ClassicFirst,
    /// That of the classic queue, none while it is empty.
    Classic,
}

impl Preset {
    /// All parameters of the set.
    pub fn config(self) -> Config {
        let rfc9332 = Config {
            preset: self,
            // 125 ms of full packets at 1 Gbit/s (Linux `dualpi2_reset_default`).
            limit: Limit::Packets(10_000),
            memory_limit: None,
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling_factor: 2.0,
            step_thresh: Limit::Time(Span::from_millis(1)),
            ramp: Span::ZERO,
            step_burst: Span::ZERO,
            burst_window: Span::from_millis(5),
            min_qlen_step: 0,
            min_backlog: 2,
            ecn_mask: Mask::L4sEct,
            scheduler: Scheduler::Wrr,
            classic_protection: 0.1,
            t_shift: Span::from_millis(30),
            drop_early: false,
            drop_overload: true,
            l_drop: 1.0,
            overload_control: OverloadControl::Coupled,
            overload_target: Span::from_millis(5),
            overload_priority: OverloadPriority::L4s,
            limit_patience: Span::ZERO,
            overload_marking: OverloadMarking::Coupled,
            delay: Delay::Longest,
        };
        match self {
            Preset::Rfc9332 => rfc9332,
            Preset::Thesis => Config {
                limit: Limit::Packets(1000),
                // The study's implementation keeps p'/2 of its paper, which is p' here, and applies these to it.
                alpha: 0.3125,
                beta: 3.125,
                // Its paper marks by the threshold only with two packets queued: one beside the packet itself. The authors' `sch_pi2`
                // of that time (`pi2_qdisc_dequeue`) asks whether one is left as the packet leaves; here, as in Linux, whether one
                // was there as it came.
                min_qlen_step: 1,
                min_backlog: 0,
                scheduler: Scheduler::TimeShifted,
                overload_marking: OverloadMarking::Step,
                delay: Delay::ClassicFirst,
                ..rfc9332
            },
            Preset::Weir => Config {
                step_burst: Span::from_micros(800),
                overload_control: OverloadControl::Separate,
                overload_priority: OverloadPriority::Classic,
                // The longest round-trip time that CoDel too takes for the usual case (RFC 8289, section 4.2).
                limit_patience: Span::from_millis(100),
                delay: Delay::Classic,
                ..rfc9332
            },
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Preset::default().config()
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Config::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Config, D::Error> {
        let given: Map<String, Value> = Deserialize::deserialize(deserializer)?;
        let preset = given.get("preset").map_or(Ok(Preset::default()), Preset::deserialize);
        let preset = preset.map_err(D::Error::custom)?;
        let Ok(Value::Object(mut whole)) = serde_json::to_value(preset.config()) else {
            return Err(D::Error::custom("the preset cannot be read"));
        };
        whole.extend(given);
        Config::deserialize(Value::Object(whole)).map_err(D::Error::custom)
    }
}
