//! Every page in a real browser, from disk: its plots are drawn and its console is empty. The tests skip, and say so, if
//! Chromium is not installed; `WEIR_REQUIRE_CHROMIUM=1` makes that a failure.

use crate::chromium;
use crate::devtools::{self, Seen};
use crate::sample;
use std::path::{Path, PathBuf};
use weir_record::metrics::rate::GOODPUT;
use weir_record::{FlowSummary, Value};
use weir_report::charts::{Chart, FlowSeries, Ink, Line, RunSeries};
use weir_report::lab::Run;

impl Seen {
    fn count(&self, what: &str) -> usize {
        self.dom.matches(what).count()
    }
}

/// Opens a page and waits until its scripts have ended.
fn open(browser: &Path, page: &Path) -> Seen {
    open_at(browser, page, "1280,1000")
}

/// Opens a page in a window of this size.
fn open_at(browser: &Path, page: &Path, size: &str) -> Seen {
    open_part(browser, page, "", size)
}

/// Opens a page with `part` after the `#` of its address, in a window of this size.
fn open_part(browser: &Path, page: &Path, part: &str, size: &str) -> Seen {
    assert!(page.is_file(), "{} was not written", page.display());
    devtools::open(browser, &format!("file://{}{part}", page.display()), size, 4000)
}

fn assert_sound(name: &str, seen: &Seen, plots: usize) {
    assert_eq!(seen.console, [] as [String; 0], "console of {name}");
    assert_eq!(seen.count("data-drawn=\"false\""), 0, "a plot of {name} has not drawn");
    assert_eq!(seen.count("data-drawn=\"true\""), plots, "plots of {name} that have drawn");
}

#[test]
fn a_console_message_is_detected() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(&page, "<!doctype html><title>x</title><script>nowhere()</script>").unwrap();
    assert_eq!(open(&browser, &page).console.len(), 1);
}

#[test]
fn every_kind_of_page_draws_and_keeps_the_console_clean() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let report = folder.path().join("report");
    let id = &lab.runs[0].id;

    let index = open(&browser, &folder.path().join("index.html"));
    assert_sound("the index", &index, 1);
    assert_eq!(
        index.count("aria-rowindex"),
        lab.runs.len() / 2,
        "rows of the index: its cells on each engine"
    );
    assert_eq!(index.count("<summary>2 repeats</summary>"), lab.runs.len() / 2, "repeats are folded");

    let comparison = open(&browser, &report.join("compare.html"));
    assert_sound("the comparison", &comparison, 1);
    assert_eq!(comparison.count("<rect class=\"over\""), 12, "columns of the comparison");

    for engine in ["sim", "live"] {
        let run = open(&browser, &report.join(format!("{engine}/{id}.html")));
        assert_sound("a run's page", &run, sample::plots(&lab.runs[0]));
        assert_eq!(run.count("class=\"line g0"), 3, "lines of the first group");
    }
    let both = open(&browser, &report.join(format!("both/{id}.html")));
    assert_sound("the page of both engines", &both, sample::plots(&lab.runs[0]));
    assert!(both.count("dashed") >= 9, "the second engine's lines are dashed");
}

#[test]
fn every_metric_of_the_comparison_draws() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    for metric in [
        "used",
        "goodput",
        "drop",
        "mark",
        "aqm",
        "rtt",
        "above-base",
        "rate-ratio",
        "window-ratio",
        "jain",
        "again",
        "window",
    ] {
        let page = folder.path().join(format!("report/{metric}.html"));
        let html = std::fs::read_to_string(folder.path().join("report/compare.html")).unwrap();
        std::fs::write(
            &page,
            html.replacen("<head>", &format!("<head><script>location.hash='{metric}'</script>"), 1),
        )
        .unwrap();
        let seen = open(&browser, &page);
        assert_sound(metric, &seen, 1);
        assert!(
            seen.dom.contains(&format!("data-key=\"{metric}\" aria-pressed=\"true\"")),
            "{metric} was not chosen"
        );
    }
}

/// A copy of a page beside it, with a script that runs once the page is complete and writes its findings into `#found`.
fn with_script(page: &Path, script: &str) -> PathBuf {
    let html = std::fs::read_to_string(page).unwrap();
    let copy = page.with_file_name("touched.html");
    let script = format!(
        "<p id=\"found\"></p><script>addEventListener('load', () => setTimeout(async () => {{ const found = [];\n\
         const rest = () => new Promise((done) => setTimeout(done, 100));\n{script}\n\
         document.getElementById('found').textContent = found.join(' '); }}, 300))</script></body>"
    );
    std::fs::write(&copy, html.replacen("</body>", &script, 1)).unwrap();
    copy
}

fn found(seen: &Seen) -> String {
    let rest = &seen.dom[seen.dom.find("<p id=\"found\">").unwrap() + 14..];
    rest[..rest.find('<').unwrap()].into()
}

#[test]
fn plots_zoom_together_lines_can_be_hidden_and_numbers_shown() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 1);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let page = folder.path().join(format!("report/both/{}.html", lab.runs[0].id));
    let script = "
        const inputs = document.querySelectorAll('.window input');
        const over = document.querySelector('.u-over');
        const box = over.getBoundingClientRect();
        const mouse = (type, share, on) => on.dispatchEvent(new MouseEvent(type, { bubbles: true, button: 0, movementX: 9,
            clientX: box.left + share * box.width, clientY: box.top + 20 }));
        const whole = [...document.querySelectorAll('.window button')].find((b) => b.textContent === 'Whole run');
        found.push(inputs[0].value, inputs[1].value);
        whole.click(); await rest();
        mouse('mousemove', 0.25, over); mouse('mousedown', 0.25, over); await rest();
        mouse('mousemove', 0.5, over); await rest();
        mouse('mouseup', 0.5, document); await rest();
        found.push(inputs[0].value > 7 && inputs[0].value < 8, inputs[1].value > 14.5 && inputs[1].value < 15.5);
        inputs[0].value = 2; inputs[1].value = 4; inputs[1].dispatchEvent(new Event('change'));
        found.push(inputs[0].value, inputs[1].value);
        whole.click();
        found.push(inputs[0].value, inputs[1].value);
        const finger = (type, share) => over.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerType: 'touch',
            clientX: box.left + share * box.width, clientY: box.top + 20 }));
        await rest(); finger('pointerdown', 0.5); finger('pointermove', 0.7); finger('pointerup', 0.75); await rest();
        found.push(Math.round(inputs[0].value), Math.round(inputs[1].value * 2));
        const line = document.querySelector('button.line');
        line.click();
        found.push(line.getAttribute('aria-pressed'));
        const before = document.documentElement.dataset.theme;
        document.getElementById('theme').click();
        found.push(before !== document.documentElement.dataset.theme);
        const numbers = document.querySelector('details.data');
        numbers.open = true; numbers.dispatchEvent(new Event('toggle'));
        found.push(numbers.querySelectorAll('tbody:not(.over) tr').length, numbers.querySelectorAll('tbody.over tr').length);
        inputs[0].value = 10; inputs[1].value = 12; inputs[1].dispatchEvent(new Event('change')); await rest();
        found.push(numbers.querySelectorAll('tbody:not(.over) tr').length);
        whole.click(); mouse('mousemove', 0.5, over); await rest();
        found.push(document.querySelector('.tip:not([hidden]) b').textContent.replace(' ', '_'));
        const log = document.querySelector('.spread .scale');
        log.click();
        found.push(log.getAttribute('aria-pressed'));";
    let seen = open(&browser, &with_script(&page, script));
    assert_sound("the page of both engines", &seen, sample::plots(&lab.runs[0]));
    assert_eq!(found(&seen), "5 30 true true 2 4 0 30 15 45 false true 75 3 20 15_s true");
}

#[test]
fn plots_are_saved_as_pixels_drawings_and_tables() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let script = "
        const [names, blobs] = [[], []];
        // Reading a blob takes real time, and the browser's clock is virtual.
        window.Blob = class extends Blob { constructor(parts, kind) { super(parts, kind); this.parts = parts; } };
        URL.createObjectURL = (blob) => { blobs.push(blob); return '#'; };
        HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
        const save = async (kind) => { document.querySelector(`.save button[aria-label$='as ${kind}']`).click(); await rest(); };
        await save('SVG'); await save('CSV'); await save('PNG'); for (let i = 0; i < 20 && blobs.length < 3; i += 1) await rest();
        const [svg, csv] = blobs.map((blob) => (blob.parts || []).join(''));
        const drawn = new DOMParser().parseFromString(svg, 'image/svg+xml');
        found.push(...names, (blobs[2] || {}).type, (blobs[2] || {}).size > 5000, drawn.querySelector('parsererror') === null, !svg.includes('class='));
        found.push(csv.split('\\r\\n')[0].replace(/ /g, '_'), csv.trim().split('\\r\\n').length);";
    let run = folder.path().join(format!("report/sim/{}.html", lab.runs[0].id));
    let seen = open(&browser, &with_script(&run, script));
    assert_eq!(seen.console, [] as [String; 0]);
    // 25 seconds after the warm-up, ten points a second, and the heading.
    let names = "goodput.svg goodput.csv goodput.png image/png true true true";
    assert_eq!(found(&seen), format!("{names} time_s,a_(Mbit/s),b_(Mbit/s) 251"));
    let comparison = folder.path().join("report/compare.html");
    let seen = open_part(&browser, &with_script(&comparison, script), "#jain", "1280,1000");
    assert_eq!(seen.console, [] as [String; 0]);
    // A row for each of twelve cells, and the heading.
    let names = "jain-s-index.svg jain-s-index.csv jain-s-index.png image/png true true true";
    assert_eq!(found(&seen), format!("{names} rate,queue,cc,engine,of,mean 13"));
    // A lab of few cells has plots on its index: 30 seconds of its only cell at ten points each, and the heading.
    let folder = tempfile::tempdir().unwrap();
    let mut lab = sample::lab(&["sim"], 1);
    lab.runs.truncate(1);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let seen = open(&browser, &with_script(&folder.path().join("index.html"), script));
    assert_eq!(seen.console, [] as [String; 0]);
    let names = "goodput.svg goodput.csv goodput.png image/png true true true";
    assert_eq!(found(&seen), format!("{names} cell,time_s,a_(Mbit/s),b_(Mbit/s) 301"));
}

#[test]
fn flows_are_found_ranked_picked_and_sorted() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut lab = sample::lab(&["sim"], 1);
    lab.runs.truncate(1);
    std::sync::Arc::make_mut(&mut lab.runs[0].summary).flows = (0..40)
        .map(|i| {
            let goodput = Value::Number(f64::from((i as u32 * 7) % 40));
            sample::flow(i / 20, i % 20, [(GOODPUT, goodput)])
        })
        .collect();
    let of_flows = |run: &Run| {
        let line = |flow: &FlowSummary| Line {
            name: flow.name.to_string(),
            ink: Ink::Group(usize::from(*flow.group == *"b")),
            thin: false,
            hidden: false,
            bound: false,
            values: vec![flow.metrics.number(&GOODPUT); 10],
        };
        let lines = run.summary.flows.iter().map(line).collect();
        let (key, title, unit) = ("flow-goodput".into(), "Goodput".into(), "Mbit/s".into());
        let charts = vec![Chart { key, title, unit, lines, ..Chart::default() }];
        RunSeries { flows: Some(FlowSeries { period_s: 3.0, count: 10, charts }), ..sample::series(run) }
    };
    weir_report::write_pages(folder.path(), &lab, |run| Ok(of_flows(run))).unwrap();
    let page = folder.path().join(format!("report/sim/{}.html", lab.runs[0].id));
    let script = "
        const drawn = () => [...document.querySelectorAll('#flows button.line')].map((line) => line.textContent);
        const press = (text) => [...document.querySelectorAll('#flows button')].find((button) => button.textContent === text).click();
        found.push(drawn().length);
        press('Top 5');
        found.push(drawn().length, drawn().includes('b-18'));
        press('Bottom 5');
        found.push(drawn().includes('a-1'));
        const find = document.querySelector('#flows input[type=search]');
        find.value = 'b-1'; find.dispatchEvent(new Event('input'));
        press('Draw the flows found');
        found.push(drawn().length, new Set([...document.querySelectorAll('#flows button.line')].map((line) => line.style.getPropertyValue('--own'))).size);
        document.querySelector('#flows input[aria-label=\"Draw b-1\"]').click();
        found.push(drawn().length);
        press('goodput, Mbit/s');
        found.push(document.querySelector('#flows tbody th').textContent, document.querySelector('#flows th[aria-sort]').getAttribute('aria-sort'));";
    let seen = open(&browser, &with_script(&page, script));
    assert_eq!(seen.console, [] as [String; 0]);
    // 7 i mod 40 is 39, 38, 37, 36 and 35 at i = 17, 34, 11, 28 and 5: b-18, at i = 37, is none of them. It is 0 at i = 0, a-1.
    assert_eq!(found(&seen), "12 5 false true 11 11 10 a-18 descending");
}

#[test]
fn no_page_is_wider_than_a_phone() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut lab = sample::lab(&["sim", "live"], 2);
    // Labs may hold long names without a place to break.
    lab.runs.iter_mut().for_each(|run| run.warnings = vec!["x".repeat(200)]);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let id = &lab.runs[0].id;
    let pages = [
        "index.html".into(),
        "report/compare.html".into(),
        format!("report/sim/{id}.html"),
        format!("report/both/{id}.html"),
    ];
    for page in pages {
        let script = "found.push(innerWidth < 600, document.documentElement.scrollWidth <= innerWidth);";
        let seen = open_at(&browser, &with_script(&folder.path().join(&page), script), "390,800");
        assert_eq!(found(&seen), "true true", "{page}");
    }
}

#[test]
fn the_index_sorts_and_finds_and_the_order_of_levels_changes() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 1);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let script = "
        const rows = () => [...document.querySelectorAll('#tree .cell')];
        found.push(rows().length);
        const find = document.getElementById('find');
        find.value = 'pie live'; find.dispatchEvent(new Event('input'));
        found.push(rows().length, rows().every((row) => row.textContent.includes('PIE')));
        find.value = 'invalid'; find.dispatchEvent(new Event('input'));
        found.push(rows().length);
        find.value = ''; find.dispatchEvent(new Event('input'));
        const sort = document.getElementById('sort');
        sort.value = 'link forward|delay'; sort.dispatchEvent(new Event('change'));
        const delays = rows().map((row) => parseFloat(row.querySelector('[data-link=\"forward\"] [data-metric=\"delay\"] b').textContent));
        found.push(delays.every((delay, i) => i === 0 || delay <= delays[i - 1]));";
    let index = open(&browser, &with_script(&folder.path().join("index.html"), script));
    assert_sound("the index", &index, 1);
    assert_eq!(found(&index), "24 4 true 1 true");

    let script = "
        const columns = () => document.querySelectorAll('rect.over').length;
        found.push(columns());
        const only = document.querySelector('select[aria-label=\"Only this queue\"]');
        only.value = '2'; only.dispatchEvent(new Event('change'));
        found.push(columns());
        document.querySelector('button[aria-label=\"Move cc outwards\"]').click();
        found.push([...document.querySelectorAll('.level-control > .quiet')].slice(0, 3).map((n) => n.textContent).join('>'));
        document.querySelector('button[title^=\"Logarithmic\"]').click();
        const ticks = () => [...document.querySelectorAll('.y-axis text:not([class])')].map((tick) => Math.log10(+tick.textContent));
        found.push(ticks().length > 1 && ticks().every(Number.isInteger));
        document.querySelector('button[data-key=\"goodput\"]').click();
        found.push(document.querySelectorAll('rect.bar').length, document.querySelectorAll('circle.dot').length);
        document.querySelector('button[data-key=\"delay\"]').click();
        document.querySelector('button.engine.live').click();
        found.push(document.querySelectorAll('rect.box.live').length, document.querySelectorAll('rect.box').length);";
    let page = with_script(&folder.path().join("report/compare.html"), script);
    let comparison = open(&browser, &page);
    assert_sound("the comparison", &comparison, 1);
    assert_eq!(found(&comparison), "12 4 rate&gt;cc&gt;queue true 0 16 0 8");
}

#[test]
fn chosen_cells_are_laid_over_each_other_and_levels_make_lines_and_maps() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let page = folder.path().join("report/compare.html");
    let cell = |queue: &str| format!("&cell=10%20Mbit/s%7C{queue}%7Cnewreno%20v%20cubic");
    let at = |part: &str, script: &str| {
        let seen = open_part(&browser, &with_script(&page, script), part, "1280,1000");
        assert_eq!(seen.console, [] as [String; 0], "console of {part}");
        assert_eq!(seen.count("data-drawn=\"false\""), 0, "{part}");
        found(&seen)
    };
    let two = format!("#delay&view=overlay{}{}", cell("pie"), cell("tail-drop%202%20bdp"));
    let names = "found.push(...[...document.querySelectorAll('.over-time button.line')].map((line) => line.textContent.replace(/ /g, '_')));
        found.push(document.querySelectorAll('[data-drawn=true]').length, decodeURIComponent(location.hash).split('&cell=').length);
        found.push(document.querySelector('h1').textContent.includes('queue pie'));";
    assert_eq!(
        at(&two, names),
        "queue_pie queue_tail-drop_2_bdp 2 3 true",
        "a line for each cell, in their order"
    );
    // Both repeats of a cell are in its line, its band and its distribution. Of two runs, of which one has a value from 0 to 2
    // and the other three from 10 to 12, half lie at or below 10 + (1/2 - 1/4) / (3/8).
    let joined = "const of = (v, c) => ({ v, c }); const both = weir.overlay.joined([of([0, 1, 2], 1), of([10, 11, 12], 3)], [0, 0.5, 1]);
        found.push(document.querySelector('figcaption p').textContent.includes('means over 2 repeats'), both.c, both.v[0], both.v[1].toFixed(3), both.v[2]);";
    assert_eq!(at(&two, joined), "true 4 0 10.667 12");
    // Two groups of two cells.
    let bars = format!("#goodput&view=bars{}{}", cell("pie"), cell("tail-drop%202%20bdp"));
    let counts = "found.push(...['rect.bar', '.interval', 'circle.dot', 'path.along', 'rect.heat'].map((mark) => document.querySelectorAll(mark).length));";
    assert_eq!(at(&bars, counts), "4 4 0 0 0");
    // Two plots, each with three queues at two rates; then two heat maps of three by two.
    let levels = "&along=rate&by=queue&facet=cc";
    assert_eq!(at(&format!("#jain&view=lines{levels}"), counts), "0 0 12 6 0");
    assert_eq!(at(&format!("#jain&view=heat{levels}"), counts), "0 0 0 0 12");
    // If a level is chosen for the axis, it changes places with the level that was there; the address holds the choice.
    let turned = "const along = document.querySelector('select[aria-label=Along]');
        along.value = '1'; along.dispatchEvent(new Event('change'));
        found.push(location.hash.includes('along=queue'), location.hash.includes('by=rate'), document.querySelectorAll('path.along').length);";
    assert_eq!(at(&format!("#jain&view=lines{levels}"), turned), "true true 4");
}

#[test]
fn an_index_of_five_thousand_runs_draws_only_visible_rows() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::large(5000);
    weir_report::write_pages(folder.path(), &lab, |_| Ok(RunSeries::default())).unwrap();
    let index = open(&browser, &folder.path().join("index.html"));
    assert_sound("the index", &index, 1);
    let rows = index.count("aria-rowindex");
    assert!((5..100).contains(&rows), "{rows} rows in the page");
    assert!(index.dom.contains("aria-rowcount=\"5001\""));
    let comparison = open(&browser, &folder.path().join("report/compare.html"));
    assert_sound("the comparison", &comparison, 1);
    assert!(comparison.count("class=\"over\"") < 200, "columns in the page");
}

#[test]
fn a_run_of_a_large_lab_is_shown_from_its_piece() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::large(250);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let report = folder.path().join("report");
    for piece in ["pages/2.js", "series/2.js"] {
        assert!(report.join(piece).is_file(), "250 runs in pieces of a hundred");
    }
    assert!(!report.join("sim").exists(), "no files run by run");
    let run = |part: &str| open_part(&browser, &report.join("run.html"), part, "1280,1000");
    let seen = run("#1/sim/cell-150");
    assert_sound("a run in a piece", &seen, sample::plots(&lab.runs[150]));
    let sentence = weir_report::sentence::run(&lab.runs[150]);
    assert!(seen.dom.contains(&format!("<h1>{}</h1>", sentence.replace('\u{a0}', "&nbsp;"))), "{}", seen.dom);
    assert!(seen.dom.contains("href=\"run.html#1/sim/cell-151\""), "the next run");
    assert!(run("#1/sim/cell-3").dom.contains("There is no run sim/cell-3 in this report."));
    assert!(run("").dom.contains("The index lists all runs"));
    let index = open(&browser, &folder.path().join("index.html"));
    assert!(index.dom.contains("href=\"report/run.html#0/sim/cell-3\""));
    let comparison = open(&browser, &report.join("compare.html"));
    assert!(comparison.dom.contains("href=\"run.html#0/sim/cell-3\""));
}

#[test]
fn values_that_the_file_leaves_out_are_back_in_the_page() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim"], 1);
    let values = vec![None, None, Some(1.5), Some(1.5), Some(2.0), Some(2.0)];
    let series = |run: &Run| {
        let mut series = sample::series(run);
        (series.count, series.charts) = (values.len(), series.charts.into_iter().take(1).collect());
        series.charts[0].lines.truncate(1);
        series.charts[0].lines[0].values.clone_from(&values);
        Ok(RunSeries { flows: None, ..series })
    };
    weir_report::write_pages(folder.path(), &lab, series).unwrap();
    let path = format!("sim/{}", lab.runs[0].id);
    let page = folder.path().join(format!("report/{path}.html"));
    let read = format!("found.push(JSON.stringify(weir.runs.get('{path}').charts[0].lines[0].v));");
    let seen = open(&browser, &with_script(&page, &read));
    assert_eq!(found(&seen), "[null,null,1.5,1.5,2,2]");
}

#[test]
fn labs_of_one_run_or_none_have_sound_pages() {
    let Some(browser) = chromium::for_a_test() else { return };
    let mut lab = sample::lab(&["sim"], 1);
    lab.levels.clear();
    lab.runs.truncate(1);
    lab.runs[0].params.clear();
    for (runs, plots) in [(1, 1), (0, 0)] {
        lab.runs.truncate(runs);
        let folder = tempfile::tempdir().unwrap();
        weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
        let index = open(&browser, &folder.path().join("index.html"));
        assert_eq!(index.console, [] as [String; 0], "console of the index of {runs} runs");
        assert_eq!(index.count("aria-rowindex"), runs);
        let comparison = open(&browser, &folder.path().join("report/compare.html"));
        assert_sound("the comparison", &comparison, plots);
    }
}

#[test]
fn the_page_of_a_run_without_series_says_so() {
    let Some(browser) = chromium::for_a_test() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut lab = sample::lab(&["sim"], 1);
    lab.runs.truncate(1);
    weir_report::write_pages(folder.path(), &lab, |_| Ok(RunSeries::default())).unwrap();
    let run = open(&browser, &folder.path().join(format!("report/sim/{}.html", lab.runs[0].id)));
    assert_sound("the run", &run, 0);
    assert!(run.dom.contains("No series were recorded."));
}
