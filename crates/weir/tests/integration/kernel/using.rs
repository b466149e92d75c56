//! One control at a time: loaded, changed, used, unloaded; and what remains when weir is killed.

use super::{done, eventually, groups, permitted, state, text, weir};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[test]
fn a_loaded_control_stays_takes_parameters_and_is_removed_without_a_trace() {
    let Some(_alone) = permitted() else { return };
    done(&["load", "yield", "ledbat"]);
    assert_eq!(state("yield")["pinned"], true);
    let twice = weir(&["load", "yield"]);
    assert!(!twice.status.success() && text(&twice.stderr).contains("weir_yield is loaded already"));
    done(&["load", "yield", "--set", "beta=20", "--set", "reading=paper"]);
    done(&["load", "yield", "--set", "min_cwnd=4"]);
    let parameters = &state("yield")["parameters"];
    assert_eq!(
        (&parameters["beta"], &parameters["reading"], &parameters["min_cwnd"]),
        (&20.into(), &"paper".into(), &4.into())
    );
    assert!(done(&["list"]).contains("beta=20"));
    done(&["unload", "yield"]);
    assert_eq!(state("yield"), Value::Null);
    done(&["unload"]);
    assert_eq!(state("ledbat"), Value::Null);
    assert!(!std::path::Path::new("/run/weir").exists(), "nothing is left in /run");
}

#[test]
fn controls_that_cannot_be_loaded_are_refused_with_an_explanation() {
    let Some(_alone) = permitted() else { return };
    let refusal = |args: &[&str]| {
        let output = weir(args);
        (output.status.code().unwrap(), text(&output.stderr))
    };
    let (status, why) = refusal(&["load", "bbr"]);
    assert!(status == 2 && why.contains("bbr has no kernel form; these have one: apple-ledbat"), "{why}");
    let (status, why) = refusal(&["load", "yield", "--set", "beta=101"]);
    assert!(status == 2 && why.contains("beta: 101 is out of range; write 0 to 100"), "{why}");
    let (status, why) = refusal(&["load", "yield", "--set", "gamma=1"]);
    assert!(status == 2 && why.contains("gamma"), "{why}");
    let (status, why) = refusal(&["unload", "yield"]);
    assert!(status == 1 && why.contains("weir_yield is not loaded"), "{why}");
    assert_eq!(state("yield"), Value::Null);
}

#[test]
fn only_connections_of_the_command_use_the_control() {
    let Some(_alone) = permitted() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let talk = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3 >&3; exit 7");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["kernel", "use", "yield", "--set", "beta=30", "--", "bash", "-c", &talk])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    // The command's end of the connection uses the control, ours does not.
    assert_eq!(state("yield")["flows"], 1);
    assert_eq!(
        (&state("yield")["pinned"], &state("yield")["parameters"]["beta"]),
        (&false.into(), &30.into())
    );
    let held = weir(&["unload", "yield"]);
    let who = format!(
        "weir_yield is not loaded permanently; it is unloaded when the last process that uses it ends: process {} (",
        command.id()
    );
    assert!(held.status.code() == Some(1) && text(&held.stderr).contains(&who), "{}", text(&held.stderr));
    connection.write_all(b"hello").unwrap();
    let mut echo = [0; 5];
    connection.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"hello");
    drop(connection);
    assert_eq!(command.wait().unwrap().code(), Some(7), "the command's status");
    assert_eq!(state("yield"), Value::Null);
    assert_eq!(groups(), Vec::<PathBuf>::new());
}

#[test]
fn connections_that_a_command_accepts_use_the_control_too() {
    let Some(_alone) = permitted() else { return };
    let serve = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); \
                 c, _ = s.accept(); c.send(c.getsockopt(6, 13, 16).rstrip(b'\\0')); c.close()";
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let mut server = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["kernel", "use", "vegas", "--", "python3", "-c", serve])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut port).unwrap();
    let mut connection = std::net::TcpStream::connect(format!("127.0.0.1:{}", port.trim())).unwrap();
    let mut name = String::new();
    connection.read_to_string(&mut name).unwrap();
    assert_eq!(name, "weir_vegas");
    assert!(server.wait().unwrap().success());
}

#[test]
fn nothing_remains_when_weir_is_killed_while_a_command_runs() {
    let Some(_alone) = permitted() else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 60", note.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["kernel", "use", "yield", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    eventually("the command runs", || {
        pid = std::fs::read_to_string(&note).unwrap_or_default();
        pid.ends_with('\n')
    });
    assert_eq!(groups().len(), 1);
    command.kill().unwrap();
    command.wait().unwrap();
    eventually("the control has gone", || state("yield") == Value::Null);
    eventually("the control group has gone", || groups().is_empty());
    eventually("the command has ended", || !PathBuf::from(format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn remains_of_a_killed_container_are_removed_by_the_next_use() {
    let Some(_alone) = permitted() else { return };
    let mut container = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", env!("CARGO_BIN_EXE_weir")])
        .args(["kernel", "use", "yield", "--", "sleep", "60"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let inside = || {
        groups().iter().any(|group| !std::fs::read_to_string(group.join("cgroup.procs")).unwrap().is_empty())
    };
    eventually("the command runs", inside);
    container.kill().unwrap();
    container.wait().unwrap();
    eventually("the control has gone", || state("yield") == Value::Null);
    eventually("the command has ended", || !inside());
    assert_eq!(groups().len(), 1, "nobody was left to tidy up");
    // The kernel takes a moment to remove the last processes of the group.
    eventually("the control group has gone", || {
        done(&["use", "yield", "--", "true"]);
        groups().is_empty()
    });
}
