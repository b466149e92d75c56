//! TCP connections between sites, over the proxies of their nodes.

use super::{METRICS, PATIENCE, Triangle, run, site};
use crate::hosts::{bytes, send_signal, text};
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use weir_linux::namespace::Namespace;

/// A stream between two sites, once the nodes know how to reach each other.
fn connect(triangle: &Triangle, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = triangle.inside(0, || TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let (far, from) = listener.accept().unwrap();
    // Each host sees the other one's address, not those of the proxies.
    assert_eq!((near.local_addr().unwrap(), near.peer_addr().unwrap()), (from, far.local_addr().unwrap()));
    [&near, &far].iter().for_each(|stream| stream.set_read_timeout(Some(PATIENCE)).unwrap());
    (near, far)
}

#[test]
fn a_stream_over_proxies_ends_in_each_direction_by_itself() {
    let Some(triangle) = Triangle::new() else { return };
    let _nodes = triangle.start_all();
    let listener = triangle.inside(1, || TcpListener::bind((site(1), 6000)).unwrap());
    let (mut near, mut far) = connect(&triangle, &listener);
    let (there, back) = (bytes(1 << 20), bytes(3 << 20));
    near.write_all(&there).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut come = vec![];
    far.read_to_end(&mut come).unwrap();
    assert!(come == there);
    // The other direction is still open.
    let sent = back.clone();
    let sending = std::thread::spawn(move || far.write_all(&sent).unwrap());
    come.clear();
    near.read_to_end(&mut come).unwrap();
    sending.join().unwrap();
    assert!(come == back);
    let connections = |node| triangle.status(node)["packets"].clone();
    assert_eq!((&connections(0)["tcp_accepted"], &connections(1)["tcp_begun"]), (&1.into(), &1.into()));
    // Both proxies forget a connection a few seconds after it is over, and the overlay its flows.
    for node in [0, 1] {
        triangle.until(node, "forgotten", |status| status["flows"].as_array().unwrap().is_empty());
    }
}

#[test]
fn what_no_host_accepts_and_what_a_host_resets_is_reset_at_the_other_end() {
    let Some(triangle) = Triangle::new() else { return };
    let _nodes = triangle.start_all();
    let refused = triangle.inside(0, || TcpStream::connect((site(1), 6001)).unwrap());
    refused.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = (&refused).read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let listener = triangle.inside(1, || TcpListener::bind((site(1), 6000)).unwrap());
    let (mut near, far) = connect(&triangle, &listener);
    weir_linux::transparent::reset(far);
    assert_eq!(near.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // Nobody connects to the proxy itself.
    let own = triangle.inside(0, || text(&Command::new("ss").args(["-ltnH"]).output().unwrap().stdout));
    let listening: Vec<&str> =
        own.split_whitespace().filter(|word| word.contains("127.0.0.1:") && *word != METRICS).collect();
    assert_eq!(listening.len(), 1, "{own}");
    let _direct = triangle.inside(0, || TcpStream::connect(listening[0]).unwrap());
    triangle.until(0, "refused", |status| status["packets"]["tcp_refused"] == 1);
}

#[test]
fn a_stream_is_reset_when_the_node_of_the_other_site_dies() {
    let Some(triangle) = Triangle::new() else { return };
    let mut nodes = triangle.start_all();
    let listener = triangle.inside(1, || TcpListener::bind((site(1), 6000)).unwrap());
    let (mut near, mut far) = connect(&triangle, &listener);
    near.write_all(b"before").unwrap();
    far.read_exact(&mut [0; 6]).unwrap();
    nodes[1].0.kill().unwrap();
    nodes[1].0.wait().unwrap();
    // `docs/overlay-measured.md` has the time that it takes.
    assert_eq!(near.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn other_hosts_of_a_site_use_the_proxies_of_its_node_and_a_killed_node_leaves_one_rule_without_effect() {
    let Some(triangle) = Triangle::new() else { return };
    let mut nodes = triangle.start_all();
    let host = Namespace::new().unwrap();
    let inside = host.as_fd().as_raw_fd();
    let inside = format!("/proc/{}/fd/{inside}", std::process::id());
    triangle.inside(0, || {
        run(&format!("ip link add to-host type veth peer name to-node netns {inside}"));
        run("ip address add 10.1.9.1/24 dev to-host");
        run("ip link set to-host up");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    });
    let source = Ipv4Addr::new(10, 1, 9, 2);
    let listener = triangle.inside(1, || TcpListener::bind((site(1), 6000)).unwrap());
    let from_host = || {
        host.inside(|| {
            run("ip link set lo up");
            Ok(TcpStream::connect((site(1), 6000)).unwrap())
        })
        .unwrap()
    };
    host.inside(|| {
        run("ip address add 10.1.9.2/24 dev to-node");
        run("ip link set to-node up");
        run("ip route add default via 10.1.9.1");
        Ok(())
    })
    .unwrap();
    let mut near = from_host();
    let (mut far, from) = listener.accept().unwrap();
    assert_eq!((from.ip(), far.local_addr().unwrap().ip()), (source.into(), site(1).into()));
    let data = bytes(1 << 20);
    near.write_all(&data).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut come = vec![];
    far.read_to_end(&mut come).unwrap();
    assert!(come == data);
    let rules = || triangle.inside(0, || text(&Command::new("ip").args(["rule"]).output().unwrap().stdout));
    let ours = |rules: &str| rules.lines().filter(|line| line.contains("fwmark 0x7765")).count();
    assert_eq!(ours(&rules()), 1, "{}", rules());
    nodes[0].0.kill().unwrap();
    nodes[0].0.wait().unwrap();
    let table = triangle.inside(0, || {
        let rule = rules();
        let table = rule
            .lines()
            .find(|line| line.contains("fwmark 0x7765"))
            .unwrap()
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned();
        text(&Command::new("ip").args(["route", "show", "table", &table]).output().unwrap().stdout)
    });
    assert_eq!(table, "");
    nodes[0] = triangle.start(0);
    assert_eq!(ours(&rules()), 1, "{}", rules());
    send_signal(&nodes[0].0, Signal::TERM);
    nodes[0].0.wait().unwrap();
    assert_eq!(ours(&rules()), 0, "{}", rules());
}
