//! `weir wrap` and `weir link`: commands behind emulated links, as a person runs them. Times are only ever bounded below, by what the links
//! must take. Where namespaces are not permitted the tests skip and say so; with WEIR_REQUIRE_LIVE=1 that is a failure.

mod ends;
mod internet;
mod links;
mod live;
mod prefixes;
mod translations;

use crate::place::{Place, status, text};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

/// A place in which commands can be wrapped; `None` if this system permits no namespaces.
fn place() -> Option<Place> {
    let place = Place::new();
    let output = place.weir(&["wrap", "--link", "rate=9mbit rtt=0ms", "--", "true"]);
    if text(&output.stderr).contains("may not make network namespaces") {
        println!("skipped: {}", text(&output.stderr));
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return None;
    }
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    Some(place)
}

/// Copies weir into the place, where another user can run it, and returns its path. A child process makes the copy: if this process did,
/// a child that another test forks meanwhile could hold the file open for writing, and no one could run it then (ETXTBSY).
fn copy_for_other_users(place: &Place) -> PathBuf {
    std::fs::set_permissions(place.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = place.path("weir");
    let mut command = std::process::Command::new("install");
    command.args(["--mode=755", env!("CARGO_BIN_EXE_weir")]).arg(&copy);
    assert!(command.status().unwrap().success());
    copy
}

/// The arguments that wrap a command of the shell.
fn wrapped<'a>(options: &[&'a str], command: &'a str) -> Vec<&'a str> {
    [&["wrap", "--quiet"], options, &["--", "sh", "-c", command]].concat()
}

/// A program in Python with what the tests' clients need: `far` are the addresses of the far end, IPv4 first, and `took` says how long a
/// function took in milliseconds, and what it returned or failed with.
fn python(program: &str) -> Vec<String> {
    let tools = "
import os, socket, time
far = [os.environ['WEIR_FAR_END'], os.environ['WEIR_FAR_END_V6']]
def took(work):
    begun = time.monotonic()
    try: result = work()
    except OSError as error: result = os.strerror(error.errno) if error.errno else str(error)
    return (time.monotonic() - begun) * 1000, result
";
    ["python3", "-c", &format!("{tools}{program}")].map(str::to_owned).to_vec()
}

/// Wraps a program in Python, which must end well. Returns the lines that it prints.
fn lines(place: &Place, options: &[&str], program: &str) -> Vec<String> {
    let program = python(program);
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let output: Output = place.weir(&[&["wrap", "--quiet"], options, &["--"], &words].concat());
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

/// A line `MILLISECONDS RESULT`.
fn timed(line: &str) -> (f64, &str) {
    let (ms, result) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
    (ms.parse().unwrap(), result)
}

#[test]
fn the_commands_user_folder_and_output_are_those_of_who_calls_weir() {
    let Some(place) = place() else { return };
    let output = place.weir(&wrapped(&["--link", "rate=9mbit rtt=4ms"], "id -u; pwd; cat; echo told >&2"));
    let user = rustix::process::geteuid().as_raw();
    let folder = place.path("").canonicalize().unwrap();
    assert_eq!(text(&output.stdout), format!("{user}\n{}\n", folder.display()));
    assert_eq!(text(&output.stderr), "told\n");
}

#[test]
fn the_exit_status_is_the_commands() {
    let Some(place) = place() else { return };
    let of = |command: &str| status(&place.weir(&wrapped(&["--link", "rate=9mbit rtt=4ms"], command)));
    assert_eq!(of("exit 7"), 7);
    // As in shells: 128 and the signal's number.
    assert_eq!(of("kill -TERM $$"), 143);
    assert_eq!(of("kill -KILL $$"), 137);
    let run = |program: &str| place.weir(&["wrap", "--link", "rate=9mbit rtt=4ms", "--", program]);
    let output = run("./none");
    assert_eq!(
        (status(&output), text(&output.stderr)),
        (127, "weir: cannot run ./none: No such file or directory (os error 2)\n".into())
    );
    assert_eq!(status(&run("./lab.toml")), 126);
}

#[test]
fn what_is_wrong_with_a_link_is_bad_input_with_the_nearest_name() {
    let place = Place::new();
    let of = |link: &str| {
        let output = place.weir(&wrapped(&["--link", link], "touch was-here"));
        assert_eq!(status(&output), 2);
        text(&output.stderr)
    };
    assert!(of("rate=9mbit rtt=4ms quue=pie").contains("did you mean `queue`?"));
    assert!(of("rate=9mbiz rtt=4ms").contains("\"mbiz\" is not a unit of rate"));
    assert!(of("rate=9mbit rtt=4ms queue=pei").contains("did you mean \"pie\"?"));
    assert!(of("rate=9mbit").contains("rtt = "));
    assert_eq!(status(&place.weir(&["wrap", "--", "touch", "was-here"])), 2, "no link");
    assert!(!place.path("was-here").exists());
}

#[test]
fn where_no_namespace_can_be_made_weir_says_what_is_missing() {
    let Some(place) = place() else { return };
    // A user namespace that may have none below it, and a process in it without capabilities.
    let without = "echo 0 > /proc/sys/user/max_user_namespaces
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- \"$@\"";
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", without, "sh", env!("CARGO_BIN_EXE_weir")]);
        command.args(words).current_dir(place.path("")).output().unwrap()
    };
    for words in [
        &["wrap", "--link", "rate=9mbit rtt=4ms", "--", "touch", "was-here"][..],
        &["run", "lab.toml", "--on", "live", "--out", "was-here"],
    ] {
        let output = run(words);
        assert_eq!(status(&output), 2, "{}", text(&output.stderr));
        assert_eq!(
            text(&output.stderr),
            "weir: this process may not make network namespaces\n  help: run as root, or permit user namespaces (`weir doctor` shows \
             how); simulated runs need neither\n"
        );
        assert!(!place.path("was-here").exists());
    }
    let output = run(&["doctor"]);
    let told = text(&output.stdout);
    assert!(told.contains("sysctl user.max_user_namespaces=10000"), "{told}");
}

#[test]
fn an_ordinary_user_needs_no_rights() {
    use std::os::unix::process::CommandExt;
    let Some(place) = place() else { return };
    if !rustix::process::geteuid().is_root() {
        return println!("the user is no root, and all other tests show it");
    }
    let copy = copy_for_other_users(&place);
    let program = format!("import os\nprint(os.getuid(), os.getgid()){ECHOES}");
    let mut command = std::process::Command::new(copy);
    command.args(["wrap", "--quiet", "--link", "rate=9mbit rtt=40ms", "--"]).args(python(&program));
    let output = command.uid(65534).gid(65534).current_dir(place.path("")).output().unwrap();
    let (told, why) = (text(&output.stdout), text(&output.stderr));
    if why.contains("may not make network namespaces") {
        return println!("skipped: ordinary users may make no namespaces here: {why}");
    }
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.first(), Some(&"65534 65534"), "{told}{why}");
    assert!(lines[1..].len() == 2 && lines[1..].iter().all(|line| timed(line).0 >= 40.0), "{told}");
}

/// Sends an echo request of ICMP to each address of the far end, as ping does without the rights of root (icmp(7)), and prints how long the
/// answer took.
const ECHOES: &str = "
for address, family, protocol, kind in ((far[0], socket.AF_INET, 1, 8), (far[1], socket.AF_INET6, 58, 128)):
    s = socket.socket(family, socket.SOCK_DGRAM, protocol)
    s.settimeout(5)
    def echo():
        s.sendto(bytes([kind, 0, 0, 0, 0, 0, 0, 1]), (address, 0))
        return s.recv(100)[0]
    print(*took(echo))
";
