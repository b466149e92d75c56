//! Whatever bytes a socket brings to `weir serve`: no file outside its folder is sent, nothing is given without the token or to a foreign
//! `Host`, nothing is written without permission, and what is written with it can be read.
//!
//! `TOKEN`, `REPORTS` and `HOST` in an input stand for the secrets and the address of the server, which no input can know.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use weir_engine::notes::notes;
use weir_serve::Server;

/// The contents of a file beside the folder, to which a link in the folder leads.
const OUTSIDE: &str = "what is outside stays outside";
const LAB: &str = "format = 1\nname = 'fuzzed'\n[run]\nduration = '1 s'\n[dumbbell]\nrate = '1 Mbit/s'\nrtt = '10 ms'\n[traffic.a]\ncc = 'cubic'\n";

/// A server, and the folder that it serves.
struct Served {
    place: TempDir,
    host: String,
    token: String,
    reports: String,
}

impl Served {
    fn new(writes: bool) -> Served {
        let place = tempfile::tempdir().expect("a temporary folder");
        let result = place.path().join("results/lab");
        fs::create_dir_all(result.join("runs")).expect("a result folder");
        fs::write(result.join("lab.toml"), LAB).expect("a lab");
        fs::write(result.join("index.html"), "<p>report</p>").expect("a report");
        fs::write(place.path().join("outside.txt"), OUTSIDE).expect("a file");
        std::os::unix::fs::symlink("../../outside.txt", result.join("report")).expect("a link");
        let compare = |_: &[std::path::PathBuf], out: &Path| {
            fs::write(out.join("index.html"), "<p>comparison</p>").map_err(|error| error.to_string())
        };
        let server =
            Server::new(&place.path().join("results"), 0, writes, Box::new(compare)).expect("a server");
        let address = server.address();
        let (host, token) =
            address[7..].trim_end_matches('/').split_once('/').expect("an address with a token");
        let (host, token) = (host.to_owned(), token.to_owned());
        std::thread::spawn(move || server.run());
        let request = format!("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let page = ask(&host, request.as_bytes(), false);
        let page = String::from_utf8_lossy(&page);
        let begin = page.find("data-reports=\"../").expect("a page with the token of reports") + 17;
        let reports = page[begin..begin + 32].to_owned();
        Served { place, host, token, reports }
    }

    /// The result folder and what is in it.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.place.path().join("results/lab")).expect("the result folder");
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Sends bytes and reads the answer to its end. One who `ends` says that nothing follows; the server may then give up an answer that it has
/// not begun.
fn ask(host: &str, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut socket = TcpStream::connect(host).expect("the server listens");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    // A server that has refused a request need not read the rest of it.
    let written = socket.write_all(bytes);
    if ends {
        let _ = written.and_then(|()| socket.shutdown(Shutdown::Write));
    }
    let mut answer = vec![];
    match socket.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("no answer within ten seconds")
        }
        _ => answer,
    }
}

/// Sends an input to a server that may write, and to one that may not.
pub(crate) fn check(data: &[u8]) {
    static SERVERS: OnceLock<[Mutex<Served>; 2]> = OnceLock::new();
    let servers = SERVERS.get_or_init(|| [false, true].map(|writes| Mutex::new(Served::new(writes))));
    for (writes, served) in [false, true].into_iter().zip(servers) {
        let served = served.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ["TOKEN", "REPORTS", "HOST"]
            .map(|name| data.windows(name.len()).any(|part| part == name.as_bytes()));
        let mut bytes = data.to_vec();
        for (name, value) in [("TOKEN", &served.token), ("REPORTS", &served.reports), ("HOST", &served.host)]
        {
            bytes = replaced(&bytes, name.as_bytes(), value.as_bytes());
        }
        let answer = String::from_utf8_lossy(&ask(&served.host, &bytes, true)).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
        assert!(!answer.contains(OUTSIDE), "{answer}");
        if !(known[0] || known[1]) || !known[2] {
            assert!(!answer.contains("HTTP/1.1 2") && !answer.contains("HTTP/1.0 2"), "{answer}");
            assert!(!answer.contains(&served.token) && !answer.contains(&served.reports), "{answer}");
        }
        if !writes {
            assert_eq!(served.files(), ["index.html", "lab.toml", "report", "runs"]);
            continue;
        }
        let folder = served.place.path().join("results/lab");
        for note in notes(&folder).expect("notes that can be read") {
            assert!(!note.text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
        }
        for name in ["notes.json", "pinned"] {
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

/// The bytes with each `name` replaced.
fn replaced(bytes: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut made = vec![];
    let mut rest = bytes;
    while let Some(at) = rest.windows(name.len()).position(|part| part == name) {
        made.extend([&rest[..at], value].concat());
        rest = &rest[at + name.len()..];
    }
    made.extend(rest);
    made
}
