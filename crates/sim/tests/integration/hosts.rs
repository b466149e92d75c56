//! Hosts that groups share, and their network cards, on whole runs.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_base::{Span, Time};
use weir_engine::{Engine, Outcome, Watch};
use weir_plan::Lab;
use weir_record::{PacketEvent, Records};
use weir_sim::Simulator;

/// A path of 100 Mbit/s and 20 ms, and two groups on the host `dtn`, whose card sends 10 Mbit/s and queues ten packets.
fn go(card: &str) -> (Records, Outcome) {
    let text = two_groups(card);
    run(&text)
}

fn two_groups(card: &str) -> String {
    format!(
        "format = 1\n[run]\nduration = \"10 s\"\nstart_jitter = \"0 s\"\n\
         [dumbbell]\nrate = \"100 Mbit/s\"\nrtt = \"20 ms\"\n\
         [nic.dtn]\nrate = \"10 Mbit/s\"\nqueue = {{ kind = \"tail-drop\", limit = \"10 packets\" }}\n{card}\n\
         [traffic.a]\nhost = \"dtn\"\n[traffic.b]\nhost = \"dtn\"\n"
    )
}

fn run(text: &str) -> (Records, Outcome) {
    let run = Lab::from_str(text, "hosts.toml", Path::new("."), &[]).unwrap().runs().remove(0);
    let from = run.groups[0].pairs[0].from;
    assert!(run.groups.iter().all(|group| group.pairs[0].from == from));
    let mut records = Records::default();
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    let outcome = Simulator.run(&run, &mut records, &watch).unwrap();
    assert!(outcome.audit.balances(), "{outcome:?}");
    (records, outcome)
}

fn sum(records: &Records, of: impl Fn(&weir_record::FlowSample) -> u64) -> u64 {
    records.flows.iter().map(of).sum()
}

#[test]
fn two_groups_share_the_card_of_their_host_and_fill_it() {
    let (records, _) = go("");
    // 10 Mbit/s of IP packets, of which 1448 of 1500 bytes are payload: 12.07 MB in 10 s, less the handshake and the first rounds.
    let read = sum(&records, |sample| sample.read_bytes);
    assert!((11_900_000..12_067_000).contains(&read), "{read}");
}

#[test]
fn packets_that_the_card_refuses_stay_unsent_and_are_not_lost() {
    let (records, outcome) = go("small_queues = false");
    assert!(sum(&records, |sample| sample.refused) > 0);
    assert_eq!(sum(&records, |sample| sample.retransmitted), 0);
    assert_eq!((outcome.audit.dropped, outcome.audit.lost), (0, 0));
}

#[test]
fn small_queues_keep_a_sender_from_filling_its_card() {
    let (records, outcome) = go("");
    // Each flow may have two packets in the card, or the packets of a millisecond if these are more: at 10 Mbit/s they are less
    // than one.
    assert_eq!(sum(&records, |sample| sample.refused), 0);
    assert_eq!(outcome.audit.dropped, 0);
    let most = records.links.iter().map(|sample| sample.backlog_packets).max().unwrap();
    assert!(most <= 2 * 3, "{most}");
}

#[test]
fn a_card_that_does_not_refuse_packets_drops_them() {
    let (records, outcome) = go("refuses = false\nsmall_queues = false");
    assert_eq!(sum(&records, |sample| sample.refused), 0);
    assert!(outcome.audit.dropped > 0 && sum(&records, |sample| sample.retransmitted) > 0);
}

#[test]
fn a_card_that_is_often_idle_is_filled_without_loss() {
    // Acknowledgements of a card of 975 Mbit/s come faster than it sends: it is idle again and again. An earlier version told the
    // sender of the card's departures only after the next event, so that a sender that had waited for room was asked to send in
    // the past.
    let (records, outcome) = run(
        "format = 1\n[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"1 Gbit/s\"\nrtt = \"10 ms\"\noverhead = \"38 B\"\n\
         queue = { kind = \"tail-drop\", limit = \"100 kB\" }\n[nic.dtn]\nrate = \"975.29 Mbit/s\"\n\
         [traffic.a]\nhost = \"dtn\"\ncc = \"htcp\"\nsend_buffer = \"2500 kB\"\nreceive_buffer = \"2500 kB\"\n",
    );
    assert_eq!((outcome.audit.dropped, outcome.audit.lost), (0, 0));
    assert!(sum(&records, |sample| sample.read_bytes) > 80_000_000, "full after the first tenths");
}

#[test]
fn packets_that_a_class_refuses_stay_unsent_and_a_schedule_adds_and_removes_classes() {
    let class = |name: &str, flow: u32, rate: u32| {
        format!(
            "{{ name = \"{name}\", rate = \"{rate} Mbit/s\", flows = [{flow}], queue = {{ kind = \"tail-drop\", limit = \"8 packets\" }} }}"
        )
    };
    let queue = |classes: &[String]| format!("{{ kind = \"htb\", classes = [{}] }}", classes.join(", "));
    let (first, both) = (queue(&[class("a", 0, 4)]), queue(&[class("a", 0, 4), class("b", 1, 2)]));
    let faster = queue(&[class("a", 0, 4), class("b", 1, 3)]);
    let (records, outcome) = run(&format!(
        "format = 1\n[run]\nduration = \"8 s\"\n[dumbbell]\nrate = \"100 Mbit/s\"\nrtt = \"20 ms\"\n\
         [nic.dtn]\nrate = \"100 Mbit/s\"\nqueue = {first}\nsmall_queues = false\n\
         schedule = [{{ at = \"2 s\", queue = {both} }}, {{ at = \"5 s\", queue = {faster} }}]\n\
         [traffic.a]\nhost = \"dtn\"\n[traffic.b]\nhost = \"dtn\"\nstart = \"2500 ms\"\n"
    ));
    assert!(sum(&records, |sample| sample.refused) > 0);
    assert_eq!(
        (sum(&records, |sample| sample.retransmitted), outcome.audit.dropped, outcome.audit.lost),
        (0, 0, 0)
    );
    let read = |flow: u32, from: u64, to: u64| -> u64 {
        let within =
            |at: Time| at > Time::ZERO + Span::from_secs(from) && at <= Time::ZERO + Span::from_secs(to);
        let of = records.flows.iter().filter(|sample| sample.flow == flow && within(sample.at));
        of.map(|sample| sample.read_bytes).sum()
    };
    // 1448 of 1514 bytes of 4, 2 and 3 Mbit/s, in seconds of either kind; a segment or two at the edges.
    for (flow, from, to, expected) in
        [(0, 3, 5, 956_407), (1, 3, 5, 478_203), (0, 6, 8, 956_407), (1, 6, 8, 717_305)]
    {
        let read = read(flow, from, to);
        assert!(read.abs_diff(expected) <= 4 * 1448, "{flow} from {from} s: {read}");
    }
}

/// When the first packets of six flows reach a link of 1 Gbit/s behind this card, in microseconds, in order, with their flows.
fn arrivals(card: &str) -> Vec<(u64, u32)> {
    let (records, _) = run(&format!(
        "format = 1\n[run]\nduration = \"5 ms\"\nsample = \"1 ms\"\npackets = true\nstart_jitter = \"0 s\"\n\
         [dumbbell]\nrate = \"1 Gbit/s\"\nrtt = \"1 ms\"\n[nic.capture]\n{card}\n[traffic.a]\nflows = 6\nhost = \"capture\"\n\
         workload = {{ kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1500 B\" }}\n"
    ));
    let arrived = records.packets.iter().filter(|it| it.link == 0 && it.fate == PacketEvent::Arrived);
    let mut arrived: Vec<_> = arrived.map(|it| (it.at.as_nanos() / 1_000, it.flow)).collect();
    arrived.sort_unstable();
    arrived
}

#[test]
fn packets_of_six_cards_arrive_together_and_those_of_one_card_of_their_rate_one_after_the_other() {
    // 1500 bytes take 120 us at 100 Mbit/s and 20 us at 600.
    let six = [0, 1, 2, 3, 4, 5].map(|flow| (120, flow));
    assert_eq!(arrivals("rate = \"100 Mbit/s\"\nhosts = 6"), six);
    let one = [0, 1, 2, 3, 4, 5].map(|flow| (20 * (u64::from(flow) + 1), flow));
    assert_eq!(arrivals("rate = \"600 Mbit/s\""), one);
    // Flows 0, 2 and 4 share the first of two hosts.
    let two = [(120, 0), (120, 1), (240, 2), (240, 3), (360, 4), (360, 5)];
    assert_eq!(arrivals("rate = \"100 Mbit/s\"\nhosts = 2"), two);
}

#[test]
fn an_application_over_several_hosts_keeps_its_frames_together() {
    let ensembles = |card: &str| {
        let (records, _) = run(&format!(
            "format = 1\n[run]\nduration = \"10 s\"\nstart_jitter = \"0 s\"\n[dumbbell]\nrate = \"1 Gbit/s\"\nrtt = \"20 ms\"\n\
             [nic.capture]\n{card}\n[traffic.a]\nflows = 6\nhost = \"capture\"\n\
             workload = {{ kind = \"ensembles\", size = \"25 KiB\" }}\n"
        ));
        let read = |flow: u32| -> u64 {
            records.flows.iter().filter(|it| it.flow == flow).map(|it| it.read_bytes).sum()
        };
        [0, 1, 2, 3, 4, 5].map(read)
    };
    // A barrier holds the flows: each is at most the frames of its send buffer ahead of the others.
    let read = ensembles("rate = \"10 Mbit/s\"\nhosts = 6");
    let (least, most) = (read.iter().min().unwrap(), read.iter().max().unwrap());
    assert!(most - least <= 25 * 1024, "{read:?}");
    // 1448 of 1500 bytes of 10 Mbit/s each, less the handshake and the first rounds.
    assert!((11_700_000..12_067_000).contains(least), "{read:?}");
}

#[test]
fn the_rates_of_parallel_cards_are_added() {
    let info = |rate: &str| {
        let text = format!(
            "format = 1\n[dumbbell]\nrate = \"{rate}\"\nrtt = \"20 ms\"\n[nic.capture]\nrate = \"100 Mbit/s\"\nhosts = 6\n\
             [traffic.a]\nflows = 6\nhost = \"capture\"\n"
        );
        let run = Lab::from_str(&text, "hosts.toml", Path::new("."), &[]).unwrap().runs().remove(0);
        let info = weir_engine::run_info("sim", &run);
        let route = &info.groups[0].route;
        let [rate, together] = [route.rate, route.together].map(|rate| rate.unwrap().mbit_per_sec());
        (info.links[info.bottleneck.unwrap() as usize].name.clone(), rate, together)
    };
    assert_eq!(info("150 Mbit/s"), ("down".into(), 100.0, 150.0), "six cards are faster");
    assert_eq!(info("1 Gbit/s"), ("capture-1".into(), 100.0, 600.0));
    assert_eq!(info("50 Mbit/s"), ("down".into(), 50.0, 50.0));
}

#[test]
fn a_shaper_makes_its_link_the_bottleneck() {
    let bottleneck = |queue: &str| {
        let text = format!(
            "format = 1\n[dumbbell]\nrate = \"1 Gbit/s\"\nrtt = \"20 ms\"\nqueue = {queue}\n\
             [nic.capture]\nrate = \"100 Mbit/s\"\nhosts = 6\n[traffic.a]\nflows = 6\nhost = \"capture\"\n"
        );
        let run = Lab::from_str(&text, "hosts.toml", Path::new("."), &[]).unwrap().runs().remove(0);
        let info = weir_engine::run_info("sim", &run);
        info.links[info.bottleneck.unwrap() as usize].name.clone()
    };
    let tbf = |rate: &str| {
        format!("{{ kind = \"tbf\", rate = \"{rate}\", burst = \"625 kB\", limit = \"10 ms\" }}")
    };
    assert_eq!(bottleneck("\"tail-drop\""), "capture-1", "six cards carry 600 Mbit/s");
    assert_eq!(bottleneck(&tbf("200 Mbit/s")), "down");
    assert_eq!(bottleneck(&tbf("700 Mbit/s")), "capture-1");
    assert_eq!(bottleneck("{ kind = \"htb\", classes = [{ rate = \"200 Mbit/s\" }] }"), "down");
}
