//! Live runs over real kernel TCP: bytes, marks, drops and sums, never times.
//!
//! Where namespaces are not permitted, they skip with a message; with WEIR_REQUIRE_LIVE=1 they fail.

#![allow(clippy::unwrap_used)] // it is tests all through, but clippy sees no harness

#[path = "runs/cards.rs"]
mod cards;
#[path = "runs/circuits.rs"]
mod circuits;
#[path = "runs/commands.rs"]
mod commands;
#[path = "runs/coordination.rs"]
mod coordination;
#[path = "runs/datagrams.rs"]
mod datagrams;
#[path = "runs/exchanges.rs"]
mod exchanges;
#[path = "runs/marks.rs"]
mod marks;
#[path = "runs/reports.rs"]
mod reports;
#[path = "runs/sliq.rs"]
mod sliq;

use libtest_mimic::{Arguments, Trial};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_base::Span;
use weir_engine::{Capture, Engine, EngineError, Outcome, Watch};
use weir_live::{Live, Tally};
use weir_plan::{Lab, Run};
use weir_record::FlowEventKind::{Completed, Failed, Opened, Started};
use weir_record::MessageFate;

/// A test: its name, which states what it shows, and its function.
type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("a_transfer_arrives_whole_and_every_packet_is_accounted_for", a_transfer_arrives_whole),
    ("a_dropped_segment_is_retransmitted_and_nothing_is_missing", a_dropped_segment_is_sent_again),
    ("marks_of_pie_reach_the_receiver_and_replace_drops", marks::marks_reach_the_receiver),
    ("dscps_are_on_the_link", marks::dscps_are_on_the_link),
    ("ect1_is_on_the_link_although_the_kernel_sends_ect0", marks::ect1_is_on_the_link),
    ("feedback_that_the_kernel_cannot_give_is_refused", marks::feedback_is_refused),
    ("a_recorded_trace_gives_each_packet_its_opportunity_and_the_queue_drops_the_rest", a_trace_is_played),
    ("a_station_of_a_radio_channel_delivers_in_aggregates_and_loses_nothing", a_radio_channel_is_played),
    ("datagrams_injected_by_the_fabric_are_all_received", datagrams::injected_datagrams_are_received),
    ("datagrams_of_a_socket_carry_their_codepoint", datagrams::socket_datagrams_carry_their_codepoint),
    ("a_bulk_flow_stops_at_its_time_and_its_last_byte_is_read", a_bulk_flow_stops),
    ("two_groups_on_a_shared_link_are_distinguished", two_groups_are_told_apart),
    ("packets_between_two_hosts_keep_their_order", packets_keep_their_order),
    ("a_capture_holds_the_packets_of_its_link", a_capture_holds_the_packets),
    (
        "a_transfer_over_ipv6_arrives_whole_in_full_segments_and_nothing_stray_is_on_the_wire",
        datagrams::a_transfer_over_ipv6,
    ),
    ("marks_reach_the_receiver_over_ipv6", datagrams::marks_reach_the_receiver_over_ipv6),
    ("datagrams_over_ipv6_are_received_whoever_sends_them", datagrams::datagrams_over_ipv6),
    ("two_groups_between_the_same_places_take_different_ways", two_groups_take_different_ways),
    ("the_kernel_discards_damaged_packets_and_every_packet_is_accounted_for", damage_is_thrown_away),
    ("duplicated_delayed_and_reordered_packets_and_an_outage_harm_no_transfer", a_bad_link_harms_no_transfer),
    ("a_cancelled_run_ends_and_says_so", commands::a_cancelled_run_ends),
    ("requests_are_answered_over_one_connection", exchanges::requests_are_answered),
    ("a_resource_is_fetched_over_http_and_both_ends_close", exchanges::a_resource_is_fetched),
    ("echo_requests_are_answered_by_a_host_and_by_a_station", exchanges::echoes_are_answered),
    ("requests_and_answers_are_ect1_as_the_lab_says", exchanges::ect1_both_ways),
    ("a_client_echoes_each_mark_to_a_dctcp_server", exchanges::marks_are_echoed),
    ("frames_arrive_whole_whoever_sends_them_and_a_dropped_packet_loses_one", frames_arrive_whole),
    ("drawn_flows_arrive_whole_each_over_its_own_connection", drawn_flows_arrive),
    ("on_off_datagrams_are_sent_while_the_source_is_on", datagrams::on_off_datagrams_are_sent),
    ("a_command_runs_inside_its_host_and_its_output_is_kept", commands::a_command_runs),
    ("a_command_that_fails_fails_the_run_and_nothing_outlives_it", commands::a_command_that_fails),
    ("two_megabytes_of_a_commands_gigabytes_of_output_are_kept", commands::a_command_that_prints),
    ("a_control_that_the_kernel_lacks_is_loaded_for_the_run_with_its_parameters", a_control_is_loaded),
    ("runs_side_by_side_share_a_control_and_other_parameters_wait_for_it", runs_share_a_control),
    ("marks_reach_dctcp_one_by_one_and_nothing_is_lost", marks::marks_reach_dctcp),
    ("prague_paces_itself_and_sends_ect1", marks::prague_paces),
    ("the_window_of_a_circuit_is_not_reduced_by_losses", circuits::the_window_stands),
    (
        "kernels_accept_what_aggregation_points_rewrite_and_they_measure_the_path",
        coordination::kernels_accept,
    ),
    ("sliq_arrives_whole_at_the_rate_that_aggregation_points_report", coordination::sliq_follows_reports),
    ("aggregation_points_refuse_packets_sealed_with_another_key", coordination::strangers_are_refused),
    (
        "reliable_streams_between_aggregation_points_arrive_whole_and_follow_their_reports",
        coordination::streams_arrive_whole,
    ),
    (
        "ensembles_over_reliable_streams_wait_for_all_their_frames",
        coordination::ensembles_wait_for_all_their_frames,
    ),
    ("flows_of_tfrc_and_rap_run_over_sockets", coordination::rate_based_flows_arrive),
    ("a_circuit_with_heavy_loss_for_ten_seconds_ends_and_htcp_continues", circuits::much_loss_ends_it),
    ("packets_that_the_kernels_shaper_of_a_card_refuses_are_not_lost", cards::what_it_refuses_is_no_loss),
    ("each_class_of_a_card_has_its_flows", cards::each_class_has_its_flows),
    (
        "a_transfer_over_sliq_arrives_whole_sealed_or_not_over_a_path_that_loses",
        sliq::a_transfer_arrives_whole,
    ),
    ("streams_of_one_sliq_connection_arrive_whole", sliq::streams_share_a_connection),
    ("messages_with_a_deadline_arrive_sealed", sliq::messages_arrive),
    ("settings_that_sockets_cannot_implement_are_refused", sliq::what_sockets_cannot_do_is_refused),
    ("each_of_several_hosts_has_a_card_of_its_own", cards::each_of_several_hosts_has_its_own),
    ("a_card_that_the_kernel_cannot_implement_is_refused", cards::what_the_kernel_lacks_is_refused),
    ("the_records_of_a_cards_link_are_those_of_the_kernels_queue", cards::its_queue_is_recorded),
    ("packets_report_the_delays_and_drops_of_their_queue", reports::packets_report_delays_and_drops),
    ("packets_of_ipv6_report_nothing_of_their_queue", reports::packets_of_ipv6_report_nothing),
];

/// Runs mostly wait for their links, and none asserts a time, so more of them than processors run at once.
const AT_ONCE: usize = 4;

fn main() {
    let mut arguments = Arguments::from_args();
    if !arguments.list
        && let Err(error) = weir_linux::enter()
    {
        println!("live runs: skipped, this process may not make namespaces: {error}");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    arguments.test_threads.get_or_insert(AT_ONCE);
    let trial = |&(name, test): &Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit();
}

/// The first run of a lab of 3 s, without warm-up and jitter, with this text behind it.
fn lab(text: &str) -> Run {
    lab_of("3 s", text)
}

fn lab_of(duration: &str, text: &str) -> Run {
    let text = format!(
        "format = 1\n[run]\nduration = \"{duration}\"\nwarmup = \"0 s\"\nstart_jitter = \"0 s\"\nhost_jitter = \"0 s\"\n{text}"
    );
    let lab = Lab::from_str(&text, "test.toml", ".".as_ref(), &[])
        .unwrap_or_else(|e| panic!("{}", e.render(false, 100)));
    lab.runs().remove(0)
}

const DUMBBELL: &str = "[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";

fn go(run: &Run) -> (Tally, Outcome) {
    go_with(run, None)
}

fn go_with(run: &Run, capture: Option<Capture>) -> (Tally, Outcome) {
    Live.check(run).unwrap();
    let mut tally = Tally::new(run);
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture, folder: None };
    let outcome = Live.run(run, &mut tally, &watch).unwrap();
    assert!(outcome.audit.balances(), "{:?} {:?}", outcome.audit, outcome.invalid);
    assert!(!tally.disordered, "records must come in the order of their times");
    (tally, outcome)
}

fn events(tally: &Tally, flow: usize) -> Vec<weir_record::FlowEventKind> {
    tally.flows[flow].events.iter().map(|(_, kind)| *kind).collect()
}

fn a_transfer_arrives_whole() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.a]\ncc = \"newreno\"\nworkload = {{ kind = \"transfer\", size = \"500 kB\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(tally.flows[0].sum.read_bytes, 500_000);
    assert_eq!(events(&tally, 0), [Started, Opened, Completed]);
    assert!(tally.transport_samples > 0);
    assert_eq!(outcome.environment["ignored_frames"], 0, "nothing stray on the wire");
    // SYN, SYN-ACK, data, ACKs and both FINs, all through the fabric.
    assert!(outcome.audit.sent > 345, "{:?}", outcome.audit);
}

fn a_dropped_segment_is_sent_again() {
    let run = lab(&format!(
        "{DUMBBELL}queue = {{ kind = \"tail-drop\", limit = \"1000 packets\" }}\ndrop = [60, 61, 90]\n\
         [traffic.a]\ncc = \"cubic\"\nworkload = {{ kind = \"transfer\", size = \"434.4 kB\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(outcome.audit.lost, 3);
    assert_eq!(tally.flows[0].sum.retransmitted, 3);
    assert_eq!(tally.flows[0].last.retransmissions, 3, "the kernel counts what the tap counts");
    assert_eq!(tally.flows[0].sum.read_bytes, 434_400);
    assert!(events(&tally, 0).contains(&Completed));
}

fn a_trace_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("steady");
    // Two packets each 10 ms: of the 1000 that come in 2 s, 400 find an opportunity, and ten wait at the end.
    std::fs::write(&trace, "5\n10\n").unwrap();
    let run = lab(&format!(
        "[dumbbell]\nrate = {{ down = {{ trace = \"{}\" }}, up = \"10 Mbit/s\" }}\nrtt = \"20 ms\"\n\
         queue = {{ kind = \"tail-drop\", limit = \"10 packets\" }}\n[traffic.load]\nstop = \"2 s\"\n\
         workload = {{ kind = \"udp\", rate = \"6 Mbit/s\", packet = \"1500 B\" }}\n",
        trace.display()
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(outcome.audit.sent, 1000);
    let received = tally.flows[0].sum.received_packets;
    assert!((408..=411).contains(&received), "{received}");
    assert_eq!(outcome.audit.dropped, 1000 - received);
    assert_eq!(tally.flows[0].sum.read_bytes, received * 1472);
}

fn a_radio_channel_is_played() {
    let run = lab("[dumbbell]\nrate = \"65 Mbit/s\"\nwifi = { stations = 1 }\nrtt = \"20 ms\"\n\
         queue = { kind = \"tail-drop\", limit = \"1000 packets\" }\n\
         [traffic.a]\ncc = \"cubic\"\nworkload = { kind = \"transfer\", size = \"500 kB\" }\n");
    let (tally, outcome) = go(&run);
    assert_eq!(tally.flows[0].sum.read_bytes, 500_000);
    assert_eq!((outcome.audit.dropped, outcome.audit.lost), (0, 0), "{:?}", outcome.audit);
    assert_eq!(events(&tally, 0), [Started, Opened, Completed]);
}

/// All namespaces share the controls of the kernel, so one test at a time loads them.
static CONTROLS: Mutex<()> = Mutex::new(());

/// The right to load weir's own controls, until it is dropped. `None` if they cannot be loaded here; prints why not.
fn controls() -> Option<MutexGuard<'static, ()>> {
    let alone = CONTROLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(problem) = weir_kernel::hold(&"vegas".parse().unwrap()) {
        println!("skipped: {problem}");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return None;
    }
    Some(alone)
}

fn a_control_is_loaded() {
    let Some(_alone) = controls() else { return };
    let run = lab(&format!(
        "{DUMBBELL}[traffic.a]\ncc = {{ kind = \"yield\", beta = 20 }}\n\
         workload = {{ kind = \"transfer\", size = \"500 kB\" }}\n[traffic.b]\ncc = \"ledbat\"\nstop = \"1 s\"\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(tally.flows[0].sum.read_bytes, 500_000);
    let loaded: Vec<_> = outcome.environment["loaded_controls"].as_array().unwrap().iter().collect();
    assert!(
        loaded.iter().all(|name| ["weir_yield", "weir_ledbat"].contains(&name.as_str().unwrap())),
        "{loaded:?}"
    );
    assert_eq!(loaded.len(), 2);
    assert!(weir_kernel::running().unwrap().is_empty(), "they are gone with the run");
    let both = lab(&format!(
        "{DUMBBELL}[traffic.a]\ncc = {{ kind = \"yield\", beta = 20 }}\n[traffic.b]\ncc = \"yield\"\n"
    ));
    let Err(EngineError::Unable { what, .. }) = Live.check(&both) else { panic!("it was taken") };
    assert!(what.contains("groups a and b"), "{what}");
}

fn runs_share_a_control() {
    let Some(_alone) = controls() else { return };
    let run = |seconds: u32, beta: u32| {
        let text = format!(
            "{DUMBBELL}[traffic.a]\ncc = {{ kind = \"yield\", beta = {beta} }}\n\
             workload = {{ kind = \"transfer\", size = \"300 kB\" }}\nstart = \"{} s\"\n",
            seconds - 1
        );
        let mut run = lab(&text);
        run.duration = Span::from_secs(seconds.into());
        run
    };
    // The longer one connects when the shorter has ended, and the third has other parameters.
    let runs = [run(1, 20), run(3, 20), run(1, 10)];
    // Each run is checked first, as all runs of a lab are before the first begins.
    runs.iter().for_each(|run| Live.check(run).unwrap());
    let done: Vec<(Tally, Outcome)> = std::thread::scope(|scope| {
        let begun: Vec<_> = runs.iter().map(|run| scope.spawn(|| go(run))).collect();
        begun.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (tally, outcome) in &done {
        assert_eq!(tally.flows[0].sum.read_bytes, 300_000);
        assert_eq!(outcome.environment["loaded_controls"].to_string(), r#"["weir_yield"]"#);
    }
    assert!(weir_kernel::running().unwrap().is_empty(), "it is gone with the last of them");
}

/// Marks from 10 packets on: more than a seventh of the 17 that the path holds, so the link stays full.
const STEP: &str = "queue = { kind = \"step\", threshold = \"10 packets\" }\n";

fn two_groups_take_different_ways() {
    let run = lab("[graph]\nrouters = [\"r\"]\nhosts = [\"phone\", \"server\"]\n[graph.links]\n\
         wifi = { from = \"r\", to = \"phone\", rate = \"20 Mbit/s\", delay = \"2 ms\" }\n\
         lte = { from = \"r\", to = \"phone\", rate = \"10 Mbit/s\", delay = \"20 ms\" }\n\
         net = { from = \"server\", to = \"r\", rate = \"100 Mbit/s\", delay = \"3 ms\" }\n\
         sat = { from = \"server\", to = \"r\", one_way = true, rate = \"10 Mbit/s\", delay = \"40 ms\" }\n\
         [traffic.near]\nfrom = \"server\"\nto = \"phone\"\nworkload = { kind = \"transfer\", size = \"100 kB\" }\n\
         [traffic.far]\nfrom = \"server\"\nto = \"phone\"\nvia = [\"sat\"]\nback = [\"lte\"]\n\
         workload = { kind = \"transfer\", size = \"50 kB\" }\n");
    let (tally, _) = go(&run);
    let read: Vec<u64> = tally.flows.iter().map(|flow| flow.sum.read_bytes).collect();
    assert_eq!(read, [100_000, 50_000]);
    // 2 + 3 ms each way; 40 + 2 ms there and 20 + 3 back.
    assert!((10..42).contains(&tally.flows[0].sum.rtt_min.as_millis()), "{:?}", tally.flows[0].sum);
    assert!(tally.flows[1].sum.rtt_min.as_millis() >= 65, "{:?}", tally.flows[1].sum);
    let sent = |name: &str| {
        let (index, _) = run.instrumented_links().find(|(_, link)| link.name == name).unwrap();
        tally.links[index].sent_bytes
    };
    assert!(sent("sat") > 50_000 && sent("net") > 100_000 && sent("wifi") > 150_000);
    // These links carry acknowledgements only, each group's on its own path.
    assert!(sent("lte") == 0 && sent("lte-up") > 0 && sent("wifi-up") > 0);
    assert!(sent("lte-up") < 10_000 && sent("wifi-up") < 10_000);
}

fn a_bulk_flow_stops() {
    let run = lab(&format!("{DUMBBELL}[traffic.a]\ncc = \"cubic\"\nstop = \"1 s\"\n"));
    let (tally, _) = go(&run);
    assert_eq!(events(&tally, 0), [Started, Opened, Completed]);
    assert!(!events(&tally, 0).contains(&Failed));
    let sum = &tally.flows[0].sum;
    // Each data packet has 40 to 52 bytes of headers, and retransmitted data is read once.
    assert!(sum.read_bytes > 0 && sum.read_bytes < sum.received_bytes, "{sum:?}");
}

fn two_groups_are_told_apart() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.a]\ncc = \"newreno\"\nflows = 2\nworkload = {{ kind = \"transfer\", size = \"100 kB\" }}\n\
         [traffic.b]\ncc = \"cubic\"\nrtt = \"40 ms\"\necn = true\nworkload = {{ kind = \"transfer\", size = \"200 kB\" }}\n"
    ));
    let (tally, _) = go(&run);
    let read: Vec<u64> = tally.flows.iter().map(|flow| flow.sum.read_bytes).collect();
    assert_eq!(read, [100_000, 100_000, 200_000]);
    assert!(tally.flows[0].sum.rtt_min.as_millis() >= 20 && tally.flows[2].sum.rtt_min.as_millis() >= 40);
}

fn packets_keep_their_order() {
    // A flow that the kernel paces sends on two processors in turn. Nothing is lost, so without reordering nothing is retransmitted.
    let run = lab(
        "[dumbbell]\nrate = \"1 Gbit/s\"\nrtt = \"10 ms\"\nqueue = { kind = \"tail-drop\", limit = \"20 bdp\" }\n\
         [traffic.a]\ncc = \"bbr\"\nflows = 2\n",
    );
    let (tally, _) = go(&run);
    let dropped: u64 = tally.links.iter().map(|link| link.dropped).sum();
    let (received, retransmitted) = tally.flows.iter().fold((0, 0), |(received, again), flow| {
        (received + flow.sum.received_packets, again + flow.sum.retransmitted)
    });
    // A machine that stands still for long enough causes a timeout, so a few of a hundred thousand are allowed.
    assert!(
        retransmitted <= dropped + received / 500,
        "{retransmitted} retransmitted, {dropped} dropped, {received} received"
    );
}

fn a_capture_holds_the_packets() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.a]\ncc = \"newreno\"\nworkload = {{ kind = \"transfer\", size = \"50 kB\" }}\n"
    ));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    let (link, _) = run.instrumented_links().next().unwrap();
    let capture = Capture::create(link, &file).unwrap();
    let (tally, _) = go_with(&run, Some(capture.clone()));
    capture.finish().unwrap();
    let expected = tally.links[link].sent_bytes + 16 * tally.links[link].arrived + 24;
    assert_eq!(
        std::fs::metadata(&file).unwrap().len(),
        expected,
        "16 bytes before each packet, 24 before all"
    );
}

fn damage_is_thrown_away() {
    // A segment whose retransmissions are damaged too waits for several timeouts.
    let run = lab_of(
        "8 s",
        &format!(
            "{DUMBBELL}corrupt = {{ down = \"4 %\", up = \"4 %\" }}\n\
         [traffic.a]\ncc = \"cubic\"\nworkload = {{ kind = \"transfer\", size = \"300 kB\" }}\n"
        ),
    );
    let (tally, outcome) = go(&run);
    assert_eq!(tally.flows[0].sum.read_bytes, 300_000);
    let damaged: u64 = tally.links.iter().map(|link| link.corrupted).sum();
    assert!(damaged > 0 && outcome.audit.corrupted == damaged, "{:?}", outcome.audit);
    // The kernel's own counters of wrong checksums tell the same number.
    let told: u64 = outcome.environment["drops_outside"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(cause, _)| cause.ends_with("Tcp.InCsumErrors"))
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    assert_eq!(told, damaged);
}

fn a_bad_link_harms_no_transfer() {
    let run = lab(&format!(
        "{DUMBBELL}duplicate = \"5 %\"\njitter = {{ up_to = \"5 ms\", reorder = true }}\n\
         outage = [{{ at = \"150 ms\", for = \"300 ms\" }}]\n\
         [traffic.a]\ncc = \"cubic\"\nworkload = {{ kind = \"transfer\", size = \"500 kB\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(tally.flows[0].sum.read_bytes, 500_000);
    let doubled: u64 = tally.links.iter().map(|link| link.duplicated).sum();
    assert!(doubled > 0 && outcome.audit.duplicated == doubled, "{:?}", outcome.audit);
}

fn frames_arrive_whole() {
    for (source, ip) in [("fabric", 4), ("socket", 4), ("fabric", 6), ("socket", 6)] {
        // Three packets each, 20 frames a second for 2 s; packet 5 is the second one of frame 1.
        let run = lab(&format!(
            "{DUMBBELL}drop = [5]\n[traffic.media]\nip = {ip}\nstop = \"1975 ms\"\nworkload = {{ kind = \"frames\", fps = 20, \
             size = \"3000 B\", deadline = \"900 ms\", source = \"{source}\" }}\n"
        ));
        let (tally, _) = go(&run);
        let flow = &tally.flows[0];
        assert_eq!(flow.sum.received_packets, 119, "{source}");
        // 1460, 1460 and 80 bytes, each with twelve before it; over IPv6 1440, 1440 and 120.
        let lost = if ip == 6 { 1452 } else { 1472 };
        assert_eq!(flow.sum.read_bytes, 40 * 3036 - lost, "{source}");
        let lost: Vec<u64> =
            flow.messages.iter().filter(|m| m.fate == MessageFate::Lost).map(|m| m.number).collect();
        assert_eq!((flow.messages.len(), lost), (40, vec![1]), "{source}");
        // The path's delay, and two packets' time on the link. The application reads the clock when the first packet of a frame wakes it;
        // where it then pauses, it reads the others at that time too. So no frame is quicker than its first packet, and few are so quick.
        let mut took: Vec<_> = flow.messages.iter().filter_map(|message| message.took).collect();
        took.sort();
        let (quickest, middle) = (took[0], took[took.len() / 2]);
        assert!(quickest.as_micros() >= 10_000 + 1200, "{source}: {quickest:?}");
        assert!(middle.as_micros() >= 10_000 + 2 * 1200, "{source}: {middle:?}");
    }
}

fn drawn_flows_arrive() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.web]\nstop = \"2 s\"\nworkload = {{ kind = \"web\", rate = 20, \
         size = [{{ size = \"3 kB\", weight = 3 }}, {{ size = \"30 kB\", weight = 1 }}] }}\n"
    ));
    assert!(run.flows.len() > 10, "{}", run.flows.len());
    let (tally, outcome) = go(&run);
    for (number, flow) in run.flows.iter().enumerate() {
        assert_eq!(tally.flows[number].sum.read_bytes, flow.size.unwrap().get(), "{}", flow.name);
        assert_eq!(events(&tally, number), [Started, Opened, Completed], "{}", flow.name);
    }
    assert!(!outcome.warnings.iter().any(|warning| warning.contains("cannot")), "{:?}", outcome.warnings);
}
