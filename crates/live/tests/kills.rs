//! The host is left as found, whatever happens: a live run is killed at random moments, and afterwards nothing of it is
//! there. Five kills as an ordinary test, as many as WEIR_KILLS says by hand.
//!
//! A namespace without a name shows in no list. What is left over is found by counting the namespaces that can still be made:
//! the kernel limits the network namespaces of a user namespace (namespaces(7)), so that leftovers of single runs would add up
//! and be missing.

#![allow(clippy::unwrap_used)] // it is tests all through, but clippy sees no harness

use rustix::thread::UnshareFlags;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_base::Random;
use weir_engine::{Engine, Watch};
use weir_linux::namespace::Namespace;
use weir_live::{Live, Tally};
use weir_plan::Lab;

/// Set for the process that is to be killed.
const VICTIM: &str = "WEIR_KILLS_VICTIM";
/// The limit: six times what a run needs (two pairs of hosts and the fabric), since the kernel clears up in the background
/// while the next run already starts.
const NAMESPACES: usize = 30;
/// How long the kernel may take to clear up.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return println!("nothing_remains_of_a_killed_run: test");
    }
    if std::env::var_os(VICTIM).is_some() {
        return be_killed();
    }
    if let Err(error) = enter_own_user_namespace() {
        println!("kills: skipped, this system permits no user namespaces: {error}");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut random = Random::stream(std::process::id().into(), "kills");
    let before = state_of_the_host();
    for kill in 1..=kills {
        // From the first moment, when namespaces are being made, to well inside the run.
        let after = Duration::from_nanos(random.below(700_000_000));
        kill_a_run(after);
        assert_eq!(
            state_of_the_host(),
            before,
            "kill {kill}, after {after:?}: the host is not as it was found"
        );
    }
    assert_eq!(room_for_namespaces(), NAMESPACES, "namespaces are left after {kills} kills");
    println!("test nothing_remains_of_a_killed_run ... ok ({kills} kills)");
}

/// Moves this process, root or not, into a user namespace in which few network namespaces can be made.
fn enter_own_user_namespace() -> std::io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // SAFETY: no file table is unshared; the process has a single thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    std::fs::write("/proc/sys/user/max_net_namespaces", NAMESPACES.to_string())
}

/// A run with traffic under way in both directions of two groups.
fn be_killed() {
    let text = "format = 1\n[run]\nduration = \"60 s\"\n[dumbbell]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n\
                [traffic.a]\ncc = \"newreno\"\n[traffic.b]\ncc = \"newreno\"\n";
    let lab = Lab::from_str(text, "victim.toml", ".".as_ref(), &[]).unwrap();
    let run = lab.runs().remove(0);
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    Live.run(&run, &mut Tally::new(&run), &watch).unwrap();
}

fn kill_a_run(after: Duration) {
    let mut victim = Command::new("/proc/self/exe").env(VICTIM, "1").stdin(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    assert!(victim.try_wait().unwrap().is_none(), "it must be running when it is killed");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// The number of namespaces that can be made at once, after the dead have had time to go.
fn room_for_namespaces() -> usize {
    let start = Instant::now();
    loop {
        let made = (0..NAMESPACES).map_while(|_| Namespace::new().ok()).count();
        if made == NAMESPACES || start.elapsed() > PATIENCE {
            return made;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Devices and network sysctls outside a run's namespaces that a run could have changed, each with its value.
fn state_of_the_host() -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    for name in devices.lines().skip(2).filter_map(|line| line.split(':').next()) {
        state.insert(format!("device {}", name.trim()), String::new());
    }
    for folder in ["/proc/sys/net/ipv4", "/proc/sys/net/core", "/proc/sys/net/ipv4/conf/all"] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Ok(value) = std::fs::read_to_string(entry.path()) {
                state.insert(entry.path().display().to_string(), value);
            }
        }
    }
    state
}
