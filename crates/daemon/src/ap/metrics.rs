//! Counters for Prometheus (exposition format 0.0.4 over HTTP/1.0), on the loopback device only.

use crate::failure::Failure;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use weir_live::ap::{Snapshot, Watch};

/// Longest time for a request to arrive, and for its answer to be sent.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest request.
const LONGEST: usize = 8192;

/// Listens at an address of the loopback device.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() {
        let message = format!("--metrics {address} is not an address of the loopback device");
        return Err(Failure::bad_input(
            message,
            "counters are served only to this host: write 127.0.0.1:PORT or [::1]:PORT",
        ));
    }
    TcpListener::bind(address).map_err(|error| {
        Failure::bad_input(
            format!("cannot listen at {address}: {error}"),
            "choose another port with --metrics",
        )
    })
}

/// Serves on a thread of its own until the process ends.
pub(super) fn serve(listener: TcpListener, watch: Watch) -> Result<(), Failure> {
    let work = move || {
        for stream in listener.incoming().flatten() {
            // A client that has gone away or is too slow asks again.
            let _ = answer(stream, &watch);
        }
    };
    let thread = std::thread::Builder::new().name("weir-metrics".into()).spawn(work);
    thread.map(drop).map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))
}

fn answer(mut stream: TcpStream, watch: &Watch) -> io::Result<()> {
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
    let (status, body) = match request.strip_prefix(b"GET /metrics") {
        Some([b' ' | b'?', ..]) => ("200 OK", text(&watch.snapshot())),
        _ => ("404 Not Found", "counters are at /metrics\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes())
}

/// A value of a label: backslashes, quotes and ends of lines are escaped.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The snapshot in Prometheus' text format: all samples of a metric stand together.
fn text(snapshot: &Snapshot) -> String {
    let Snapshot { local, path, up_s, packets, applications } = snapshot;
    let wire = format!("local=\"{}\",path=\"{}\"", label(local), label(path));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP weir_ap_up_seconds Time since the aggregation point was started.");
    let _ = writeln!(text, "# TYPE weir_ap_up_seconds gauge\nweir_ap_up_seconds{{{wire}}} {up_s}");
    let _ = writeln!(text, "# HELP weir_ap_packets_total Frames at both devices, and packets by outcome.");
    let _ = writeln!(text, "# TYPE weir_ap_packets_total counter");
    for (name, count) in packets {
        let _ = writeln!(text, "weir_ap_packets_total{{{wire},what=\"{name}\"}} {count}");
    }
    let mut names: Vec<&str> = vec![];
    for (name, _) in applications.iter().flat_map(|application| &application.values) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let _ = writeln!(text, "# TYPE weir_ap_application_{name} gauge");
        for application in applications {
            let own =
                format!("{wire},id=\"{}\",application=\"{}\"", application.id, label(&application.name));
            for (_, value) in application.values.iter().filter(|(own, _)| own == name) {
                let _ = writeln!(text, "weir_ap_application_{name}{{{own}}} {value}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_live::ap::ApplicationSnapshot;

    #[test]
    fn samples_of_a_metric_follow_each_other_and_labels_are_escaped() {
        let application = |id, name: &str, rtt| ApplicationSnapshot {
            id,
            name: name.into(),
            values: vec![("flows".into(), 2.0), ("rtt_ms".into(), rtt)],
        };
        let snapshot = Snapshot {
            local: "a".into(),
            path: "b".into(),
            up_s: 1.5,
            packets: vec![("passed".into(), 3)],
            applications: vec![application(1, "one", 20.5), application(2, "t\"wo", 0.25)],
        };
        let text = text(&snapshot);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            samples,
            [
                "# TYPE weir_ap_up_seconds gauge",
                "weir_ap_up_seconds{local=\"a\",path=\"b\"} 1.5",
                "# TYPE weir_ap_packets_total counter",
                "weir_ap_packets_total{local=\"a\",path=\"b\",what=\"passed\"} 3",
                "# TYPE weir_ap_application_flows gauge",
                "weir_ap_application_flows{local=\"a\",path=\"b\",id=\"1\",application=\"one\"} 2",
                "weir_ap_application_flows{local=\"a\",path=\"b\",id=\"2\",application=\"t\\\"wo\"} 2",
                "# TYPE weir_ap_application_rtt_ms gauge",
                "weir_ap_application_rtt_ms{local=\"a\",path=\"b\",id=\"1\",application=\"one\"} 20.5",
                "weir_ap_application_rtt_ms{local=\"a\",path=\"b\",id=\"2\",application=\"t\\\"wo\"} 0.25",
            ]
        );
    }
}
