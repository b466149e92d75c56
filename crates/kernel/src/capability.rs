//! Whether the running kernel has what the controls need, from its type information.

use crate::Problem;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, EnumMember, Func, Struct, Typedef};
use std::collections::BTreeMap;

/// The kernel's type information (`CONFIG_DEBUG_INFO_BTF`).
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Kernel functions that controls may call (`bpf_tcp_ca_check_kfunc_ids` in `net/ipv4/bpf_tcp_ca.c`).
const LENT: [&str; 5] =
    ["tcp_reno_ssthresh", "tcp_reno_cong_avoid", "tcp_reno_undo_cwnd", "tcp_slow_start", "tcp_cong_avoid_ai"];

/// Whether an enumeration of the kernel has a member of this name.
fn names(btf: &Btf<'_>, wanted: &str) -> bool {
    btf.type_by_kind::<Enum<'_>>()
        .any(|names| names.iter().any(|member| member.name.is_some_and(|name| name == wanted)))
}

/// Checks that the kernel has programs at the egress of a device.
///
/// # Errors
/// [`Problem::Missing`], with the release that has it.
pub(crate) fn check_egress() -> Result<(), Problem> {
    match Btf::from_path(TYPES) {
        Ok(btf) if names(&btf, "BPF_TCX_EGRESS") => Ok(()),
        _ => Err(Problem::Missing {
            what: "programs at the egress of a device (tcx)",
            since: "Linux 6.6 has them",
        }),
    }
}

/// Tracepoints that `bpf/observe.c` is called by, as the kernel's type information names them.
const TRACED: [&str; 5] = [
    "btf_trace_net_dev_queue",
    "btf_trace_qdisc_enqueue",
    "btf_trace_qdisc_dequeue",
    "btf_trace_kfree_skb",
    "btf_trace_net_dev_start_xmit",
];

/// The reasons for which this kernel drops packets (`enum skb_drop_reason`), by number, without their prefix.
///
/// # Errors
/// [`Problem::Missing`]: the kernel has no type information, or not the tracepoints of queues.
pub(crate) fn drop_reasons() -> Result<BTreeMap<u16, String>, Problem> {
    const PREFIX: &str = "SKB_DROP_REASON_";
    let missing = |what, since| Problem::Missing { what, since };
    let btf = Btf::from_path(TYPES).map_err(|_| {
        missing("its type information, /sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF adds it")
    })?;
    if !TRACED.iter().all(|name| btf.type_by_name::<Typedef<'_>>(name).is_some()) {
        return Err(missing("the tracepoints of queues", "Linux 5.15 has them all"));
    }
    let reasons = btf.type_by_name::<Enum<'_>>("skb_drop_reason");
    let reasons = reasons.ok_or_else(|| missing("reasons of drops", "Linux 5.17 has them"))?;
    let member = |member: EnumMember<'_>| {
        let name = member.name?.to_str()?.strip_prefix(PREFIX)?;
        Some((u16::try_from(member.value).ok()?, name.to_ascii_lowercase()))
    };
    Ok(reasons.iter().filter_map(member).collect())
}

/// Checks that the kernel has everything that a control needs.
///
/// # Errors
/// [`Problem::Missing`], with the release that has it.
pub(crate) fn check() -> Result<(), Problem> {
    let missing = |what, since| Err(Problem::Missing { what, since });
    let Ok(btf) = Btf::from_path(TYPES) else {
        return missing("its type information, /sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF adds it");
    };
    if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return missing("congestion controls made of BPF programs (struct_ops)", "Linux 5.6 has them");
    }
    if !LENT.iter().all(|name| btf.type_by_name::<Func<'_>>(name).is_some()) {
        return missing("functions that BPF programs may call (kfuncs)", "Linux 5.13 has them");
    }
    if !names(&btf, "BPF_F_LINK") {
        return missing(
            "links for congestion controls, which remove a control when its holder ends",
            "Linux 6.4 has them",
        );
    }
    Ok(())
}
