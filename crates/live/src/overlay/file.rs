//! The file of a node (docs/overlay-hosts.md), as TOML, from a run: who its neighbours are, what is behind it, the policy that the lab gives
//! all nodes, and a service for each group whose flows enter there.

use super::dissolved::{Dissolved, Site, is_relayed, nodes};
use super::multicast::{GROUPS, has_groups};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::ops::RangeInclusive;
use weir_base::Bytes;
use weir_engine::offered;
use weir_plan::address::{OVERLAY_PORT, address_of, port_of};
use weir_plan::{Ip, Run};

/// Parameters of simulated nodes that a daemon has by itself, or has none of.
const OWN: [&str; 4] = ["cat", "multicast", "planner", "details"];

/// The name of the file with the key of groups.
pub(super) const GROUP_KEY: &str = "groups.key";

/// The name of the file of node `number`, and those of its key and of what it says.
pub(super) fn names(number: usize) -> [String; 3] {
    ["toml", "key", "log"].map(|kind| format!("{number}.{kind}"))
}

/// The text of the file of node `number`. `keys` are the lines `key` and `sign` of each node.
pub(super) fn text(planned: &Run, dissolved: &Dissolved, number: usize, keys: &[String]) -> String {
    let (own, [_, key, _]) = (&dissolved.sites[number], names(number));
    let address = |node: usize| address_of(node, Ip::V4).to_string();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "format = 1\nname = {}\nkey = {}\nlisten = \"0.0.0.0:{OVERLAY_PORT}\"\naddress = \"{}\"\nmtu = \"{} B\"\ntcp = \"{}\"\n",
        quoted(&own.name),
        quoted(&key),
        address(own.at),
        mtu(dissolved).get(),
        if planned.groups.iter().any(is_relayed) { "proxy" } else { "carry" },
    );
    if has_groups(planned) {
        let key = quoted(GROUP_KEY);
        let _ = writeln!(text, "groups = [\"{GROUPS}\"]\ngroup_key = {key}\ngroup_devices = [\"eth0\"]");
    }
    for (number, (site, keys)) in dissolved.sites.iter().zip(keys).enumerate() {
        let behind = std::iter::once(&site.at).chain(&site.hosts);
        let prefixes: Vec<String> = behind.map(|node| format!("{}/32", address(*node))).collect();
        let (name, prefixes) = (quoted(&site.name), json!(prefixes));
        let _ = write!(
            text,
            "\n[[node]]\nname = {name}\nnumber = {number}\n{}\nprefixes = {prefixes}\n",
            keys.trim_end()
        );
    }
    for end in &own.ends {
        let (name, at) = (quoted(&dissolved.sites[end.site].name), address(end.other));
        let _ = write!(text, "\n[[neighbour]]\nname = {name}\nat = \"{at}:{OVERLAY_PORT}\"\n");
    }
    for service in services(planned, own) {
        let _ = writeln!(text, "\n[[service]]\n{}", lines(&service));
    }
    let _ = writeln!(text, "\n[policy]\n{}", lines(&policy(planned)));
    text
}

/// The largest packet between nodes: that of the link with the least.
fn mtu(dissolved: &Dissolved) -> Bytes {
    let ends = dissolved.sites.iter().flat_map(|site| &site.ends);
    ends.map(|end| dissolved.run.network.nodes[end.node].mtu).min().unwrap_or(Bytes::new(1500))
}

/// The policy of all nodes: the keys of `[overlay]` that daemons have, and those of the connections between nodes.
fn policy(planned: &Run) -> Map<String, Value> {
    let Some((_, _, overlay)) = nodes(planned).next() else { return Map::new() };
    let Value::Object(mut policy) = json!(overlay) else { return Map::new() };
    let link = match policy.get("cat") {
        Some(Value::Object(cat)) if overlay.cat.acknowledges() => cat
            .iter()
            .filter(|(key, _)| *key != "kind")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        // A wire knows its rate and fills no queue, and of the controllers Copa comes nearest to that.
        _ => Map::from_iter([("cc".to_owned(), json!(["copa"]))]),
    };
    policy.insert("link".into(), Value::Object(link));
    policy.retain(|key, _| !OWN.contains(&key.as_str()));
    policy
}

/// The services of the groups with flows that enter at a site. Each flow has a port of its own, so ports alone tell the groups apart.
fn services(planned: &Run, site: &Site) -> Vec<Map<String, Value>> {
    let mut services = Vec::new();
    for (number, group) in planned.groups.iter().enumerate() {
        let Some(carriage) = &group.overlay else { continue };
        let enters = |flow: &usize| {
            planned.flows[*flow].group == number && site.hosts.contains(&planned.pair(*flow).from)
        };
        for flows in stretches((0..planned.flows.len()).filter(enters)) {
            let mut service = Map::new();
            let mut put = |key: &str, value: Value| service.insert(key.to_owned(), value);
            put("name", group.name.as_str().into());
            put("ports", format!("{}-{}", port_of(*flows.start()), port_of(*flows.end())).into());
            put("admit", json!(carriage.admit));
            put("rate", json!(offered(group)));
            put("deadline", json!(carriage.deadline));
            put("size", json!(carriage.size));
            // A simulated source keeps one packet until it is admitted, and offers no other meanwhile.
            put("newest", (!is_relayed(group)).into());
            services.push(service);
        }
    }
    services
}

/// The stretches of numbers that follow each other.
fn stretches(numbers: impl Iterator<Item = usize>) -> Vec<RangeInclusive<usize>> {
    let mut all: Vec<RangeInclusive<usize>> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some(last) if *last.end() + 1 == number => *last = *last.start()..=number,
            _ => all.push(number..=number),
        }
    }
    all
}

/// Keys with their values, one a line. A key without a value is left out.
fn lines(keys: &Map<String, Value>) -> String {
    let given = keys.iter().filter(|(_, value)| !value.is_null());
    given.map(|(key, value)| format!("{key} = {}", inline(value))).collect::<Vec<_>>().join("\n")
}

/// A value as TOML: strings, numbers and arrays are written as in JSON, tables are inline, and there is no null.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(keys) => {
            let given = keys.iter().filter(|(_, value)| !value.is_null());
            let all: Vec<String> =
                given.map(|(key, value)| format!("{} = {}", quoted(key), inline(value))).collect();
            format!("{{ {} }}", all.join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A string as TOML and JSON write it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_toml_and_what_is_not_given_is_left_out() {
        let keys =
            json!({ "a": null, "b": { "kind": "log", "cap": null, "k": 1e12 }, "c": [1, "x"], "d": true });
        let Value::Object(keys) = keys else { panic!("it is a table") };
        assert_eq!(
            lines(&keys),
            "b = { \"kind\" = \"log\", \"k\" = 1000000000000.0 }\nc = [1, \"x\"]\nd = true"
        );
        assert_eq!(quoted("a \"b\""), "\"a \\\"b\\\"\"");
    }

    #[test]
    fn flows_that_follow_each_other_are_one_stretch() {
        assert_eq!(stretches([0, 1, 2, 5, 7, 8].into_iter()), [0..=2, 5..=5, 7..=8]);
        assert!(stretches(std::iter::empty()).is_empty());
    }
}
