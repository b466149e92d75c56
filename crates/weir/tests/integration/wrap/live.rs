//! `weir wrap --live` at a terminal of 24 lines and 100 columns: what is drawn, and that the terminal is as it was afterwards.

use super::*;
use std::fs;
use std::process::{Command, Stdio};

/// Runs a script of the shell at a terminal, which `script` makes; `$weir` is the program. Returns all that was written to the terminal.
fn at_a_terminal(place: &Place, text: &str) -> String {
    let weir = env!("CARGO_BIN_EXE_weir");
    fs::write(place.path("at-a-terminal"), format!("weir={weir}\nstty rows 24 cols 100\n{text}")).unwrap();
    let mut command = Command::new("script");
    command.args(["-qec", "sh at-a-terminal", "/dev/null"]).env("TERM", "xterm");
    let output = command.current_dir(place.path(".")).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What gives the lines of two links and a heading back.
const RESTORED: &str = "\x1b7\x1b[r\x1b[999;1H\x1b[2A\x1b[J\x1b8";

/// The words of the last picture of a line of the terminal, counted from 1.
fn line(terminal: &str, number: u16) -> Vec<String> {
    let (_, text) =
        terminal.rsplit_once(&format!("\x1b[{number};1H")).unwrap_or_else(|| panic!("{terminal:?}"));
    let mut parts = text.split('\x1b');
    let mut line = parts.next().unwrap().to_owned();
    // Colours belong to the line; another sequence ends it.
    for part in parts {
        let Some((numbers, rest)) = part.strip_prefix('[').and_then(|part| part.split_once('m')) else {
            break;
        };
        if !numbers.chars().all(|c| c.is_ascii_digit() || c == ';') {
            break;
        }
        line += rest;
    }
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_links_stand_in_the_terminals_last_lines_and_the_terminal_is_as_it_was() {
    let Some(place) = place() else { return };
    // 100 packets at once into a queue of ten: one is sent meanwhile, and some more if the sender is held up.
    let program = "import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(100): s.sendto(bytes(1000), (os.environ['WEIR_FAR_END'], 9))
time.sleep(2)
print('the program speaks')
raise SystemExit(7)
";
    fs::write(place.path("burst.py"), program).unwrap();
    let terminal = at_a_terminal(
        &place,
        "stty -a > before
$weir wrap --live --link 'rate=1mbit rtt=10ms queue=tail-drop:limit=10p' -- python3 burst.py
echo status $?
stty -a > after
",
    );
    let (drawn, after) = terminal.split_once(RESTORED).unwrap_or_else(|| panic!("{terminal:?}"));
    assert!(drawn.contains("\x1b[1;21r"), "the lines above scroll: {terminal:?}");
    assert!(drawn.contains("the program speaks"), "{terminal:?}");
    assert!(!after.contains("\x1b["), "nothing is drawn afterwards: {terminal:?}");
    assert!(after.contains("left") && after.contains("status 7"), "{terminal:?}");
    assert_eq!(line(drawn, 23)[..1], ["down"]);
    let up = line(drawn, 24);
    let drops: u32 = up[4].parse().unwrap_or_else(|_| panic!("{up:?}"));
    assert!(up[0] == "up" && (50..=89).contains(&drops), "{up:?}");
    assert_eq!(up[5], "0", "tail drop marks nothing: {up:?}");
    let [before, after] = ["before", "after"].map(|file| fs::read_to_string(place.path(file)).unwrap());
    assert!(before.contains("rows 24") && before == after, "{before}\n{after}");
}

#[test]
fn the_lines_are_given_back_when_weir_is_killed() {
    let Some(place) = place() else { return };
    let terminal = at_a_terminal(
        &place,
        "$weir wrap --live --link 'rate=1mbit rtt=10ms' -- sleep 4003 &
until pgrep -f '^sleep 4003' > /dev/null; do sleep 0.1; done
sleep 1
kill -9 $!
while pgrep -f '^sleep 4003' > /dev/null; do sleep 0.1; done
sleep 0.5
echo done
",
    );
    let (drawn, after) = terminal.split_once(RESTORED).unwrap_or_else(|| panic!("{terminal:?}"));
    assert!(drawn.contains("\x1b[1;21r"), "{terminal:?}");
    assert!(after.contains("done") && !after.contains("\x1b["), "{terminal:?}");
}

#[test]
fn without_a_terminal_or_a_command_nothing_starts() {
    let place = Place::new();
    let link = ["wrap", "--link", "rate=9mbit rtt=0ms", "--live"];
    let output = place.weir(&[&link[..], &["--", "touch", "begun"]].concat());
    assert_eq!(status(&output), 2, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("standard error is no terminal"), "{}", text(&output.stderr));
    assert!(!place.path("begun").exists());
    let output = place.weir(&link);
    assert_eq!(status(&output), 2, "a shell draws on the terminal, too: {}", text(&output.stderr));
}
