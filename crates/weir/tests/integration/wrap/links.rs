//! Links that are shown and changed from another terminal.

use super::*;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A command behind links that waits until it is told to go on.
struct Waiting<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Waiting<'a> {
    fn new(place: &'a Place, options: &[&str], then: &str) -> Waiting<'a> {
        let program = format!("open('ready', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)\n{then}");
        let program = python(&program);
        let words: Vec<&str> = program.iter().map(String::as_str).collect();
        let mut command = place.command(&[&["wrap", "--quiet"], options, &["--"], &words].concat());
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while !place.path("ready").exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the command runs");
            std::thread::sleep(Duration::from_millis(10));
        }
        Waiting { place, child }
    }

    /// The name of a link, with the run that it belongs to.
    fn link(&self, name: &str) -> String {
        format!("{}:{name}", self.child.id())
    }

    /// Lets the command go on. Returns what it printed.
    fn go(mut self) -> Vec<String> {
        std::fs::write(self.place.path("go"), "").unwrap();
        let mut told = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(self.child.wait().unwrap().success(), "{told}");
        told.lines().map(str::to_owned).collect()
    }
}

impl Drop for Waiting<'_> {
    /// Ends the command also when a test has failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn a_link_that_is_changed_is_another_one_at_once() {
    let Some(place) = place() else { return };
    let waiting = Waiting::new(&place, &["--link", "rate=9mbit rtt=4ms queue=pie"], ECHOES);
    let down = waiting.link("down");
    assert_eq!(
        place.done(&["link", "set", &down, "delay=90ms", "loss=0%"]),
        "rate 9 Mbit/s, delay 90 ms, queue pie\n"
    );
    let shown = place.done(&["link", "show", &down]);
    let changed: Vec<&str> = shown.lines().filter(|line| line.contains("changed at")).collect();
    assert!(changed.len() == 1 && changed[0].ends_with("s: down delay=90ms loss=0%"), "{shown}");
    let listed = place.done(&["link", "list"]);
    let own: Vec<&str> = listed
        .lines()
        .skip_while(|line| !line.starts_with(&waiting.child.id().to_string()))
        .skip(1)
        .take(2)
        .collect();
    assert_eq!(
        own,
        ["  down  rate 9 Mbit/s, delay 90 ms, queue pie", "  up    rate 9 Mbit/s, delay 2 ms, queue pie"]
    );
    let times: Vec<f64> = waiting.go().iter().map(|line| timed(line).0).collect();
    assert!(times.len() == 2 && times.iter().all(|ms| *ms >= 92.0), "{times:?}");
}

#[test]
fn a_link_of_a_prefix_is_changed_without_the_others() {
    let Some(place) = place() else { return };
    let options =
        ["--link", "rate=9mbit rtt=4ms", "--link", "to=198.51.100.0/24 rate=9mbit rtt=4ms loss=100%"];
    let echo = "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)
s.settimeout(5)
def echo():
    s.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ('198.51.100.7', 0))
    return s.recv(100)[0]
print(*took(echo))
";
    let waiting = Waiting::new(&place, &options, echo);
    place.done(&["link", "set", &waiting.link("link2"), "loss=0%", "delay=90ms"]);
    place.done(&["link", "set", &waiting.link("link2-up"), "loss=0%"]);
    let shown = place.done(&["link", "show", &waiting.link("link1")]);
    assert!(shown.contains("delay      2 ms"), "{shown}");
    let told = waiting.go();
    assert!(told.len() == 1 && timed(&told[0]).0 >= 92.0 && timed(&told[0]).1 == "0", "{told:?}");
}

#[test]
fn a_change_is_checked_as_a_schedule_is() {
    let Some(place) = place() else { return };
    let waiting = Waiting::new(&place, &["--link", "rate=9mbit rtt=4ms"], "");
    let refused = |link: &str, change: &str| {
        let output = place.weir(&["link", "set", &waiting.link(link), change]);
        assert_eq!(status(&output), 2, "{}", text(&output.stdout));
        text(&output.stderr)
    };
    assert!(refused("down", "rtae=5mbit").contains("did you mean `rate`?"));
    assert!(refused("down", "rate=0mbit").contains("sends nothing"));
    assert!(refused("dwon", "rate=5mbit").contains("did you mean `down`?"));
    assert!(!place.done(&["link", "show", &waiting.link("down")]).contains("changed"));
    waiting.go();
    assert_eq!(status(&place.weir(&["link", "set", "1:down", "rate=5mbit"])), 2, "no such run");
}

#[test]
fn another_user_gets_no_answer() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    use std::os::unix::process::CommandExt;
    let Some(place) = place() else { return };
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: root alone becomes another user");
    }
    let waiting = Waiting::new(&place, &["--link", "rate=9mbit rtt=4ms"], "");
    // The request itself, as anybody can send it to the socket.
    let name = format!("weir/link:{}", waiting.child.id());
    let ask = |request: &[u8]| {
        let at = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        connect(&socket, &at).unwrap();
        let mut stream = std::os::unix::net::UnixStream::from(socket);
        stream.write_all(request).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask(b"show").contains("9 Mbit/s"));
    assert!(ask(b"shwo").contains("neither `show` nor `set`"));
    let client = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0{name}')\n\
         try: s.sendall(b'set down rate=1mbit')\nexcept BrokenPipeError: pass\nprint(s.recv(4096))"
    );
    let mut other = std::process::Command::new("python3");
    let output = other.args(["-c", &client]).uid(65534).gid(65534).current_dir("/").output().unwrap();
    assert!(text(&output.stdout).contains("these links belong to another user"), "{output:?}");
    assert!(ask(b"show").contains("9 Mbit/s") && !ask(b"show").contains("1 Mbit/s"));
    waiting.go();
}

#[test]
fn a_report_has_the_commands_run_and_the_changes_of_its_links() {
    let Some(place) = place() else { return };
    let options = ["--link", "rate=9mbit rtt=4ms", "--report", "out"];
    let waiting = Waiting::new(&place, &options, ECHOES);
    place.done(&["link", "set", &waiting.link("up"), "rate=5mbit"]);
    assert_eq!(waiting.go().len(), 2);
    assert!(place.path("out/index.html").is_file());
    let results = weir_engine::Results::open(&place.path("out")).unwrap();
    assert_eq!(results.runs.len(), 1);
    assert!(format!("{:?}", results.runs[0].file).contains("the link up was changed at"));
}

#[test]
fn the_links_of_a_live_run_change_too_and_its_results_say_so() {
    let Some(place) = place() else { return };
    let lab =
        "format = 1\n[run]\nduration = '6 s'\n[dumbbell]\nrate = '9 Mbit/s'\nrtt = '4 ms'\n[traffic.a]\n";
    std::fs::write(place.path("changed.toml"), lab).unwrap();
    let mut command = place.command(&["run", "changed.toml", "--on", "live", "--out", "out"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let down = format!("{}:down", child.id());
    let begun = Instant::now();
    while status(&place.weir(&["link", "set", &down, "rate=5mbit"])) != 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the run answers");
        std::thread::sleep(Duration::from_millis(10));
    }
    // On a busy machine the run is invalid, and its results say the same.
    child.wait().unwrap();
    let results = weir_engine::Results::open(&place.path("out")).unwrap();
    let told = format!("{:?}", results.runs[0].file);
    assert!(told.contains("the link down was changed at") && told.contains("from outside the lab"), "{told}");
}
