//! `weir kernel`: what a person does with it, over real connections. Where nothing may be loaded the tests skip and say so; with
//! WEIR_REQUIRE_LIVE=1 that is a failure, and so it is where weir was built without its kernel controls.

mod sharing;
mod storms;
mod using;

use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time for work in the background.
const PATIENCE: Duration = Duration::from_secs(20);

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).arg("kernel").args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed. Returns its output.
fn done(args: &[&str]) -> String {
    let output = weir(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The state of a control, null if it is not loaded.
fn state(name: &str) -> Value {
    let all: Vec<Value> = serde_json::from_str(&done(&["list", "--json"])).unwrap();
    all.into_iter().find(|control| control["name"] == name).unwrap()["loaded"].take()
}

/// Names in the kernel are the same for the whole system: one test at a time. `None` where nothing can be loaded.
fn permitted() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tried = weir(&["load", "htcp"]);
    if tried.status.success() {
        done(&["unload"]);
        return Some(alone);
    }
    let why = text(&tried.stderr);
    println!("skipped: {why}");
    assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
    None
}

/// Waits until `happens` is true.
fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Control groups that `weir kernel use` has made.
fn groups() -> Vec<PathBuf> {
    let output =
        Command::new("find").args(["/sys/fs/cgroup", "-type", "d", "-name", "weir-use-*"]).output().unwrap();
    text(&output.stdout).lines().map(PathBuf::from).collect()
}

/// Waits until nothing of these controls is on the machine.
fn nothing_remains(names: &[&str]) {
    for name in names {
        eventually("the control has gone", || state(name) == Value::Null);
    }
    eventually("the control groups have gone", || groups().is_empty());
    assert!(!std::path::Path::new("/run/weir").exists(), "nothing is left in /run");
}

/// The variable that tells a member the port to which it connects.
const PORT: &str = "WEIR_KERNEL_MEMBER";

/// A program that reports its connections: for each line that it reads it connects, and sends the name of the connection's
/// control. It is this test binary again, run inside a command.
#[test]
fn member() {
    let Some(port) = std::env::var(PORT).ok().and_then(|port| port.parse::<u16>().ok()) else { return };
    for _ in std::io::stdin().lines() {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let control = rustix::net::sockopt::tcp_congestion(&connection).unwrap();
        let asked = std::env::var("ASKED").unwrap();
        writeln!(connection, "{asked} {control}").unwrap();
    }
}

/// `weir kernel use` of a control for a shell script, in which `member` runs [`member`], connecting to this port.
fn use_for(control: &str, script: &str, port: u16) -> Command {
    let member = r#"member() { "$MEMBER" --exact kernel::member --nocapture >/dev/null; }; "#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["kernel", "use", control, "--", "bash", "-c", &format!("{member}{script}")]);
    command.env("MEMBER", std::env::current_exe().unwrap()).env("ASKED", control).env(PORT, port.to_string());
    command
}
