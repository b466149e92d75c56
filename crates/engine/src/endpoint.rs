//! Records of an endpoint's sending side: the same for simulated endpoints and for those over sockets.

use weir_base::{Rate, Time};
use weir_endpoint::{Counts, Endpoint, Limits};
use weir_record::metrics::{connection, limited};
use weir_record::{Component, FlowEvent, FlowEventKind, Recorder, StateSample, TransportSample};

/// Controllers' internal states are recorded for this many flows, the first of the run: nobody looks at single controllers
/// among more, and their records would be larger than all others.
const FLOWS_WITH_STATE: usize = 64;

/// A slow-start threshold of this many segments or more means that there is none (Linux `TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// Records the state of a flow's sending side, if the connection is open. `random_arrivals` says that the flow is one of many with
/// random arrivals: its controller's internal state is not recorded.
pub fn record_endpoint(
    recorder: &mut dyn Recorder,
    flow: usize,
    sender: &impl Endpoint,
    random_arrivals: bool,
    now: Time,
) {
    let id = flow as u32;
    match sender.sample() {
        Some(sample) => recorder.transport(&TransportSample {
            at: now,
            flow: id,
            cwnd: sample.cwnd.into(),
            ssthresh: sample
                .ssthresh
                .filter(|segments| *segments < NO_THRESHOLD)
                .map(|segments| segments as f64),
            in_flight: sample.in_flight.into(),
            srtt: sample.srtt.unwrap_or_default(),
            min_rtt: sample.min_rtt.unwrap_or_default(),
            rto: sample.rto,
            pacing_rate: sample.pacing_rate,
            delivery_rate: sample.delivery_rate,
            retransmissions: sample.retransmitted,
            timeouts: Some(sample.timeouts),
            spurious: sample.spurious,
        }),
        // Datagrams, which nobody retransmits, have no connection, but their layer may have a state.
        None if sender.is_open() && sender.retransmitted().is_none() => {}
        None => return,
    }
    if !random_arrivals && flow < FLOWS_WITH_STATE {
        sender.state(&mut |part, name, value| {
            let name = part.name_of(name);
            recorder.state(&StateSample { at: now, of: Component::Controller(id), name: &name, value });
        });
        if let Some(limits) = sender.limits(now) {
            record_limits(recorder, flow, &limits, now);
        }
    }
}

/// Records the rate that an aggregation point has reported to a flow of datagrams over a kernel's socket; nothing without a report.
pub fn record_reported(recorder: &mut dyn Recorder, flow: usize, rate: Option<Rate>, now: Time) {
    if let Some(rate) = rate.filter(|_| flow < FLOWS_WITH_STATE) {
        let (of, value) = (Component::Controller(flow as u32), rate.mbit_per_sec());
        recorder.state(&StateSample { at: now, of, name: connection::REPORTED, value });
    }
}

/// Records for how long a flow's sending side was limited by what so far: how long it had data, and what of the rest is not 0.
pub fn record_limits(recorder: &mut dyn Recorder, flow: usize, limits: &Limits, now: Time) {
    if flow >= FLOWS_WITH_STATE {
        return;
    }
    let Limits { busy, receive_window, send_buffer, app_limited } = *limits;
    let others =
        [receive_window.as_millis_f64(), send_buffer.as_millis_f64(), f64::from(u8::from(app_limited))];
    let [own, names @ ..] = limited::STATES;
    let of = Component::Controller(flow as u32);
    recorder.state(&StateSample { at: now, of, name: own, value: busy.as_millis_f64() });
    for (name, value) in names.into_iter().zip(others).filter(|(_, value)| *value > 0.0) {
        recorder.state(&StateSample { at: now, of, name, value });
    }
}

/// Records an event for timeouts, recoveries and undone reductions, each if `counts` has more of them than `told`.
pub fn record_counts(recorder: &mut dyn Recorder, flow: usize, told: Counts, counts: Counts, now: Time) {
    for (kind, more) in [
        (FlowEventKind::Timeout, counts.timeouts > told.timeouts),
        (FlowEventKind::Recovery, counts.recoveries > told.recoveries),
        (FlowEventKind::Undo, counts.undos > told.undos),
    ] {
        if more {
            recorder.event(&FlowEvent { at: now, flow: flow as u32, kind });
        }
    }
}
