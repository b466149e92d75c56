//! Storms: many commands under few controls, which begin and end at random while others load and unload the same; and weir killed at
//! random points. As an ordinary test a little of it; WEIR_STORMS and WEIR_KILLS say how much.

use super::{eventually, groups, nothing_remains, permitted, use_for, weir};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::Random;

/// The controls of a storm.
const CONTROLS: [&str; 3] = ["htcp", "cdg", "westwood"];
/// Commands in one storm.
const USERS: u64 = 20;

fn times(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn millis(random: &mut Random, below: u64) -> Duration {
    Duration::from_millis(random.below(below))
}

/// Ends weir, or waits until its command has ended.
fn end(mut weir: Child, random: &mut Random) {
    let signal = ["", "KILL", "TERM", "INT"][random.below(4) as usize];
    if !signal.is_empty() {
        std::thread::sleep(millis(random, 600));
        let number = weir.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &number]).status().unwrap();
        assert!(sent.success());
    }
    weir.wait().unwrap();
}

/// Tells the threads of a storm that it is over, even if it fails.
struct Over<'a>(&'a AtomicBool, u16);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.1)));
    }
}

/// A storm. Returns what each connection reported: the control that its command asked for, and the one that it had.
fn storm(seed: u64) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, over) = (Mutex::new(vec![]), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let end_of_storm = Over(&over, port);
        scope.spawn(|| {
            for connection in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let mut line = String::new();
                // A killed member has not sent its whole line.
                if BufReader::new(connection.unwrap()).read_line(&mut line).is_ok() && line.ends_with('\n') {
                    told.lock().unwrap().push(line);
                }
            }
        });
        let users: Vec<_> = (0..USERS)
            .map(|user| {
                scope.spawn(move || {
                    let mut random = Random::stream_of(seed, "user", user);
                    std::thread::sleep(millis(&mut random, 300));
                    let control = CONTROLS[random.below(3) as usize];
                    let connections = 1 + random.below(40);
                    // Some commands ignore the signal that they get when weir dies.
                    let deaf = if random.chance(0.3) { "trap '' TERM; " } else { "" };
                    let script =
                        format!("{deaf}for i in $(seq {connections}); do echo; sleep 0.01; done | member");
                    let weir = use_for(control, &script, port).stdin(Stdio::null()).spawn().unwrap();
                    end(weir, &mut random);
                })
            })
            .collect();
        let loader = scope.spawn(|| {
            let mut random = Random::stream(seed, "loader");
            while !over.load(Ordering::SeqCst) {
                let control = CONTROLS[random.below(3) as usize];
                // The control may be loaded already, or be there for its users only.
                weir(&[if random.chance(0.5) { "load" } else { "unload" }, control]);
                std::thread::sleep(millis(&mut random, 100));
            }
        });
        users.into_iter().for_each(|user| user.join().unwrap());
        // Commands that outlive a killed weir go on.
        eventually("all commands have ended", || groups().is_empty());
        drop(end_of_storm);
        loader.join().unwrap();
    });
    CONTROLS.iter().for_each(|control| drop(weir(&["unload", control])));
    nothing_remains(&CONTROLS);
    told.into_inner().unwrap()
}

#[test]
fn each_connection_has_its_commands_control_while_many_commands_start() {
    let Some(_alone) = permitted() else { return };
    let mut connections = 0;
    for seed in 0..times("WEIR_STORMS", 1) {
        for line in storm(seed) {
            let (asked, had) = line.trim().split_once(' ').unwrap();
            assert_eq!(had, format!("weir_{asked}"), "seed {seed}");
            connections += 1;
        }
    }
    assert!(connections > 20, "{connections} connections");
    println!("{connections} connections");
}

#[test]
fn nothing_remains_of_weir_killed_at_any_point() {
    let Some(_alone) = permitted() else { return };
    let mut random = Random::stream(1, "kills");
    for _ in 0..times("WEIR_KILLS", 10) {
        let mut weir =
            use_for("htcp", "echo | member", 1).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The command takes about that long from its start to its end.
        std::thread::sleep(Duration::from_micros(random.below(200_000)));
        weir.kill().unwrap();
        weir.wait().unwrap();
        nothing_remains(&["htcp"]);
    }
}
