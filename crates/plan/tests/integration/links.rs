//! The links that settings become.

use std::path::Path;
use weir_base::{Bytes, Rate, Span};
use weir_fabric::{BitErrors, Distribution, GilbertElliott, Jitter, Loss, Times, Wifi};
use weir_plan::{Lab, Link, Outage};

/// A lab with these files beside it, whose links have these settings.
fn load(link: &str, files: &[(&str, &str)], settings: &[&str]) -> Lab {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let text = format!("format = 1\n[dumbbell]\nrtt = \"20 ms\"\n{link}\n[traffic.a]\n");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_string()).collect();
    Lab::from_str(&text, "test.toml", folder.path(), &settings).unwrap_or_else(|error| panic!("{error}"))
}

fn links(link: &str, files: &[(&str, &str)], settings: &[&str]) -> [Link; 2] {
    let mut links = load(link, files, settings).runs().remove(0).network.links;
    links.truncate(2);
    links.try_into().unwrap()
}

const RATE: &str = "rate = \"10 Mbit/s\"\n";

fn down(link: &str) -> Link {
    let [down, up] = links(&format!("{RATE}{link}"), &[], &[]);
    assert!(up.loss.is_none() && up.jitter.is_none() && up.duplicate == 0.0 && up.outages.is_empty());
    down
}

#[test]
fn a_trace_gives_its_mean_as_the_rate_and_mahimahis_four_bytes_as_the_overhead() {
    let files = [("cell/a.down", "0\n5\n5\n10\n"), ("b.csv", "0,1 Mbit/s\n1,3 Mbit/s\n")];
    let link = "rate = { down = { trace = \"cell/a.down\" }, up = { trace = \"b.csv\", repeat = false } }";
    let [down, up] = links(link, &files, &[]);
    assert_eq!((down.rate.unwrap(), down.overhead), (Rate::from_bits_per_sec(4_812_800), Bytes::new(4)));
    assert_eq!((up.rate.unwrap(), up.overhead), (Rate::from_mbit_per_sec(2), Bytes::ZERO));
    let (down, up) = (down.trace.unwrap(), up.trace.unwrap());
    assert_eq!(
        (down.file.as_str(), down.repeat, up.file.as_str(), up.repeat),
        ("a.down", true, "b.csv", false)
    );
    assert!(
        down.recording.as_ref().unwrap().is_opportunities()
            && !up.recording.as_ref().unwrap().is_opportunities()
    );
}

#[test]
fn the_files_of_a_lab_are_its_sources_and_its_traces() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("cell")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "base.toml",
        "format = 1\n[dumbbell]\nrate = { trace = \"cell/../cell/a\" }\nrtt = \"20 ms\"\n[traffic.a]\n",
    );
    write("lab.toml", "format = 1\nextends = \"base.toml\"\n");
    write("cell/a", "4\n");
    let lab = Lab::load(&folder.path().join("lab.toml"), &[]).unwrap_or_else(|error| panic!("{error}"));
    let expected = ["lab.toml", "base.toml", "cell/a"];
    assert_eq!(lab.files(), expected.map(|name| folder.path().join(name).canonicalize().unwrap()));
}

#[test]
fn a_changed_trace_makes_another_run_and_another_source() {
    let lab = |text| load("rate = { trace = \"a\" }", &[("a", text)], &[]);
    let (first, same, other) = (lab("1\n2\n"), lab("1\n2\n"), lab("1\n3\n"));
    assert_eq!((first.runs(), first.source()), (same.runs(), same.source()));
    assert_ne!(first.runs(), other.runs());
    assert_ne!(first.source(), other.source());
}

#[test]
fn runs_share_a_trace_and_do_not_carry_it_into_their_files() {
    let text: String = (0..10_000).map(|ms| format!("{}\n", 10_000_000 + ms)).collect();
    let lab = load("rate = { trace = \"a\" }\n[run]\nrepeats = 2", &[("a", &text)], &[]);
    let runs = lab.runs();
    let content = |run: usize| runs[run].network.links[0].trace.as_ref().unwrap().recording.clone().unwrap();
    assert!(std::sync::Arc::ptr_eq(&content(0), &content(1)));
    let written = serde_json::to_string(&runs[0]).unwrap();
    assert!(!written.contains("10000005"));
    let read: weir_plan::Run = serde_json::from_str(&written).unwrap();
    assert_eq!(read, runs[0]);
    assert!(read.network.links[0].trace.as_ref().unwrap().recording.is_none());
}

#[test]
fn a_labs_source_names_copies_of_its_traces() {
    let files = [("cell/a.down", "1\n2\n"), ("b.csv", "0,5 Mbit/s\n")];
    let link =
        "rate = { trace = \"cell/a.down\" }\n[vary]\n\"dumbbell.rate.trace\" = [\"cell/a.down\", \"b.csv\"]";
    let lab = load(link, &files, &[]);
    assert_eq!(lab.runs().iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["a-down_r1", "b-csv_r1"]);
    let kept: Vec<_> = lab.attachments().collect();
    assert_eq!(kept.len(), 2);
    let folder = tempfile::tempdir().unwrap();
    for (place, bytes) in kept {
        assert!(lab.source().contains(&place), "{place}: {}", lab.source());
        assert!(place.starts_with("traces/") && (place.ends_with("/a.down") || place.ends_with("/b.csv")));
        let path = folder.path().join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let again = Lab::from_str(lab.source(), "lab.toml", folder.path(), &[]).unwrap();
    assert_eq!((again.runs(), again.source()), (lab.runs(), lab.source()));
}

#[test]
fn a_trace_is_looked_for_beside_the_file_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("base/a.trace", "4\n");
    write(
        "base/base.toml",
        "format = 1\n[dumbbell]\nrate = { trace = \"a.trace\" }\nrtt = \"20 ms\"\n[traffic.a]\n",
    );
    write("lab.toml", "format = 1\nextends = \"base/base.toml\"\n");
    let lab = Lab::load(&folder.path().join("lab.toml"), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(lab.runs()[0].network.links[0].rate.unwrap(), Rate::from_bits_per_sec(3_008_000));
}

#[test]
fn a_setting_may_name_a_trace_in_place_of_any_rate() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broken/fine.trace");
    let [down, up] = links(RATE, &[], &[&format!("dumbbell.rate.down.trace={path}")]);
    assert_eq!((down.trace.unwrap().file, up.trace), ("fine.trace".into(), None));
    let [down, up] = links(RATE, &[], &[&format!("dumbbell.rate.trace={path}")]);
    assert_eq!(down.trace, up.trace);
}

#[test]
fn loss_is_a_number_per_cent_a_burst_or_a_chain() {
    assert_eq!(down("loss = 0.01").loss, Loss::Independent(0.01));
    assert_eq!(down("loss = \"1 %\"").loss, Loss::Independent(0.01));
    let chain = GilbertElliott::with_mean(0.01, 5.0).unwrap();
    assert_eq!(down("loss = { mean = \"1 %\", burst = 5 }").loss, Loss::Bursts(chain));
    let chain = GilbertElliott { p: 0.1, r: 0.5, h: 0.25, k: 0.99 };
    assert_eq!(down("loss = { p = 0.1, r = \"50 %\", h = 0.25, k = 0.99 }").loss, Loss::Bursts(chain));
    let [_, up] = links(&format!("{RATE}loss = {{ up = {{ mean = 0.01, burst = 5 }} }}"), &[], &[]);
    assert!(matches!(up.loss, Loss::Bursts(_)));
}

#[test]
fn loss_by_bit_errors_is_always_or_in_bad_times() {
    let errors = |times| Loss::Errors(BitErrors { ber: 1e-6, times });
    assert_eq!(down("loss = { ber = 1e-6 }").loss, errors(None));
    let times = Times { good: Span::from_secs(10), bad: Span::from_millis(100) };
    assert_eq!(down("loss = { ber = 1e-6, good = \"10 s\", bad = \"100 ms\" }").loss, errors(Some(times)));
    let link = down("schedule = [{ at = \"1 s\", loss = { ber = 1e-6 } }]");
    assert_eq!(link.schedule[0].loss, Some(errors(None)));
}

#[test]
fn a_mixture_of_jitter_has_parts() {
    let jitter = down(
        "jitter = { distribution = \"mixture\", parts = [{ share = 9, mean = \"5 ms\" }, \
         { share = 1, mean = \"30 ms\", deviation = \"4 ms\" }] }",
    )
    .jitter
    .unwrap();
    let parts: Vec<_> = jitter.parts.iter().map(|part| (part.share, part.mean, part.deviation)).collect();
    let ms = Span::from_millis;
    assert_eq!(parts, [(9.0, ms(5), Span::ZERO), (1.0, ms(30), ms(4))]);
    assert_eq!(jitter.distribution, Distribution::Mixture);
}

#[test]
fn jitter_is_a_time_or_a_table() {
    let ms = Span::from_millis;
    assert_eq!(down("jitter = \"5 ms\"").jitter, Some(Jitter::uniform(ms(5))));
    let reordering = Jitter { reorder: true, ..Jitter::uniform(ms(5)) };
    assert_eq!(down("jitter = { up_to = \"5 ms\", reorder = true }").jitter, Some(reordering));
    let normal = Jitter {
        distribution: Distribution::Normal,
        mean: Some(ms(5)),
        deviation: Some(ms(1)),
        ..Jitter::default()
    };
    assert_eq!(
        down("jitter = { distribution = \"normal\", mean = \"5 ms\", deviation = \"1 ms\" }").jitter,
        Some(normal)
    );
}

#[test]
fn duplication_corruption_outages_and_wifi_are_read() {
    let link = down(
        "duplicate = 0.1\ncorrupt = \"2 %\"\noutage = [{ at = \"5 s\", for = \"1 s\" }, { at = \"2 s\", for = \"1 s\" }]",
    );
    assert_eq!((link.duplicate, link.corrupt), (0.1, 0.02));
    let second = |at| Outage { at: Span::from_secs(at), length: Span::from_secs(1) };
    assert_eq!(link.outages, [second(2), second(5)]);
    let [down, up] = links(&format!("{RATE}wifi = {{ stations = 2, walk = \"100 ms\" }}"), &[], &[]);
    let wifi = Wifi { stations: 2, walk: Span::from_millis(100), ..Wifi::default() };
    assert_eq!((down.wifi, up.wifi), (Some(wifi), Some(wifi)));
}

#[test]
fn a_schedule_can_change_every_changeable_property() {
    let text = format!(
        "{RATE}schedule = [\n{{ at = \"1 s\", rate = {{ trace = \"a\" }}, loss = {{ mean = 0.1, burst = 2 }} }},\n\
         {{ at = \"2 s\", rate = \"1 Mbit/s\", jitter = \"1 ms\", duplicate = \"1 %\", corrupt = 0.5 }}]"
    );
    let [down, _] = links(&text, &[("a", "1\n")], &[]);
    let [first, second] = down.schedule.as_slice() else { panic!() };
    assert_eq!(
        (first.rate.unwrap(), first.trace.as_ref().unwrap().file.as_str()),
        (Rate::from_bits_per_sec(12_032_000), "a")
    );
    assert!(matches!(first.loss, Some(Loss::Bursts(_))) && first.jitter.is_none());
    assert_eq!((second.rate.unwrap(), &second.trace), (Rate::from_mbit_per_sec(1), &None));
    assert_eq!((second.duplicate, second.corrupt), (Some(0.01), Some(0.5)));
}

#[test]
fn impairments_that_a_plain_link_does_not_have_are_not_written_into_its_run() {
    let lab = load(RATE, &[], &[]);
    let run = serde_json::to_value(&lab.runs()[0]).unwrap();
    let keys: Vec<_> = run["network"]["links"][0].as_object().unwrap().keys().cloned().collect();
    let expected = [
        "name",
        "from",
        "to",
        "rate",
        "delay",
        "loss",
        "overhead",
        "queue",
        "drop",
        "reorder",
        "schedule",
        "instrumented",
    ];
    assert_eq!(keys, expected);
    assert_eq!(run["network"]["links"][0]["loss"], 0.0);
    assert!(lab.attachments().next().is_none());
    assert_eq!(Path::new(lab.name()), Path::new("test"));
}
