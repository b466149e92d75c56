//! The parameters of DualPI2 and its presets.

use crate::{Limit, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};
use weir_base::{Bytes, Span};

/// Parameters of DualPI2, named as Linux and RFC 9332 name them. The preset gives the default of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Config {
    /// Set of parameters that gives the default of every other one. `rfc9332`: RFC 9332, appendix A, the defaults of Linux 6.17 and
    /// later. `thesis`: the DualPI2 of "Destruction Testing: Ultra-Low Delay using Dual Queue Coupled AQM"
    /// (University of Oslo, 2017), section 11.1: limit 1000 packets, alpha 5/16, beta 50/16, time-shifted by 30 ms. `weir`:
    /// `rfc9332` with `step_burst`, `overload_control`, `overload_priority` and `limit_patience` switched on
    /// (docs/dualpi2-weir.md).
    pub preset: Preset,
    /// How much both queues together hold.
    pub limit: Limit,
    /// Maximum number of IP bytes in both queues together, in addition to `limit`. No such limit by default.
    pub memory_limit: Option<Bytes>,
    /// Target delay of the classic queue.
    pub target: Span,
    /// How often the base probability p' is updated; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub tupdate: Span,
    /// Weight of the delay's deviation from the target in p', in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub alpha: f64,
    /// Weight of the delay's change since the last update in p', in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub beta: f64,
    /// Coupling factor k; 0 to 255. L4S packets are marked with probability k p', classic ones signalled with p'^2.
    #[serde(deserialize_with = "parameter::coupling")]
    pub coupling_factor: f64,
    /// Threshold above which an L4S packet is marked as it leaves. A time is compared with the packet's sojourn, a number of packets
    /// or bytes with the rest of the L4S queue.
    pub step_thresh: Limit,
    /// Width of a ramp that replaces the step: the marking probability rises from 0 at `step_thresh` to 1 this time above it
    /// (RFC 9332, appendix A.1, `laqm`). Only with a `step_thresh` in time.
    pub ramp: Span,
    /// How much `step_thresh` is raised for a burst: for packets that leave within `burst_window` after the L4S queue was last
    /// empty. "0 s" raises it for none. Only with a `step_thresh` in time.
    pub step_burst: Span,
    /// How long after the L4S queue was last empty its packets count as a burst, not as a standing queue.
    pub burst_window: Span,
    /// The step does not mark an L4S packet that found fewer packets than this in the L4S queue.
    pub min_qlen_step: u32,
    /// p' gives no signals while fewer bytes are queued than in this many packets of the MTU.
    pub min_backlog: u32,
    /// Which packets go into the L4S queue.
    pub ecn_mask: Mask,
    /// Which queue is served next when both hold packets.
    pub scheduler: Scheduler,
    /// Share of the link that weighted round robin guarantees the classic queue; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub classic_protection: f64,
    /// The time-shifted FIFO sends a classic packet first if it has waited longer than the L4S packet by more than this.
    pub t_shift: Span,
    /// Whether p' is applied when a packet arrives, instead of when it leaves.
    pub drop_early: bool,
    /// Whether L4S packets are dropped in overload, as `overload_control` says. If not, p' is at most 1/k, and only the limit drops
    /// L4S packets.
    pub drop_overload: bool,
    /// L4S marking probability k p' from which the queue is overloaded; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub l_drop: f64,
    /// Which probability drops L4S packets in overload. It has no effect without `drop_overload`.
    pub overload_control: OverloadControl,
    /// Target delay of the L4S queue for the drops of a separate controller.
    pub overload_target: Span,
    /// Which queue weighted round robin prefers while a separate controller drops from the L4S queue.
    pub overload_priority: OverloadPriority,
    /// When a full queue has dropped packets in every interval for this long, p' rises at once to the probability that drops as
    /// many. "0 s": never.
    pub limit_patience: Span,
    /// What marks the L4S packets that are not dropped in overload.
    pub overload_marking: OverloadMarking,
    /// The delay from which p' is computed.
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
    /// The study of 2017, "Destruction Testing".
    Thesis,
    /// `rfc9332` with weir's additions for bursts and overload.
    Weir,
}

/// Which packets are L4S.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Mask {
    /// ECT(1) and CE (RFC 9331).
    L4sEct,
    /// All ECN-capable packets, for DCTCP with ECT(0).
    AnyEct,
}

/// Which queue is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Scheduler {
    /// Weighted round robin by bytes with `classic_protection`.
    Wrr,
    /// The packet that has waited longer, with `t_shift` added to the wait of the L4S packet.
    TimeShifted,
    /// Always the L4S queue.
    Strict,
}

/// How L4S packets are dropped in overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OverloadControl {
    /// With the probability of classic drops, p'^2, while k p' is at least `l_drop`; no drops below that.
    Coupled,
    /// With probability q^2, where q comes from a controller of the L4S queue alone that holds `overload_target`. Classic packets
    /// are dropped with the square of the larger of p' and q / k.
    Separate,
}

/// Which queue goes first in overload of the L4S queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OverloadPriority {
    /// L4S, as without overload.
    L4s,
    /// Classic: the round robin swaps the weights of the queues.
    Classic,
}

/// What marks L4S packets in overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OverloadMarking {
    /// The coupled probability k p', at most 1.
    Coupled,
    /// Only `step_thresh`.
    Step,
}

/// The delay from which the controller computes p'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Delay {
    /// The delay of the packet that has waited longest in either queue.
    Longest,
    /// The delay of the classic queue, or of the L4S queue while the classic queue is empty.
    ClassicFirst,
    /// The delay of the classic queue; zero while it is empty.
    Classic,
}

impl Preset {
    /// All parameters of the preset.
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
                // The study's implementation keeps half of its paper's p', which is p' here, and applies these weights to it.
                alpha: 0.3125,
                beta: 3.125,
                // Its paper marks by the threshold only with two packets queued: one beside the packet itself. The authors' `sch_pi2`
                // of that time (`pi2_qdisc_dequeue`) checks for a further packet as the packet leaves; Linux and weir check as it
                // arrives.
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
                // CoDel's interval: the longest round-trip time in the usual case (RFC 8289, section 4.2).
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
