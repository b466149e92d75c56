//! Links of `weir wrap` that take the packets to a prefix alone (`to=PREFIX`).

use super::*;

/// Links of which each has another delay there and back: 4 ms in all, 30 and 60 for two prefixes of which one has the other, 40 for IPv6.
const LINKS: [&str; 8] = [
    "--link",
    "rate=9mbit rtt=4ms",
    "--link",
    "to=198.51.100.0/24 rate=9mbit rtt=30ms",
    "--link",
    "to=198.51.100.128/25 rate=9mbit rtt=60ms",
    "--link",
    "to=2001:db8::/32 rate=9mbit rtt=40ms",
];

/// Sends an echo request to each address, and prints how long the answer took and whether it came from there.
const ECHOES: &str = "
for address in far[0], '198.51.100.7', '198.51.100.200', far[1], '2001:db8::7':
    six = ':' in address
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM, 58 if six else 1)
    s.settimeout(5)
    def echo():
        s.sendto(bytes([128 if six else 8, 0, 0, 0, 0, 0, 0, 1]), (address, 0))
        return s.recvfrom(100)[1][0] == address
    print(*took(echo))
";

#[test]
fn packets_to_a_prefix_take_its_link_and_the_longest_prefix_counts() {
    let Some(place) = place() else { return };
    let told = lines(&place, &LINKS, ECHOES);
    assert_eq!(told.len(), 5, "{told:?}");
    for (line, least) in told.iter().zip([4.0, 30.0, 60.0, 4.0, 40.0]) {
        let (ms, answered) = timed(line);
        assert!(ms >= least && answered == "True", "{least} ms: {told:?}");
    }
}

#[test]
fn each_link_carries_the_bytes_of_its_prefix_alone() {
    let Some(place) = place() else { return };
    let options = [&LINKS[..], &["--report", "out"]].concat();
    // Datagrams of 1000 bytes of IP, which nobody at the far end takes.
    let send = "
for address, count in (far[0], 3), ('198.51.100.7', 10), ('198.51.100.200', 20):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(count): s.sendto(bytes(972), (address, 9))
time.sleep(1)
";
    lines(&place, &options, send);
    place.done(&["export", "out"]);
    let table = std::fs::read_to_string(place.path("out/export/live-r1/links.csv")).unwrap();
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let column = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let (link, packets, bytes) =
        (column("link"), column("arrived_packets_not_ect"), column("sent_bytes_not_ect"));
    // Packets and bytes of each direction, in the order of the command line: link1, link1-up, link2 and so on.
    let mut sums = [[0; 2]; 8];
    for row in rows {
        let sum = &mut sums[row[link].parse::<usize>().unwrap()];
        for (sum, column) in sum.iter_mut().zip([packets, bytes]) {
            *sum += row[column].parse::<u64>().unwrap();
        }
    }
    for (number, count) in [3, 10, 20, 0].into_iter().enumerate() {
        let [down, up] = [sums[2 * number], sums[2 * number + 1]];
        // Each datagram is answered, since nobody listens there (ICMP).
        assert_eq!((up, down[0]), ([count, count * 1000], count), "link{}: {sums:?}", number + 1);
    }
}

#[test]
fn addresses_that_only_the_plan_has_are_the_far_ends_to_answer_for() {
    let Some(place) = place() else { return };
    let ask = "
for last in range(1, 16):
    address = f'10.0.0.{last}'
    if address != far[0]: print(address, took(lambda: socket.create_connection((address, 9), 5))[1])
";
    let program = python(ask);
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let output = place.weir(&[&["wrap"], &LINKS[..], &["--"], &words].concat());
    let (told, said) = (text(&output.stdout), text(&output.stderr));
    // Nothing listens at the program's own address; the far end has no way to the others.
    let refused = told.lines().filter(|line| line.ends_with("Connection refused")).count();
    assert_eq!((told.lines().count(), refused), (14, 1), "{told}");
    assert!(told.lines().all(|line| line.ends_with("refused") || line.ends_with("unreachable")), "{told}");
    assert!(!said.contains("audit"), "{said}");
}

#[test]
fn a_connection_to_a_prefix_reaches_the_server_of_the_far_end_over_its_link() {
    let Some(place) = place() else { return };
    let serve = "python3 -c \"
import socket
s = socket.create_server(('', 7000))
while True:
    c, _ = s.accept()
    c.sendall(c.getsockname()[0].encode())
    c.close()
\"";
    let options = [&LINKS[..], &["--serve", serve]].concat();
    let connect = "
def connect(address):
    with socket.create_connection((address, 7000), 10) as s: return s.makefile().readline()
for address in far[0], '198.51.100.7', '198.51.100.200': print(*took(lambda: connect(address) == address))
";
    let told = lines(&place, &options, connect);
    // The first bytes of a connection need two round trips.
    for (line, least) in told.iter().zip([8.0, 60.0, 120.0]) {
        let (ms, answered) = timed(line);
        assert!(ms >= least && answered == "True", "{least} ms: {told:?}");
    }
}

#[test]
fn what_is_wrong_with_a_prefix_is_bad_input_with_what_to_write() {
    let place = Place::new();
    let of = |links: &[&str]| {
        let links: Vec<&str> = links.iter().flat_map(|link| ["--link", link]).collect();
        let output = place.weir(&wrapped(&links, "touch was-here"));
        assert_eq!(status(&output), 2, "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let beside = |to: &str| of(&["rate=9mbit rtt=4ms", &format!("to={to} rate=9mbit rtt=4ms")]);
    assert!(beside("198.51.100.7/24").contains("`198.51.100.0/24` was probably meant"));
    assert!(beside("somewhere").contains("write it like 10.1.2.3"));
    assert!(beside("224.0.0.0/4").contains("no packet to 224.0.0.0/4 leaves"));
    assert!(beside("10.0.0.0/24").contains("addresses of the emulated network"));
    assert!(
        of(&["to=198.51.100.0/24 rate=9mbit rtt=4ms"]).contains("no link is left for other destinations")
    );
    assert!(!place.path("was-here").exists());
}
