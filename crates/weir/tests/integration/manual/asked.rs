//! Questions to the manual as somebody would ask them. Each is answered by one search, in a section among the first results, or within two
//! clicks. `make docs-test` builds the manual and names its folder in `WEIR_MANUAL`; without it the test says that it skips.

use crate::browser;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Results of a search that a reader looks at.
const LOOKED_AT: usize = 5;

enum By {
    /// These words in the field for searches.
    Search(&'static str),
    /// Links by their texts: the first in the list of chapters, the next on the page that it opens.
    Clicks(&'static [&'static str]),
}
use By::{Clicks, Search};

/// How something is looked for, and a text that the answer has.
const QUESTIONS: [(By, &str); 36] = [
    (Search("a queue of 50 packets"), "limit = \"50 packets\""),
    (Search("what does goodput count"), "receiving application has read"),
    (Search("why is my run invalid"), "packets were released late"),
    (Search("what is a bdp"), "times the base round trip"),
    (Search("warm-up"), "first fifth of a run"),
    (Search("how do I make an upload"), "direction = \"up\""),
    (Search("loss in bursts"), "burst = 5"),
    (Search("mahimahi trace format"), "1504 bytes may leave"),
    (Search("stop a long run and go on"), "the same command again"),
    (Search("cannot tell"), "more repeats decide"),
    (Search("same result again"), "to the byte"),
    (Search("do I need root"), "user namespaces"),
    (Search("capture packets"), "--pcap"),
    (Search("export csv"), "weir export"),
    (Search("iperf3 reverse"), "direction = \"up\""),
    (Search("netem delay"), "weir wrap --link"),
    (Search("flent"), "weir test rrul"),
    (Search("pie target delay"), "Target delay"),
    (Search("add a controller"), "controllers!"),
    (Search("fair split"), "1 when all flows have the same rate"),
    (Search("run a program behind an emulated link"), "weir wrap"),
    (Search("sliq keygen"), "public key"),
    (Search("reserve a circuit"), "weir circuit reserve"),
    (Search("set up aggregation point"), "weir ap --local"),
    (Search("load control kernel"), "weir kernel load"),
    (Search("bufferbloat grade"), "A+"),
    (Search("dumbbell.rate"), "Rate at which the link sends"),
    (Search("start_jitter"), "Each flow starts later by a random time"),
    (Search("macOS"), "The live engine needs Linux"),
    (Search("how many repeats"), "with the number of repeats"),
    (Search("does the simulator agree with real linux"), "random"),
    (Search("what limited my flow"), "the receive window"),
    (Clicks(&["Metrics"]), "Bytes sent, link overhead included"),
    (Clicks(&["Commands"]), "Simulated runs in parallel"),
    (Clicks(&["Tutorial: is my line bloated?", "how to read it"]), "Queue delay is the time"),
    (Clicks(&["All of it", "Tables"]), "records.links"),
];

/// The pages of a site that opens from disk.
struct Manual {
    folder: PathBuf,
}

impl Manual {
    /// What a page has from the heading with an anchor to the next one, as text; the whole page without an anchor.
    fn text(&self, address: &str) -> String {
        let (file, anchor) = address.split_once('#').unwrap_or((address, ""));
        let html = std::fs::read_to_string(self.folder.join(file)).unwrap();
        let main = html.split("<main>").nth(1).unwrap_or(&html).split("</main>").next().unwrap();
        let from = main.find(&format!("id=\"{anchor}\"")).filter(|_| !anchor.is_empty()).unwrap_or(0);
        let rest = &main[from..];
        let end = ["<h1", "<h2", "<h3"].into_iter().filter_map(|heading| rest.find(heading)).min();
        let part = if anchor.is_empty() { rest } else { &rest[..end.unwrap_or(rest.len())] };
        plain(part)
    }

    /// The page that a link with this text on a page opens.
    fn link(&self, page: &str, text: &str) -> Option<String> {
        let html = std::fs::read_to_string(self.folder.join(page)).unwrap();
        let links = html.split("<a href=\"").skip(1);
        let mut named = links
            .filter_map(|link| link.split_once("\">"))
            .filter(|(_, rest)| plain(rest.split("</a>").next().unwrap_or_default()).trim() == text);
        let target = named.next()?.0.split('"').next()?;
        Some(joined(page, target))
    }
}

/// The address of a link in a page.
fn joined(page: &str, link: &str) -> String {
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(path.pop()),
            "." => {}
            part => path.push(part),
        }
    }
    path.join("/")
}

/// The text of a piece of HTML, with single blanks.
fn plain(html: &str) -> String {
    let outside = html.split('<').enumerate().map(|(place, part)| match place {
        0 => part,
        _ => part.split_once('>').map_or("", |(_, text)| text),
    });
    let text: String = outside.collect();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    text.replace("&amp;", "&").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What Chromium shows of the manual: the chapters with their addresses, and the first results of each search.
fn shown(browser: &Path, manual: &Manual, searches: &[&str]) -> Value {
    let html = std::fs::read_to_string(manual.folder.join("index.html")).unwrap();
    let searches = serde_json::to_string(searches).unwrap();
    let script = format!(
        "<pre id=\"found\"></pre><script>addEventListener('load', () => {{\
         const links = (css) => [...document.querySelectorAll(css)].map((link) => [link.textContent.trim(), link.getAttribute('href')]);\
         const field = document.getElementById('mdbook-searchbar');\
         const ask = (words) => {{ field.value = words; field.dispatchEvent(new KeyboardEvent('keyup'));\
           return links('#mdbook-searchresults a'); }};\
         document.getElementById('mdbook-search-toggle').click();\
         const ready = setInterval(() => {{\
           if (ask('weir').length === 0) return;\
           clearInterval(ready);\
           const found = {{ chapters: links('.chapter a'), results: {searches}.map(ask) }};\
           document.getElementById('found').textContent = encodeURIComponent(JSON.stringify(found));\
         }}, 100);\
         }})</script></body>"
    );
    let copy = manual.folder.join("asked.html");
    std::fs::write(&copy, html.replacen("</body>", &script, 1)).unwrap();
    let found = browser::found(browser, &copy, "", "1280,1000", 30_000);
    std::fs::remove_file(&copy).unwrap();
    serde_json::from_str(&crate::questions::decoded(&found)).unwrap()
}

/// Where the question is answered; otherwise what was found instead.
fn answered(manual: &Manual, by: &By, answer: &str, chapters: &Value, results: &Value) -> Result<(), String> {
    let has = |address: &str| manual.text(address).contains(answer);
    match by {
        Search(words) => {
            let results = results.as_array().unwrap().iter().take(LOOKED_AT);
            let address = |result: &Value| {
                let href = result[1].as_str().unwrap();
                let (page, rest) = href.split_once('?').unwrap();
                format!("{page}#{}", rest.split_once('#').map_or("", |(_, anchor)| anchor))
            };
            let addresses: Vec<String> = results.map(address).collect();
            let found = addresses.iter().any(|address| has(address));
            if found { Ok(()) } else { Err(format!("{words}: no {answer} in {addresses:#?}")) }
        }
        Clicks(links) => {
            let chapters = chapters.as_array().unwrap();
            let first = chapters.iter().find(|chapter| chapter[0] == links[0]);
            let first =
                first.and_then(|chapter| chapter[1].as_str()).ok_or(format!("no chapter {}", links[0]))?;
            let mut page = first.to_owned();
            for link in &links[1..] {
                page = manual.link(&page, link).ok_or(format!("no link {link} on {page}"))?;
            }
            if links.len() <= 2 && has(&page) {
                Ok(())
            } else {
                Err(format!("{links:?}: no {answer} in {page}"))
            }
        }
    }
}

#[test]
fn questions_are_answered_by_one_search_or_two_clicks() {
    let Some(folder) = std::env::var_os("WEIR_MANUAL").map(PathBuf::from) else {
        return eprintln!("skipped: WEIR_MANUAL names no manual (`make docs-test` builds one)");
    };
    let Some(browser) = browser::browser() else { return };
    let manual = Manual { folder };
    let words = |by: &By| if let Search(words) = by { *words } else { "weir" };
    let searches: Vec<&str> = QUESTIONS.iter().map(|(by, _)| words(by)).collect();
    let shown = shown(&browser, &manual, &searches);
    let results = shown["results"].as_array().unwrap();
    let asked = QUESTIONS.iter().zip(results);
    let failures: Vec<String> = asked
        .filter_map(|((by, answer), results)| {
            answered(&manual, by, answer, &shown["chapters"], results).err()
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
