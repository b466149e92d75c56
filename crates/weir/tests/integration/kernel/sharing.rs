//! Several processes hold one control: each has a reference of its own, and the control stays until the last one ends.

use super::{done, eventually, nothing_remains, permitted, state, text, use_for, weir};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A command under a control, which connects when it is told to.
struct User {
    child: Child,
    input: Option<ChildStdin>,
    listener: TcpListener,
}

impl User {
    fn new(name: &str) -> User {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut command = use_for(name, "member", listener.local_addr().unwrap().port());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        User { child, input, listener }
    }

    /// The control of a new connection of its command.
    fn control(&mut self) -> String {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
        let (connection, _) = self.listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(connection).read_line(&mut line).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn end(mut self) {
        self.input.take();
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn two_users_of_a_control_keep_it_whichever_ends_first() {
    let Some(_alone) = permitted() else { return };
    for first_is_killed in [false, true] {
        // Both start at the same instant: one loads the control, the other finds it.
        let [mut first, mut second] = [User::new("htcp"), User::new("htcp")];
        assert_eq!([first.control(), second.control()], ["weir_htcp", "weir_htcp"]);
        assert_eq!(state("htcp")["holders"].as_array().unwrap().len(), 2);
        if first_is_killed {
            first.kill()
        } else {
            first.end()
        }
        assert_eq!(second.control(), "weir_htcp", "the second's new connections");
        let mut third = User::new("htcp");
        assert_eq!(third.control(), "weir_htcp");
        second.end();
        assert_eq!(third.control(), "weir_htcp");
        third.end();
        nothing_remains(&["htcp"]);
    }
}

#[test]
fn a_command_keeps_its_control_when_it_is_unloaded_meanwhile() {
    let Some(_alone) = permitted() else { return };
    done(&["load", "htcp"]);
    let mut user = User::new("htcp");
    assert_eq!(user.control(), "weir_htcp");
    let told = weir(&["unload", "htcp"]);
    let who = format!(
        "weir_htcp stays loaded until the last process that uses it ends: process {} (",
        user.child.id()
    );
    assert!(told.status.success() && text(&told.stderr).contains(&who), "{}", text(&told.stderr));
    assert_eq!(state("htcp")["pinned"], false);
    assert_eq!(user.control(), "weir_htcp");
    // A load meanwhile gives the same control, which stays when the command ends.
    done(&["load", "htcp"]);
    user.end();
    assert_eq!(state("htcp")["pinned"], true);
    done(&["unload", "htcp"]);
    nothing_remains(&["htcp"]);
}

#[test]
fn parameters_cannot_change_while_the_control_is_in_use() {
    let Some(_alone) = permitted() else { return };
    done(&["load", "yield"]);
    let mut user = User::new("yield");
    user.control();
    for command in
        [&["load", "yield", "--set", "beta=30"][..], &["use", "yield", "--set", "beta=30", "--", "true"]]
    {
        let refused = weir(command);
        let (status, why) = (refused.status.code(), text(&refused.stderr));
        let who = format!("process {} (", user.child.id());
        assert!(status == Some(1) && why.contains(&who) && why.contains("weir_yield"), "{why}");
    }
    assert_eq!(state("yield")["parameters"]["beta"], 15);
    // The same parameters once more are no change.
    done(&["load", "yield", "--set", "beta=15"]);
    user.end();
    done(&["load", "yield", "--set", "beta=30"]);
    assert_eq!(state("yield")["parameters"]["beta"], 30);
    done(&["unload"]);
    nothing_remains(&["yield"]);
}

#[test]
fn a_command_that_outlives_a_killed_weir_keeps_its_control_to_its_end() {
    let Some(_alone) = permitted() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = "trap '' TERM; for word in $(seq 40); do echo; sleep 0.05; done | member";
    let mut weir = use_for("htcp", script, listener.local_addr().unwrap().port()).spawn().unwrap();
    let control = || {
        let mut line = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
        line
    };
    assert_eq!(control(), "htcp weir_htcp\n");
    weir.kill().unwrap();
    weir.wait().unwrap();
    let told: Vec<String> = (1..40).map(|_| control()).collect();
    assert!(told.iter().all(|line| line == "htcp weir_htcp\n"), "{told:?}");
    nothing_remains(&["htcp"]);
}

#[test]
fn a_nested_use_has_its_own_control() {
    let Some(_alone) = permitted() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = env!("CARGO_BIN_EXE_weir");
    let inner = format!(
        "{program} kernel use cdg -- bash -c 'echo | ASKED=cdg \"$MEMBER\" --exact kernel::member --nocapture' >/dev/null"
    );
    let script = format!("echo | member; {inner}; echo | member");
    let mut outer = use_for("htcp", &script, listener.local_addr().unwrap().port()).spawn().unwrap();
    for expected in ["htcp weir_htcp\n", "cdg weir_cdg\n", "htcp weir_htcp\n"] {
        let mut line = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    assert!(outer.wait().unwrap().success());
    nothing_remains(&["htcp", "cdg"]);
}

#[test]
fn controls_loaded_in_a_private_mount_namespace_vanish_with_it_and_load_says_so() {
    let Some(_alone) = permitted() else { return };
    let program = env!("CARGO_BIN_EXE_weir");
    let script =
        format!("{program} kernel load htcp 2>&1; {program} kernel list; echo listed; exec sleep 60");
    let mut inside = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(inside.stdout.take().unwrap()).lines().map(Result::unwrap);
    let note = lines.next().unwrap();
    assert!(note.contains("this mount namespace is private"), "{note}");
    let listed: Vec<String> = lines.take_while(|line| line != "listed").collect();
    assert!(listed.iter().any(|line| line.contains("weir_htcp        loaded")), "{listed:?}");
    let here = state("htcp");
    assert_eq!((&here["pinned"], &here["holders"][0]["pin"]), (&false.into(), &true.into()), "{here}");
    inside.kill().unwrap();
    inside.wait().unwrap();
    eventually("the control has gone", || state("htcp") == Value::Null);
    // The folder of the mount does not belong to that namespace; the next command that changes something removes it.
    assert!(text(&weir(&["unload", "htcp"]).stderr).contains("not loaded"));
    nothing_remains(&["htcp"]);
}

#[test]
fn foreign_names_among_the_pins_are_left_alone_and_only_root_can_make_new_ones() {
    let Some(_alone) = permitted() else { return };
    let folder = Path::new("/run/weir/bpf");
    // Mounted as earlier versions of weir did, open to everyone.
    std::fs::create_dir_all(folder).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "bpf", "-o", "mode=1777", "weir"]).arg(folder).status().unwrap();
    assert!(mounted.success());
    for name in ["htcp", "prague-ect1", "mine"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let load = weir(&["load", "htcp"]);
    let told = text(&load.stderr);
    assert!(load.status.success() && told.contains("\"mine\"") && told.contains("\"htcp\""), "{told}");
    assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(state("htcp")["pinned"], true);
    let load = weir(&["load", "prague", "--ect1", "lo"]);
    assert!(load.status.success() && load.stderr.is_empty(), "it is said once: {}", text(&load.stderr));
    done(&["unload"]);
    assert_eq!((state("htcp"), state("prague")), (Value::Null, Value::Null));
    let mut left: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.retain(|name| !name.to_string_lossy().ends_with(".debug"));
    left.sort();
    assert_eq!(left, ["htcp", "mine", "prague-ect1"]);
    left.iter().for_each(|name| std::fs::remove_dir(folder.join(name)).unwrap());
    // The last control to be unloaded takes the file system with it, which is then empty.
    done(&["load", "htcp"]);
    done(&["unload"]);
    nothing_remains(&["htcp", "prague"]);
}
