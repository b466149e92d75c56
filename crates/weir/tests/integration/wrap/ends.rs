//! The far end, and the ends of commands.

use super::*;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn the_far_end_answers_after_the_round_trip_over_both_ip_versions() {
    let Some(place) = place() else { return };
    let connect = "
for family, address in ((socket.AF_INET, far[0]), (socket.AF_INET6, far[1]), (socket.AF_INET, '192.0.2.7'), (socket.AF_INET6, '2001:db8::7')):
    print(*took(lambda: socket.socket(family, socket.SOCK_STREAM).connect((address, 9))))
";
    let lines = lines(&place, &["--link", "rate=9mbit rtt=40ms"], &format!("{connect}{ECHOES}"));
    let (times, results): (Vec<f64>, Vec<&str>) = lines.iter().map(|line| timed(line)).unzip();
    assert!(times.iter().all(|ms| *ms >= 40.0), "{times:?}");
    // The far end has no way to other networks, and says so. Echo replies have the types 0 and 129 (RFC 792, RFC 4443).
    let [refused, nowhere] = ["Connection refused", "Network is unreachable"];
    assert_eq!(results, [refused, refused, nowhere, nowhere, "0", "129"]);
}

#[test]
fn of_links_in_a_row_each_delays_and_each_direction_has_its_own_rate() {
    let Some(place) = place() else { return };
    // 100,000 bytes take 0.8 s at 1 Mbit/s, and 0.08 s at 10 Mbit/s.
    let serve = "python3 -c \"import socket
s = socket.create_server(('', 80))
while True:
    c, _ = s.accept()
    n = 0
    while n < 100000: n += len(c.recv(65536))
    c.sendall(b'x' * 1)
\"";
    let program = "
s = socket.socket()
print(*took(lambda: s.connect((far[0], 80))))
def upload():
    s.sendall(b'x' * 100000)
    return s.recv(1)
print(*took(upload))
";
    let options =
        ["--link", "rate=10mbit/1mbit delay=10ms", "--link", "rate=10mbit delay=20ms", "--serve", serve];
    let lines = lines(&place, &options, program);
    // Twice 10 ms and 20 ms.
    assert!(timed(&lines[0]).0 >= 60.0, "{lines:?}");
    assert!(timed(&lines[1]).0 >= 800.0, "{lines:?}");
}

#[test]
fn a_labs_network_with_its_schedule_can_be_taken() {
    let Some(place) = place() else { return };
    let lab = "format = 1\n[chain.links]\n\
               near = { rate = '9 Mbit/s', delay = '5 ms' }\n\
               far = { rate = '9 Mbit/s', delay = '10 ms', schedule = [{ at = '3 s', delay = '100 ms' }] }\n\
               [traffic.a]\n[run]\nduration = '4 s'\n";
    std::fs::write(place.path("net.toml"), lab).unwrap();
    // The first echoes are answered before 3 s, which is time enough for Python to start.
    let lines = lines(&place, &["--lab", "net.toml"], &format!("{ECHOES}\ntime.sleep(3){ECHOES}"));
    let times: Vec<f64> = lines.iter().map(|line| timed(line).0).collect();
    assert!(times[..2].iter().all(|ms| (30.0..100.0).contains(ms)), "{times:?}");
    // One direction was 90 ms longer by then.
    assert!(times[2..].iter().all(|ms| *ms >= 120.0), "{times:?}");
}

#[test]
fn a_port_of_the_host_answers_at_the_far_end() {
    let Some(place) = place() else { return };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for mut connection in server.incoming().map_while(Result::ok) {
            let mut sent = String::new();
            std::io::Read::read_to_string(&mut connection, &mut sent).unwrap();
            write!(connection, "you sent {sent}").unwrap();
        }
    });
    let program = format!(
        "
for address in far:
    s = socket.create_connection((address, {port}))
    s.sendall(b'hello')
    s.shutdown(socket.SHUT_WR)
    print(s.makefile().read())
"
    );
    let lines = lines(&place, &["--link", "rate=9mbit rtt=4ms", "--forward", &port], &program);
    assert_eq!(lines, ["you sent hello", "you sent hello"]);
}

/// Whether a process with these arguments is there.
fn is_there(arguments: &str) -> bool {
    let with_zeros = arguments.replace(' ', "\0") + "\0";
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok())
        .any(|line| line == with_zeros)
}

/// Waits until something is so.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_the_command_and_the_far_end_have_started_ends_with_the_command() {
    let Some(place) = place() else { return };
    let options = ["--link", "rate=9mbit rtt=4ms", "--serve", "setsid sleep 2001 & sleep 2002"];
    let output = place.weir(&wrapped(&options, "setsid sleep 2003 & exit 3"));
    assert_eq!(status(&output), 3);
    assert!(["sleep 2001", "sleep 2002", "sleep 2003"].iter().all(|line| !is_there(line)));
}

#[test]
fn a_signal_to_weir_reaches_the_command() {
    let Some(place) = place() else { return };
    let command = "trap 'echo got it; exit 5' USR1; touch ready; while true; do sleep 0.05; done";
    let child = place.command(&wrapped(&["--link", "rate=9mbit rtt=4ms"], command));
    let child = { child }.stdout(Stdio::piped()).spawn().unwrap();
    soon("the command runs", || place.path("ready").exists());
    let process = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::USR1).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((status(&output), text(&output.stdout)), (5, "got it\n".into()));
}

#[test]
fn a_signal_at_any_moment_ends_a_command_that_does_not_catch_it() {
    let Some(place) = place() else { return };
    // Weir starts, makes the network, and starts the command within this time.
    for millis in (0..=320).step_by(40) {
        let command = place.command(&wrapped(&["--link", "rate=9mbit rtt=4ms"], "exec sleep 4001"));
        let mut child = { command }.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        let process = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        soon("weir ends", || child.try_wait().unwrap().is_some());
        let ended = child.wait().unwrap();
        // Until weir keeps signals from itself, this one ends weir.
        assert!(ended.code() == Some(143) || ended.signal() == Some(15), "after {millis} ms: {ended}");
        soon("the command ends", || !is_there("sleep 4001"));
    }
}

#[test]
fn nothing_is_left_of_a_wrap_that_is_killed_at_any_moment() {
    let Some(place) = place() else { return };
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut random = weir_base::Random::stream(std::process::id().into(), "wrap");
    let options = ["--link", "rate=9mbit rtt=4ms", "--serve", "setsid sleep 3001 & sleep 3002"];
    for _ in 0..kills {
        let mut child = place.command(&wrapped(&options, "setsid sleep 3003 & sleep 3004")).spawn().unwrap();
        std::thread::sleep(Duration::from_nanos(random.below(400_000_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        // A namespace goes with the last process in it.
        let left = || (3001..=3004).any(|seconds| is_there(&format!("sleep {seconds}")));
        soon("all that was started ends", || !left());
        let name = format!("@weir/link:{}", child.id());
        assert!(!std::fs::read_to_string("/proc/net/unix").unwrap().contains(&name), "{name} is left");
    }
    println!("{kills} kills");
}
