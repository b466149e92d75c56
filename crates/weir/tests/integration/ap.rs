//! Aggregation points in network namespaces: a site's endpoint, one or two points as a wire, and the other site's endpoint. Where they
//! cannot be set up the tests skip and say so; with WEIR_REQUIRE_LIVE=1 that is a failure.

mod faults;
mod path;
mod reports;
mod restarts;
mod row;
mod sliq;
mod streams;

use row::*;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weir_coord::cell::{Cell, NET};
use weir_coord::endpoint::Endpoint;
use weir_coord::header::{Flags, Prefix, Probe, Version};

#[test]
fn headers_are_rewritten_with_correct_checksums_and_other_packets_pass_unchanged() {
    let Some(row) = Row::new(1) else { return };
    let _point = row.start(1, "");
    let (out, at_right) = (row.left(raw), row.right(raw));
    let _bound = row.right(|| [socket(RIGHT, PORT), socket(RIGHT, OTHER)]);
    let (mut one, mut two) = (endpoint(1, 5, Version::One), endpoint(2, 9, Version::Two));
    for n in 0..20u64 {
        // Two applications in turn, of 20 and of 36 bytes of header.
        let (endpoint, port) = if n % 2 == 0 { (&mut one, PORT) } else { (&mut two, PORT + 1) };
        let payload = sealed(endpoint, Flags::default());
        send_raw(&out, RIGHT, &datagram(LEFT, RIGHT, port, &payload));
        let udp = receive_raw(&at_right);
        let arrived = Prefix::read(&udp[8..]).unwrap();
        let before = Prefix::read(&payload).unwrap();
        assert_eq!(arrived, Prefix { flags: Flags::DATAPATH, ..before });
        let probe = Probe::read(arrived.version, &udp[8..]);
        // The count of each application begins at the time of the start: the low bits at zero.
        assert_eq!(probe.sequence & 0xffff, n / 2);
        let length = arrived.version.length();
        assert_eq!(udp[8 + length..], payload[length..], "behind the header nothing changes");
        assert_eq!(udp_sum(LEFT, RIGHT, &udp), 0, "packet {n}");
    }
    // Packets of no application: an unknown port with a payload that looks like a header, and one with a wrong checksum.
    let other = datagram(LEFT, RIGHT, OTHER, &sealed(&mut one, Flags::default()));
    let mut wrong = other.clone();
    wrong[6] ^= 0x55;
    for udp in [other, wrong] {
        send_raw(&out, RIGHT, &udp);
        assert_eq!(receive_raw(&at_right), udp);
    }
    let shown = row.shown(1);
    assert_eq!((count(&shown, "outbound"), count(&shown, "passed")), (20, 2));
    let names: Vec<_> =
        shown["applications"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["array", "immersion"]);
    assert_eq!(value(&shown["applications"][0]["values"], "flows"), 1.0);
    assert_eq!((count(&shown, "path_not_sent"), count(&shown, "local_missed")), (0, 0));
}

#[test]
fn bundles_and_fragments_of_other_traffic_pass_unchanged() {
    let Some(row) = Row::new(1) else { return };
    let _point = row.start(1, "");
    let data: Vec<u8> = (0..4_000_000u32).map(|n| (n.wrapping_mul(7919) >> 8) as u8).collect();
    let listener = row.right(|| TcpListener::bind((RIGHT, OTHER)).unwrap());
    let sent = data.clone();
    let (mut stream, mut arrived) = (row.left(|| TcpStream::connect((RIGHT, OTHER)).unwrap()), vec![]);
    let sending = std::thread::spawn(move || stream.write_all(&sent).unwrap());
    listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
    sending.join().unwrap();
    assert!(arrived == data);
    // Most of the 4 MB came as bundles of many segments: there are fewer frames than segments.
    let shown = row.shown(1);
    assert!(count(&shown, "local_received") < 4_000_000 / 1448, "{shown}");
    // 8,000 bytes in six fragments.
    let (left, right) = (row.left(|| socket(LEFT, OTHER)), row.right(|| socket(RIGHT, OTHER)));
    left.send_to(&data[..8000], (RIGHT, OTHER)).unwrap();
    let mut bytes = [0; 9000];
    let length = receive(&right, &mut bytes).unwrap();
    assert!(bytes[..length] == data[..8000]);
}

#[test]
fn an_endpoint_receives_reports_on_the_path_and_hostile_endpoints_are_refused() {
    let Some(row) = Row::new(2) else { return };
    let _west = row.start(1, "");
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
    let (left, right) = (row.left(|| socket(LEFT, PORT)), row.right(|| socket(RIGHT, PORT)));
    let (mut own, mut peer) = (endpoint(1, 0, Version::One), endpoint(1, 0, Version::One));
    let mut bytes = [0; 2048];
    for _ in 0..20 {
        left.send_to(&sealed(&mut own, Flags::default()), (RIGHT, PORT)).unwrap();
        let length = receive(&right, &mut bytes).unwrap();
        peer.open(&bytes[..length], |_, _| {}).unwrap();
        right.send_to(&sealed(&mut peer, Flags::default()), (LEFT, PORT)).unwrap();
        let length = receive(&left, &mut bytes).unwrap();
        own.open(&bytes[..length], |_, _| {}).unwrap();
    }
    // The round trip between the points, in microseconds: a tick is 15 us.
    let rtt = own.value(Cell { address: NET, offset: 0 }).unwrap();
    assert!((1..1_000_000).contains(&rtt), "{rtt} us");

    let before = row.shown(1);
    let refuse = |from: &UdpSocket, to: Ipv4Addr, payload: &[u8]| {
        from.send_to(payload, (to, PORT)).unwrap();
    };
    // No header; another application's number; DATAPATH from an endpoint.
    refuse(&left, RIGHT, &[0; 40]);
    refuse(&left, RIGHT, &sealed(&mut endpoint(2, 0, Version::One), Flags::default()));
    let mut forged = sealed(&mut own, Flags::default());
    forged[3] |= 0x80;
    refuse(&left, RIGHT, &forged);
    // Packets that the second point lets through come from an endpoint without a point of its own.
    left.send_to(&sealed(&mut own, Flags::default()), (RIGHT, PORT)).unwrap();
    let length = receive(&right, &mut bytes).unwrap();
    assert!(peer.open(&bytes[..length], |_, _| {}).is_ok(), "the first to arrive is the one that may");
    let after = row.shown(1);
    for name in ["refused_no_header", "refused_foreign", "refused_direction"] {
        assert_eq!(count(&after, name) - count(&before, name), 1, "{name}");
    }
    // A reflected packet comes back at once, with reports, and never reaches the other point.
    left.send_to(&sealed(&mut own, Flags::REFLECT), (RIGHT, PORT)).unwrap();
    let length = receive(&left, &mut bytes).unwrap();
    assert!(own.open(&bytes[..length], |_, _| {}).is_ok());
    assert_eq!(count(&row.shown(1), "returned"), 1);
    assert_eq!(count(&row.shown(2), "inbound"), 21);
}

/// Sends this many packets each way between two points, 1 ms apart. Returns how many arrived.
fn exchange(sockets: [&UdpSocket; 2], endpoints: &mut [Endpoint; 2], packets: u32) -> u32 {
    let (mut bytes, mut arrived) = ([0; 2048], 0);
    sockets.iter().for_each(|socket| socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap());
    for _ in 0..packets {
        for (n, to) in [RIGHT, LEFT].into_iter().enumerate() {
            sockets[n].send_to(&sealed(&mut endpoints[n], Flags::default()), (to, PORT)).unwrap();
        }
        for (n, socket) in sockets.iter().enumerate() {
            while let Ok(length) = receive(socket, &mut bytes) {
                arrived += u32::from(endpoints[n].open(&bytes[..length], |_, _| {}).is_ok());
            }
        }
    }
    arrived
}

#[test]
fn a_restart_of_a_point_is_not_counted_as_loss_by_the_other_point() {
    for version in [Version::One, Version::Two] {
        let Some(row) = Row::new(2) else { return };
        let mut west = row.start(1, "");
        let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
        let (left, right) = (row.left(|| socket(LEFT, PORT)), row.right(|| socket(RIGHT, PORT)));
        let mut endpoints = [endpoint(1, 0, version), endpoint(1, 0, version)];
        assert!(exchange([&left, &right], &mut endpoints, 200) > 300);
        west.kill();
        // A wire that does not exist carries nothing.
        assert_eq!(exchange([&left, &right], &mut endpoints, 20), 0);
        // The epoch is in seconds.
        std::thread::sleep(Duration::from_millis(1100));
        let _west = row.start(1, "");
        assert!(exchange([&left, &right], &mut endpoints, 200) > 300, "the flows go on");
        let values = row.shown(2)["applications"][0]["values"].take();
        assert_eq!(
            (value(&values, "packets_lost"), value(&values, "peer_restarts")),
            (0.0, 1.0),
            "{version:?}"
        );
        let values = row.shown(1)["applications"][0]["values"].take();
        assert_eq!(value(&values, "packets_lost"), 0.0, "{version:?}: the one that began anew");
    }
}

#[test]
fn points_that_share_a_key_refuse_packets_not_sealed_with_it() {
    let Some(row) = Row::new(2) else { return };
    let keys = ["000102030405060708090a0b0c0d0e0f", "ff0102030405060708090a0b0c0d0e0f"];
    ["right", "wrong"].iter().zip(keys).for_each(|(name, key)| row.key(name, key));
    let _west = row.start(1, "--key right");
    let mut east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "--key right");
    let (left, right) = (row.left(|| socket(LEFT, PORT)), row.right(|| socket(RIGHT, PORT)));
    let mut own = endpoint(1, 0, Version::Two);
    let mut bytes = [0; 2048];
    for _ in 0..5 {
        left.send_to(&sealed(&mut own, Flags::default()), (RIGHT, PORT)).unwrap();
        let length = receive(&right, &mut bytes).unwrap();
        assert_eq!(Prefix::read(&bytes[..length]).unwrap().version, Version::Two);
    }
    // Version 1 cannot be sealed, so the first point refuses it.
    left.send_to(&sealed(&mut endpoint(1, 1, Version::One), Flags::default()), (RIGHT, PORT)).unwrap();
    right.set_read_timeout(Some(QUIET)).unwrap();
    assert!(receive(&right, &mut bytes).is_err());
    assert_eq!(count(&row.shown(1), "refused_unsealed"), 1);
    // Another key makes another tag.
    east.kill();
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "--key wrong");
    left.send_to(&sealed(&mut own, Flags::default()), (RIGHT, PORT)).unwrap();
    assert!(receive(&right, &mut bytes).is_err());
    assert_eq!(count(&row.shown(2), "refused_tag"), 1);
}

#[test]
fn a_point_has_its_devices_to_itself_and_a_kill_leaves_nothing_behind() {
    let Some(row) = Row::new(1) else { return };
    let promiscuous = || {
        let output = row.at(1, || Command::new("ip").args(["-d", "link"]).output().unwrap());
        text(&output.stdout).matches("promiscuity 1").count()
    };
    let names =
        || row.at(1, || std::fs::read_to_string("/proc/thread-self/net/unix").unwrap().contains("weir-ap"));
    assert_eq!((promiscuous(), names()), (0, false));
    let mut point = row.start(1, "");
    assert_eq!((promiscuous(), names()), (2, true));
    // An address that is added later receives nothing while the point stands: the device's input is shut to the kernel.
    row.at(1, || run("ip address add 10.1.0.3/24 dev a"));
    let own = row.at(1, || socket(Ipv4Addr::new(10, 1, 0, 3), OTHER));
    let left = row.left(|| socket(LEFT, OTHER));
    own.set_read_timeout(Some(QUIET)).unwrap();
    left.send_to(b"shut", "10.1.0.3:7000").unwrap();
    let mut bytes = [0; 16];
    assert!(receive(&own, &mut bytes).is_err());
    let second = row.weir(1, "--local a --path b --apps apps-1.toml --peer 10.1.0.2");
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("is already running at a"), "{}", text(&second.stderr));
    point.kill();
    assert_eq!((promiscuous(), names()), (0, false));
    own.set_read_timeout(Some(PATIENCE)).unwrap();
    left.send_to(b"open", "10.1.0.3:7000").unwrap();
    assert_eq!(receive(&own, &mut bytes).unwrap(), 4);
    assert!(!Path::new("/run/weir/ap").exists());
    assert_eq!(text(&row.weir(1, "show").stdout), "no aggregation point is running here\n");
    let addressed = row.weir(1, "--local a --path b --apps apps-1.toml --peer 10.1.0.2");
    assert_eq!(addressed.status.code(), Some(2));
    assert!(text(&addressed.stderr).contains("a has the address 10.1.0.3"), "{}", text(&addressed.stderr));
}

#[test]
fn counters_are_served_on_loopback_and_printed_at_the_end() {
    let Some(row) = Row::new(1) else { return };
    let point = row.start(1, "--metrics 127.0.0.1:9100");
    let (left, right) = (row.left(|| socket(LEFT, PORT)), row.right(|| socket(RIGHT, PORT)));
    left.send_to(&sealed(&mut endpoint(1, 0, Version::One), Flags::default()), (RIGHT, PORT)).unwrap();
    receive(&right, &mut [0; 200]).unwrap();
    let get = |path: &str| row.at(1, || get(path));
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{answer}");
    assert!(
        answer.contains("weir_ap_packets_total{local=\"a\",path=\"b\",what=\"outbound\"} 1\n"),
        "{answer}"
    );
    let flows = "weir_ap_application_flows{local=\"a\",path=\"b\",id=\"1\",application=\"array\"} 1\n";
    assert!(answer.contains(flows), "{answer}");
    assert!(get("/").starts_with("HTTP/1.0 200 OK\r\nContent-Type: text/html"));
    assert!(get("/other").starts_with("HTTP/1.0 404"));
    let (status, told) = point.interrupt();
    assert_eq!(status, 0);
    let words: Vec<&str> = told.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["outbound", "1"]), "{told}");
}

#[test]
fn invalid_settings_are_refused_with_place_and_help_before_anything_changes() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |apps: &str, arguments: &str| {
        std::fs::write(folder.path().join("apps.toml"), apps).unwrap();
        let base = "ap --local weir-none-a --path weir-none-b --apps apps.toml";
        let words = base.split_whitespace().chain(arguments.split_whitespace());
        let output =
            Command::new(env!("CARGO_BIN_EXE_weir")).args(words).current_dir(&folder).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{arguments}");
        text(&output.stderr)
    };
    let good = apps("10.1.0.0/16", "10.2.0.0/16", "");
    let peer = "--peer 10.2.0.0/16";
    assert!(
        refused(&good.replace("remote_ports", "remot_ports"), peer).contains("did you mean `remote_ports`?")
    );
    assert!(refused(&good.replace("id = 2", "id = 1"), peer).contains("both have the id 1"));
    assert!(refused("", peer).contains("names no application"));
    let outside = refused(&good, "--peer 10.3.0.0/16");
    assert!(
        outside.contains("application `array` has 10.2.0.0/16 in `remote`, which --peer does not name"),
        "{outside}"
    );
    assert!(refused(&good, "--peer 10.2.0.0/8").contains("has bits behind its prefix"));
    assert!(refused(&good, "").contains("--peer"));
    assert!(
        refused(&good, &format!("{peer} --metrics 0.0.0.0:9100"))
            .contains("not an address of the loopback device")
    );
    std::fs::write(folder.path().join("key"), "0123").unwrap();
    let key = format!("{peer} --key key");
    run(&format!("chmod 644 {}", folder.path().join("key").display()));
    assert!(refused(&good, &key).contains("chmod 600"));
    run(&format!("chmod 600 {}", folder.path().join("key").display()));
    assert!(refused(&good, &key).contains("32 hexadecimal digits"));
    assert!(refused(&good, peer).contains("there is no device weir-none-a"));
}
