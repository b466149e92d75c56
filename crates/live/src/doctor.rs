//! What this machine can do, and what would make a live result invalid: a list of findings, each with what to do about it. The
//! command line prints it.

mod measured;
mod pauses;
mod transfers;

use crate::load::Load;
use serde::Serialize;
use std::io;
use std::path::Path;
use weir_base::{Histogram, Span, Time, not_started};
use weir_linux::clock::{Clock, Scheduling, claim_processor, timespec_of};
use weir_linux::namespace::{Namespace, Privilege, sysctl};
use weir_linux::nft;
use weir_linux::order::keep_order;
use weir_linux::pair::Pair;
use weir_linux::ring::ReceiveRing;
use weir_linux::tun::Tun;

/// How long the clock is measured for.
const MEASURE: Span = Span::from_secs(2);
/// Interval between the measured wake-ups: a packet every 200 us is 60 Mbit/s.
const PERIOD: Span = Span::from_micros(200);
/// How long the pump spins before a release.
const SPIN: Span = Span::from_micros(60);
/// Buffer of a connection at 1 Gbit/s and 100 ms: twice the bandwidth-delay product, rounded up.
const AMPLE_BUFFER: u64 = 25 << 20;

/// The verdict on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but results may suffer, or something is left out.
    Warn,
    /// Live runs are impossible, or their results cannot be trusted.
    Bad,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub finding: String,
    /// The verdict on the finding.
    pub status: Status,
    /// What to do about it; empty when there is nothing to do.
    pub advice: String,
}

/// Makes all checks, in about five seconds. `privilege` is the result of [`weir_linux::enter`].
pub fn examine(privilege: std::io::Result<Privilege>) -> Vec<Check> {
    let before = Load::now(std::time::Duration::ZERO);
    let clock = clock_lateness();
    let load = before.and_then(|before| Some(Load::now(std::time::Duration::ZERO)?.since(&before)));
    let mut checks = vec![namespaces(privilege), packet_sockets()];
    checks.extend(clock.as_ref().ok().map(|clock| scheduling(clock.scheduling)));
    let clock = match clock {
        Ok(clock) => clock.check(),
        Err(error) => check("clock lateness", Status::Bad, "it cannot be measured", error.to_string()),
    };
    checks.extend([controllers(), ebpf(), clock, processors(), pauses::pauses(), order()]);
    if let Some(usage) = load {
        checks.extend([foreign_load(usage.foreign), steal(usage.steal)]);
    }
    checks.extend([real_time_limit(), socket_buffers(), tcp_memory(), devices()]);
    checks.extend([masquerading(), redirection()]);
    checks.extend(transfers::checks());
    checks.extend(measured::checks());
    checks
}

fn check(name: &'static str, status: Status, finding: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name, finding: finding.into(), status, advice: advice.into() }
}

fn order() -> Check {
    let name = "order of packets";
    match Namespace::new().and_then(|namespace| namespace.inside(|| keep_order(0))) {
        Ok(()) => check(name, Status::Ok, "one processor handles all packets of a device", ""),
        Err(error) => check(
            name,
            Status::Warn,
            format!("packets of one connection may overtake each other between two hosts: {error}"),
            "use Linux 6.3 or later; without it TCP may see reordering that no lab asks for, mostly beyond 100 Mbit/s",
        ),
    }
}

/// Whether this process can make network namespaces. `privilege` is the result of [`weir_linux::enter`].
pub fn namespaces(privilege: std::io::Result<Privilege>) -> Check {
    let name = "network namespaces";
    match privilege {
        Ok(Privilege::Root) => check(name, Status::Ok, "can be made directly", ""),
        Ok(Privilege::UserNamespace) => check(name, Status::Ok, "can be made inside a user namespace", ""),
        Err(error) => {
            check(name, Status::Bad, format!("cannot be made: {error}"), how_to_permit_namespaces())
        }
    }
}

/// The switches by which distributions forbid user namespaces.
fn how_to_permit_namespaces() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let is = |path: &str, value: &str| read(path).as_deref() == Some(value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "run as root, or `sysctl kernel.unprivileged_userns_clone=1`".into()
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "run as root, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`".into()
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "run as root, or `sysctl user.max_user_namespaces=10000`".into()
    } else {
        "run as root; a container needs CAP_SYS_ADMIN or a seccomp profile that permits unshare".into()
    }
}

fn packet_sockets() -> Check {
    let name = "packet sockets";
    let opened =
        Namespace::new().and_then(|namespace| namespace.inside(|| ReceiveRing::open(1500).map(drop)));
    match opened {
        Ok(()) => check(name, Status::Ok, "open, with a receive ring", ""),
        Err(error) => check(
            name,
            Status::Bad,
            format!("cannot be opened: {error}"),
            "the kernel needs CONFIG_PACKET and veth",
        ),
    }
}

/// The name of a device that is made for a moment.
const TRY: &str = "weir-try";

/// Whether a node of the overlay can make its device.
fn devices() -> Check {
    let name = "TUN devices";
    let inside = |work: fn() -> io::Result<()>| Namespace::new().and_then(|namespace| namespace.inside(work));
    let Err(error) = inside(|| Tun::open(TRY).map(drop)) else {
        return check(name, Status::Ok, "can be made: `weir overlay node` works here", "");
    };
    if inside(|| Pair::open(TRY, 1500).map(drop)).is_ok() {
        let what =
            format!("cannot be made ({error}): `weir overlay node` uses a pair of veth devices instead");
        return check(name, Status::Ok, what, "");
    }
    check(
        name,
        Status::Warn,
        format!("cannot be made, so that `weir overlay node` does not work here: {error}"),
        "run as root; `modprobe tun` or `modprobe veth` loads what the kernel needs",
    )
}

/// Whether a wrapped program can reach other networks.
fn masquerading() -> Check {
    let name = "masquerading";
    match nft::try_masquerade() {
        Ok(()) => {
            check(name, Status::Ok, "nf_tables can do it: `weir wrap --internet` works here, as root", "")
        }
        Err(error) => check(
            name,
            Status::Warn,
            format!("not possible, so that `weir wrap --internet` does not work here: {error}"),
            "it needs Linux 5.12 or later with CONFIG_NF_TABLES and CONFIG_NFT_MASQ",
        ),
    }
}

/// Whether connections can be redirected to a proxy of TCP.
fn redirection() -> Check {
    let name = "transparent proxies";
    match nft::try_transparent() {
        Ok(()) => check(name, Status::Ok, "nf_tables can redirect TCP to them", ""),
        Err(error) => check(
            name,
            Status::Warn,
            format!("TCP cannot be redirected to them: {error}"),
            "it needs Linux 5.12 or later with CONFIG_NF_TABLES, CONFIG_NFT_TPROXY and CONFIG_NFT_SOCKET",
        ),
    }
}

fn scheduling(scheduling: Scheduling) -> Check {
    match scheduling {
        Scheduling::RealTime => check("real-time scheduling", Status::Ok, "SCHED_FIFO is permitted", ""),
        Scheduling::Ordinary => check(
            "real-time scheduling",
            Status::Warn,
            "SCHED_FIFO is not permitted: packets leave later when other programs are busy",
            "run as root, or give the user a real-time limit (`rtprio 10` in /etc/security/limits.conf)",
        ),
    }
}

fn controllers() -> Check {
    let available = sysctl("ipv4.tcp_available_congestion_control").unwrap_or_default();
    let (status, advice) = if ["reno", "cubic"]
        .iter()
        .all(|name| available.split(' ').any(|have| have == *name))
    {
        (Status::Ok, "")
    } else {
        (
            Status::Warn,
            "`modprobe tcp_cubic` loads the kernel's; flows of missing controllers run on the simulator only",
        )
    };
    check("congestion controls", status, format!("the kernel has {available}"), advice)
}

/// Whether congestion controls can be loaded as eBPF: type information, the system call, and the privilege.
fn ebpf() -> Check {
    let name = "eBPF struct_ops";
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        let advice = "use a kernel with CONFIG_DEBUG_INFO_BTF; only kernel-form controllers need it";
        return check(name, Status::Warn, "the kernel has no type information (BTF)", advice);
    }
    match bpf_is_permitted() {
        Ok(()) => check(name, Status::Ok, "BTF is there and the bpf system call is permitted", ""),
        Err(error) => check(
            name,
            Status::Warn,
            format!("the bpf system call is refused: {error}"),
            "run as root (CAP_BPF and CAP_NET_ADMIN); only kernel-form controllers need it",
        ),
    }
}

/// Makes the smallest possible map and closes it again.
fn bpf_is_permitted() -> std::io::Result<()> {
    /// The beginning of `union bpf_attr` for `BPF_MAP_CREATE` (linux/bpf.h).
    #[repr(C)]
    struct MapCreate {
        map_type: u32,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    }
    const BPF_MAP_CREATE: libc::c_long = 0;
    /// `BPF_MAP_TYPE_HASH`, which unprivileged users may not make if bpf is restricted.
    const HASH: u32 = 1;
    let attribute = MapCreate { map_type: HASH, key_size: 4, value_size: 4, max_entries: 1 };
    // SAFETY: the pointer names an attribute of the given length; the kernel takes the fields behind it as zero.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            &raw const attribute,
            size_of::<MapCreate>() as libc::c_long,
        )
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed this descriptor out; nobody else has it.
    unsafe { libc::close(fd as libc::c_int) };
    Ok(())
}

/// Lateness of a thread that, as the pump does, sleeps and then spins until a time is due.
struct ClockLateness {
    lateness: Histogram,
    scheduling: Scheduling,
}

fn clock_lateness() -> std::io::Result<ClockLateness> {
    let measured = std::thread::Builder::new().spawn(|| {
        let scheduling = claim_processor();
        let clock = Clock::starting_in(Span::ZERO);
        let mut lateness = Histogram::new();
        let mut due = clock.now() + PERIOD;
        while due < Time::ZERO + MEASURE {
            let wait = due.since(clock.now());
            if wait > SPIN {
                let _ = rustix::event::poll(&mut [], Some(&timespec_of(wait - SPIN)));
            }
            while clock.now() < due {
                std::hint::spin_loop();
            }
            lateness.record(clock.now().since(due));
            due += PERIOD;
        }
        ClockLateness { lateness, scheduling }
    });
    let measured = measured.map_err(not_started)?.join();
    measured.map_err(|_| std::io::Error::other("measuring the clock panicked"))
}

impl ClockLateness {
    fn check(&self) -> Check {
        let micros = |p| self.lateness.percentile(p).unwrap_or(Span::ZERO).as_nanos() as f64 / 1e3;
        let p99 = micros(0.99);
        let finding = format!(
            "over 2 s, 50 % within {:.1} us, 99 % within {p99:.0} us, 99.9 % within {:.0} us, worst {:.0} us",
            micros(0.5),
            micros(0.999),
            micros(1.0)
        );
        // A run is invalid when releases are later than this at the 99th percentile (200 us at least).
        let (status, advice) = match p99 {
            p99 if p99 <= 100.0 => (Status::Ok, ""),
            p99 if p99 <= 200.0 => (Status::Warn, "run no other programs beside live labs"),
            _ => (
                Status::Bad,
                "live runs will be invalid: stop other work, or use a machine whose processors are not shared",
            ),
        };
        check("clock lateness", status, finding, advice)
    }
}

fn processors() -> Check {
    let count = weir_engine::cores();
    let (status, advice) = if count >= 2 {
        (Status::Ok, "")
    } else {
        (Status::Warn, "pump and hosts share one processor: stay below 100 Mbit/s")
    };
    check("processors", status, format!("{count} usable"), advice)
}

fn foreign_load(cores: f64) -> Check {
    let (status, advice) = match cores {
        cores if cores < 0.1 => (Status::Ok, ""),
        cores if cores < 0.5 => (Status::Warn, "stop other programs before live runs that measure delays"),
        _ => (Status::Bad, "stop other programs: live runs would be late"),
    };
    check("foreign load", status, format!("other programs use {cores:.2} cores"), advice)
}

fn steal(cores: f64) -> Check {
    let (status, advice) = match cores {
        cores if cores < 0.01 => (Status::Ok, ""),
        cores if cores < 0.05 => {
            (Status::Warn, "the hypervisor takes processor time away; results show it as stalls")
        }
        _ => (Status::Bad, "the hypervisor takes processor time away: use a machine that is not shared"),
    };
    check("steal", status, format!("the hypervisor takes {cores:.2} cores"), advice)
}

fn real_time_limit() -> Check {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<f64>().ok()
    };
    let name = "real-time limit";
    match (read("sched_rt_runtime_us"), read("sched_rt_period_us")) {
        (Some(runtime), Some(period)) if runtime >= 0.0 && runtime / period < 0.95 => check(
            name,
            Status::Warn,
            format!(
                "real-time threads may use {:.0} % of a processor, the pump up to 90 %",
                runtime / period * 100.0
            ),
            "`sysctl kernel.sched_rt_runtime_us=950000`",
        ),
        (Some(runtime), Some(period)) if runtime >= 0.0 => check(
            name,
            Status::Ok,
            format!("real-time threads may use {:.0} % of a processor", runtime / period * 100.0),
            "",
        ),
        _ => check(name, Status::Ok, "none", ""),
    }
}

fn socket_buffers() -> Check {
    let limit = |name: &str| sysctl(name).and_then(|text| text.parse::<u64>().ok());
    let (receive, send) = (limit("core.rmem_max"), limit("core.wmem_max"));
    let show = |value: Option<u64>| value.map_or("unknown".into(), |bytes| format!("{bytes} B"));
    // TCP's own limits (tcp_rmem, tcp_wmem) belong to each namespace and are set by weir; these two bound other sockets.
    check(
        "socket buffers",
        Status::Ok,
        format!("rmem_max {}, wmem_max {}; TCP's limits are set for each host", show(receive), show(send)),
        "",
    )
}

fn tcp_memory() -> Check {
    let name = "TCP memory";
    let pages = sysctl("ipv4.tcp_mem").and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    let Some(bytes) = pages.map(|pages| pages * rustix::param::page_size() as u64) else {
        return check(name, Status::Ok, "the kernel reports no limit", "");
    };
    let finding = format!("all connections together come under pressure at {} MiB", bytes >> 20);
    if bytes >= 4 * AMPLE_BUFFER {
        check(name, Status::Ok, finding, "")
    } else {
        check(name, Status::Warn, finding, "raise `net.ipv4.tcp_mem` for many flows or long fat paths")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_of_a_problem_says_what_to_do() {
        let checks = examine(Err(std::io::ErrorKind::PermissionDenied.into()));
        assert!(checks.len() >= 10);
        for check in &checks {
            assert!(
                !check.finding.is_empty() && check.advice.is_empty() == (check.status == Status::Ok),
                "{check:?}"
            );
        }
        assert_eq!(checks[0].status, Status::Bad);
    }
}
