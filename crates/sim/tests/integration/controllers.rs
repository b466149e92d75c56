//! Every controller alone on standard links, and BBR's cycle: numbers that a person can work out by hand.

use crate::simulate::{distribution, number, simulate};
use std::sync::atomic::AtomicBool;
use weir_control::exempt::{Bound, exempt};
use weir_engine::{Engine, Watch};
use weir_plan::Lab;
use weir_record::{
    DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder, RttSample, StateSample,
    TransportSample,
};
use weir_sim::Simulator;

/// One flow for 20 s; `CC`, `ECN`, `RATE`, `RTT` and `QUEUE` are filled in.
const ALONE: &str = "
[run]
duration = '20 s'
warmup = '5 s'
[dumbbell]
rate = 'RATE'
rtt = 'RTT'
queue = QUEUE
[traffic.flow]
cc = 'CC'
ecn = ECN
";

/// A controller alone on a link: utilisation in percent, mean queue delay in milliseconds, retransmissions.
struct Alone {
    used: f64,
    delay: f64,
    retransmitted: f64,
}

/// Every controller by name that must meet this bound, alone on this link.
fn alone_on(bound: Bound, (rate, rtt, queue, ecn): (&str, &str, &str, bool)) -> Vec<(&'static str, Alone)> {
    let alone = |name: &'static str| {
        let lab = ALONE.replace("RATE", rate).replace("RTT", rtt).replace("QUEUE", queue);
        // Circuit TCP is given the link as its circuit; labs count 52 bytes of headers.
        let cc = match name {
            "ctcp" => format!("{{ kind = 'ctcp', rate = '{rate}', rtt = '{rtt}', header_bytes = 52 }}"),
            name => format!("'{name}'"),
        };
        let lab = lab.replace("'CC'", &cc).replace("ECN", if ecn { "true" } else { "false" });
        let run = &simulate(&lab)[0];
        let alone = Alone {
            used: number(run.metrics.get("utilisation_percent")),
            delay: distribution(run.metrics.get("queue_delay_ms")).mean,
            retransmitted: number(run.groups[0].metrics.get("retransmissions")),
        };
        (name, alone)
    };
    let members = weir_control::Config::members().into_iter().map(|member| member.name);
    members.filter(|name| exempt(name, bound).is_none()).map(alone).collect()
}

/// Controllers that halve their window at a loss, add a segment a round trip, and reduce it for no other reason on a link without
/// competition: the background controllers among them find no queue above their target here.
const HALVING: [&str; 4] = ["newreno", "dctcp", "lp", "apple-ledbat"];

#[test]
fn every_controller_alone_keeps_the_link_busy_with_a_buffer_of_one_bdp() {
    // Half of a window of two BDP is one BDP: the queue just runs empty. A full queue is 40 ms.
    let link = ("10 Mbit/s", "40 ms", "{ kind = 'tail-drop', limit = '1 bdp' }", false);
    for (name, alone) in alone_on(Bound::BusyAlone, link) {
        let Alone { used, delay, retransmitted } = alone;
        assert!((90.0..=100.0).contains(&used), "{name} uses {used} %");
        assert!(delay < 40.0, "{name} queues {delay} ms");
        // Slow start overshoots by a BDP (33 packets) at most, and each sawtooth after it loses one or two.
        assert!(retransmitted < 2.0 * 33.0, "{name} retransmits {retransmitted}");
        if name == "vegas" {
            // Two to four packets of 1.2 ms each.
            assert!((2.4..=4.8).contains(&delay), "{name} queues {delay} ms");
        }
        if HALVING.contains(&name) {
            // Uniform between empty and full: 20 ms, plus the ACK clock's bursts.
            assert!((18.0..=24.0).contains(&delay), "{name} queues {delay} ms");
        }
    }
}

#[test]
fn halving_costs_an_eighth_of_the_link_with_a_buffer_of_a_quarter_of_a_bdp() {
    let link = ("50 Mbit/s", "20 ms", "{ kind = 'tail-drop', limit = '0.25 bdp' }", false);
    for (name, alone) in alone_on(Bound::ShallowBuffer, link) {
        let Alone { used, delay, .. } = alone;
        assert!(used <= 100.0 && delay < 5.0, "{name} uses {used} % and queues {delay} ms of 5");
        // The window goes from 0.625 to 1.25 BDP: below one BDP for 0.6 of the time, with 0.8125 on average, so 88.75 %.
        if HALVING.contains(&name) {
            assert!((86.75..=90.75).contains(&used), "{name} uses {used} %");
        }
        // CUBIC goes from 0.875 BDP: below one for at most a third of the time, which costs at most 2.1 %.
        if name == "cubic" {
            assert!(used >= 96.0, "{name} uses {used} %");
        }
    }
}

#[test]
fn a_controller_alone_loses_no_packet_at_a_marking_threshold_and_a_scalable_one_fills_the_link() {
    let link = ("100 Mbit/s", "10 ms", "{ kind = 'step', threshold = '20 packets' }", true);
    for (name, alone) in alone_on(Bound::NoLossAtMarks, link) {
        let Alone { used, delay, retransmitted } = alone;
        assert_eq!(retransmitted, 0.0, "{name}: marks replace drops");
        // 20 packets of 0.12 ms are 2.4 ms; BBR, which ignores marks, and Circuit TCP with its fixed window are a little above.
        assert!(delay <= 3.0, "{name} queues {delay} ms");
        if ["dctcp", "prague"].contains(&name) {
            assert!(
                used >= 99.5 && (1.2..=2.5).contains(&delay),
                "{name} uses {used} % and queues {delay} ms"
            );
        }
    }
}

/// Keeps the sender's samples.
#[derive(Default)]
struct Senders(Vec<TransportSample>);

impl Recorder for Senders {
    fn link(&mut self, _: &LinkSample) {}
    fn delay(&mut self, _: &DelaySample) {}
    fn flow(&mut self, _: &FlowSample) {}
    fn rtt(&mut self, _: &RttSample) {}
    fn transport(&mut self, sample: &TransportSample) {
        self.0.push(*sample);
    }
    fn state(&mut self, _: &StateSample<&str>) {}
    fn event(&mut self, _: &FlowEvent) {}
    fn message(&mut self, _: &Message) {}
    fn packet(&mut self, _: &PacketRecord) {}
}

/// The sender's samples of the only run of a lab.
fn senders(lab: &str) -> Vec<TransportSample> {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::from_str(&format!("format = 1\n{lab}"), "bbr.toml", folder.path(), &[]).unwrap();
    let mut senders = Senders::default();
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    Simulator.run(&lab.runs()[0], &mut senders, &watch).unwrap();
    senders.0
}

#[test]
fn bbr_keeps_two_bdp_in_flight_at_most_and_four_segments_for_200_ms_every_ten_seconds() {
    // 20 Mbit/s and 40 ms hold 66.7 packets of 1500 bytes. Twice that, rounded up, with three trains of two, made even and
    // two more for probing, are 142; the RTT seen is longer by a packet or two (0.6 ms each), aggregation may add a few.
    let samples = senders(
        "
[run]
duration = '25 s'
warmup = '0 s'
sample = '10 ms'
start_jitter = '0 s'
host_jitter = '0 s'
[dumbbell]
rate = '20 Mbit/s'
rtt = '40 ms'
queue = { kind = 'tail-drop', limit = '1000 packets' }
[traffic.flow]
cc = 'bbr'
",
    );
    let at = |sample: &TransportSample| sample.at.as_secs_f64();
    let steady = samples.iter().filter(|sample| at(sample) > 2.0);
    let most = steady.map(|sample| sample.in_flight).fold(0.0, f64::max);
    assert!((68.0..=150.0).contains(&most), "{most} in flight");
    // Times at which ProbeRTT holds the window at four segments.
    let low: Vec<f64> = samples.iter().filter(|sample| sample.cwnd == 4.0).map(at).collect();
    let starts: Vec<f64> =
        (0..low.len()).filter(|&i| i == 0 || low[i] - low[i - 1] > 1.0).map(|i| low[i]).collect();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert!((10.0..11.0).contains(&starts[0]), "{starts:?}");
    assert!((10.0..11.0).contains(&(starts[1] - starts[0])), "{starts:?}");
    for start in starts {
        let length = low.iter().filter(|&&time| time >= start && time < start + 1.0).count();
        // In tens of milliseconds: 200 ms from the time when four segments are in flight, which takes a round trip, and at most
        // one more round.
        assert!((20..=32).contains(&length), "{length} samples at four segments from {start} s");
    }
}

#[test]
fn bbr_fills_a_clean_link_but_for_probe_rtt_and_leaves_a_deep_buffer_empty() {
    let run = &simulate(
        "
[run]
duration = '30 s'
warmup = '5 s'
[dumbbell]
rate = '20 Mbit/s'
rtt = '40 ms'
queue = { kind = 'tail-drop', limit = '8 bdp' }
[traffic.flow]
cc = 'bbr'
",
    )[0];
    let used = number(run.metrics.get("utilisation_percent"));
    // Two dips of about 250 ms in 25 s.
    assert!(used > 97.0, "{used}");
    let delay = distribution(run.metrics.get("queue_delay_ms"));
    // Probing adds a quarter of 40 ms for a round.
    assert!(delay.p50 < 4.0 && delay.p99 < 16.0, "{delay:?}");
    assert_eq!(number(run.groups[0].metrics.get("retransmissions")), 0.0);
}

/// Circuit TCP on a link of 10 Mbit/s and 20 ms that loses one packet in twenty, for 20 s: 130 % of its BDP are 22 packets.
const LOSSY_CIRCUIT: &str = "
[run]
duration = '20 s'
warmup = '0 s'
[dumbbell]
rate = '10 Mbit/s'
rtt = '20 ms'
loss = { down = '5 %', up = '0 %' }
[traffic.a]
cc = { kind = 'ctcp', rate = '10 Mbit/s', rtt = '20 ms', header_bytes = 52, fall_back = FALL_BACK }
";

#[test]
fn a_circuit_with_heavy_loss_for_ten_seconds_continues_under_htcp() {
    let windows = |fall_back: &str| -> Vec<f64> {
        senders(&LOSSY_CIRCUIT.replace("FALL_BACK", fall_back)).iter().map(|sample| sample.cwnd).collect()
    };
    assert!(
        windows("false").iter().all(|cwnd| *cwnd == 22.0),
        "the window stands through losses and timeouts"
    );
    let windows = windows("true");
    let stood = windows.iter().take_while(|cwnd| **cwnd == 22.0).count();
    assert!((10..12).contains(&(stood * 20 / windows.len())), "{stood} of {}", windows.len());
    let after = &windows[stood..];
    assert!(after.iter().sum::<f64>() / after.len() as f64 <= 11.0, "{after:?}");
}

/// Each flow's acknowledgements wait behind the other flow's data. SLIQ tells Copa how long, so that it takes this for no queue of its own.
#[test]
fn copa_fills_both_directions_of_a_link_over_sliq() {
    let lab = "[run]\nduration = '20 s'\nwarmup = '5 s'\n[dumbbell]\nrate = { down = '10 Mbit/s', up = '10 Mbit/s' }\nrtt = '20 ms'\n\
        [traffic.down]\ntransport = 'sliq'\ncc = 'copa'\n[traffic.up]\ntransport = 'sliq'\ncc = 'copa'\ndirection = 'up'\n";
    for link in &simulate(lab)[0].queues {
        let used = number(link.metrics.get("utilisation_percent"));
        let delay = distribution(link.metrics.get("queue_delay_ms"));
        // Without it 86 % are used; with it, while the window is not longer by what waits on the way back, 95 %, and 99 % of packets wait 12 ms.
        assert!(used > 96.5 && delay.p99 < 10.0, "{}: {used} %, {delay:?}", link.link);
    }
}
