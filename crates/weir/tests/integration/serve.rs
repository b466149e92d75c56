//! `weir serve` over real sockets: what the list tells, which requests are refused, and that nothing is written or lost.

mod requests;
mod rows;
mod writing;

use crate::place::{Place, text, tree};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

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
    /// Serves the folder `results` of a place, unless another is named.
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

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
