//! Checks, before anything starts, for runs that Linux or this machine cannot carry out.

use crate::card;
use crate::controls::unable;
use crate::sockets::has_endpoints;
use crate::testbed::settings_of;
use weir_base::Bytes;
use weir_control::Feedback;
use weir_engine::EngineError;
use weir_plan::{Group, Run};

/// Refuses datagrams that the fabric is to send at exact times by a transport that the kernel does not have.
pub(crate) fn check_transports(run: &Run) -> Result<(), EngineError> {
    for group in &run.groups {
        let exact = group.workload.role().datagrams().is_some_and(|datagrams| datagrams.exact);
        if let Some(transport) =
            group.transport.as_ref().filter(|transport| exact && has_endpoints(transport))
        {
            return Err(unable(
                format!(
                    "group {}: datagrams of {} leave sockets, and the fabric cannot send them",
                    group.name,
                    transport.name()
                ),
                "write source = \"socket\" in the workload, or use `--on sim`",
            ));
        }
    }
    Ok(())
}

/// Refuses feedback that this kernel's receiver cannot give.
pub(crate) fn check_feedback(run: &Run) -> Result<(), EngineError> {
    let accurate =
        |group: &&Group| group.tcp().is_some_and(|settings| settings.feedback == Feedback::Accurate);
    match run.groups.iter().find(accurate) {
        Some(group) => Err(unable(
            format!("group {}: Linux 6.18 cannot enable Accurate ECN", group.name),
            "write feedback = \"classic\" or \"dctcp\", or use `--on sim`",
        )),
        None => Ok(()),
    }
}

/// Refuses TCP settings that the kernel does not have.
pub(crate) fn check_acknowledgements(run: &Run) -> Result<(), EngineError> {
    for (group, settings) in run.groups.iter().filter_map(|group| Some((group, group.tcp()?))) {
        let asked = [
            ("delayed_ack", settings.delayed_ack.is_some()),
            ("window_updates", settings.window_updates),
            ("limited_transmit", !settings.limited_transmit),
        ];
        if let Some((key, _)) = asked.iter().find(|(_, asked)| *asked) {
            return Err(unable(
                format!("group {}: Linux TCP has no setting for {key}", group.name),
                "remove it, or use `--on sim`",
            ));
        }
    }
    Ok(())
}

/// Refuses cards that the kernel's shapers cannot implement.
pub(crate) fn check_cards(run: &Run) -> Result<(), EngineError> {
    card::unfit(run).map_or(Ok(()), |(what, help)| Err(EngineError::Unable { what, help }))
}

/// Refuses settings of hosts' clocks: all namespaces share the kernel's clock, which counts milliseconds.
pub(crate) fn check_clocks(run: &Run) -> Result<(), EngineError> {
    let plain = weir_base::Clock::default();
    for (group, settings) in run.groups.iter().filter_map(|group| Some((group, group.tcp()?))) {
        for (key, clock) in
            [("sender_clock", settings.sender_clock), ("receiver_clock", settings.receiver_clock)]
        {
            let asked = [
                ("offset", clock.offset != plain.offset),
                ("skew_ppm", clock.skew_ppm != plain.skew_ppm),
                ("tick", clock.tick != plain.tick),
            ];
            if let Some((what, _)) = asked.iter().find(|(_, other)| *other) {
                return Err(unable(
                    format!(
                        "group {}: hosts on one kernel share its clock, so {key} cannot set {what} here",
                        group.name
                    ),
                    "remove it, or use `--on sim`",
                ));
            }
        }
    }
    Ok(())
}

/// Refuses socket buffers that exceed this machine's memory: the kernel would take it from all other programs.
pub(crate) fn check_buffers(run: &Run) -> Result<(), EngineError> {
    let info = rustix::system::sysinfo();
    let memory = Bytes::new(info.totalram as u64 * u64::from(info.mem_unit));
    for (group, settings) in run.groups.iter().filter_map(|group| Some((group, group.tcp()?))) {
        let buffers = [("send_buffer", settings.send_buffer), ("receive_buffer", settings.receive_buffer)];
        if let Some((key, buffer)) = buffers.into_iter().find(|(_, buffer)| buffer.max > memory) {
            return Err(unable(
                format!(
                    "group {}: a {key} of {} exceeds this machine's memory of {memory}",
                    group.name, buffer.max
                ),
                "write a smaller value, or use `--on sim`",
            ));
        }
    }
    Ok(())
}

/// Refuses groups that need different settings of a host that they share: buffers, ECN, window scaling, SACK and the least timeout
/// are settings of the whole host.
pub(crate) fn check_hosts(run: &Run) -> Result<(), EngineError> {
    let stream = |group: &&Group| group.tcp().is_some();
    for group in run.groups.iter().filter(stream) {
        for node in group.pairs.iter().flat_map(|pair| [pair.from, pair.to]) {
            let mine = settings_of(std::slice::from_ref(group), node);
            if settings_of(&run.groups, node) != mine {
                return Err(unable(
                    format!(
                        "groups with different buffers, ECN, window scaling, SACK or minimum timeouts share the host {}, and Linux sets these for the whole host",
                        run.network.nodes[node].name
                    ),
                    "give the groups separate hosts, or the same settings",
                ));
            }
        }
    }
    Ok(())
}
