//! An overlay in a run's script, as `assets/topology.js` and `assets/admission.js` read it.

use super::{push_json, push_name};
use crate::charts::Ink;
use crate::compact::{push_compact, push_line};
use crate::lab::Run;
use crate::overlay::{Admission, Overlay};
use std::collections::HashMap;
use weir_record::Values;

/// Appends the overlay as JSON.
pub(super) fn push(overlay: &Overlay, run: &Run, colours: &HashMap<String, usize>, script: &mut Vec<u8>) {
    script.extend(b"{\"p\":");
    push_compact(Some(overlay.period_s), script);
    script.extend(b",\"n\":");
    push_json(&overlay.count, script);
    script.extend(b",\"nodes\":[");
    for node in &overlay.nodes {
        script.extend(b"\n{\"n\":");
        push_json(&node.name, script);
        script.extend(b",\"x\":");
        push_compact(Some(node.at.0), script);
        script.extend(b",\"y\":");
        push_compact(Some(node.at.1), script);
        lines(b",\"real\":", &node.real, script);
        lines(b",\"zombies\":", &node.zombies, script);
        script.extend(b",\"bins\":[");
        for bin in &node.bins {
            script.extend(b"{\"to\":");
            push_json(&bin.to, script);
            for (key, values) in [&b",\"real\":"[..], b",\"zombies\":", b",\"told\":"].iter().zip(&bin.bytes)
            {
                lines(key, values, script);
            }
            script.extend(b"},");
        }
        script.extend(b"]},");
    }
    script.extend(b"],\"links\":[");
    for link in &overlay.links {
        script.extend(b"\n{\"e\":");
        push_json(&[link.ends.0, link.ends.1], script);
        lines(b",\"cap\":", &link.capacity, script);
        lines(b",\"load\":", &link.load, script);
        script.extend(b"},");
    }
    script.extend(b"],\"flows\":[");
    for flow in &overlay.flows {
        script.extend(b"\n{\"n\":");
        push_json(&flow.name, script);
        script.extend(b",\"from\":");
        push_json(&flow.from, script);
        script.extend(b",\"to\":");
        push_json(&flow.to, script);
        script.extend(b",\"links\":[");
        for (link, values) in &flow.links {
            script.extend(b"{\"l\":");
            push_json(link, script);
            lines(b",\"load\":", values, script);
            script.extend(b"},");
        }
        script.extend(b"]},");
    }
    script.extend(b"]");
    if let Some(admission) = &overlay.admission {
        push_admission(admission, run, colours, script);
    }
    script.extend(b"}");
}

/// Appends what was decided about flows: of each its name, its colour, and when, how it stands, by whom and why.
fn push_admission(admission: &Admission, run: &Run, colours: &HashMap<String, usize>, script: &mut Vec<u8>) {
    script.extend(b",\"admission\":{\"more\":");
    push_json(&admission.more, script);
    script.extend(b",\"flows\":[");
    for flow in &admission.flows {
        push_name(&flow.name, Ink::Group(flow.group), run, colours, script);
        script.extend(b",\"d\":");
        let stands: Vec<_> =
            flow.stands.iter().map(|stand| (stand.at_s, &stand.standing, stand.by, &stand.why)).collect();
        push_json(&stands, script);
        script.extend(b"},");
    }
    script.extend(b"]}");
}

/// Appends a key and the values of a series.
fn lines(key: &[u8], values: &Values, script: &mut Vec<u8>) {
    script.extend(key);
    script.push(b'[');
    push_line(values, script);
    script.push(b']');
}
