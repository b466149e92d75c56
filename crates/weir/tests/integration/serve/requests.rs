//! Which requests are answered, with what, and which are refused.

use super::{Served, is, with_two};
use crate::browser;
use crate::place::{Place, status, text};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

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
fn the_list_and_a_report_work_in_a_browser_under_their_policies() {
    let Some(browser) = browser::browser() else { return };
    let place = with_two();
    place.done(&["note", "results/first", "<b>bold</b> & plain"]);
    let served = Served::new(&place, &[]);
    let open =
        |path: &str| browser::at_rest(&browser, &format!("http://{}/{path}", served.host), "1280,1000", 4000);
    let list = open(&format!("{}/", served.token));
    assert_eq!(list.matches("<article").count(), 2, "{list}");
    assert!(list.contains("2 results.") && list.contains("&lt;b&gt;bold&lt;/b&gt; &amp; plain"), "{list}");
    assert!(!list.contains("Add a note"), "without --notes nothing can be written");
    let run = open(&format!("{}/files/first/report/sim/pie_r1.html", served.reports));
    assert!(run.contains("<canvas"), "the report draws its plots: {run}");
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
