//! The cost of the controls, as a page: processor time per byte beside the kernel's CUBIC, in interleaved pairs of transfers over
//! a veth with its offloads, and the mean time of each hook by the kernel's BPF run statistics. `scripts/kernel-cost` makes the
//! two namespaces that it names, and calls it as root with the number of pairs.

use libbpf_rs::query::ProgInfoIter;
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use weir_kernel::CONTROLS;
use weir_record::compare::quantile;

type Failure = Box<dyn Error + Send + Sync>;

/// The namespaces that the script makes, each of which has a processor of its own, and the address at the receiving end.
const NAMESPACES: [&str; 2] = ["/run/netns/weir-cost-a", "/run/netns/weir-cost-b"];
const SENDER: usize = 0;
const RECEIVER: usize = 1;
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 2)), 9);
/// Bytes of a transfer, and of a write.
const TRANSFER: usize = 2 << 30;
const WRITE: usize = 1 << 18;
/// Probability of the two-sided 95 % interval.
const PROBABILITY: f64 = 0.975;
/// The hooks of a control (include/net/tcp.h, `tcp_congestion_ops`). The kernel keeps 15 characters of a program's name.
const HOOKS: [&str; 10] = [
    "ssthresh",
    "cong_avoid",
    "set_state",
    "cwnd_event",
    "in_ack_event",
    "pkts_acked",
    "min_tso_segs",
    "cong_control",
    "undo_cwnd",
    "init",
];

fn main() -> Result<(), Failure> {
    let pairs: usize = std::env::args().nth(1).ok_or("how many pairs?")?.parse()?;
    println!(
        "Each transfer sends {} MiB over one connection, through a veth with its offloads. The table compares the processor time \
         under each control, of both ends and of the kernel's threads for network work, with that under the kernel's CUBIC, in {pairs} \
         pairs of consecutive transfers whose order alternates. The columns about hooks come from one more transfer, with the \
         kernel's BPF run statistics, which take time themselves: the time in all hooks, as a share of CUBIC's processor time, and \
         the mean time of each hook.\n",
        TRANSFER >> 20
    );
    println!(
        "| control | processor time, against CUBIC's | 95 % interval | Gbit/s | CUBIC's | in hooks | calls of hooks | mean ns of each |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    transfer("cubic")?;
    for control in CONTROLS {
        let _held = weir_kernel::hold(&control.name.parse()?)?;
        let (mut ratios, mut ours, mut cubics) = (vec![], ValueSelector::default(), ValueSelector::default());
        for pair in 0..pairs {
            let (our, cubic) = if pair % 2 == 0 {
                let cubic = transfer("cubic")?;
                (transfer(control.kernel)?, cubic)
            } else {
                (transfer(control.kernel)?, transfer("cubic")?)
            };
            ratios.push(our.busy / cubic.busy);
            ours.add(our);
            cubics.add(cubic);
        }
        let statistics = run_statistics()?;
        transfer(control.kernel)?;
        let hooks = hooks_of(control.kernel.trim_start_matches("weir_"));
        drop(statistics);
        let (mean, half) = interval(&ratios);
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let rate = |taken: &ValueSelector| (pairs * TRANSFER) as f64 * 8e-9 / taken.seconds;
        println!(
            "| `{}` | {:+.1} % | {:+.1} to {:+.1} % | {:.1} | {:.1} | {:.2} % | {} | {} |",
            control.name,
            percent(mean),
            percent(mean - half),
            percent(mean + half),
            rate(&ours),
            rate(&cubics),
            hooks.seconds / (cubics.busy / pairs as f64) * 100.0,
            hooks.calls,
            hooks.means.join(", "),
        );
    }
    Ok(())
}

/// Times of a transfer in seconds: on the processors, and from its first byte to its last.
#[derive(Default)]
struct ValueSelector {
    busy: f64,
    seconds: f64,
}

impl ValueSelector {
    fn add(&mut self, other: ValueSelector) {
        self.busy += other.busy;
        self.seconds += other.seconds;
    }
}

fn transfer(control: &'static str) -> Result<ValueSelector, Failure> {
    let background = background()?;
    let (ready, is_ready) = mpsc::channel();
    let receiver = thread::spawn(move || -> Result<f64, Failure> {
        let listener = socket(RECEIVER, control)?;
        rustix::net::bind(&listener, &ADDRESS)?;
        rustix::net::listen(&listener, 1)?;
        ready.send(())?;
        let (mut connection, _) = TcpListener::from(listener).accept()?;
        let mut buffer = vec![0; WRITE];
        while connection.read(&mut buffer)? > 0 {}
        Ok(busy())
    });
    // If the receiver fails there is no listener to connect to, and the receiver's error is reported.
    let sender = is_ready.recv().map(|()| {
        thread::spawn(move || -> Result<ValueSelector, Failure> {
            let connection = socket(SENDER, control)?;
            rustix::net::connect(&connection, &ADDRESS)?;
            let mut connection = TcpStream::from(connection);
            let began = Instant::now();
            let bytes = vec![0; WRITE];
            for _ in 0..TRANSFER / WRITE {
                connection.write_all(&bytes)?;
            }
            Ok(ValueSelector { busy: busy(), seconds: began.elapsed().as_secs_f64() })
        })
    });
    let panicked = |_| Failure::from("an end of the transfer panicked");
    let received = receiver.join().map_err(panicked)??;
    let mut taken = sender?.join().map_err(panicked)??;
    taken.busy += received + self::background()? - background;
    Ok(taken)
}

/// Opens a socket under this control at this end; the calling thread enters the end's namespace and processor.
fn socket(end: usize, control: &str) -> Result<OwnedFd, Failure> {
    let mut processor = CpuSet::new();
    processor.set(end);
    // On a machine with a single processor, both ends run there.
    let _ = sched_setaffinity(None, &processor);
    move_into_link_name_space(File::open(NAMESPACES[end])?.as_fd(), Some(LinkNameSpaceType::Network))?;
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_tcp_congestion(&socket, control)?;
    Ok(socket)
}

/// Processor time of this thread in seconds, including the kernel's network work in it.
fn busy() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Processor time in seconds of the kernel's own threads for network work (proc_pid_schedstat(5)).
fn background() -> Result<f64, Failure> {
    let mut seconds = 0.0;
    for process in fs::read_dir("/proc")? {
        let folder: PathBuf = process?.path();
        let named = fs::read_to_string(folder.join("comm"));
        if named.is_ok_and(|name| name.starts_with("ksoftirqd/")) {
            let text = fs::read_to_string(folder.join("schedstat"))?;
            let nanos: f64 = text.split(' ').next().ok_or("schedstat is empty")?.parse()?;
            seconds += nanos * 1e-9;
        }
    }
    Ok(seconds)
}

/// Mean, and half of its 95 % interval.
fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, quantile(PROBABILITY, values.len() as u32 - 1) * (variance / count).sqrt())
}

/// Lets the kernel measure its BPF programs as long as the descriptor is open.
fn run_statistics() -> Result<OwnedFd, Failure> {
    // SAFETY: the call takes a number and returns a descriptor or an error.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(-descriptor).into());
    }
    // SAFETY: the kernel has just made the descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Times of the hooks of a control.
#[derive(Default)]
struct Hooks {
    calls: u64,
    seconds: f64,
    /// Name and mean nanoseconds of each hook that was called.
    means: Vec<String>,
}

fn hooks_of(short: &str) -> Hooks {
    let mut hooks = Hooks::default();
    for program in ProgInfoIter::default().filter(|program| program.run_cnt > 0) {
        let name = program.name.to_string_lossy();
        let start = name.strip_prefix(short).and_then(|rest| rest.strip_prefix('_'));
        let hook = start.and_then(|start| HOOKS.into_iter().find(|hook| hook.starts_with(start)));
        if let Some(hook) = hook {
            hooks.calls += program.run_cnt;
            hooks.seconds += program.run_time_ns as f64 * 1e-9;
            hooks.means.push(format!("{hook} {}", program.run_time_ns / program.run_cnt));
        }
    }
    hooks.means.sort();
    hooks
}
