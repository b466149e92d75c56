//! Commands of a lab, and a run that is cancelled.

use super::*;

/// Runs in a folder, and returns the content of the files left there.
fn go_in(run: &Run, folder: &std::path::Path) -> (Result<Outcome, EngineError>, Tally) {
    let mut tally = Tally::new(run);
    let cancel = AtomicBool::new(false);
    let watch = Watch { cancel: &cancel, progress: &|_| {}, capture: None, folder: Some(folder) };
    Live.check(run).unwrap();
    (Live.run(run, &mut tally, &watch), tally)
}

pub(crate) fn a_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    // A route to nowhere but the other host, no other device than the host's own, and the peer at the other end.
    let run = lab(&format!(
        "{DUMBBELL}[traffic.real.workload]\nkind = \"command\"\n\
         run = \"echo {{sender}} to {{receiver}} in $PLACE; grep -c eth0: /proc/net/dev; echo $(echo $$)\"\n\
         peer = \"echo I am {{receiver}}; sleep 1000\"\nenvironment = {{ PLACE = \"a lab\" }}\n"
    ));
    let (outcome, tally) = go_in(&run, folder.path());
    let text = std::fs::read_to_string(folder.path().join("command-real.txt")).unwrap();
    // Its host's one device; the shell is the first process of its PID namespace.
    assert_eq!(text, "10.0.0.3 to 10.0.0.4 in a lab\n1\n1\n");
    let peer = std::fs::read_to_string(folder.path().join("command-real-peer.txt")).unwrap();
    assert_eq!(peer, "I am 10.0.0.4\n");
    assert_eq!(outcome.unwrap().environment["commands"]["real"], "ended well");
    assert_eq!(events(&tally, 0), [Started, Completed]);
    assert_eq!(processes_with("sleep 1000"), 0, "what the peer has started ends with the run");
}

pub(crate) fn a_command_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let with = |more: &str, run: &str| {
        lab(&format!("{DUMBBELL}[traffic.real.workload]\nkind = \"command\"\nrun = \"{run}\"\n{more}\n"))
    };
    let (outcome, _) = go_in(&with("", "setsid sleep 1001 & echo no such luck >&2; exit 3"), folder.path());
    let Err(EngineError::Command(why)) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("the command of real ended with status 3:\nno such luck"), "{why}");
    let (outcome, _) = go_in(&with("may_fail = true", "exit 3"), folder.path());
    assert_eq!(outcome.unwrap().environment["commands"]["real"], "status 3");
    // A command that would go on is killed at the end, with all that it has started.
    let (outcome, _) = go_in(&with("", "setsid sleep 1001 & sleep 1001"), folder.path());
    assert_eq!(outcome.unwrap().environment["commands"]["real"], "ran until its time was over");
    assert_eq!(processes_with("sleep 1001"), 0);
}

pub(crate) fn a_command_that_prints() {
    let folder = tempfile::tempdir().unwrap();
    // A gigabyte of lines, and one line of 100 MB at the end.
    let run = "echo first; yes | head -c 1000000000; yes | tr -d '\\\\n' | head -c 100000000; echo; echo last >&2; exit 3";
    let run = lab(&format!("{DUMBBELL}[traffic.real.workload]\nkind = \"command\"\nrun = \"{run}\"\n"));
    let run = Run { duration: Span::from_secs(60), ..run };
    let before = peak_memory();
    let (outcome, _) = go_in(&run, folder.path());
    let Err(EngineError::Command(why)) = outcome else { panic!("{outcome:?}") };
    assert!(why.ends_with("\nlast") && why.len() < 4096, "{why}");
    let text = std::fs::read(folder.path().join("command-real.txt")).unwrap();
    assert!(text.len() < (2 << 20) + 100, "{}", text.len());
    assert!(text.starts_with(b"first\ny\n") && text.ends_with(b"yyy\nlast\n"));
    assert!(peak_memory() < before + (300 << 10), "{before} kB before, {} kB after", peak_memory());
}

/// The most memory that this process has had, in kilobytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The number of processes of this machine with this command line.
fn processes_with(words: &str) -> usize {
    let words = words.replace(' ', "\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(&words))
        .count()
}

pub(crate) fn a_cancelled_run_ends() {
    let run = lab(&format!("{DUMBBELL}[traffic.a]\ncc = \"cubic\"\n"));
    let cancel = AtomicBool::new(false);
    let progress = |share: f64| {
        if share > 0.1 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let watch = Watch { cancel: &cancel, progress: &progress, capture: None, folder: None };
    let mut tally = Tally::new(&run);
    assert!(matches!(Live.run(&run, &mut tally, &watch), Err(EngineError::Cancelled)));
    // The test's process is still in its own namespace: this address belongs to no host of the testbed.
    assert!(UdpSocket::bind("10.0.0.1:0").is_err());
}
