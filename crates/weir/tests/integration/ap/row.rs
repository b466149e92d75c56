//! Namespaces in a row, with aggregation points in the middle ones, and datagrams that endpoints send.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use weir_coord::cell::{Cell, NET};
use weir_coord::endpoint::{Endpoint, Identity};
use weir_coord::header::{Flags, Version};
use weir_linux::namespace::{Namespace, set_sysctl};

pub(crate) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub(crate) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// The applications' port, and a port of no application.
pub(crate) const PORT: u16 = 9000;
pub(crate) const OTHER: u16 = 7000;
/// Longest wait for a packet.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Silence after which no packet is expected any more.
pub(crate) const QUIET: Duration = Duration::from_millis(300);

pub(crate) fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes without a pattern.
pub(crate) fn content(length: u32) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Namespaces in a row, each with a device to the left (`a`) and one to the right (`b`): the endpoints are the first and the last.
pub(crate) struct Row {
    namespaces: Vec<Namespace>,
    pub(crate) folder: tempfile::TempDir,
    /// More lines of each application in the points' configurations.
    more: String,
}

pub(crate) fn may_not() -> bool {
    let privileged = rustix::process::geteuid().is_root() && weir_linux::may_make_namespaces();
    if !privileged {
        println!("skipped: aggregation points are set up by root, in network namespaces");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
    }
    !privileged
}

/// Writes a file that nobody else can read.
fn private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// The applications of a point, with more lines for each.
pub(crate) fn apps(local: &str, remote: &str, more: &str) -> String {
    let one = |id: u8, name: &str, port: u16| {
        format!(
            "[[application]]\nid = {id}\nname = '{name}'\nlocal = ['{local}']\nlocal_ports = {port}\nremote = ['{remote}']\nremote_ports = {port}\n{more}"
        )
    };
    one(1, "array", PORT) + &one(2, "immersion", PORT + 1)
}

impl Row {
    /// This many aggregation points between two endpoints; `None` if they cannot be made.
    pub(crate) fn new(points: usize) -> Option<Row> {
        if may_not() {
            return None;
        }
        let namespaces: Vec<Namespace> = (0..points + 2).map(|_| Namespace::new().unwrap()).collect();
        for (near, far) in namespaces.iter().zip(&namespaces[1..]) {
            let far = format!("/proc/{}/fd/{}", std::process::id(), far.as_fd().as_raw_fd());
            let pair = || {
                run(&format!("ip link add name b type veth peer name a netns {far}"));
                Ok(())
            };
            near.inside(pair).unwrap();
        }
        let row = Row { namespaces, folder: tempfile::tempdir().unwrap(), more: String::new() };
        let last = row.namespaces.len() - 1;
        for n in 0..=last {
            row.at(n, || {
                let _ = set_sysctl("ipv6.conf.all.disable_ipv6", "1");
                run("ip link set dev lo up");
                for device in ["a", "b"]
                    .iter()
                    .filter(|device| (n > 0 || **device == "b") && (n < last || **device == "a"))
                {
                    run(&format!("ip link set dev {device} up"));
                }
            });
        }
        row.at(0, || run(&format!("ip address add {LEFT}/24 dev b")));
        row.at(last, || run(&format!("ip address add {RIGHT}/24 dev a")));
        Some(row)
    }

    /// The row with a key for both applications, `text`, which is also in the file `application.key`.
    pub(crate) fn with_key(mut self, text: &str) -> Row {
        self.more = format!("key = '{text}'\n");
        self.key("application.key", text);
        self
    }

    /// Writes a file with a key.
    pub(crate) fn key(&self, name: &str, text: &str) {
        private(&self.folder.path().join(name), text);
    }

    pub(crate) fn at<T: Send>(&self, n: usize, work: impl FnOnce() -> T + Send) -> T {
        self.namespaces[n].inside(|| Ok(work())).unwrap()
    }

    pub(crate) fn left<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.at(0, work)
    }

    pub(crate) fn right<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.at(self.namespaces.len() - 1, work)
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .arg("ap")
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Starts the point whose endpoints are to the left, and waits until it works.
    pub(crate) fn start(&self, n: usize, more: &str) -> Running {
        self.start_between(n, ["a", "b"], [LEFT, RIGHT], more)
    }

    pub(crate) fn start_between(
        &self,
        n: usize,
        [local, path]: [&str; 2],
        [own, other]: [Ipv4Addr; 2],
        more: &str,
    ) -> Running {
        let file = format!("apps-{n}.toml");
        private(&self.folder.path().join(&file), &apps(&own.to_string(), &other.to_string(), &self.more));
        let arguments = format!("--local {local} --path {path} --apps {file} --peer {other} {more}");
        let mut child = self.at(n, || {
            self.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("aggregation point between"), "{line}");
        Running(child)
    }

    pub(crate) fn weir(&self, n: usize, arguments: &str) -> Output {
        self.at(n, || self.command(arguments).output().unwrap())
    }

    /// The JSON document of `weir ap show` in a namespace.
    pub(crate) fn shown(&self, n: usize) -> Value {
        let output = self.weir(n, "show --json");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].take()
    }
}

/// What the point of this namespace that is started with `--metrics 127.0.0.1:9100` answers.
pub(crate) fn get(path: &str) -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9100").unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A counter of a point.
pub(crate) fn count(shown: &Value, name: &str) -> u64 {
    value(&shown["packets"], name) as u64
}

pub(crate) fn value(pairs: &Value, name: &str) -> f64 {
    let pair = pairs.as_array().unwrap().iter().find(|pair| pair[0] == name);
    pair.unwrap_or_else(|| panic!("no {name} in {pairs}"))[1].as_f64().unwrap()
}

/// An aggregation point that ends with the test.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
    /// Interrupts the point. Returns its exit status and its output.
    pub(crate) fn interrupt(mut self) -> (i32, String) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut told = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        (self.0.wait().unwrap().code().unwrap(), told)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Receives a datagram. A wait with a limit ends early when the process was stopped and goes on (signal(7)).
pub(crate) fn receive(socket: &UdpSocket, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

pub(crate) fn socket(address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((address, port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The Internet checksum (RFC 1071), of an odd number of bytes too.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum over a UDP datagram with its pseudo-header (RFC 768); zero if its checksum is right.
pub(crate) fn udp_sum(source: Ipv4Addr, destination: Ipv4Addr, udp: &[u8]) -> u16 {
    let length = (udp.len() as u16).to_be_bytes();
    checksum(&[&source.octets()[..], &destination.octets(), &[0, 17], &length, udp].concat())
}

/// A UDP datagram with its checksum, as handed to a card that computes none.
pub(crate) fn datagram(source: Ipv4Addr, destination: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    let port = port.to_be_bytes();
    let mut udp = [&port[..], &port, &length, &[0, 0], payload].concat();
    let sum = udp_sum(source, destination, &udp);
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    udp
}

/// A raw socket of UDP: it sends datagrams with the checksum that they have, and receives them whole, whatever their checksum.
pub(crate) fn raw() -> OwnedFd {
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(rustix::net::ipproto::UDP)).unwrap();
    rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(PATIENCE))
        .unwrap();
    socket
}

pub(crate) fn send_raw(socket: &OwnedFd, to: Ipv4Addr, udp: &[u8]) {
    rustix::net::sendto(socket, udp, SendFlags::empty(), &SocketAddrV4::new(to, 0)).unwrap();
}

/// The next datagram at a raw socket, behind its IP header.
pub(crate) fn receive_raw(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    let (length, _) = rustix::net::recv(socket, &mut bytes[..], RecvFlags::empty()).unwrap();
    bytes[20..length].to_vec()
}

pub(crate) fn endpoint(application: u8, flow: u8, version: Version) -> Endpoint {
    let identity = Identity { application, flow, protocol: 2, key: None, epoch: 1 };
    Endpoint::new(identity, version, &[Cell { address: NET, offset: 0 }])
}

/// A payload of 100 bytes behind a header.
pub(crate) fn sealed(endpoint: &mut Endpoint, flags: Flags) -> Vec<u8> {
    let mut payload = vec![0xab; endpoint.header_length() + 100];
    endpoint.seal(flags, &mut payload);
    payload
}
