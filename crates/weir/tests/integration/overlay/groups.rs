//! Groups: programs of nodes' hosts, and other hosts of their sites.

use super::*;

pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

/// Makes the key of groups, and returns the keys of nodes' files for it.
pub(super) fn with_key(triangle: &Triangle) -> &'static str {
    let key = triangle.folder.path().join("groups.key");
    assert!(weir(&["overlay", "keygen"]).arg(&key).output().unwrap().status.success());
    "groups = ['239.1.0.0/16']\ngroup_key = 'groups.key'"
}

/// A socket of the calling thread's host that has joined the group.
pub(super) fn member() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 5000)).unwrap();
    // Its route chooses the device.
    socket.join_multicast_v4(&GROUP, &Ipv4Addr::UNSPECIFIED).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

#[test]
fn a_datagram_to_a_group_reaches_the_programs_that_have_joined_it() {
    let Some(triangle) = Triangle::new() else { return };
    let keys = with_key(&triangle);
    (0..NAMES.len()).for_each(|node| triangle.write_with(node, keys, ""));
    let _nodes = triangle.start_all();
    let group = GROUP;
    let members = [1, 2].map(|node| triangle.inside(node, member));
    for node in [1, 2] {
        triangle.until(node, "a member", |status| status["groups"] == serde_json::json!(["239.1.2.3"]));
    }
    let from = triangle.socket(0, 4000);
    let begun = Instant::now();
    for (member, which) in members.iter().zip(["b", "c"]) {
        let mut buffer = [0; 64];
        // The sender's node hears of members up to a second after they have joined.
        loop {
            from.send_to(b"to all", (group, 5000)).unwrap();
            if let Ok((length, source)) = member.recv_from(&mut buffer) {
                assert_eq!((&buffer[..length], source), (&b"to all"[..], (site(0), 4000).into()));
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing arrives at {which}");
        }
    }
    let [left, _stays] = members;
    drop(left);
    triangle.until(1, "no member", |status| status["groups"] == serde_json::json!([]));
    assert_eq!(triangle.status(2)["groups"], serde_json::json!(["239.1.2.3"]));
    for none in ["foreign_source", "not_opened", "malformed"] {
        assert_eq!(triangle.status(2)["packets"][none], 0, "{none}");
    }
}

/// A host behind a node, at its device `lan0`: 10.X.1.2, where the node has 10.X.1.1.
fn host_behind(triangle: &Triangle, node: usize) -> (Namespace, Ipv4Addr) {
    let (host, [a, b, ..]) = (Namespace::new().unwrap(), site(node).octets());
    let descriptor = format!("/proc/{}/fd/{}", std::process::id(), host.as_fd().as_raw_fd());
    triangle.inside(node, || {
        run(&format!("ip link add lan0 type veth peer name eth0 netns {descriptor}"));
        run(&format!("ip address add {a}.{b}.1.1/24 dev lan0"));
        run("ip link set dev lan0 up");
    });
    let inside = || {
        run("ip link set dev lo up");
        run(&format!("ip address add {a}.{b}.1.2/24 dev eth0"));
        run("ip link set dev eth0 up");
        run(&format!("ip route add default via {a}.{b}.1.1"));
    };
    host.inside(|| {
        inside();
        Ok(())
    })
    .unwrap();
    (host, Ipv4Addr::new(a, b, 1, 2))
}

/// Sends to the group until all members have it; returns where each has it from.
fn send_to_all(from: &UdpSocket, payload: &[u8], members: &[&UdpSocket]) -> Vec<IpAddr> {
    let (begun, mut buffer) = (Instant::now(), [0; 2048]);
    let mut sources = vec![None; members.len()];
    while sources.contains(&None) {
        from.send_to(payload, (GROUP, 5000)).unwrap();
        for (member, source) in members.iter().zip(&mut sources) {
            while let Ok((length, come_from)) = member.recv_from(&mut buffer) {
                if &buffer[..length] == payload {
                    *source = Some(come_from.ip());
                    break;
                }
            }
        }
        assert!(begun.elapsed() < PATIENCE, "{sources:?}");
    }
    sources.into_iter().flatten().collect()
}

#[test]
fn hosts_behind_nodes_join_groups_and_send_to_them() {
    let Some(triangle) = Triangle::new() else { return };
    let (keys, hosts) = (with_key(&triangle), [0, 1].map(|node| host_behind(&triangle, node)));
    for node in [0, 1] {
        triangle.write_with(node, &format!("{keys}\ngroup_devices = ['lan0']"), "");
    }
    triangle.write_with(2, keys, "");
    let mut nodes = triangle.start_all();
    let on = |host: usize, work: fn() -> UdpSocket| hosts[host].0.inside(|| Ok(work())).unwrap();
    let groups = |status: &Value, of: &[&str]| status["groups"] == serde_json::json!(of);
    // A host behind b, a program on b and one on c are members.
    let (behind, beside, far) = (on(1, member), triangle.inside(1, member), triangle.inside(2, member));
    for node in [1, 2] {
        triangle.until(node, "a member", |status| groups(status, &["239.1.2.3"]));
    }
    let sender = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        socket.set_multicast_ttl_v4(8).unwrap();
        socket
    };
    // From a host behind a, from a program on b, which reaches the host behind b too, and from that host.
    let (from, all) = (on(0, sender), [&behind, &beside, &far]);
    assert_eq!(send_to_all(&from, &bytes(1200), &all), [IpAddr::from(hosts[0].1); 3]);
    let from = triangle.socket(1, 4000);
    assert_eq!(send_to_all(&from, b"from b", &[&behind, &far]), [IpAddr::from(site(1)); 2]);
    let from = on(1, sender);
    assert_eq!(send_to_all(&from, b"from behind b", &[&beside, &far]), [IpAddr::from(hosts[1].1); 2]);
    // The host leaves, is asked twice whether others stay, and no host of its network is a member any more.
    let sent_there = || {
        let counted = triangle.inside(1, || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
        let line = counted.lines().find(|line| line.trim().starts_with("lan0:")).unwrap().to_owned();
        line.split_whitespace().nth(10).unwrap().parse::<u64>().unwrap()
    };
    drop((behind, beside));
    triangle.until(1, "no member", |status| groups(status, &[]));
    let before = sent_there();
    let from = on(0, sender);
    send_to_all(&from, b"to c alone", &[&far]);
    assert!(sent_there() <= before + 2, "datagrams still go there");
    for none in ["foreign_source", "not_opened", "malformed", "unknown_destination"] {
        assert_eq!(triangle.status(1)["packets"][none], 0, "{none}");
    }
    // A killed node leaves the device as it was.
    let takes_all = || {
        let told =
            triangle.inside(1, || Command::new("ip").args(["-d", "link", "show", "lan0"]).output().unwrap());
        text(&told.stdout).contains("allmulti 1 ")
    };
    let could_tell = takes_all();
    nodes[1].0.kill().unwrap();
    nodes[1].0.wait().unwrap();
    assert!(could_tell && !takes_all());
}

#[test]
fn a_device_for_groups_that_is_not_there_or_has_no_address_of_the_site_is_refused() {
    let Some(triangle) = Triangle::new() else { return };
    let keys = with_key(&triangle);
    for (device, told) in
        [("none0", "there is no device none0"), ("to-b", "to-b has no address of the prefixes of \"a\"")]
    {
        triangle.write_with(0, &format!("{keys}\ngroup_devices = ['{device}']"), "");
        let refused = triangle.weir(0, &["overlay", "node", triangle.path(0).to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2), "{device}");
        assert!(text(&refused.stderr).contains(told), "{}", text(&refused.stderr));
    }
}
