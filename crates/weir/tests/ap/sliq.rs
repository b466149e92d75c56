//! `weir sliq` through a pair of aggregation points: a file arrives whole, sealed behind the headers that the points rewrite.

use crate::row::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

fn sliq(row: &Row, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("sliq").args(arguments.split_whitespace()).current_dir(row.folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_file_arrives_whole_over_a_sealed_connection_at_the_reported_rate() {
    let Some(row) = Row::new(2) else { return };
    let _west = row.start(1, "");
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
    let keygen = |name: &str| {
        let made = sliq(&row, &format!("keygen {name}")).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        text(&made.stdout).trim().to_owned()
    };
    let (sender, receiver) = (keygen("a.key"), keygen("b.key"));
    std::fs::create_dir(row.folder.path().join("in")).unwrap();
    let data: Vec<u8> = (0..2_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(row.folder.path().join("film.bin"), &data).unwrap();
    let who = "--application 1 --flow 3";
    let listen = format!("serve --key b.key --allow {sender} --into in --listen {RIGHT}:{PORT} {who}");
    let mut serving = Serving(row.right(|| sliq(&row, &listen).spawn().unwrap()));
    let mut line = String::new();
    BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(&receiver), "{line}");
    let send = format!(
        "send film.bin {RIGHT}:{PORT} --at {LEFT}:{PORT} --key a.key --peer {receiver} {who} --first-rate 2mbit --max-rate 40mbit"
    );
    let sent = row.left(|| sliq(&row, &send).output().unwrap());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert_eq!(std::fs::read(row.folder.path().join("in/film.bin")).unwrap(), data);
    for shown in [row.shown(1), row.shown(2)] {
        // All of it was taken for the flow's: data there, acknowledgements back.
        assert!(count(&shown, "outbound") > 100 && count(&shown, "inbound") > 100, "{shown}");
        let refused: Vec<_> = shown["packets"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|pair| pair[0].as_str().unwrap().starts_with("refused") && pair[1].as_f64() != Some(0.0))
            .collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}
