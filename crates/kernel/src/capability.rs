//! Whether the running kernel has what the controls need, from its type information.

use crate::Problem;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Func, Struct};

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
