//! What nodes say to each other, captured on their link: sealed, unless a node has logged its secrets.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// A capture of what passes at a device of the calling thread's host, from its beginning to [`Capturing::end`].
struct Capturing(Child);

impl Capturing {
    fn begin(device: &str, file: &Path) -> Capturing {
        let mut command = Command::new("dumpcap");
        command.args(["-q", "-i", device, "-f", "udp", "-w", file.to_str().unwrap()]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        // It names the file once it captures.
        while !told.contains("File: ") {
            assert!(lines.read_line(&mut told).unwrap() > 0, "{told}");
        }
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        Capturing(child)
    }

    fn end(mut self) {
        send_signal(&self.0, Signal::INT);
        assert!(self.0.wait().unwrap().success());
    }
}

/// The fields of each packet of the overlay that tshark shows in a capture.
fn shown(capture: &Path) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    for script in ["sliq.lua", "overlay.lua"] {
        tshark.args(["-X", &format!("lua_script:{DOCS}/{script}")]);
    }
    tshark.args(["-o", "overlay.notes:FALSE", "-o", "overlay.port:7770", "-r", capture.to_str().unwrap()]);
    tshark.args(["-Y", "overlay", "-T", "fields"]);
    for field in ["message", "inner.source", "inner.destination", "inner.destination_port"] {
        tshark.args(["-e", &format!("overlay.{field}")]);
    }
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

/// Whether these bytes stand somewhere in a file.
fn has(file: &Path, bytes: &[u8]) -> bool {
    std::fs::read(file).unwrap().windows(bytes.len()).any(|part| part == bytes)
}

#[test]
fn a_capture_between_nodes_is_read_with_their_secrets_and_not_without_them() {
    let Some(triangle) = Triangle::new() else { return };
    for program in ["dumpcap", "tshark"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("skipped: there is no {program} here");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "{program} is required");
            return;
        }
    }
    let path = |name: &str| triangle.folder.path().join(name);
    let [sealed, plain, keys, others] = ["sealed.pcapng", "plain.pcap", "a.keys", "c.keys"].map(path);
    let capturing = triangle.inside(0, || Capturing::begin("to-b", &sealed));
    let log = |file: &Path| ["--key-log".to_owned(), file.to_str().unwrap().to_owned()];
    let with = |node: usize, file: &Path| {
        let words = log(file);
        triangle.start_with(node, &words.each_ref().map(String::as_str))
    };
    let _nodes = [with(0, &keys), triangle.start(1), with(2, &others)];
    (0..NAMES.len()).for_each(|node| triangle.until(node, "joined", |status| are_up(status) == 2));
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    deliver(&from, &to, b"what programs say to each other");
    // Segments of one send are one packet at this device.
    for _ in 0..20 {
        deliver(&from, &to, &bytes(1300));
    }
    std::thread::sleep(Duration::from_millis(500));
    capturing.end();

    let decode = |keys: &Path| {
        let [sealed, keys, plain] = [&sealed, keys, &plain].map(|path| path.to_str().unwrap());
        weir(&["sliq", "decode", sealed, "--keys", keys, "--out", plain]).output().unwrap()
    };
    let lines = std::fs::read_to_string(&keys).unwrap();
    assert_eq!(
        lines.lines().filter(|line| line.starts_with("SLIQ ")).count(),
        2,
        "a line for each neighbour"
    );
    assert_eq!(std::fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    let output = decode(&keys);
    let told = text(&output.stdout);
    assert!(
        output.status.success() && told.contains("packets opened, 0 not;"),
        "{told}{}",
        text(&output.stderr)
    );
    assert_eq!(shown(&sealed), Vec::<String>::new(), "sealed packets show nothing of the overlay");
    let shown = shown(&plain);
    let messages = shown.iter().filter(|line| line.starts_with("0x11")).count();
    assert!(messages > 0, "hellos: {shown:?}");
    let flow = "10.1.0.1\t10.2.0.1\t5000";
    assert!(shown.iter().any(|line| line.ends_with(flow)), "{shown:?}");
    // Sites have sealed for each other what programs say.
    assert!(!has(&sealed, b"what programs say") && !has(&plain, b"what programs say"));

    // The connections of another link, and none.
    std::fs::write(path("none.keys"), "# nothing\n\n").unwrap();
    let without: String = std::fs::read_to_string(&others).unwrap();
    std::fs::write(path("other.keys"), without).unwrap();
    for name in ["none.keys", "other.keys"] {
        let output = decode(&path(name));
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("0 sealed packets opened"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_log_of_keys_that_others_can_read_and_one_that_is_none_are_refused() {
    let Some(triangle) = Triangle::new() else { return };
    let file = triangle.folder.path().join("open.keys");
    std::fs::write(&file, "TLS 1\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (node, log) = (triangle.path(0), file.to_str().unwrap());
    let output = triangle.weir(0, &["overlay", "node", node.to_str().unwrap(), "--key-log", log]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.contains("others can read it") && told.contains("chmod 600"), "{told}");
    let capture = triangle.folder.path().join("x.pcap");
    let capture = capture.to_str().unwrap();
    let output = weir(&["sliq", "decode", capture, "--keys", log, "--out", capture]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 1: it does not begin with SLIQ"), "{}", text(&output.stderr));
}
