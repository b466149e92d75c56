//! Labs, names and machines that do harm, on purpose or not: escape sequences, commands, a limit of processes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const LAB: &str = "format = 1
[run]
duration = '2 s'
warmup = '1 s'
[dumbbell]
rate = '10 Mbit/s'
rtt = '20 ms'
";

/// A folder with a lab in it.
struct Place(tempfile::TempDir);

impl Place {
    fn with(lab: &str) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path("lab.toml"), format!("{LAB}{lab}")).unwrap();
        place
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn weir(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap()
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// Whether the text holds a control character, other than line feeds, that a terminal obeys.
fn commands_a_terminal(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}')
}

#[test]
fn escape_sequences_of_labs_results_and_names_reach_no_terminal() {
    let evil = "\\u001b]0;owned\\u0007\\u009b31m\\u202e\\r";
    let place = Place::with(&format!(
        "[traffic.a]\n[vary.level]\n\"{evil}\" = {{ 'traffic.a.cc' = 'cubic' }}\n\"two {evil}\" = {{ 'traffic.a.cc' = 'newreno' }}\n"
    ));
    let text = fs::read_to_string(place.path("lab.toml")).unwrap();
    let text = text.replacen("format = 1\n", &format!("format = 1\ntitle = \"{evil}\\n\"\n"), 1);
    fs::write(place.path("lab.toml"), &text).unwrap();
    let name = "\u{1b}[2J\u{9b}.toml";
    fs::write(place.path(name), text.replace("cubic", "qubic\u{7f}")).unwrap();
    fs::write(place.path("claims.toml"), "format = 1\n\u{1b}[8m = 1\n").unwrap();
    for (args, status) in [
        (&["run", "lab.toml", "--dry-run"][..], 0),
        (&["run", "lab.toml"], 0),
        (&["report", "results/lab"], 0),
        (&["report", "results/lab", "--json"], 0),
        (&["run", "lab.toml", "--json"], 0),
        (&["compare", "results/lab", "results/lab"], 1),
        (&["run", name], 2),
        (&["run", "claims.toml"], 2),
        (&["run", "lab.toml", "--only", "level=\u{1b}[1m"], 2),
        (&["report", "\u{1b}[1m"], 2),
        (&["new", name], 2),
        (&["reproduce", "--labs", "\u{1b}[1m"], 2),
    ] {
        let output = place.weir(args);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {told}");
        assert!(!commands_a_terminal(&told), "{args:?}: {told:?}");
    }
    let output = place.weir(&["report", "results/lab", "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let label = summary["runs"][0]["params"].to_string();
    assert!(label.contains("owned") && label.contains('\u{9b}'), "the data is as it was: {label:?}");
}

/// A lab that leaves a file where it ran.
fn with_command() -> Place {
    Place::with(
        "[traffic.a.workload]\nkind = 'command'\nrun = \"touch $MARK; sleep 0.1\"\nenvironment = { MARK = 'was-here' }\npeer = \"echo {sender}\\u0007\"\n",
    )
}

#[test]
fn a_labs_commands_are_shown_and_run_only_with_permission() {
    let place = with_command();
    let output = place.weir(&["run", "lab.toml", "--on", "live", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0));
    let shown = "commands that live runs of lab execute on this machine:\n  in host a-receiver:\n    MARK=was-here\n    \
                 echo {sender}\\u{7}\n  in host a-sender:\n    MARK=was-here\n    touch $MARK; sleep 0.1\n";
    assert!(told(&output).contains(shown), "{}", told(&output));
    let output = place.weir(&["run", "lab.toml", "--on", "live"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains(shown) && told(&output).contains("--allow-commands"), "{}", told(&output));
    assert!(!place.path("was-here").exists() && !place.path("results").exists());
    // A study's lab is no exception.
    fs::create_dir_all(place.path("labs/study")).unwrap();
    fs::copy(place.path("lab.toml"), place.path("labs/study/profile.toml")).unwrap();
    let claim = "[[expect]]\nmetric = 'utilisation_percent'\nat_least = 0\nsource = 's'\n";
    fs::write(place.path("labs/study/a.toml"), format!("format = 1\nextends = 'profile.toml'\n{claim}"))
        .unwrap();
    let output = place.weir(&["reproduce", "study", "--on", "live"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("touch $MARK") && !place.path("was-here").exists(), "{}", told(&output));
}

#[test]
fn commands_run_after_a_yes_at_a_terminal_and_after_no_other_answer() {
    let possible =
        |args: &[&str]| Command::new("unshare").args(args).status().is_ok_and(|status| status.success());
    if !possible(&["-n", "true"]) && !possible(&["-Urn", "true"]) {
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return println!("skipped: this system permits no namespaces");
    }
    // script(1) gives a command a terminal, and types what it reads.
    let at_a_terminal = |place: &Place, answer: &str| {
        let line = format!("{} run lab.toml --on live --no-report", env!("CARGO_BIN_EXE_weir"));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(place.0.path());
        let mut terminal = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut keys, mut screen) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
        let (mut shown, mut byte) = (vec![], [0]);
        while screen.read(&mut byte).unwrap() > 0 {
            shown.push(byte[0]);
            if shown.ends_with(b"[y/N]") {
                writeln!(keys, "{answer}").unwrap();
            }
        }
        terminal.wait().unwrap();
        String::from_utf8_lossy(&shown).into_owned()
    };
    let place = with_command();
    let shown = at_a_terminal(&place, "n");
    assert!(shown.contains("[y/N]") && !place.path("was-here").exists(), "{shown}");
    let shown = at_a_terminal(&place, "y");
    assert!(place.path("was-here").exists(), "{shown}");
    fs::remove_file(place.path("was-here")).unwrap();
    let output =
        place.weir(&["run", "lab.toml", "--on", "live", "--allow-commands", "--rerun", "--no-report"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(place.path("was-here").exists());
}

/// Runs the lab as a user with this limit of processes and threads. As root the user has no other processes; an ordinary user
/// has some already, so that the first one is too many.
fn with_processes(place: &Place, processes: u32) -> Output {
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // A separate process makes the copy: a file that this process writes is busy while a child of another test holds it open.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_weir")).arg(place.path("weir")).status().unwrap();
    assert!(copied.success());
    let limit = format!("--nproc={processes}:{processes}");
    let mut command = Command::new("prlimit");
    command.args([&limit, "./weir", "run", "lab.toml", "--jobs", "4", "--set", "run.repeats=4"]);
    command.current_dir(place.0.path()).stdin(Stdio::null());
    if is_root() {
        command.uid(60_001 + processes);
    }
    command.output().unwrap()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn a_limit_of_processes_is_reported_with_advice_and_fewer_threads_suffice() {
    let place = Place::with("[traffic.a]\n");
    let output = with_processes(&place, 1);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("pids.max") && !told(&output).contains("panicked"), "{}", told(&output));
    if !is_root() {
        return;
    }
    // Two threads: one waits for Ctrl-C, and one does everything else.
    for processes in [2, 3] {
        let output = with_processes(&Place::with("[traffic.a]\n"), processes);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        assert!(told(&output).contains("4 runs"), "{}", told(&output));
    }
}
