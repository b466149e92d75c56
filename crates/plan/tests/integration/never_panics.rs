//! Whatever is in a lab file or a setting, reading it ends with a lab or with a diagnostic that can be shown.

use proptest::prelude::*;
use std::path::Path;
use weir_plan::Lab;

/// Labs that between them use every part of the format.
const LABS: [&str; 6] = [
    include_str!("../../src/template.toml"),
    include_str!("../../../../labs/quickstart.toml"),
    include_str!("../../../../labs/scripted-loss.toml"),
    "format = 1\n[chain]\nbase_rtt = \"40 ms\"\n[chain.links.wan]\nrate = { down = \"8 Mbit/s\", up = \"1 Mbit/s\" }\n\
     delay = \"10 ms\"\nqueue = { down = { kind = \"pie\", target = \"5 ms\" }, up = \"tail-drop\" }\n\
     [traffic.a]\nflows = 2\nworkload = { kind = \"udp\", rate = \"1 Mbit/s\", ecn = \"ect1\" }\nfrom = \"n0\"\nto = \"n1\"\n\
     [[expect]]\nmetric = \"utilisation_percent\"\nvalue = 1\ntolerance = \"5 %\"\nsource = \"y\"\n",
    "format = 1\n[run]\nip = 6\n[parking_lot]\nbottlenecks = 3\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n[traffic.long]\n\
     [traffic.cross]\nhop = 2\nip = 4\n",
    "format = 1\n[graph]\nrouters = [\"a\", \"b\"]\nhosts = [\"h\"]\nbase_rtt = \"10 ms\"\n[graph.links.x]\nfrom = \"a\"\nto = \"b\"\n\
     rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[graph.links.y]\nfrom = \"b\"\nto = \"h\"\none_way = false\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n\
     [traffic.t]\nfrom = \"a\"\nto = \"h\"\nvia = [\"x\", \"b\"]\nback = [\"y\"]\n",
];

/// Pieces that may end up anywhere by mistake.
const PIECES: [&str; 16] = [
    "\"",
    "'",
    "[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    "-1",
    "\"0 s\"",
    "nan",
    "99999999999999999999",
    "\n",
    "kind = 3",
    "é",
    "\u{0}",
];

fn read(text: &str, settings: &[String]) {
    match Lab::from_str(text, "lab.toml", Path::new("nowhere"), settings) {
        Ok(lab) => {
            let runs = lab.runs();
            let again = Lab::from_str(lab.source(), "other.toml", Path::new("nowhere"), &[]);
            let again = again
                .unwrap_or_else(|error| panic!("its source does not read back: {error}\n{}", lab.source()));
            assert_eq!(runs, again.runs());
        }
        Err(diagnostics) => {
            assert!(!diagnostics.problems().is_empty());
            let _ = diagnostics.render(true, 80);
            for problem in diagnostics.problems() {
                assert!(problem.location().is_some(), "no place: {problem}");
                assert!(problem.suggestion().is_some(), "no suggestion: {problem}");
            }
        }
    }
}

/// The nearest place to `at` where a text may be cut.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn on_bytes_of_any_kind(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.toml");
        std::fs::write(&path, &bytes).unwrap();
        if let Err(diagnostics) = Lab::load(&path, &[]) {
            let _ = diagnostics.render(true, 80);
        }
    }

    #[test]
    fn on_text_of_any_kind(text in "\\PC{0,200}") {
        read(&text, &[]);
        read(&format!("format = 1\n{text}"), &[]);
    }

    #[test]
    fn on_labs_with_a_piece_taken_out_or_put_in(
        lab in 0..LABS.len(), at in any::<prop::sample::Index>(), length in 0usize..30, piece in 0..PIECES.len()
    ) {
        let text = LABS[lab];
        let start = boundary(text, at.index(text.len()));
        let end = boundary(text, start + length).max(start);
        read(&format!("{}{}", &text[..start], &text[end..]), &[]);
        read(&format!("{}{}{}", &text[..start], PIECES[piece], &text[end..]), &[]);
    }

    #[test]
    fn on_settings_of_any_kind(lab in 0..LABS.len(), setting in "[a-z.=\"' {}\\[\\]0-9é]{0,40}") {
        read(LABS[lab], std::slice::from_ref(&setting));
        read(LABS[lab], &[format!("dumbbell.{setting}")]);
        read(LABS[lab], &[format!("traffic.a.flows={setting}")]);
    }
}

#[test]
fn on_endless_nesting() {
    let deep = |piece: &str| piece.repeat(100_000);
    read(&format!("format = 1\nx = {}", deep("[")), &[]);
    read(&format!("format = 1\nx = {}", deep("{a=")), &[]);
    read(&format!("format = 1\n{}x = 1\n", deep("a.")), &[]);
    read(&format!("format = 1\n[{}x]\n", deep("a.")), &[]);
    read(&format!("format = 1\n[vary]\n\"dumbbell{}\" = [1]\n", deep(".a")), &[]);
    read(LABS[0], &[format!("dumbbell{}=1", deep(".a"))]);
    read(LABS[0], &[format!("dumbbell.queue={}", deep("["))]);
}
