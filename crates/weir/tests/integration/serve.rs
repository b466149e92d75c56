//! `weir serve` over real sockets: what the list tells, which requests are refused, and that nothing is written or lost.

use crate::browser;
use crate::layout;
use crate::place::{Place, status, text, tree};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir_engine::Lock;

/// A server that works until it is dropped.
struct Served {
    child: Child,
    /// `127.0.0.1` and the port.
    host: String,
    /// The token of the list, and that of reports.
    token: String,
    reports: String,
}

impl Served {
    /// Serves the folder `results` of a place.
    fn new(place: &Place, more: &[&str]) -> Served {
        let mut command = place.command(&[&["serve"], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").unwrap();
        let (host, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        let mut served = Served { child, host: host.into(), token: token.into(), reports: String::new() };
        let page = served.get("").1;
        let begin = page.find("data-reports=\"../").unwrap() + 17;
        served.reports = page[begin..begin + 32].into();
        served
    }

    /// Sends bytes, and returns the status and the whole of the answer.
    fn send(&self, request: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.host).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = vec![];
        socket.read_to_end(&mut answer).unwrap();
        let answer = text(&answer);
        let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("{request}: {answer}"));
        (status.parse().unwrap(), answer)
    }

    /// Asks for a path of this server.
    fn ask(&self, path: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host))
    }

    /// Asks for a path below the token.
    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("/{}/{path}", self.token))
    }

    /// Asks for a file of a report: status and contents.
    fn file(&self, path: &str) -> (u16, String) {
        let (status, answer) = self.ask(&format!("/{}/files/{path}", self.reports));
        (status, answer.split_once("\r\n\r\n").unwrap().1.into())
    }

    /// The list for a query, up to date.
    fn list(&self, query: &str) -> Value {
        let (status, answer) = self.get(&format!("results?fresh=true&{query}"));
        assert_eq!(status, 200, "{answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap()
    }

    /// The paths of the rows for a query.
    fn found(&self, query: &str) -> Vec<String> {
        let list = self.list(query);
        list["rows"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().into()).collect()
    }

    /// The row of a result, once it is as it should be. The list is up to date within a fifth of a second.
    fn row(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let list = self.list("all=true");
            let row = list["rows"].as_array().unwrap().iter().find(|row| row["path"] == path).cloned();
            match row {
                Some(row) if is(&row) => return row,
                row => assert!(Instant::now() < end, "{path}: {row:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends JSON, as the page does.
    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        self.send(&format!(
            "POST /{}/{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.token,
            body.len(),
            host = self.host,
        ))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place with two results of the lab, the second in a folder within `results`.
fn with_two() -> Place {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "results/first"]);
    place.done(&["run", "lab.toml", "--out", "results/deep/er/second", "--set", "dumbbell.rtt='60 ms'"]);
    place
}

fn is(state: &str) -> impl Fn(&Value) -> bool {
    move |row| row["state"] == state && !row["bytes"].is_null()
}

#[test]
fn the_list_tells_of_each_result_what_is_known_and_finds_it() {
    let place = with_two();
    place.done(&["note", "results/first", "the OLD target"]);
    let served = Served::new(&place, &[]);
    let row = served.row("first", is("complete"));
    assert_eq!((&row["lab"], &row["engines"]), (&json!("lab"), &json!(["sim"])));
    assert_eq!((&row["runs"], &row["planned"], &row["invalid"]), (&json!(4), &json!(4), &json!(0)));
    assert_eq!(row["levels"], json!([{ "level": "dumbbell.queue", "labels": ["tail-drop", "pie"] }]));
    assert_eq!((&row["notes"][0]["text"], &row["pinned"]), (&json!("the OLD target"), &json!(false)));
    let bytes: usize = tree(&place.path("results/first")).iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(row["bytes"], json!(bytes));
    let age = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() - row["ended"].as_u64().unwrap();
    assert!(age < 600, "{row}");
    // Names, labels, notes and what else is in the lab; words in any order, in small or capital letters.
    assert_eq!(served.found("find=old+TARGET"), ["first"]);
    assert_eq!(served.found("find=60+ms"), ["deep/er/second"]);
    assert_eq!(served.found("find=second+pie"), ["deep/er/second"]);
    assert_eq!(served.found("find=pie&order=name"), ["deep/er/second", "first"]);
    assert_eq!(served.found("find=dualpi2"), [""; 0]);
    assert_eq!(served.found("engine=sim").len(), 2);
    assert_eq!(served.found("engine=live"), [""; 0]);
    assert_eq!(served.found("invalid=true"), [""; 0]);
    assert_eq!(served.get("results?order=sideways").0, 400);
}

#[test]
fn a_result_with_claims_or_of_a_ready_test_has_its_verdict_and_one_with_invalid_runs_is_found() {
    let place = Place::new();
    let lab = fs::read_to_string(place.path("lab.toml")).unwrap();
    let claim = "[[expect]]\nmetric = 'goodput_mbps'\nof = 'a'\nvalue = 100.0\ntolerance = '5 %'\nsource = 'nobody'\n";
    fs::write(place.path("claims.toml"), lab + claim).unwrap();
    place.done(&["run", "claims.toml", "--out", "results/claims"]);
    place.done(&["test", "bufferbloat", "--out", "results/test"]);
    let summary = place.path("results/test/summary.json");
    let mut of_test: Value = serde_json::from_slice(&fs::read(&summary).unwrap()).unwrap();
    of_test["runs"][0]["invalid"] = json!(["the machine was busy"]);
    fs::write(&summary, of_test.to_string()).unwrap();
    let served = Served::new(&place, &[]);
    let claims = served.row("claims", is("complete"));
    assert_eq!(claims["verdict"]["holds"], json!(false), "{claims}");
    assert!(claims["verdict"]["text"].as_str().unwrap().contains("claims hold"), "{claims}");
    let test = served.row("test", is("complete"));
    assert!(test["verdict"]["text"].as_str().unwrap().contains("grade"), "{test}");
    assert_eq!((&test["invalid"], served.found("invalid=true")), (&json!(1), vec!["test".into()]));
}

#[test]
fn a_damaged_result_and_one_of_another_version_are_rows_that_say_so() {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "whole"]);
    let damages: [(&str, fn(&Path), &str); 8] = [
        (
            "emptied",
            |at| fs::write(at.join("runs/sim-pie_r1/run.json"), "").unwrap(),
            "run.json: 0 bytes long",
        ),
        (
            "cut",
            |at| fs::write(at.join("runs/sim-pie_r2/flows.parquet"), "PAR1").unwrap(),
            "flows.parquet: 4 bytes long",
        ),
        (
            "missing",
            |at| fs::remove_file(at.join("runs/sim-pie_r1/links.parquet")).unwrap(),
            "links.parquet: missing",
        ),
        (
            "unlisted",
            |at| fs::remove_file(at.join("runs/sim-pie_r1/records.json")).unwrap(),
            "no records here",
        ),
        ("summary", |at| fs::write(at.join("summary.json"), "{").unwrap(), "summary.json: damaged"),
        ("notes", |at| fs::write(at.join("notes.json"), "[{").unwrap(), "notes.json is damaged"),
        (
            "newer",
            |at| fs::write(at.join("lab.toml"), "format = 99\nquantum = true").unwrap(),
            "cannot be read",
        ),
        ("linked", |at| symlink("/etc", at.join("runs/etc")).unwrap(), "etc is neither a file nor a folder"),
    ];
    for (name, damage, _) in &damages {
        copy(&place.path("whole"), &place.path(&format!("results/{name}")));
        damage(&place.path(&format!("results/{name}")));
    }
    copy(&place.path("whole"), &place.path("results/piped"));
    let summary = place.path("results/piped/summary.json");
    fs::remove_file(&summary).unwrap();
    assert!(Command::new("mkfifo").arg(&summary).status().unwrap().success());
    let served = Served::new(&place, &[]);
    for (name, _, why) in damages {
        let row = served.row(name, is("damaged"));
        assert!(row["why"].as_str().unwrap().contains(why), "{row}");
        assert!(!row["why"].as_str().unwrap().contains('\n'), "{row}");
    }
    assert!(served.row("piped", is("damaged"))["why"].as_str().unwrap().contains("summary.json is neither"));
    // What is damaged while the server works shows too.
    copy(&place.path("whole"), &place.path("results/later"));
    served.row("later", is("complete"));
    fs::write(place.path("results/later/runs/sim-pie_r1/run.json"), "").unwrap();
    served.row("later", is("damaged"));
}

#[test]
fn a_tree_that_runs_is_followed_and_one_that_was_interrupted_says_so() {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "results/lab", "--only", "dumbbell.queue=pie"]);
    let served = Served::new(&place, &[]);
    let row = served.row("lab", is("unfinished"));
    assert_eq!(row["why"], "2 of 4 runs; the same command runs the others");
    let lock = Lock::take(&place.path("results/lab")).unwrap();
    let row = served.row("lab", is("running"));
    let process = format!("2 of 4 runs; process {}", std::process::id());
    assert!(row["why"].as_str().unwrap().starts_with(&process), "{row}");
    assert_eq!(served.list("")["running"], 1);
    let (run, aside) = (place.path("results/lab/runs/sim-pie_r2"), place.path("aside"));
    fs::rename(&run, &aside).unwrap();
    served.row("lab", |row| row["runs"] == 1);
    fs::rename(&aside, &run).unwrap();
    served.row("lab", |row| row["runs"] == 2);
    drop(lock);
    served.row("lab", is("unfinished"));
    place.done(&["run", "lab.toml", "--out", "results/lab"]);
    assert_eq!(served.row("lab", is("complete"))["runs"], 4);
}

#[test]
fn reports_are_served_as_they_are_and_cannot_read_what_is_beside_them() {
    let place = with_two();
    let served = Served::new(&place, &[]);
    for name in
        ["index.html", "report/assets/weir.css", "report/lab.js", "report/sim/pie_r1.html", "summary.json"]
    {
        let on_disk = fs::read_to_string(place.path(&format!("results/first/{name}"))).unwrap();
        assert!(served.file(&format!("first/{name}")) == (200, on_disk), "{name}");
    }
    let (status, answer) = served.ask(&format!("/{}/files/first/index.html", served.reports));
    let policy = "content-security-policy: sandbox allow-scripts";
    assert!(status == 200 && answer.contains(policy) && !answer.contains("allow-same-origin"), "{answer}");
    // A folder stands for its page.
    let (status, answer) = served.ask(&format!("/{}/files/first", served.reports));
    assert!(
        status == 303 && answer.contains(&format!("location: /{}/files/first/\r\n", served.reports)),
        "{answer}"
    );
    assert_eq!(served.file("first/").0, 200);
    assert_eq!(served.file("first/none.html").0, 404);
    // The token of reports opens no list, and that of the list no report.
    assert_eq!(served.ask(&format!("/{}/results", served.reports)).0, 403);
    assert_eq!(served.get("files/first/index.html").0, 403);
}

#[test]
fn requests_without_the_token_or_from_elsewhere_are_refused() {
    let place = with_two();
    let served = Served::new(&place, &["--notes"]);
    let (host, token) = (&served.host, &served.token);
    let port = host.split_once(':').unwrap().1;
    let wrong = format!("{}{}", if token.starts_with('0') { '1' } else { '0' }, &token[1..]);
    for path in [
        "/".into(),
        "//".into(),
        format!("/{wrong}/"),
        format!("/{}/", &token[1..]),
        format!("/{token}0/"),
        format!("/{wrong}/results"),
    ] {
        let (status, answer) = served.ask(&path);
        assert!(
            status == 403 && answer.contains("wrong token") && !answer.contains(token),
            "{path}: {answer}"
        );
    }
    let get = |head: &str| served.send(&format!("GET /{token}/ HTTP/1.1\r\n{head}Connection: close\r\n\r\n"));
    assert_eq!(get(&format!("Host: localhost:{port}\r\n")).0, 200);
    for head in [
        format!("Host: evil.example:{port}\r\n"),
        "Host: 127.0.0.1\r\n".into(),
        format!("Host: {host}.evil.example\r\n"),
        format!("Host: {host}\r\nHost: evil.example\r\n"),
        String::new(),
    ] {
        let (status, answer) = get(&head);
        assert!(status == 403 || status == 400, "{head}: {answer}");
        assert!(!answer.contains("data-reports"), "{head}: {answer}");
    }
    let absolute =
        format!("GET http://evil.example/{token}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(served.send(&absolute).0, 403);
    let body = json!({ "result": "first", "pinned": true }).to_string();
    let post = |head: &str| {
        let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        served.send(&format!("POST /{token}/pins HTTP/1.1\r\nHost: {host}\r\n{head}\r\n{rest}"))
    };
    // Another page cannot send JSON, nor from its own origin.
    assert_eq!(post("Content-Type: application/json\r\nOrigin: https://evil.example").0, 403);
    assert_eq!(post("Content-Type: application/json\r\nOrigin: null").0, 403);
    assert_eq!(post("Content-Type: text/plain").0, 400);
    assert!(!place.path("results/first/pinned").exists());
    assert_eq!(post("Content-Type: application/json").0, 204);
    assert!(place.path("results/first/pinned").exists());
}

#[test]
fn paths_and_links_out_of_the_folder_are_refused() {
    let place = with_two();
    fs::write(place.path("secret.txt"), "the secret").unwrap();
    let first = place.path("results/first");
    symlink(place.path("secret.txt"), first.join("absolute.txt")).unwrap();
    symlink("../../secret.txt", first.join("relative.txt")).unwrap();
    symlink(place.path(""), place.path("results/up")).unwrap();
    symlink("index.html", first.join("inside.html")).unwrap();
    let served = Served::new(&place, &[]);
    for path in [
        "../secret.txt",
        "first/../../secret.txt",
        "%2e%2e/secret.txt",
        "first/%2e%2e%2f%2e%2e%2fsecret.txt",
        "..%2fsecret.txt",
        "first/absolute.txt",
        "first/relative.txt",
        "up/secret.txt",
        "/etc/passwd",
        "first/absolute.txt%00.html",
    ] {
        let (status, body) = served.file(path);
        assert!(matches!(status, 400 | 403 | 404) && !body.contains("the secret"), "{path}: {status} {body}");
    }
    assert_eq!(served.file("first/inside.html").0, 200);
    // Links are not followed to results either, and a result with one is not read.
    assert!(served.found("").iter().all(|path| !path.starts_with("up")));
    served.row("first", is("damaged"));
    for query in ["first=first", "first=../secret.txt", "first=deep", "first=deep/er/second&second=.."] {
        assert_eq!(served.get(&format!("compare?{query}")).0, 400, "{query}");
    }
}

#[test]
fn two_results_are_compared_by_the_page_of_weir_compare_and_nothing_is_written_into_the_folder() {
    let place = with_two();
    let before = tree(&place.path("results"));
    let mut served = Served::new(&place, &[]);
    served.row("first", is("complete"));
    let (status, answer) = served.get("compare?first=first&second=deep/er/second");
    assert_eq!(status, 303, "{answer}");
    let begin = answer.find("location: ../").unwrap() + 12;
    let address = answer[begin..].split("\r\n").next().unwrap();
    let page = served.ask(address).1.split_once("\r\n\r\n").unwrap().1.to_owned();
    place.weir(&["compare", "results/first", "results/deep/er/second", "--out", "page"]);
    assert_eq!(page, fs::read_to_string(place.path("page/index.html")).unwrap());
    let script = address.replace("index.html", "report/lab.js");
    assert_eq!(served.ask(&script).0, 200);
    let (status, answer) = served.get("compare?first=first");
    assert!(status == 400 && answer.contains("runs of only one engine"), "{answer}");
    for (path, body) in [
        ("pins", json!({ "result": "first", "pinned": true })),
        ("notes", json!({ "result": "first", "add": "x" })),
        ("notes", json!({ "result": "first", "remove": 1 })),
    ] {
        let (status, answer) = served.post(path, &body);
        assert!(status == 403 && answer.contains("only with `weir serve --notes`"), "{answer}");
    }
    assert!(tree(&place.path("results")) == before, "nothing is written");
    // Ctrl-C ends the server, and the comparison is removed.
    let process = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn notes_and_pins_are_kept_whoever_writes_and_faulty_ones_are_refused() {
    let place = with_two();
    let served = Served::new(&place, &["--notes"]);
    served.row("first", is("complete"));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (served, place) = (&served, &place);
            scope.spawn(move || {
                for n in 0..10 {
                    let (status, answer) = served
                        .post("notes", &json!({ "result": "first", "add": format!("page {writer} {n}") }));
                    assert_eq!(status, 200, "{answer}");
                }
            });
            scope.spawn(move || {
                (0..10).for_each(|n| {
                    _ = place.done(&["note", "results/first", &format!("command {writer} {n}")])
                });
            });
        }
    });
    let kept: Value =
        serde_json::from_str(&place.done(&["note", "results/first", "--list", "--json"])).unwrap();
    assert_eq!(kept.as_array().unwrap().len(), 40);
    for (text, why) in [
        ("bell\u{7}".to_owned(), "a control character, U+0007, as its character 5"),
        ("x".repeat(20_000), "the note has 20000 bytes; it may have 16384"),
        ("x".repeat(1 << 20), "the request is too long; a note may have 16384 bytes"),
        (" ".into(), "the note is empty"),
    ] {
        let (status, answer) = served.post("notes", &json!({ "result": "first", "add": text }));
        assert!(status == 400 && answer.contains(why), "{why}: {answer}");
    }
    assert_eq!(served.post("notes", &json!({ "result": "first", "remove": 77 })).0, 400);
    assert_eq!(served.post("notes", &json!({ "result": "../results/first", "add": "x" })).0, 400);
    assert_eq!(served.post("notes", &json!({ "result": "first", "remove": 40 })).0, 200);
    assert_eq!(served.post("pins", &json!({ "result": "first", "pinned": true })).0, 204);
    assert_eq!(served.found("pinned=true"), ["first"]);
    assert_eq!(served.row("first", is("complete"))["notes"].as_array().unwrap().len(), 39);
    // Both stay when the lab is run again.
    place.done(&["run", "lab.toml", "--out", "results/first", "--rerun"]);
    assert_eq!(served.found("pinned=true"), ["first"]);
    assert_eq!(served.found("find=page+0+9"), ["first"]);
    assert_eq!(served.post("pins", &json!({ "result": "first", "pinned": false })).0, 204);
    assert_eq!(served.found("pinned=true"), [""; 0]);
}

#[test]
fn a_full_disk_loses_no_note() {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "out", "--no-report"]);
    place.done(&["note", "out", "kept"]);
    // In a namespace of its own the test may mount a small file system.
    let script = "mkdir disk && mount -t tmpfs -o size=4M none disk || exit 77\n\
        cp -r out disk/out && cat /dev/zero > disk/rest 2> /dev/null\n\
        $WEIR note disk/out \"$(printf 'x%.0s' $(seq 9000))\"\necho status $?\n$WEIR note disk/out --list";
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", script])
        .current_dir(place.path(""))
        .env("WEIR", env!("CARGO_BIN_EXE_weir"));
    let output = command.output().unwrap();
    if output.status.code() == Some(77) || text(&output.stderr).starts_with("unshare:") {
        eprintln!("skipped: this machine allows no mount in a namespace");
        return;
    }
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(told.contains("notes.json: No space left on device") && told.contains("help: "), "{told}");
    assert!(said.starts_with("status 2\n1  20") && said.ends_with("Z  kept\n"), "{said}");
}

#[test]
fn what_cannot_be_served_ends_with_status_2() {
    let place = Place::new();
    let output = place.weir(&["serve", "nothing"]);
    assert_eq!(status(&output), 2);
    assert!(text(&output.stderr).contains("nothing is not a folder"), "{}", text(&output.stderr));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = place.weir(&["serve", ".", "--port", &port]);
    let told = text(&output.stderr);
    assert!(status(&output) == 2 && told.contains(&format!("cannot serve . at port {port}")), "{told}");
}

#[test]
fn the_page_fits_its_window_and_has_contrast_and_accessible_names() {
    let Some(browser) = browser::browser() else { return };
    let place = with_two();
    place.done(&[
        "note",
        "results/first",
        "a note, and a very long word: https://example.org/a/very/long/address/that/does/not/break",
    ]);
    place.done(&["run", "lab.toml", "--out", "results/part", "--only", "dumbbell.queue=pie"]);
    copy(&place.path("results/part"), &place.path("results/damaged"));
    fs::write(place.path("results/damaged/lab.toml"), "format = 99").unwrap();
    let _lock = Lock::take(&place.path("results/part")).unwrap();
    let served = Served::new(&place, &["--notes"]);
    served.post("pins", &json!({ "result": "first", "pinned": true }));
    served.row("damaged", is("damaged"));
    // The page as a file, with the server's answer in it.
    let page = place.path("page/index.html");
    fs::create_dir_all(place.path("page/assets")).unwrap();
    fs::create_dir_all(place.path("page/report/assets")).unwrap();
    let body = |path: &str| served.get(path).1.split_once("\r\n\r\n").unwrap().1.to_owned();
    for name in [
        "assets/list.js",
        "assets/list.css",
        "report/assets/weir.js",
        "report/assets/weir.css",
        "report/assets/uplot.css",
    ] {
        fs::write(place.path(&format!("page/{name}")), body(name)).unwrap();
    }
    let answer = Value::String(served.list("").to_string());
    let script = format!(
        "<script>window.fetch = async () => ({{ ok: true, text: async () => {answer} }});\
         addEventListener('load', () => setTimeout(() => {{ document.querySelector('.add').click(); \
         document.querySelectorAll('.result > input')[1].click(); }}, 200));</script></head>"
    );
    fs::write(&page, body("").replacen("</head>", &script, 1)).unwrap();
    let wrong = layout::checked(&browser, &page, "");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
