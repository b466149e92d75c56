//! How the overlay admits a group's flows, as a lab says it: the utility, and whether a deadline can be kept at all.

use crate::carriage::Use;
use crate::reader::Reader;
use weir_base::{ParameterError, Span};
use weir_fabric::Network;
use weir_overlay::utility::Config;

/// The utility of a group's flows.
pub(crate) fn utility(reader: &mut Reader<'_>, name: &str, how: &Use) -> Config {
    let (admit, beside) = how.utility();
    for key in beside {
        let message = format!("`{key}` stands beside `admit`, which has parameters of its own");
        let help = format!("write it in admit = {{ kind = \"{}\", .. }}, or remove `admit`", admit.name());
        reader.wrong(&["traffic", name, "overlay", key], message, help);
    }
    if let Some(ParameterError { key, message, help }) = admit.fault() {
        let long = ["traffic", name, "overlay", "admit", key];
        let short = ["traffic", name, "overlay", key];
        let path = if how.admit.is_none() {
            &short[..]
        } else if reader.has(&long) {
            &long[..]
        } else {
            &long[..4]
        };
        reader.wrong(path, message, help);
    }
    if matches!(admit, Config::File(_)) && how.size.is_none() {
        let message = "a transfer has a size, and this group says none";
        let help = "write size = \"20 MB\" beside `admit`";
        reader.wrong(&["traffic", name, "overlay", "admit"], message, help);
    }
    if how.size.is_some_and(|size| size.get() == 0) {
        let path = ["traffic", name, "overlay", "size"];
        reader.wrong(&path, "the size must be above 0", "write for example \"20 MB\"");
    }
    admit
}

/// Checks that packets can keep the deadline between these ends, which are in pairs, over links between nodes.
pub(crate) fn check_deadline(
    reader: &mut Reader<'_>,
    name: &str,
    deadline: Option<Span>,
    ends: &[usize],
    nodes: &[usize],
    network: &Network,
) {
    let Some(deadline) = deadline else { return };
    for pair in ends.chunks_exact(2) {
        let Some(least) = least_delay(network, nodes, pair[0], pair[1]).filter(|least| *least > deadline)
        else {
            continue;
        };
        let [from, to] = [pair[0], pair[1]].map(|node| network.nodes[node].name.as_str());
        let message = format!(
            "packets from `{from}` to `{to}` take {} ms at least, which is more than the deadline",
            least.as_millis_f64()
        );
        let path = ["traffic", name, "overlay", "deadline"];
        reader.wrong(&path, message, format!("write a deadline above {} ms", least.as_millis_f64()));
    }
}

/// The least sum of the links' delays on a way over nodes; `None` if there is no way.
fn least_delay(network: &Network, nodes: &[usize], from: usize, to: usize) -> Option<Span> {
    let mut known: Vec<(usize, Span, bool)> = vec![(from, Span::ZERO, false)];
    loop {
        let next =
            known.iter_mut().filter(|(_, _, is_final)| !is_final).min_by_key(|(_, delay, _)| *delay)?;
        next.2 = true;
        let (at, so_far, _) = *next;
        if at == to {
            return Some(so_far);
        }
        for link in network.links.iter().filter(|link| link.from == at && nodes.contains(&link.to)) {
            let delay = so_far + link.delay;
            match known.iter_mut().find(|(node, ..)| *node == link.to) {
                Some((_, known, false)) => *known = (*known).min(delay),
                Some(_) => {}
                None => known.push((link.to, delay, false)),
            }
        }
    }
}
