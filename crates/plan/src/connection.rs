//! Connections whose streams are the flows of several groups.

use crate::reader::Reader;
use crate::run::{Group, Run};
use std::collections::BTreeMap;
use weir_sliq::MOST_STREAMS;
use weir_transport::Config;

impl Run {
    /// The flows that share each connection of several flows.
    pub fn shared_connections(&self) -> Vec<Vec<usize>> {
        let mut shared: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, flow) in self.flows.iter().enumerate() {
            if let Some(name) = self.groups[flow.group].connection() {
                shared.entry(name).or_default().push(number);
            }
        }
        shared.into_values().collect()
    }
}

/// Checks that groups that name the same connection can share it: its hosts, RTT and controllers are the same for all.
pub(crate) fn check<'a>(
    reader: &mut Reader<'_>,
    group: &Group,
    count: u64,
    has_host: bool,
    earlier: impl Iterator<Item = (&'a Group, u64)>,
) {
    let Some(name) = group.connection() else { return };
    let others: Vec<(&Group, u64)> = earlier.filter(|(other, _)| other.connection() == Some(name)).collect();
    let streams = count + others.iter().map(|(_, count)| count).sum::<u64>();
    let first = others.first().map(|(first, _)| *first);
    let differs = |same: fn(&Group, &Group) -> bool| first.is_some_and(|first| !same(first, group));
    let second = |group: &Group| match &group.transport {
        Some(Config::Sliq(parameters)) => parameters.second.clone(),
        _ => None,
    };
    let coordination = |group: &Group| match &group.transport {
        Some(Config::Sliq(parameters)) => parameters.coordination.clone(),
        _ => None,
    };
    let (message, help) = if group.workload.has_random_arrivals() {
        ("flows that arrive at random have connections of their own".to_owned(), "remove `connection`")
    } else if has_host || group.pairs.len() != 1 {
        (
            format!("the connection `{name}` needs one pair of hosts of its own"),
            "remove `host`, and give one `rtt`",
        )
    } else if differs(|a, b| a.pairs[0].rtt == b.pairs[0].rtt && a.ip == b.ip) {
        (
            format!("the connection `{name}` has a different `rtt` or `ip` in another group"),
            "write the same in both",
        )
    } else if differs(|a, b| a.settings == b.settings)
        || first.is_some_and(|first| second(first) != second(group))
    {
        (format!("the connection `{name}` has other controllers in another group"), "write the same in both")
    } else if first.is_some_and(|first| coordination(first) != coordination(group)) {
        (
            format!("the connection `{name}` has a different `coordination` in another group"),
            "write the same in both",
        )
    } else if streams > MOST_STREAMS as u64 {
        (
            format!("the connection `{name}` has {streams} streams, but can have at most {MOST_STREAMS}"),
            "write fewer flows",
        )
    } else {
        return;
    };
    reader.wrong(&["traffic", &group.name, "transport"], message, help);
}
