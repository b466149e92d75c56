//! Congestion and rate controllers. Each is one file and one line in the registry below.
//!
//! A controller is a pure state machine: acknowledgements and losses go in, a window and a pacing rate come out. It never
//! reads a clock, and draws random numbers only from the stream that it is given. The transport keeps the scoreboard, detects
//! losses, runs PRR and the timers; the controller decides how much may be in flight.
//!
//! `windowed.rs` is the file to open first, then a short controller such as `newreno.rs`.
#![forbid(unsafe_code)]

mod apple_ledbat;
mod bbr;
mod cdg;
mod copa;
mod ctcp;
mod cubic;
mod dctcp;
mod events;
pub mod exempt;
mod htcp;
mod hystart;
mod hystart_plus_plus;
mod jiffies;
mod ledbat;
mod ledbat_delay;
mod ledbat_plus_plus;
mod low_priority;
mod newreno;
mod nice;
mod one_way_delay;
mod prague;
mod ranges;
mod reading;
mod response;
mod rtt_rounds;
#[cfg(test)]
mod testing;
pub mod tfrc;
mod vegas;
mod westwood;
mod westwood_lp;
mod westwood_rate;
mod window;
mod windowed;
mod yielding;

pub use ctcp::circuit_window;
pub use events::{
    Ack, Codepoint, Congestion, Decision, Delivered, Feedback, Phase, RateSample, Recovery, Restart,
    RttSample, Sent, Signal, Start, Timeout, Timestamps,
};
pub use reading::Reading;
pub use response::window as window_at;
pub use window::{NO_THRESHOLD, Window};

use weir_base::{Bytes, Parameters, Raised, Random, Rate, Time};

/// What makes controllers of a kind that a program has added, from all parameters of that kind.
pub type Maker = dyn Fn(&Parameters, &Start) -> Box<dyn Controller> + Send + Sync;

/// A congestion controller. All hooks but [`Controller::on_ack`] and [`Controller::window`] have default bodies.
pub trait Controller: Send {
    /// An acknowledgement arrives. Called for every acknowledgement, in every phase.
    fn on_ack(&mut self, ack: &Ack, random: &mut Random);

    /// A segment is sent. Called only if [`Controller::wants_sent`] is true.
    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }
    /// Whether [`Controller::on_sent`] is to be called.
    fn wants_sent(&self) -> bool {
        false
    }

    /// An acknowledgement delivered segments. Called before any response to it: loss detection and reductions follow, and
    /// [`Controller::on_ack`] comes last (Linux `in_ack_event`, `pkts_acked`). Called only if [`Controller::wants_delivered`] is
    /// true.
    fn on_delivered(&mut self, delivered: &Delivered) {
        let _ = delivered;
    }
    /// Whether [`Controller::on_delivered`] is to be called.
    fn wants_delivered(&self) -> bool {
        false
    }

    /// Loss recovery begins, or a reduction for an ECN echo or at the controller's own request. The controller chooses the reduced
    /// window, which [`Controller::window`] returns from now on; the transport's PRR approaches it. Not called again while a
    /// reduction is under way.
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        let _ = congestion;
    }
    /// Whether the controller requests a reduction for a reason of its own (Linux `tcp_enter_cwr` from `cong_avoid`). Called after
    /// each [`Controller::on_ack`]. In the open and disordered phases a reduction with [`Signal::Own`] then begins, as for an ECN
    /// echo; in the other phases nothing happens.
    fn wants_reduction(&self) -> bool {
        false
    }
    /// Recovery has ended; everything outstanding when it began has been acknowledged.
    fn on_exit_recovery(&mut self, now: Time) {
        let _ = now;
    }
    /// The last reduction was spurious (DSACK, Eifel or F-RTO): the controller restores the state before it.
    fn on_undo(&mut self, now: Time) {
        let _ = now;
    }
    /// The retransmission timer fired.
    fn on_timeout(&mut self, timeout: &Timeout) {
        let _ = timeout;
    }
    /// Sending resumes after an idle time, or the application did not fill the window.
    fn on_restart(&mut self, restart: &Restart) {
        let _ = restart;
    }

    /// How many bytes may be in flight. With a window below one segment, a quantum ([`Controller::send_quantum`], or one segment)
    /// leaves at once, and the next new data at least `srtt * quantum / window` later.
    fn window(&self) -> Bytes;
    /// The slow-start threshold, `u64::MAX` bytes before the first loss; `None` if the controller has no threshold.
    fn slow_start_threshold(&self) -> Option<Bytes> {
        None
    }
    /// The rate at which segments leave, for controllers that pace. With `None` the transport decides; it paces only if the lab
    /// asks for it.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Which side reduces the window step by step in recovery.
    fn recovery(&self) -> Recovery {
        Recovery::Proportional
    }
    /// The codepoint of the data segments if the connection has negotiated ECN.
    fn codepoint(&self) -> Codepoint {
        Codepoint::Ect0
    }
    /// The congestion feedback that the controller needs from the receiver.
    fn feedback(&self) -> Feedback {
        Feedback::Classic
    }
    /// The smallest number of bytes that leave at once when pacing (Linux `min_tso_segs`); with `None` two segments. With a
    /// [window](Controller::window) below one segment, the number of bytes that leave at once; with `None` one segment.
    fn send_quantum(&self) -> Option<Bytes> {
        None
    }
    /// How many windows the send buffer holds as it grows (Linux `sndbuf_expand`; two if a controller has no such hook,
    /// `tcp_sndbuf_expand`).
    fn windows_buffered(&self) -> u32 {
        2
    }
    /// Whether the controller now sends less than the path can carry, on purpose: rate samples do not measure the path then, and are
    /// flagged as limited by the application. Called only if [`Controller::recovery`] is [`Recovery::Own`].
    fn holds_back(&self) -> bool {
        false
    }
    /// Whether the controller follows the delay and keeps the bottleneck's queue short. While a deadline requires it, flows under a
    /// controller that does not are suspended in favour of flows under one that does.
    fn keeps_queues_short(&self) -> bool {
        false
    }
    /// Takes an acknowledgement by [`Controller::on_ack`] and returns the [decision](Controller::decision) after it.
    fn respond(&mut self, ack: &Ack, random: &mut Random) -> Decision {
        self.on_ack(ack, random);
        self.decision()
    }
    /// All decisions that the transport reads after a call that may have changed them.
    fn decision(&self) -> Decision {
        Decision {
            window: self.window(),
            threshold: self.slow_start_threshold(),
            pacing_rate: self.pacing_rate(),
            wants_reduction: self.wants_reduction(),
        }
    }
    /// The path's rate was measured at the start of the connection: a window that is still in slow start and smaller opens to
    /// `window`, and slow start ends. A controller that measures the path itself ignores this.
    fn open_to(&mut self, window: Bytes) {
        let _ = window;
    }
    /// The segment size changes, since the path carries larger segments or only smaller ones. A window that is counted in segments
    /// keeps their number (Linux `tcp_sync_mss`).
    fn set_mss(&mut self, mss: Bytes);
    /// Reports the internal state as names and values, for the records.
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let _ = report;
    }
}

/// Declares the registry: the configuration enum, and how it builds a controller.
macro_rules! controllers {
    ($($Variant:ident($module:ident::$Type:ident) = $name:literal $(($title:literal))? $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A congestion controller and its parameters, as a lab file names it.
            pub enum Config: "controller" {
                $($Variant($module::Config) = $name $(($title))? $(| $alias)* : $summary;)+
            }
            + Added(Maker)
        }

        impl Config {
            /// Builds the controller for a connection that has just been established.
            pub fn build(&self, start: &Start) -> Box<dyn Controller> {
                match self {
                    $(Config::$Variant(config) => Box::new($module::$Type::new(config, start)),)+
                    Config::Added(added) => match added.maker() {
                        Some(make) => make(added.parameters(), start),
                        None => Raised::raise(format!("controller `{}` cannot be made here", self.name())),
                    },
                }
            }

            /// The codepoint of the controller's packets and the feedback that it needs, unless a lab sets others. One that was added
            /// has them as properties of these names.
            pub fn signals(&self) -> (Codepoint, Feedback) {
                if let Config::Added(added) = self {
                    let (codepoint, feedback) = (added.property("codepoint"), added.property("feedback"));
                    return (codepoint.unwrap_or(Codepoint::Ect0), feedback.unwrap_or(Feedback::Classic));
                }
                let mss = Bytes::new(1448);
                let start = Start { now: Time::ZERO, mss, initial_window: 10, paced: false, rtt: None };
                let controller = self.build(&start);
                (controller.codepoint(), controller.feedback())
            }
        }
    };
}

controllers! {
    NewReno(newreno::NewReno) = "newreno" ("NewReno") | "reno": "Additive increase, multiplicative decrease (RFC 5681, RFC 6582), as Linux tcp_reno";
    Cubic(cubic::Cubic) = "cubic" ("CUBIC"): "CUBIC (RFC 9438) with HyStart, in the integers of Linux tcp_cubic";
    Bbr(bbr::Bbr) = "bbr" ("BBR"): "BBR version 1: a model of the path's rate and RTT, in the integers of Linux tcp_bbr";
    Dctcp(dctcp::Dctcp) = "dctcp" ("DCTCP"): "DCTCP (RFC 8257): reduces its window by the share of marked segments; in the integers of Linux tcp_dctcp";
    Prague(prague::Prague) = "prague" ("Prague"): "TCP Prague (draft-briscoe-iccrg-prague-congestion-control): DCTCP for L4S";
    Htcp(htcp::Htcp) = "htcp" ("H-TCP"): "H-TCP (draft-leith-tcp-htcp-06), in the integers of Linux tcp_htcp";
    Vegas(vegas::Vegas) = "vegas" ("Vegas"): "TCP Vegas: keeps a few segments in the queue, estimated from the RTT; in the integers of Linux tcp_vegas";
    Nice(nice::Nice) = "nice" ("Nice"): "TCP Nice: Vegas that halves its window when the RTT is high, to as little as two segments in 96 round trips";
    LowPriority(low_priority::LowPriority) = "lp" ("TCP-LP"): "TCP-LP: halves its window when the one-way delay is high; as Linux tcp_lp or as its article";
    Ledbat(ledbat::Ledbat) = "ledbat" ("LEDBAT"): "LEDBAT (RFC 6817): keeps the one-way queuing delay at a target";
    Westwood(westwood::Westwood) = "westwood" ("Westwood+"): "TCP Westwood+: after a loss the window is the estimated BDP; in the integers of Linux tcp_westwood";
    WestwoodLp(westwood_lp::WestwoodLp) = "westwood-lp" ("Westwood-LP"): "TCP Westwood-LP: Westwood+ that reduces its window as soon as a few segments are queued";
    LedbatPlusPlus(ledbat_plus_plus::LedbatPlusPlus) = "ledbat-plus-plus" ("LEDBAT++") | "ledbat++": "LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): keeps the RTT's queuing delay at a target, with periodic slowdowns";
    AppleLedbat(apple_ledbat::AppleLedbat) = "apple-ledbat" ("Apple LEDBAT"): "Apple's LEDBAT: Reno up to a target delay; above it, reduces its window by an eighth";
    Cdg(cdg::Cdg) = "cdg" ("CDG"): "CDG: reduces its window when the delay rises, by the delay's gradient; in the integers of Linux tcp_cdg";
    Ctcp(ctcp::Ctcp) = "ctcp" ("Circuit TCP"): "Circuit TCP: a fixed window for a reserved circuit, without a response to losses; H-TCP without a circuit";
    Yield(yielding::Yield) = "yield" ("Yield"): "Yield: reduces its window by the trend of the one-way delay, most when cross-traffic makes it rise";
    Copa(copa::Copa) = "copa" ("Copa"): "Copa: keeps a few packets in the queue, controlled by the delay, and ignores losses; as in the GNAT report or NSDI 2018";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exempt::{Bound, exempt};
    use crate::testing::{MSS, ack, ack_with_rtt, start};
    use weir_base::Span;

    /// Calls a random hook with plausible and implausible values; `totals` are the segments delivered and lost so far.
    fn random_hook(controller: &mut dyn Controller, now: Time, totals: &mut (u64, u64), random: &mut Random) {
        let in_flight = Bytes::new(random.below(200) * MSS.get());
        let signal = [Signal::Loss, Signal::Ecn, Signal::Own, Signal::Refused][random.below(4) as usize];
        let idle = random.within(Span::from_secs(3));
        match random.below(40) {
            0 => controller.on_enter_recovery(&Congestion { now, signal, in_flight }),
            1 => controller.on_exit_recovery(now),
            2 => controller.on_undo(now),
            3 => {
                let (next_sequence, reduce) = (random.below(1 << 30), random.chance(0.5));
                totals.1 += random.below(100);
                let (delivered, lost) = *totals;
                controller.on_timeout(&Timeout { now, in_flight, next_sequence, reduce, delivered, lost });
            }
            4 => {
                let rto = Span::from_millis(200 + random.below(1000));
                controller.on_restart(&Restart::Idle { now, idle, rto, initial_window: 10 });
            }
            5 => {
                let app_limited = random.chance(0.5);
                controller.on_restart(&Restart::Transmit { now, idle, app_limited });
            }
            6 => {
                let used = random.below(50) as u32;
                controller.on_restart(&Restart::Unused { now, used, initial_window: 10 });
            }
            _ => random_ack(controller, now, in_flight, totals, random),
        }
    }

    /// Gives a random acknowledgement, preceded by its delivery.
    fn random_ack(
        controller: &mut dyn Controller,
        now: Time,
        in_flight: Bytes,
        totals: &mut (u64, u64),
        random: &mut Random,
    ) {
        let segments = random.below(4) as u32;
        let rtt = Span::from_micros(random.below(500_000));
        let plain = if random.chance(0.9) { ack_with_rtt(now, segments, rtt) } else { ack(now, segments) };
        let acknowledged = now.as_nanos() / 1_000;
        let phases = [Phase::Open, Phase::Disorder, Phase::Cwr, Phase::Recovery, Phase::Loss];
        let phase = phases[random.below(5) as usize];
        let lost_segments = if random.chance(0.1) { random.below(20) as u32 } else { 0 };
        totals.0 += u64::from(segments);
        totals.1 += u64::from(lost_segments);
        let any = |random: &mut Random| random.bits() >> (32 + random.below(32));
        let (sampled, interval) = (any(random) as u32, any(random));
        let ack = Ack {
            acknowledged,
            next_sequence: acknowledged + random.below(1 << 20),
            in_flight,
            in_flight_before: in_flight,
            ce_packets: random.below(6) as u32,
            delivered: totals.0,
            lost_segments,
            lost: totals.1,
            departure: now + random.within(Span::from_millis(100)),
            rate: random.chance(0.9).then(|| RateSample {
                delivered: sampled,
                interval: Span::from_micros(interval),
                prior_delivered: totals.0.saturating_sub(random.below(300)),
                losses: lost_segments,
                app_limited: random.chance(0.2),
            }),
            may_grow: random.chance(0.9),
            phase,
            ..plain
        };
        if controller.wants_delivered() {
            controller.on_delivered(&Delivered {
                now,
                segments,
                acked_segments: random.below(10) as u32,
                sacked_out: random.below(3) as u32,
                ce_packets: ack.ce_packets,
                rtt: ack.rtt,
                timestamps: ack.timestamps,
                own_ticks: (acknowledged / 1_000) as u32,
                next_sequence: ack.next_sequence,
                acknowledged,
                phase,
                predicted: random.chance(0.5),
            });
        }
        controller.on_ack(&ack, random);
    }

    #[test]
    fn a_larger_mss_keeps_the_window_in_segments_and_that_of_a_circuit_in_bytes() {
        for member in Config::members() {
            let config: Config = member.name.parse().unwrap();
            let mut controller = config.build(&start());
            let before = controller.window();
            controller.set_mss(MSS + MSS);
            // A circuit's window is larger than the initial one; without a circuit it is not exempt.
            let exempt = exempt(member.name, Bound::SegmentsAtANewMss).is_some();
            let circuit = exempt && before.get() > 10 * MSS.get();
            assert_eq!(
                controller.window(),
                if circuit { before } else { before + before },
                "{}",
                member.name
            );
        }
    }

    #[test]
    fn no_sequence_of_events_reduces_a_window_below_its_minimum() {
        for member in Config::members() {
            let config: Config = member.name.parse().unwrap();
            // A loss leaves at least one segment (RFC 5681, section 3.1). The exception is a controller with a parameter for the
            // largest number of round trips in which it sends two segments.
            let rounds = serde_json::to_value(&config).unwrap()["max_fwnd"].as_u64();
            let least = rounds.map_or(MSS.get(), |rounds| 2 * MSS.get() / rounds);
            let mut random = Random::stream(7, member.name);
            for _ in 0..50 {
                let mut controller = config.build(&start());
                let (mut now, mut totals) = (Time::ZERO, (1, 0));
                for _ in 0..2_000 {
                    now += random.within(Span::from_millis(20));
                    random_hook(controller.as_mut(), now, &mut totals, &mut random);
                    let rate = controller.pacing_rate();
                    assert!(rate.is_none_or(|rate| rate.bits_per_sec() > 0), "{} stopped", member.name);
                    assert!(
                        controller.window().get() >= least,
                        "{} fell to {:?}",
                        member.name,
                        controller.window()
                    );
                    controller.state(&mut |name, value| assert!(value.is_finite(), "{name} is {value}"));
                }
            }
        }
    }

    #[test]
    fn no_controller_starves_alone_on_a_clean_link() {
        // 20 Mbit/s and 40 ms hold 100 segments. The buffer holds as many, and marks ECN-capable ones from 20 on. In the 20 s after
        // the first 5 s the link carries 50,000 segments.
        let link = testing::Link {
            rate: Rate::from_mbit_per_sec(20),
            rtt: Span::from_millis(40),
            buffer: 100,
            mark: None,
        };
        // A window that falls to half of the BDP and grows linearly from there leaves a quarter of the link unused even without a
        // buffer (Appenzeller, Keslassy and McKeown, "Sizing Router Buffers", SIGCOMM 2004, section 2). Segments after a mark may
        // be marked again, down to one segment; a window that grows from there to the BDP by a segment each round trip (RFC 5681,
        // section 3.1) uses half of the link. Each controller's own tests state what it reaches.
        for (mark, least) in [(None, 0.75), (Some(20), 0.5)] {
            let held = |name: &str| exempt(name, Bound::ShareAlone).is_none();
            for member in Config::members().iter().filter(|member| held(member.name)) {
                let mut path = testing::Path::new(member.name, testing::Link { mark, ..link });
                path.trace(Span::from_secs(5), 1);
                let before = path.delivered;
                let windows = path.trace(Span::from_millis(10), 2_000);
                let share = (path.delivered - before) as f64 / 50_000.0;
                // A window that is never below the BDP fills the link.
                let least = if windows.iter().all(|window| *window >= 100) { 0.99 } else { least };
                assert!(share >= least, "{} took {share} of the link, marking {mark:?}", member.name);
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refusal = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
        assert!(
            refusal(r#"{ "kind": "cubic", "beta": 1024 }"#)
                .contains("beta: 1024 is out of range; write 1 to 1023")
        );
        assert!(refusal(r#"{ "kind": "cubic", "bic_scale": 0 }"#).contains("bic_scale: 0"));
        assert!(refusal(r#"{ "kind": "reno", "beta": 1 }"#).contains("beta"));
        assert!(refusal(r#"{ "kind": "bbr", "beta": 1 }"#).contains("beta"));
        assert!(
            refusal(r#"{ "kind": "dctcp", "dctcp_shift_g": 11 }"#)
                .contains("11 is out of range; write 0 to 10")
        );
        assert!(
            refusal(r#"{ "kind": "cdg", "window": 12 }"#).contains("window is 12, expected a power of two")
        );
        assert!(
            refusal(r#"{ "kind": "cdg", "window": 512 }"#)
                .contains("window: 512 is out of range; write 1 to 256")
        );
        let refused = refusal(r#"{ "kind": "apple-ledbat", "decrease_shift": 0 }"#);
        assert!(refused.contains("decrease_shift: 0 is out of range; write 1 to 31"));
        assert!(refusal(r#"{ "kind": "westwood-lp", "threshold": "2005" }"#).contains("2006"));
        assert!(
            refusal(r#"{ "kind": "westwood", "hz": 10 }"#)
                .contains("hz: 10 is out of range; write 100 to 1000")
        );
        assert!(
            refusal(r#"{ "kind": "yield", "beta": 101 }"#)
                .contains("beta: 101 is out of range; write 0 to 100")
        );
        assert!(
            refusal(r#"{ "kind": "yield", "trend_factor": 0 }"#)
                .contains("trend_factor: 0 is out of range; write 1")
        );
        assert!(refusal(r#"{ "kind": "dctcp", "dctcp_alpha_on_init": 2000 }"#).contains("write 0 to 1024"));
    }
}
