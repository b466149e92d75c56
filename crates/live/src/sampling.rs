//! A fabric from a run, and its counters into records at the end of each sample period.
use weir_base::Time;
use weir_fabric::{Config, Fabric, Wire};
use weir_plan::Run;
use weir_record::{Component, DelaySample, FlowSample, LinkSample, Recorder, RttSample, StateSample};

/// What the fabric of a run is built from.
pub(crate) fn fabric_config(run: &Run) -> Config {
    use weir_fabric as f;
    Config {
        nodes: run.network.nodes.iter().map(|n| f::Node { host: n.host, jitter: n.jitter }).collect(),
        links: run
            .network
            .links
            .iter()
            .map(|l| f::Link {
                from: l.from,
                to: l.to,
                rate: l.rate,
                delay: l.delay,
                loss: l.loss,
                overhead: l.overhead,
                queue: l.queue.clone(),
                drop: l.drop.clone(),
                hold: l.hold.iter().map(|h| (h.packet, h.by)).collect(),
                schedule: l
                    .schedule
                    .iter()
                    .map(|c| f::Change { at: c.at, rate: c.rate, delay: c.delay, loss: c.loss })
                    .collect(),
                measured: l.measured,
            })
            .collect(),
        flows: run
            .flows
            .iter()
            .map(|fl| f::Flow { from: run.groups[fl.group].from, group: fl.group })
            .collect(),
        groups: run.groups.len(),
        base_rtt: run.network.base_rtt,
        mtu: run.network.mtu,
        seed: run.seed,
    }
}

/// Takes the counters of one period down. `read` tells what a flow's receiving application has read in it.
pub(crate) fn sample<P: Wire>(
    fabric: &mut Fabric<P>,
    run: &Run,
    at: Time,
    read: &mut dyn FnMut(usize) -> u64,
    recorder: &mut dyn Recorder,
) {
    for (link, _) in run.measured_links() {
        let c = fabric.take_link(link);
        let backlog = fabric.backlog(link);
        recorder.link(&LinkSample {
            at,
            link: link as u32,
            arrived: c.arrived,
            dropped: c.dropped,
            marked: c.marked,
            sent: c.sent,
            sent_bytes: c.sent_bytes,
            dropped_full: c.dropped_full,
            lost: c.lost,
            busy: c.busy,
            capacity: fabric.take_capacity(link, at),
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
        });
        for (class, delay) in fabric.delays(link) {
            if delay.count() > 0 {
                recorder.delay(&DelaySample { at, link: link as u32, class, delay: delay.clone() });
                delay.clear();
            }
        }
        fabric.queue_state(link, at, &mut |name, value| {
            recorder.state(&StateSample { at, of: Component::Queue(link as u32), name, value })
        });
    }
    for flow in 0..run.flows.len() {
        let c = fabric.take_flow(flow);
        recorder.flow(&FlowSample {
            at,
            flow: flow as u32,
            sent_packets: c.sent_packets,
            sent_bytes: c.sent_bytes,
            retransmitted: c.retransmitted,
            received_packets: c.received_packets,
            received_bytes: c.received_bytes,
            received_ce: c.received_ce,
            read_bytes: read(flow),
            rtt_count: c.rtt_count,
            rtt_sum: c.rtt_sum,
            rtt_min: c.rtt_min,
            rtt_max: c.rtt_max,
        });
    }
    for group in 0..run.groups.len() {
        let rtt = fabric.group_rtts(group);
        if rtt.count() > 0 {
            recorder.rtt(&RttSample { at, group: group as u32, rtt: rtt.clone() });
            rtt.clear();
        }
    }
}
