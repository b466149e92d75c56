//! What a daemon serves on the loopback device (HTTP/1.0): a page of its status, and its counters for Prometheus.

use super::metrics;
use super::status::Status;
use crate::failure::Failure;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest time for a request to arrive, and for its answer to be sent.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest request.
const LONGEST: usize = 8192;
/// Connections that are served at the same time. A browser opens several and leaves some without a request.
const MOST: usize = 16;

/// The page and what it loads: the path, the type and the text of each.
const PAGE: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page/status.html")),
    ("/status.css", "text/css; charset=utf-8", include_str!("page/status.css")),
    ("/status.js", "text/javascript; charset=utf-8", include_str!("page/status.js")),
];

/// Gives the status as it is now.
pub(super) type Source = Arc<dyn Fn() -> Status + Send + Sync>;

/// Refuses an address that other hosts reach.
pub(super) fn check(address: SocketAddr) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let message = format!("--metrics {address} is not an address of the loopback device");
    Err(Failure::bad_input(
        message,
        "counters are served only to this host: write 127.0.0.1:PORT or [::1]:PORT",
    ))
}

/// Listens at an address.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        Failure::bad_input(
            format!("cannot listen at {address}: {error}"),
            "choose another port with --metrics",
        )
    })
}

/// Answers until the process ends. Names of counters begin with `prefix`.
pub(super) fn serve(listener: &TcpListener, prefix: &str, status: &Source) {
    let (prefix, open): (Arc<str>, _) = (prefix.into(), Arc::new(AtomicUsize::new(0)));
    for stream in listener.incoming().flatten() {
        if open.fetch_add(1, Ordering::AcqRel) >= MOST {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (prefix, status, served) = (prefix.clone(), status.clone(), open.clone());
        let answer = move || {
            // A client that has gone away or is too slow asks again.
            let _ = answer(stream, &prefix, &status);
            served.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("weir-http".to_owned()).spawn(answer).is_err() {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn answer(mut stream: TcpStream, prefix: &str, status: &Source) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut request, mut chunk) = (vec![], [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > LONGEST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&chunk[..length]),
        }
    }
    stream.write_all(&response(&String::from_utf8_lossy(&request), prefix, status))
}

/// The response to a request.
fn response(request: &str, prefix: &str, status: &Source) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (code, kind, body) = match path(request) {
        // A page of another site that has this address under a name of its own (DNS rebinding) is told nothing.
        _ if !is_asked_here(request) => {
            ("403 Forbidden", plain, "ask by the address of this host\n".to_owned())
        }
        Some("/metrics") => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics::text(prefix, &status()))
        }
        Some("/status.json") => {
            ("200 OK", "application/json", serde_json::to_string(&status()).unwrap_or_default())
        }
        asked => match PAGE.iter().find(|(path, ..)| Some(*path) == asked) {
            Some((_, kind, text)) => ("200 OK", *kind, (*text).to_owned()),
            None => ("404 Not Found", plain, "the status is at /, counters are at /metrics\n".to_owned()),
        },
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.0 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// The path that a request asks for, without its query; `None` if it is no GET.
fn path(request: &str) -> Option<&str> {
    let target = request.strip_prefix("GET ")?.split([' ', '\r']).next()?;
    target.split('?').next()
}

/// Whether a request names this host by an address of the loopback device or as localhost, or not at all.
fn is_asked_here(request: &str) -> bool {
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    };
    let Some(host) = request.lines().skip(1).take_while(|line| !line.is_empty()).find_map(header) else {
        return true;
    };
    let is_loopback = |address: &str| address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let with_port = host.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    with_port || is_loopback(host.trim_matches(['[', ']'])) || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn asked(request: &str) -> (String, String) {
        let status: Source = Arc::new(|| Status { place: "at x".into(), up_s: 2.0, ..Status::default() });
        let text = String::from_utf8(response(request, "weir_ap", &status)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn the_page_the_status_and_the_counters_have_paths_and_all_else_is_not_found() {
        for (path, kind) in [
            ("/", "text/html; charset=utf-8"),
            ("/?a=b", "text/html; charset=utf-8"),
            ("/status.js", "text/javascript; charset=utf-8"),
            ("/status.css", "text/css; charset=utf-8"),
            ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
            ("/status.json", "application/json"),
        ] {
            let (head, body) = asked(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:9100\r\n\r\n"));
            assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{path}: {head}");
            assert!(head.contains(&format!("Content-Type: {kind}\r\n")), "{path}: {head}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{path}: {head}");
        }
        let (_, status) = asked("GET /status.json HTTP/1.0\r\n\r\n");
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!((&status["place"], &status["up_s"]), (&"at x".into(), &2.0.into()));
        for request in
            ["GET /metricsx HTTP/1.0\r\n\r\n", "POST / HTTP/1.0\r\n\r\n", "GET\r\n\r\n", "\r\n\r\n"]
        {
            assert!(asked(request).0.starts_with("HTTP/1.0 404 Not Found\r\n"), "{request:?}");
        }
    }

    #[test]
    fn only_who_asks_by_an_address_of_this_host_is_answered() {
        for host in ["127.0.0.1", "127.0.0.1:9100", "[::1]:9100", "[::1]", "localhost:9100", "LOCALHOST"] {
            let (head, _) = asked(&format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\n\r\n"));
            assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{host}: {head}");
        }
        for host in ["example.org", "example.org:9100", "192.0.2.1:9100", "localhost.example.org", ""] {
            let (head, body) = asked(&format!("GET /status.json HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert!(head.starts_with("HTTP/1.0 403 Forbidden\r\n"), "{host}: {head}");
            assert!(!body.contains("at x"), "{host}: {body}");
        }
    }
}
