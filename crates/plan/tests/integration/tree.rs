//! The tree that a lab's settings become: its order, names, seeds, networks and defaults.

use std::path::Path;
use weir_base::{Bytes, Clock, Rate, Span};
use weir_control::{Codepoint, Feedback};
use weir_plan::{Buffer, Form, Lab, Run};

const NET: &str = "format = 1\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";

fn load(text: &str) -> Lab {
    load_with(text, &[])
}

fn load_with(text: &str, settings: &[&str]) -> Lab {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_string()).collect();
    Lab::from_str(text, "test.toml", Path::new("."), &settings).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str, settings: &[&str]) -> String {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_string()).collect();
    Lab::from_str(text, "test.toml", Path::new("."), &settings).unwrap_err().render(false, 100)
}

fn only(text: &str) -> Run {
    let mut runs = load(text).runs();
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn ids(lab: &Lab) -> Vec<String> {
    lab.runs().into_iter().map(|run| run.id).collect()
}

#[test]
fn the_first_level_is_outermost_and_repeats_are_innermost() {
    let lab = load(&format!(
        "{NET}[traffic.a]\n[run]\nrepeats = 2\n[vary.mix]\none = {{ \"traffic.a.flows\" = 1 }}\ntwo = {{ \"traffic.a.flows\" = 2 }}\n\
         [vary]\n\"dumbbell.queue\" = [\"tail-drop\", \"pie\"]\n"
    ));
    assert_eq!(
        ids(&lab),
        [
            "one_tail-drop_r1",
            "one_tail-drop_r2",
            "one_pie_r1",
            "one_pie_r2",
            "two_tail-drop_r1",
            "two_tail-drop_r2",
            "two_pie_r1",
            "two_pie_r2"
        ]
    );
    assert_eq!(lab.tree().levels[0].0, "mix");
    assert_eq!(lab.tree().simulated, Span::from_secs(80));
}

#[test]
fn names_and_seeds_stay_when_a_level_grows() {
    let lab = |values: &str| load(&format!("{NET}[traffic.a]\n[vary]\n\"dumbbell.queue\" = [{values}]\n"));
    let small = lab("\"pie\", { kind = \"tail-drop\", limit = \"2 bdp\" }").runs();
    let large = lab("\"tail-drop\", { kind = \"pie\", target = \"5 ms\" }, { kind = \"tail-drop\", limit = \"2 bdp\" }, \"pie\"").runs();
    assert_eq!(small[0], large[3]);
    assert_eq!(small[1], large[2]);
    assert_eq!(large[1].id, "pie-target-5ms_r1");
    assert_eq!(large[1].params[0].value, "pie target=5 ms");
}

#[test]
fn cells_of_one_repeat_share_their_seed_and_repeats_do_not() {
    let runs = load(&format!(
        "{NET}[traffic.a]\n[run]\nrepeats = 2\n[vary]\n\"dumbbell.queue\" = [\"tail-drop\", \"pie\"]\n"
    ))
    .runs();
    assert_eq!(runs[0].seed, runs[2].seed);
    assert_eq!(runs[0].flows, runs[2].flows);
    assert_ne!(runs[0].seed, runs[1].seed);
    assert_ne!(runs[0].flows[0].start, runs[1].flows[0].start);
    // A seed that every reader of JSON reads exactly.
    assert!(runs.iter().all(|run| run.seed < 1 << 53));
}

#[test]
fn starts_are_drawn_within_the_jitter_and_zero_turns_it_off() {
    let run = only(&format!("{NET}[traffic.a]\nflows = 50\nstart = \"1 s\"\n"));
    assert!(
        run.flows.iter().all(|flow| flow.start >= Span::from_secs(1) && flow.start < Span::from_millis(1100))
    );
    assert!(run.flows.iter().any(|flow| flow.start > Span::from_millis(1050)));
    assert_eq!((run.flows[0].name.as_str(), run.flows[49].name.as_str()), ("a-1", "a-50"));
    let run = only(&format!("{NET}[run]\nstart_jitter = \"0 s\"\n[traffic.a]\nstart = \"1 s\"\n"));
    assert_eq!(run.flows[0].start, Span::from_secs(1));
    assert_eq!(run.flows[0].name, "a");
}

#[test]
fn a_dumbbell_is_two_measured_links_and_four_access_links_for_each_group() {
    let run = only(&format!(
        "{NET}queue = \"pie\"\n[traffic.a]\n[traffic.b]\nrtt = \"50 ms\"\ndirection = \"up\"\n"
    ));
    let link = |name: &str| run.network.links.iter().find(|link| link.name == name).unwrap();
    let node = |index: usize| run.network.nodes[index].name.as_str();
    assert_eq!(run.network.links.len(), 10);
    assert_eq!(
        run.instrumented_links().map(|(_, link)| link.name.as_str()).collect::<Vec<_>>(),
        ["down", "up"]
    );
    assert_eq!(run.network.base_rtt, Some(Span::from_millis(20)));
    assert_eq!((link("down").delay, link("up").delay), (Span::from_millis(10), Span::from_millis(10)));
    assert_eq!((link("down").queue.name(), link("up").queue.name()), ("pie", "pie"));
    assert_eq!((node(link("down").from), node(link("down").to)), ("left", "right"));
    // The group that sends up has its sender at the right. The excess of its base RTT lies at the sender, half in each
    // direction.
    assert_eq!(
        (link("b-sender-out").from, link("b-sender-out").to),
        (run.groups[1].pairs[0].from, link("down").to)
    );
    assert_eq!(link("b-sender-out").delay + link("b-sender-in").delay, Span::from_millis(30));
    assert_eq!(link("b-receiver-out").rate, None);
    assert_eq!(
        (run.groups[0].pairs[0].rtt, run.groups[1].pairs[0].rtt),
        (Span::from_millis(20), Span::from_millis(50))
    );
}

#[test]
fn directions_may_differ_and_impairments_apply_to_down() {
    let run = only(
        "format = 1\n[dumbbell]\nrate = { down = \"8 Mbit/s\", up = \"1 Mbit/s\" }\ndelay = { down = \"5 ms\", up = \"15 ms\" }\n\
         loss = 0.01\ndrop = [30, 20]\nreorder = { up = [{ packet = 4, by = 2 }] }\noverhead = \"14 B\"\n\
         schedule = [{ at = \"5 s\", rate = \"2 Mbit/s\" }, { at = \"2 s\", loss = 1 }]\n[traffic.a]\n",
    );
    let [down, up] = &run.network.links[..2] else { panic!("two links") };
    assert_eq!((down.rate, up.rate), (Some(Rate::from_mbit_per_sec(8)), Some(Rate::from_mbit_per_sec(1))));
    assert_eq!((down.delay, up.delay), (Span::from_millis(5), Span::from_millis(15)));
    assert_eq!((down.loss.mean(), up.loss.mean()), (0.01, 0.0));
    assert_eq!((down.drop.as_slice(), up.drop.as_slice()), ([20, 30].as_slice(), [].as_slice()));
    assert_eq!((down.reorder.len(), up.reorder.len()), (0, 1));
    assert_eq!((down.overhead, up.overhead), (Bytes::new(14), Bytes::new(14)));
    assert_eq!(down.schedule.iter().map(|change| change.at.as_millis()).collect::<Vec<_>>(), [2000, 5000]);
    assert!(up.schedule.is_empty());
    // One serialisation time of a packet and its overhead at 8 Mbit/s; hosts that only acknowledge hold nothing back.
    assert_eq!(run.network.nodes[run.groups[0].pairs[0].from].jitter, Span::from_micros(1514));
    assert_eq!(run.network.nodes[run.groups[0].pairs[0].to].jitter, Span::ZERO);
}

#[test]
fn a_chain_has_routers_in_a_row_and_groups_enter_and_leave_anywhere() {
    let run = only(
        "format = 1\n[chain]\nbase_rtt = \"40 ms\"\n[chain.links.lan]\nrate = \"100 Mbit/s\"\nrtt = \"4 ms\"\n\
         [chain.links.wan]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = { kind = \"tail-drop\", limit = \"1 bdp\" }\n\
         [chain.links.home]\nrate = \"20 Mbit/s\"\ndelay = \"3 ms\"\n\
         [traffic.long]\n[traffic.cross]\nfrom = \"n1\"\nto = \"n2\"\n[traffic.back]\nfrom = \"n3\"\nto = \"n1\"\n",
    );
    let names: Vec<&str> = run.instrumented_links().map(|(_, link)| link.name.as_str()).collect();
    assert_eq!(names, ["lan", "lan-up", "wan", "wan-up", "home", "home-up"]);
    let rtts: Vec<u64> = run.groups.iter().map(|group| group.rtt().as_millis()).collect();
    assert_eq!(rtts, [30, 20, 26]);
    assert_eq!(run.network.base_rtt, Some(Span::from_millis(40)));
    let jitter = |group: usize| run.network.nodes[run.groups[group].pairs[0].from].jitter.as_micros();
    assert_eq!((jitter(0), jitter(1), jitter(2)), (1200, 1200, 1200));
}

#[test]
fn the_clocks_of_a_groups_hosts_are_plain_unless_they_are_given() {
    let run = only(&format!(
        "{NET}[traffic.a]\nsender_clock = {{ tick = \"4 ms\" }}\nreceiver_clock = {{ offset = \"1 h\", skew_ppm = -50 }}\n\
         [traffic.b]\n"
    ));
    let [a, b] = &run.groups[..] else { panic!("two groups") };
    assert_eq!(a.tcp().unwrap().sender_clock, Clock { tick: Span::from_millis(4), ..Clock::default() });
    let receiver = Clock { offset: Some(Span::from_secs(3600)), skew_ppm: -50, ..Clock::default() };
    assert_eq!(a.tcp().unwrap().receiver_clock, receiver);
    assert_eq!(
        (b.tcp().unwrap().sender_clock, b.tcp().unwrap().receiver_clock),
        (Clock::default(), Clock::default())
    );
}

#[test]
fn defaults_are_linuxs_and_a_plain_size_is_a_fixed_buffer() {
    let run = only(&format!(
        "{NET}[traffic.a]\n[traffic.b]\nsend_buffer = \"1 MB\"\nreceive_buffer = {{ max = \"64 MiB\" }}\n"
    ));
    let buffer = |min, initial, max| Buffer {
        min: Bytes::new(min),
        initial: Bytes::new(initial),
        max: Bytes::new(max),
    };
    let [a, b] = &run.groups[..] else { panic!("two groups") };
    assert_eq!(a.tcp().unwrap().send_buffer, buffer(4096, 16_384, 4 << 20));
    assert_eq!(a.tcp().unwrap().receive_buffer, buffer(4096, 131_072, 6 << 20));
    assert_eq!(
        (a.tcp().unwrap().cc.name(), a.tcp().unwrap().ecn, a.tcp().unwrap().pacing),
        ("cubic", false, false)
    );
    assert_eq!(
        (a.tcp().unwrap().codepoint, a.tcp().unwrap().feedback, a.tcp().unwrap().window_scaling),
        (Codepoint::Ect0, Feedback::Classic, true)
    );
    assert_eq!(b.tcp().unwrap().send_buffer, buffer(1_000_000, 1_000_000, 1_000_000));
    assert_eq!(b.tcp().unwrap().receive_buffer, buffer(4096, 131_072, 64 << 20));
    assert_eq!(
        (run.duration, run.warmup, run.sample),
        (Span::from_secs(10), Span::from_secs(2), Span::from_millis(100))
    );
    assert_eq!(run.network.links[0].queue.name(), "tail-drop");
}

#[test]
fn a_setting_reaches_into_a_name_and_into_a_direction() {
    let text = format!("{NET}queue = \"pie\"\nloss = 0.01\n[traffic.a]\n");
    let run = load_with(
        &text,
        &["dumbbell.queue.target=5 ms", "dumbbell.loss.up = 0.5", "dumbbell.rate.up=1 Mbit/s"],
    )
    .runs()
    .remove(0);
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(json["network"]["links"][0]["queue"]["target"], "5 ms");
    assert_eq!((run.network.links[0].loss.mean(), run.network.links[1].loss.mean()), (0.01, 0.5));
    assert_eq!(run.network.links[0].rate, Some(Rate::from_mbit_per_sec(10)));
    assert_eq!(run.network.links[1].rate, Some(Rate::from_mbit_per_sec(1)));
}

#[test]
fn a_setting_removes_its_level_from_the_tree() {
    let text = format!(
        "{NET}[traffic.a]\n[vary]\n\"dumbbell.rate\" = [\"10 Mbit/s\", \"20 Mbit/s\"]\n\"dumbbell.queue\" = [\"pie\"]\n"
    );
    assert_eq!(ids(&load_with(&text, &["dumbbell.rate=5 Mbit/s"])), ["pie_r1"]);
    assert_eq!(ids(&load_with(&text, &["vary.\"dumbbell.rate\"=[\"1 Mbit/s\"]"])), ["1mbit_pie_r1"]);
    assert_eq!(ids(&load_with(&text, &["vary={}"])), ["r1"]);
}

#[test]
fn wrong_settings_are_shown_where_they_were_written() {
    let text = format!("{NET}[traffic.a]\n[vary.mix]\nx = {{ \"traffic.a.flows\" = 2 }}\n");
    let seen: String = [
        "dumbbell.rate=5 Mbps",
        "dumbbell.quue=pie",
        "traffic.b.flows=2",
        "traffic.a.flows=7",
        "run.duration",
        "run.duration=0 s",
        "dumbbell.queue={ kind = \"pie\", tarjet = \"5 ms\" }",
        "extends=other.toml",
        "..=3",
    ]
    .iter()
    .map(|setting| refusal(&text, &[setting]))
    .collect();
    insta::assert_snapshot!("wrong settings", seen);
}

#[test]
fn extends_joins_tables_and_replaces_members_levels_and_networks() {
    let folder = tempfile::tempdir().unwrap();
    let base = format!(
        "{NET}queue = {{ kind = \"pie\", target = \"5 ms\" }}\n[run]\nduration = \"5 s\"\nseed = 9\n[traffic.a]\nflows = 3\n\
         [vary]\n\"dumbbell.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\n"
    );
    std::fs::write(folder.path().join("base.toml"), base).unwrap();
    let load = |more: &str| {
        let path = folder.path().join("child.toml");
        std::fs::write(&path, format!("format = 1\nextends = \"base.toml\"\n{more}")).unwrap();
        Lab::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"))
    };
    let lab = load(
        "[dumbbell]\nqueue = { kind = \"tail-drop\", limit = \"9 packets\" }\n[traffic.b]\ncc = \"newreno\"\n",
    );
    let runs = lab.runs();
    assert_eq!((lab.name(), runs.len()), ("child", 2));
    assert_eq!(runs[0].groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((runs[0].flows.len(), runs[0].duration), (4, Span::from_secs(5)));
    assert_eq!(runs[0].network.links[0].queue.name(), "tail-drop");
    assert_eq!(ids(&load("vary = {}\n")), ["r1"]);
    assert_eq!(ids(&load("[vary]\n\"traffic.a.flows\" = [1, 2]\n")), ["flows-1_r1", "flows-2_r1"]);
    let chain = load("vary = {}\n[chain.links.only]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n");
    assert_eq!(chain.runs()[0].network.links[0].name, "only");
    let again = Lab::from_str(chain.source(), "lab.toml", Path::new("."), &[]).unwrap();
    assert_eq!(again.runs(), chain.runs());
}

#[test]
fn a_source_without_extends_is_the_text_itself_with_its_name() {
    let text = format!("# A comment.\n{NET}[traffic.a]\n");
    let lab = load(&text);
    assert_eq!(lab.source(), text.replace("format = 1\n", "format = 1\nname = \"test\"\n"));
    assert_eq!(load("format=1\nname='x'\ndumbbell={rate='1 Mbit/s',rtt='1 ms'}\ntraffic.a={}").name(), "x");
    // A file name that a lab's name may not be is adapted.
    let odd = Lab::from_str(&text, "my lab (2).toml", Path::new("."), &[]).unwrap();
    assert_eq!(odd.name(), "my-lab--2-");
}

#[test]
fn settings_of_full_apply_only_with_full() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.toml");
    let full = "[full]\n\"run.repeats\" = 3\n\"vary.\\\"dumbbell.queue\\\"\" = [\"pie\", \"codel\"]\n";
    let text = format!("{NET}[traffic.a]\n[vary]\n\"dumbbell.queue\" = [\"pie\"]\n{full}");
    std::fs::write(&file, text).unwrap();
    assert_eq!(Lab::load(&file, &[]).unwrap().tree().runs(), 1);
    let full = Form { full: true, live: false };
    let whole = Lab::load_as(&file, &[], full).unwrap();
    assert_eq!(whole.tree().runs(), 6);
    // Its source is the lab as it runs.
    let again = Lab::from_str(whole.source(), "again.toml", Path::new("."), &[]).unwrap();
    assert_eq!(again.tree(), whole.tree());
    let settings = ["run.repeats=2".to_owned()];
    assert_eq!(Lab::load_as(&file, &settings, full).unwrap().tree().runs(), 4, "the command line comes last");
}

#[test]
fn the_estimate_counts_what_links_can_carry_or_workloads_send() {
    let text = |traffic: &str| format!("{NET}[traffic.a]\n{traffic}\n");
    // 10 Mbit/s for 10 s in packets of 1500 bytes.
    assert_eq!(load(&text("flows = 5")).tree().packets, 8333);
    assert_eq!(load(&text("workload = { kind = \"transfer\", size = \"1.5 MB\" }")).tree().packets, 1000);
    assert_eq!(load(&text("workload = { kind = \"udp\", rate = \"1.2 Mbit/s\" }")).tree().packets, 1000);
}

#[test]
fn a_group_sets_its_codepoint_and_its_feedback() {
    let of = |text: &str| {
        let tcp = only(&format!("{NET}[traffic.a]\n{text}")).groups[0].tcp().unwrap().clone();
        (tcp.ecn, tcp.codepoint, tcp.feedback)
    };
    assert_eq!(of("ecn = true"), (true, Codepoint::Ect0, Feedback::Classic));
    assert_eq!(of("ecn = \"ect1\""), (true, Codepoint::Ect1, Feedback::Classic));
    assert_eq!(of("feedback = \"accurate\""), (true, Codepoint::Ect0, Feedback::Accurate));
    assert_eq!(of("ecn = \"ect1\"\nfeedback = \"dctcp\""), (true, Codepoint::Ect1, Feedback::Dctcp));
}

#[test]
fn windows_count_from_the_run_or_from_the_start_of_a_group_and_come_in_the_order_of_their_begin() {
    let text = "format = 1\n[run]\nduration = \"20 s\"\n[run.windows]\n\
                joined = { from = \"1 s\", to = \"5 s\", of = \"late\", tolerance = \"20 %\" }\nfirst = [\"2 s\", \"4 s\"]\n\
                [dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[traffic.early]\n[traffic.late]\nstart = \"8 s\"\n";
    let lab = Lab::from_str(text, "windows.toml", Path::new("."), &[]).unwrap();
    let seconds = |span: weir_base::Span| span.as_secs_f64();
    let windows: Vec<_> = lab.runs()[0]
        .windows
        .iter()
        .map(|window| (window.name.clone(), seconds(window.from), seconds(window.to), window.tolerance))
        .collect();
    assert_eq!(windows, [("first".into(), 2.0, 4.0, 0.1), ("joined".into(), 9.0, 13.0, 0.2)]);
    // A level may set one.
    let settings = ["vary.\"run.windows.first\"=[[\"2 s\", \"4 s\"], [\"3 s\", \"6 s\"]]".to_string()];
    let lab = Lab::from_str(text, "windows.toml", Path::new("."), &settings).unwrap();
    let begins: Vec<_> = lab.runs().iter().map(|run| seconds(run.windows[0].from)).collect();
    assert_eq!(begins, [2.0, 3.0]);
}
