//! `weir plot` draws a result in both formats, and says what can be plotted if a request cannot be.

use crate::browser;
use crate::place::{Place, status, text};
use crate::questions;

const LAB: &str = "format = 1\nname = 'grid'\n[run]\nduration = '3 s'\nwarmup = '1 s'\nrepeats = 3\n\
    [dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\nqueue = 'pie'\n[traffic.bulk]\n[traffic.other]\n\
    [vary]\n'dumbbell.rate' = ['5 Mbit/s', '10 Mbit/s']\n'dumbbell.queue' = ['pie', 'codel', 'tail-drop']\n";

fn result() -> Place {
    let place = Place::new();
    std::fs::write(place.path("grid.toml"), LAB).unwrap();
    let output = place.weir(&["run", "grid.toml", "--out", "out", "--no-report"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    place
}

fn svg(place: &Place, args: &[&str]) -> String {
    let output = place.weir(&[&["plot", "out", "-o", "plot.svg"], args].concat());
    assert_eq!(status(&output), 0, "{args:?}: {}", text(&output.stderr));
    std::fs::read_to_string(place.path("plot.svg")).unwrap()
}

/// The texts of an SVG.
fn words(svg: &str) -> Vec<String> {
    let lines = svg.split("<text").skip(1).filter_map(|rest| rest.split('>').nth(1));
    lines.map(|line| line.split('<').next().unwrap_or_default().trim().to_string()).collect()
}

#[test]
fn every_kind_of_plot_shows_what_the_result_holds() {
    let place = result();
    // Two rates and three queues: six cells, each a line.
    let time = svg(&place, &["--metric", "goodput_mbps", "--of", "bulk", "--kind", "time"]);
    assert!(words(&time).contains(&"5 Mbit/s, codel".into()), "{:?}", words(&time));
    let slow = ["--only", "rate=5 Mbit/s"];
    let cdf =
        [&["--metric", "queue_delay_ms", "--kind", "cdf", "--by", "queue", "--log"], &slow[..]].concat();
    let cdf = svg(&place, &cdf);
    let told = "rate 5 Mbit/s; the first of 3 repeats of each cell";
    for name in ["pie", "codel", "tail-drop", "queue delay, ms", "at or below, %", told] {
        assert!(words(&cdf).contains(&name.into()), "{name}: {:?}", words(&cdf));
    }
    let bars = [
        "--metric",
        "utilisation_percent",
        "--of",
        "down",
        "--kind",
        "bars",
        "--by",
        "rate",
        "--only",
        "queue=pie",
    ];
    let bars = svg(&place, &bars);
    // The ground and two bars, each with its three repeats.
    assert_eq!((bars.matches("<rect").count(), bars.matches("<circle").count()), (3, 6), "{bars}");
    let lines = ["--metric", "rtt_ms", "--of", "bulk", "--kind", "lines", "--along", "rate", "--by", "queue"];
    let lines = svg(&place, &lines);
    // Three lines over two rates: a mean and three repeats at each. The axis has the labels of the lab.
    assert_eq!(lines.matches("<circle").count(), 6 * 4);
    assert!(
        ["5", "10", "rate, Mbit/s"].iter().all(|tick| words(&lines).contains(&(*tick).into())),
        "{:?}",
        words(&lines)
    );
    let heat = ["--metric", "rtt_ms", "--of", "bulk", "--kind", "heat", "--along", "rate", "--by", "queue"];
    let heat = svg(&place, &heat);
    // The ground, six squares, and the 48 steps of the colour scale, which has the metric's name.
    assert_eq!(heat.matches("<rect").count(), 1 + 6 + 48);
    assert!(words(&heat).contains(&"round-trip time, ms".into()), "{:?}", words(&heat));
    let plane = svg(
        &place,
        &["--kind", "delay-throughput", "--of", "bulk", "--by", "queue", "--only", "rate=10 Mbit/s"],
    );
    // Three runs and their median in each of three cells.
    assert_eq!(plane.matches("<circle").count(), 3 * 4);
    let few = "Fewer than 5 repeats have no ellipse: give the lab repeats = 5 or more.";
    assert!(words(&plane).contains(&few.into()), "{:?}", words(&plane));

    let output = place
        .weir(&["plot", "out", "--metric", "rtt_ms", "--of", "bulk", "--kind", "time", "-o", "plot.png"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let png = std::fs::read(place.path("plot.png")).unwrap();
    // The signature of PNG, then the first chunk with width and height: 1800 by 960.
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(png[16..24], [0, 0, 7, 8, 0, 0, 3, 192]);
}

#[test]
fn impossible_plots_are_refused_with_the_possible_choices() {
    let place = result();
    let cases: [(&[&str], &str); 11] = [
        (&["--metric", "queue_delay", "--kind", "bars"], "queue_delay_ms"),
        (
            &["--metric", "rtt_ms", "--of", "nobody", "--kind", "bars", "--mean-over", "queue"],
            "--of bulk, other",
        ),
        (
            &["--metric", "rtt_ms", "--of", "down", "--kind", "bars", "--mean-over", "queue"],
            "--of bulk, other",
        ),
        // A level that is neither an axis nor fixed: the plot would hide what it does.
        (&["--metric", "utilisation_percent", "--kind", "bars", "--by", "queue"], "--mean-over rate"),
        (&["--metric", "queue_delay_ms", "--kind", "cdf", "--by", "rate"], "--only queue='pie'"),
        (
            &["--metric", "queue_delay_ms", "--kind", "bars", "--by", "rate", "--mean-over", "rate"],
            "another level",
        ),
        (&["--metric", "queue_delay_ms", "--kind", "bars", "--log"], "leave --log out"),
        (&["--metric", "jain_index", "--kind", "cdf"], "queue_delay_ms"),
        (
            &["--metric", "utilisation_percent", "--kind", "bars", "--by", "cc"],
            "dumbbell.rate, dumbbell.queue",
        ),
        (
            &["--metric", "utilisation_percent", "--kind", "lines", "--along", "queue"],
            "--along a level of rates",
        ),
        (
            &["--metric", "utilisation_percent", "--kind", "bars", "--only", "queue=red"],
            "pie, codel, tail-drop",
        ),
    ];
    for (args, help) in cases {
        let output = place.weir(&[&["plot", "out", "-o", "plot.svg"], args].concat());
        assert_eq!(status(&output), 2, "{args:?}");
        assert!(text(&output.stderr).contains(help), "{args:?}: {}", text(&output.stderr));
        assert!(!place.path("plot.svg").exists());
    }
    let output = place.weir(&["plot", "out", "--metric", "rtt_ms", "--kind", "time", "-o", "plot.jpg"]);
    assert_eq!(status(&output), 2);
}

#[test]
fn a_mean_over_a_level_is_named_and_keeps_its_interval() {
    let place = result();
    let bars = ["--metric", "queue_delay_ms", "--kind", "bars", "--by", "queue", "--mean-over", "rate"];
    let svg = svg(&place, &[&bars[..], &["--title", "How long packets wait", "--size", "1600x900"]].concat());
    let words = words(&svg);
    assert!(
        words[0] == "How long packets wait" && svg.contains("width=\"1600\" height=\"900\""),
        "{words:?}"
    );
    let about = "mean over rate (5 Mbit/s, 10 Mbit/s); 3 repeats, with the 95 % interval of their mean";
    assert!(words.contains(&about.into()), "{words:?}");
    assert_eq!(words.iter().filter(|word| word.contains(" ± ")).count(), 3, "{words:?}");
    for size in ["1600", "0x900", "1600x90000"] {
        let output = place.weir(&[&["plot", "out", "-o", "plot.svg", "--size", size], &bars[..]].concat());
        assert_eq!(status(&output), 2, "{size}");
    }
}

/// A file of 2 MB takes a second at 20 Mbit/s, and 32 seconds at 0.5 Mbit/s, of which there are ten.
const TOO_SLOW: &str = "format = 1\nname = 'slow'\n[run]\nduration = '10 s'\nwarmup = '0 s'\nrepeats = 2\n\
    [dumbbell]\nrate = '20 Mbit/s'\nrtt = '20 ms'\n[traffic.file]\nworkload = { kind = 'transfer', size = '2 MB' }\n\
    [vary]\n'dumbbell.rate' = ['500 kbit/s', '10 Mbit/s', '20 Mbit/s']\n";

#[test]
fn a_cell_without_a_value_stands_in_every_plot_and_page_with_the_reason() {
    let place = Place::new();
    std::fs::write(place.path("slow.toml"), TOO_SLOW).unwrap();
    place.done(&["run", "slow.toml", "--out", "out"]);
    let why = "did not complete within 10 s";
    for (kind, told) in [
        ("bars", why.to_owned()),
        ("lines", format!("500 kbit/s: {why}")),
        ("heat", format!("500 kbit/s: {why}")),
        ("cdf", format!("500 kbit/s: {why}")),
    ] {
        let drawn = svg(&place, &["--metric", "completion_time_s", "--of", "file", "--kind", kind]);
        let words: Vec<String> = words(&drawn).iter().map(|word| word.replace('\u{a0}', " ")).collect();
        assert!(words.contains(&told), "{kind}: {words:?}");
    }
    let Some(browser) = browser::browser() else { return };
    let said = |page: &str, part: &str| {
        let found = questions::read(&browser, &place.path(page), part, questions::WORDS);
        found["text"].as_str().unwrap().replace('\u{a0}', " ")
    };
    assert!(said("out/index.html", "").contains(why));
    for view in ["bars", "lines&along=dumbbell.rate"] {
        let text = said("out/report/compare.html", &format!("completion&view={view}"));
        assert!(text.contains(why), "{view}: {text}");
    }
}

#[test]
fn the_comparison_averages_over_a_level_only_if_it_is_asked_to() {
    let Some(browser) = browser::browser() else { return };
    let place = Place::new();
    std::fs::write(place.path("grid.toml"), LAB).unwrap();
    place.done(&["run", "grid.toml", "--out", "out"]);
    let title = |part: &str| {
        let page = place.path("out/report/compare.html");
        let found = questions::read(&browser, &page, part, questions::WORDS);
        found["h1"].as_str().unwrap().to_owned()
    };
    let lines = "delay&view=lines&along=dumbbell.rate";
    assert!(title(lines).contains(", queue pie"), "{}", title(lines));
    let mean = format!("{lines}&mean=dumbbell.queue");
    assert!(title(&mean).contains(", mean over queue"), "{}", title(&mean));
}

#[test]
fn cells_of_a_result_are_shown_in_the_order_of_the_command() {
    let place = result();
    let cells = ["compare", "out", "--cells", "10 Mbit/s/tail-drop,5mbit_pie", "--out", "page"];
    let output = place.weir(&cells);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let lab = std::fs::read_to_string(place.path("page/report/lab.js")).unwrap();
    assert!(lab.contains(r#""values":[["10 Mbit/s, tail-drop","5 Mbit/s, pie"]]"#), "{}", &lab[..400]);
    assert!(
        place.path("page/report/sim/5mbit_pie_r1.js").is_file() && place.path("page/index.html").is_file()
    );
    for (cells, help) in [("pie", "give all labels: 5 Mbit/s/pie, 10 Mbit/s/pie"), ("red", "5 Mbit/s/pie")] {
        let output = place.weir(&["compare", "out", "--cells", cells]);
        assert_eq!(status(&output), 2);
        assert!(text(&output.stderr).contains(help), "{}", text(&output.stderr));
    }
}

#[test]
fn two_results_are_distinguished_by_a_level_of_their_own() {
    let place = result();
    let output = place.weir(&["compare", "out", "out", "--out", "page"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let lab = std::fs::read_to_string(place.path("page/report/lab.js")).unwrap();
    assert!(lab.contains(r#""levels":["result","dumbbell.rate","dumbbell.queue"]"#), "{}", &lab[..400]);
    // Six cells three times, of each result.
    assert_eq!(lab.matches("\"id\":").count(), 36);
    assert!(place.path("page/report/sim/2-5mbit_pie_r1.html").is_file());
}

/// One flow of 1448-byte segments. On the way down the SYN is packet 1 and the handshake's ACK packet 2, so packet 60 is segment 58, with
/// bytes 57 * 1448 = 82536 to 83984.
const ONE_FLOW: &str = "format = 1\nname = 'one'\n[run]\nduration = '2 s'\nwarmup = '0 s'\nsample = '10 ms'\n\
    start_jitter = '0 s'\nhost_jitter = '0 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '40 ms'\n\
    queue = { kind = 'tail-drop', limit = '1000 packets' }\n[traffic.flow]\ncc = 'newreno'\n";

#[test]
fn the_first_packet_that_differs_is_found_in_captures_of_two_results() {
    let place = Place::new();
    std::fs::write(place.path("one.toml"), ONE_FLOW).unwrap();
    for (out, set) in [("whole", "run.seed=1"), ("lossy", "dumbbell.drop=[60]")] {
        let args = ["run", "one.toml", "--out", out, "--no-report", "--pcap", "down,up", "--set", set];
        let output = place.weir(&args);
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    }
    let output = place.weir(&["compare", "whole", "lossy", "--out", "page"]);
    let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "At link down data packet 58 is the first that differs (in lossy a packet was dropped before the link, or sent \
                 later): whole sent bytes 82536 to 83984 at";
    assert!(told.contains(first), "{told}");
    assert!(
        told.contains("lossy sent bytes 83984 to 85432, 1448 bytes after the highest before it"),
        "{told}"
    );
    assert!(told.contains("SACK 83984 to 85432"), "{told}");
    assert!(told.contains("In the samples the slow-start threshold parts first"), "{told}");
    let page = std::fs::read_to_string(place.path("page/index.html")).unwrap();
    assert!(page.contains(first), "the page says the same");
    assert!(place.path("page/report/trajectories/0.js").is_file());

    let output = place.weir(&["compare", "whole", "whole", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let pair = &document["trajectories"]["pairs"][0];
    assert_eq!((pair["group"].as_str(), pair["parts"].as_array().map(Vec::len)), (Some("flow"), Some(0)));
    assert!(pair["links"][0]["packets"]["same"]["count"].as_u64() > Some(1000), "{pair}");
}
