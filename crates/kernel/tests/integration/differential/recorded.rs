//! Connections recorded in a kernel: `traces/*.trace`, which `make kernel-traces` records (crates/kernel/examples/record.rs describes the
//! format). The recorder is Reno; every control gets the acknowledgements of its connections.

use super::forms::{Forms, PHASES, Seen};
use weir_base::Bytes;
use weir_control::{Config, Phase, Signal};

/// The traces, recorded on the live fabric at 8/1 Mbit/s and 50 ms: with one packet in a hundred lost; beside CUBIC; alone, with a
/// receive buffer below the bandwidth-delay product.
pub(crate) const TRACES: [(&str, &str); 3] = [
    ("losses", include_str!("../../traces/losses.trace")),
    ("competition", include_str!("../../traces/competition.trace")),
    ("quiet", include_str!("../../traces/quiet.trace")),
];

/// The peer's clock when the connection begins.
const PEER_BEGIN: u32 = 5_000;
/// Count of numbers of an acknowledgement, and of the longest other event.
const ACK: usize = 16;
const OTHER: usize = 3;

/// Runs through a trace.
pub(crate) fn lived(config: &Config, seed: u64, trace: &str) -> Forms {
    let mut lines = trace.lines();
    let mss: u64 = lines.next().and_then(|line| line.strip_prefix("mss ")).unwrap().parse().unwrap();
    let mut forms = Forms::new(config, seed, Bytes::new(mss));
    let mut peer_ticks = PEER_BEGIN;
    for line in lines {
        let (event, rest) = line.split_once(' ').unwrap();
        let numbers: Vec<i64> = rest.split(' ').map(|number| number.parse().unwrap()).collect();
        assert!(numbers.len() == if event == "ack" { ACK } else { numbers.len().min(OTHER) }, "{line}");
        forms.now += numbers[0] as u64;
        match event {
            "ack" => {
                peer_ticks = peer_ticks.wrapping_add(numbers[8] as u32);
                let seen = seen(&forms, &numbers, peer_ticks);
                forms.acknowledge(&seen);
            }
            "recovery" => forms.reduce(match PHASES[numbers[1] as usize] {
                Phase::Recovery => Signal::Loss,
                _ => Signal::Ecn,
            }),
            // A reduction of the controller's own is not undone.
            "undo" if forms.undoable => forms.undo(),
            "undo" => {}
            "timeout" => forms.time_out(numbers[1] as u64, numbers[2] == 1 && forms.own_until.is_none()),
            "transmit" => forms.transmit(),
            _ => panic!("no such event: {line}"),
        }
    }
    forms
}

fn seen(forms: &Forms, numbers: &[i64], peer_ticks: u32) -> Seen {
    let known = |micros: i64| u64::try_from(micros).ok();
    let acknowledged = forms.acknowledged + numbers[6] as u64;
    let echoed = u32::try_from(numbers[9]).ok().map(|age| ((forms.now / 1_000) as u32).wrapping_sub(age));
    // A reduction that the controller has asked for lasts until all data sent by then is acknowledged; the recorder had no such
    // reduction.
    let phase = match forms.own_until {
        Some(until) if acknowledged <= until => Phase::Cwr,
        Some(_) => Phase::Open,
        None => PHASES[numbers[13] as usize],
    };
    Seen {
        segments: numbers[1] as u32,
        acked_segments: numbers[2] as u32,
        rtt: known(numbers[3]),
        srtt: known(numbers[4]).filter(|&srtt| srtt > 0),
        ce_packets: numbers[5] as u32,
        acknowledged,
        next: acknowledged + numbers[7] as u64,
        ticks: echoed.map(|echoed| (peer_ticks, echoed)),
        in_flight: numbers[10] as u64,
        cwnd_limited: numbers[11] == 1,
        grows: numbers[12] == 1,
        phase,
        sacked_out: numbers[14] as u32,
        predicted: numbers[15] == 1,
        lost_segments: 0,
    }
}
