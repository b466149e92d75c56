//! Requests and answers: the receiving host opens the connection and asks, the sending host answers.

use crate::marks::codepoints;
use crate::{DUMBBELL, STEP, controls, events, go, go_with, lab};
use weir_engine::Capture;
use weir_live::Tally;
use weir_plan::Run;
use weir_record::FlowEventKind::{Completed, Opened, Started};
use weir_record::{MessageFate, MessageKind};

pub(crate) fn requests_are_answered() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.ask]\nstop = \"2 s\"\nworkload = {{ kind = \"requests\", request = \"200 kB\", \
         response = \"100 kB\", think = \"50 ms\", think_times = \"fixed\" }}\n"
    ));
    let (tally, _) = go(&run);
    let flow = &tally.flows[0];
    // 200 kB up and 100 kB down take 240 ms and two slow starts.
    assert!(flow.messages.len() >= 2, "{:?}", flow.messages);
    for (number, message) in (0..).zip(&flow.messages) {
        assert_eq!(
            (message.kind, message.fate, message.number),
            (MessageKind::Request, MessageFate::Done, number)
        );
        assert!(message.took.unwrap().as_millis() >= 240, "{message:?}");
    }
    let answers = flow.messages.len() as u64;
    assert!((answers * 100_000..(answers + 1) * 100_000).contains(&flow.sum.read_bytes), "{:?}", flow.sum);
    assert_eq!(events(&tally, 0), [Started, Opened]);
    assert!(flow.last.cwnd > 0.0, "the server's connection is the one that is sampled");
}

pub(crate) fn a_resource_is_fetched() {
    let run = lab(&format!("{DUMBBELL}[traffic.a]\nworkload = {{ kind = \"http\", size = \"300 kB\" }}\n"));
    let (link, _) = run.instrumented_links().next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    let capture = Capture::create(link, &file).unwrap();
    let (tally, outcome) = go_with(&run, Some(capture.clone()));
    capture.finish().unwrap();
    assert_eq!(tally.flows[0].sum.read_bytes, 300_083, "the content and a header of 83 bytes");
    assert_eq!(events(&tally, 0), [Started, Opened, Completed]);
    assert_eq!(outcome.audit.leaked, 0);
    let packets = std::fs::read(&file).unwrap();
    let said = |words: &[u8]| packets.windows(words.len()).filter(|window| *window == words).count();
    assert_eq!(
        said(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 300000\r\n\r\n"),
        1
    );
}

pub(crate) fn echoes_are_answered() {
    let run = lab(&format!(
        "{DUMBBELL}drop = [1, 2]\n[stations.responder]\nat = \"right\"\nkind = \"echo\"\n\
         [traffic.host]\nworkload = {{ kind = \"ping\", interval = \"50 ms\", timeout = \"1 s\" }}\n\
         [traffic.station]\nto = \"responder\"\nworkload = {{ kind = \"ping\", interval = \"50 ms\", timeout = \"1 s\" }}\n\
         [traffic.host6]\nip = 6\nworkload = {{ kind = \"ping\", interval = \"50 ms\", timeout = \"1 s\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(outcome.audit.lost, 2);
    let mut lost = 0;
    for flow in &tally.flows {
        let answered = flow.messages.iter().filter(|message| message.fate == MessageFate::Done).count();
        lost += flow.messages.len() - answered;
        // 60 requests in 3 s, of which the last and a dropped one or two have no answer.
        assert!((56..=60).contains(&answered), "{answered} answers");
        assert!(flow.messages.iter().all(|message| message.kind == MessageKind::Echo));
        assert!(flow.messages.iter().all(|message| message.took.is_none_or(|took| took.as_millis() >= 20)));
    }
    assert_eq!(lost, 2, "both dropped requests have run out of time");
}

/// A run, with a capture of a link in raw IP.
fn captured(run: &Run, link: &str) -> (Tally, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    let index = run.network.links.iter().position(|it| it.name == link).unwrap();
    let capture = Capture::create(index, &file).unwrap();
    let (tally, _) = go_with(run, Some(capture.clone()));
    capture.finish().unwrap();
    (tally, std::fs::read(&file).unwrap())
}

pub(crate) fn ect1_both_ways() {
    // 100 full segments of 1448 bytes each way, and a header or two that may go by itself.
    for (workload, links) in [
        ("{ kind = \"http\", size = \"144717 B\" }", &["down"][..]),
        (
            "{ kind = \"requests\", request = \"144800 B\", response = \"144800 B\", think = \"9 s\", \
             think_times = \"fixed\" }",
            &["down", "up"],
        ),
    ] {
        let run =
            lab(&format!("{DUMBBELL}[traffic.a]\ncc = \"newreno\"\necn = \"ect1\"\nworkload = {workload}\n"));
        for link in links {
            let (_, packets) = captured(&run, link);
            let [_, ect1, ect0, ce] = codepoints(&packets);
            assert!((100..=102).contains(&ect1), "{ect1} packets are ECT(1) on {link}");
            assert_eq!((ect0, ce), (0, 0), "{link}");
        }
    }
}

pub(crate) fn marks_are_echoed() {
    let Some(_alone) = controls() else { return };
    let run = lab(&format!(
        "{DUMBBELL}{STEP}[traffic.a]\ncc = \"dctcp\"\nworkload = {{ kind = \"http\", size = \"20 MB\" }}\n"
    ));
    let (tally, packets) = captured(&run, "up");
    let marks = tally.flows[0].sum.received_ce;
    assert!(marks > 20, "{marks} marks");
    // Each echo reports one mark or two (RFC 8257, section 3.2); a receiver of RFC 3168 repeats it in each acknowledgement
    // until the sender answers, one RTT later.
    let echoes = echoes(&packets);
    assert!((marks / 2..=marks).contains(&echoes), "{echoes} echoes of {marks} marks");
}

/// How many segments other than SYNs have ECE set, in a capture of TCP over IPv4.
fn echoes(capture: &[u8]) -> u64 {
    let (mut echoes, mut rest) = (0, &capture[24..]);
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let (packet, next) = behind.split_at(length);
        let flags = packet[20 + 13];
        echoes += u64::from(flags & 0x40 != 0 && flags & 0x02 == 0);
        rest = next;
    }
    echoes
}
