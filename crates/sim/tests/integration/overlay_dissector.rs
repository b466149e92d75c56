//! The Wireshark dissector of the overlay (docs/overlay.lua), run by tshark, shows what `weir_overlay::message` reads from the same bytes.

use crate::dissector::tshark;
use std::sync::atomic::AtomicBool;
use weir_engine::{Capture, Engine, Watch};
use weir_overlay::Context;
use weir_overlay::message::Message;
use weir_overlay::message::header::{Header, is_packet};
use weir_overlay::packet::Flow;
use weir_plan::Lab;
use weir_record::Records;
use weir_sim::Simulator;
use weir_sliq::wire::{Data, Frame};

const FIELDS: [&str; 8] =
    ["sequence", "hops", "flow.number", "visited", "message", "stamp", "epoch", "depth"];

/// Numbers as tshark lists them.
fn list(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

/// The fields of a packet between nodes.
fn of_packet(bytes: &[u8], contexts: &mut Vec<(Flow, Context)>) -> [String; 8] {
    let find = |flow| contexts.iter().find(|(known, _)| *known == flow).map(|(_, context)| *context);
    let (header, context, ..) = Header::decode(bytes, find).unwrap();
    contexts.push((header.flow, context));
    let mut fields = <[String; 8]>::default();
    fields[0] = header.sequence.to_string();
    fields[1] = header.hops.to_string();
    fields[2] = header.flow.number.to_string();
    fields[3] = list(header.visited.iter().map(|node| node.number().into()));
    fields
}

/// The fields of a datagram of messages.
fn of_messages(mut bytes: &[u8]) -> [String; 8] {
    let (mut kinds, mut stamps, mut epochs, mut depths, mut flows) = (vec![], vec![], vec![], vec![], vec![]);
    while !bytes.is_empty() {
        kinds.push(format!("0x{:02x}", bytes[0]));
        let (message, rest) = Message::decode(bytes).unwrap();
        bytes = rest;
        match message {
            Message::Depths(told) => {
                epochs.push(told.stamp.epoch.into());
                stamps.push(told.stamp.sequence.into());
                depths.extend(told.nodes.iter().map(|(_, depth)| depth.total));
                for (_, group) in told.groups.iter() {
                    let weir_overlay::message::GroupDepth::Members(_, of_members) = group else { continue };
                    depths.extend(of_members.iter().map(|depth| depth.total));
                }
            }
            Message::Hello(hello) => epochs.push(hello.epoch.into()),
            Message::Links(links) => {
                epochs.push(links.stamp.epoch.into());
                stamps.push(links.stamp.sequence.into());
            }
            Message::Groups(groups) => {
                epochs.push(groups.stamp.epoch.into());
                stamps.push(groups.stamp.sequence.into());
            }
            Message::Known(flow) | Message::Unknown(flow) => flows.push(flow.number.into()),
            Message::Report(report) => flows.push(report.flow.number.into()),
            Message::Capacity(_) => {}
        }
    }
    let mut fields = <[String; 8]>::default();
    (fields[2], fields[4]) = (list(flows), kinds.join(","));
    (fields[5], fields[6], fields[7]) = (list(stamps), list(epochs), list(depths));
    fields
}

/// Packets to many receivers, packets with a deadline, and messages, over two links.
const LAB: &str = r#"
format = 1
[run]
duration = "3 s"
[graph]
routers = ["a", "b", "c"]
[graph.links]
ab = { from = "a", to = "b", rate = "4 Mbit/s", delay = "5 ms" }
bc = { from = "b", to = "c", rate = "4 Mbit/s", delay = "5 ms" }
[overlay]
nodes = ["a", "b", "c"]
k = 1e11
[traffic.many]
from = "a"
multicast = ["b", "c"]
workload = { kind = "udp", rate = "2 Mbit/s", packet = "1052 B" }
[traffic.timed]
from = "a"
to = "c"
workload = { kind = "udp", rate = "200 kbit/s", packet = "200 B" }
overlay = { deadline = "100 ms" }
"#;

/// What tshark shows of the overlay with these scripts, when the lab is run with this setting. `None` without tshark.
fn shown(scripts: &[&str], settings: &[String]) -> Option<Vec<(Vec<u8>, Vec<String>)>> {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::from_str(LAB, "lab.toml", folder.path(), settings).unwrap();
    let run = &lab.runs()[0];
    let capture = Capture::of_link(run, "ab", folder.path()).unwrap();
    let cancel = AtomicBool::new(false);
    let watch = Watch { cancel: &cancel, progress: &|_| {}, capture: Some(capture.clone()), folder: None };
    Simulator.run(run, &mut Records::default(), &watch).unwrap();
    capture.finish().unwrap();
    tshark(scripts, "overlay", &folder.path().join("ab.pcap"), &FIELDS)
}

#[test]
fn what_sliq_carries_between_nodes_is_shown_plain_and_sealed_by_length() {
    for seal in ["none", "noise"] {
        let setting = format!("overlay.cat={{ kind = 'sliq', seal = '{seal}' }}");
        let Some(shown) = shown(&["sliq.lua", "overlay.lua"], &[setting]) else { return };
        let mut contexts = vec![];
        let (mut packets, mut messages) = (0, 0);
        for (bytes, fields) in &shown {
            let (_, mut rest) = weir_sliq::wire::Header::read(bytes).unwrap();
            let data = loop {
                match Frame::read(rest).unwrap() {
                    (Frame::Data(data), after) => break (data, after),
                    (_, after) => rest = after,
                }
            };
            let (Data { stream, length, .. }, payload) = data;
            let payload = &payload[..length.into()];
            let expected = if stream == 1 || stream == 3 {
                packets += 1;
                of_packet(&payload[20..], &mut contexts)
            } else {
                messages += 1;
                of_messages(payload)
            };
            assert_eq!(fields[..], expected, "{seal}: {bytes:02x?}");
        }
        assert!(packets > 100 && messages > 30, "{seal}: {packets} packets, {messages} messages");
    }
}

#[test]
fn every_packet_and_message_of_the_overlay_is_shown_as_it_was_written() {
    let Some(shown) = shown(&["overlay.lua"], &[]) else { return };
    let mut contexts = vec![];
    let (mut packets, mut messages) = (0, 0);
    for (bytes, fields) in &shown {
        let expected = if is_packet(bytes[0]) {
            packets += 1;
            of_packet(bytes, &mut contexts)
        } else {
            messages += 1;
            of_messages(bytes)
        };
        assert_eq!(fields[..], expected, "{bytes:02x?}");
    }
    assert!(packets > 100 && messages > 30, "{packets} packets, {messages} datagrams of messages");
}
