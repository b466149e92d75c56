//! What the keys of services and of neighbours do with programs' datagrams.

use super::*;

/// A service whose urgent datagrams have a deadline.
const CALL: &str = "[[service]]\nname = 'call'\nports = 5000\ndeadline = '2 s'\nef_deadline = '500 ms'\n";

#[test]
fn datagrams_that_a_program_marks_ef_have_the_deadline_that_the_service_gives_them() {
    let Some(triangle) = Triangle::new() else { return };
    triangle.write(0, CALL);
    let _nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    deliver(&from, &to, b"not urgent");
    rustix::net::sockopt::set_ip_tos(&from, 46 << 2).unwrap();
    deliver(&from, &to, b"urgent");
    let status = triangle.status(0);
    let flows = status["flows"].as_array().unwrap().iter();
    let mut deadlines: Vec<f64> = flows
        .filter(|flow| flow["service"] == "call")
        .map(|flow| flow["deadline_ms"].as_f64().unwrap())
        .collect();
    deadlines.sort_by(f64::total_cmp);
    assert_eq!(deadlines, [500.0, 2000.0]);
}

#[test]
fn a_neighbour_that_floods_is_held_to_its_quota_and_others_reach_the_node() {
    let Some(triangle) = Triangle::new() else { return };
    let file = std::fs::read_to_string(triangle.path(0)).unwrap();
    let (neighbour, quota) = ("[[neighbour]]\nname = 'b'\n", "quota = { packets = 100 }\n");
    std::fs::write(triangle.path(0), file.replace(neighbour, &format!("{neighbour}{quota}"))).unwrap();
    let _nodes = triangle.start_all();
    let (flood, other, to) = (triangle.socket(1, 4000), triangle.socket(2, 4000), triangle.socket(0, 5000));
    deliver(&flood, &to, b"before");
    // Without a bound, thousands a second: some go by c, which has none.
    let counted = |name: &str| {
        let neighbours = triangle.status(0)["neighbours"].take();
        neighbours.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()["over_quota"]
            .as_u64()
            .unwrap()
    };
    let begun = Instant::now();
    while counted("b") < 100 {
        for _ in 0..200 {
            flood.send_to(&bytes(200), to.local_addr().unwrap()).unwrap();
        }
        assert!(begun.elapsed() < PATIENCE, "nothing is over the quota");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(counted("c"), 0);
    for number in 0..20_u8 {
        deliver(&other, &to, &[number]);
    }
    // Its messages still count: it stays a neighbour.
    assert_eq!(are_up(&triangle.status(0)), 2);
    assert_eq!(triangle.status(0)["packets"]["over_quota"], counted("b"));
    let metrics = triangle.inside(0, || {
        let mut stream = TcpStream::connect(METRICS).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\nHost: {METRICS}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(metrics.contains("over_quota"), "{metrics}");
    assert!(triangle.said(0, &["overlay", "status"]).contains("over quota"));
}

/// A way for a node's packets over which each tenth long one is lost. It ends with the test.
struct Lossy {
    at: std::net::SocketAddr,
    over: Arc<AtomicBool>,
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

impl Lossy {
    /// From node a to node b, and back without loss.
    fn between(triangle: &Triangle) -> Lossy {
        let bound = || UdpSocket::bind((at(0, 1), 0)).unwrap();
        let (near, far) = triangle.inside(0, || (bound(), bound()));
        far.connect((at(1, 0), 7770)).unwrap();
        let (way, over) = (near.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (back, ends, is_over) = (near.try_clone().unwrap(), far.try_clone().unwrap(), over.clone());
        // The node's own address, by which what comes back finds it.
        let node = std::net::SocketAddr::from((at(0, 1), 7770));
        for socket in [&near, &far] {
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        }
        let over_there = over.clone();
        std::thread::spawn(move || {
            let (mut packet, mut long) = ([0; 2048], 0_u32);
            while !is_over.load(Ordering::Acquire) {
                let Ok((length, _)) = near.recv_from(&mut packet) else { continue };
                // Handshakes, messages and answers are shorter than datagrams of programs with their headers.
                long += u32::from(length > 1000);
                if length <= 1000 || long % 10 > 0 {
                    let _ = far.send(&packet[..length]);
                }
            }
        });
        std::thread::spawn(move || {
            let mut packet = [0; 2048];
            while !over_there.load(Ordering::Acquire) {
                if let Ok(length) = ends.recv(&mut packet) {
                    let _ = back.send_to(&packet[..length], node);
                }
            }
        });
        Lossy { at: way, over }
    }
}

/// Nothing is sent a second time between the nodes: what a path loses is lost, unless a service's repairs restore it.
#[test]
fn repairs_of_a_service_restore_what_a_path_loses() {
    let Some(triangle) = Triangle::new() else { return };
    let lossy = Lossy::between(&triangle);
    let services = "
        [[service]]
        name = 'repaired'
        ports = 5000
        deadline = '2 s'
        fec = { base = 8, total = 12 }
        [[service]]
        name = 'bare'
        ports = 5001
        deadline = '2 s'
        [policy]
        link = { cc = ['copa'], sensitive = { delivery = 'best-effort', order = 'any' } }
    ";
    for node in [0, 1] {
        triangle.write(node, services);
    }
    let file = std::fs::read_to_string(triangle.path(0)).unwrap();
    let direct = format!("at = '{}:7770'", at(1, 0));
    assert!(file.contains(&direct));
    std::fs::write(triangle.path(0), file.replacen(&direct, &format!("at = '{}'", lossy.at), 1)).unwrap();
    let _nodes = [0, 1].map(|node| triangle.start(node));
    triangle.until(0, "joined", |status| are_up(status) == 1);
    let from = triangle.socket(0, 4000);
    let arrived = [5000, 5001].map(|port| {
        let to = triangle.socket(1, port);
        // The first one that arrives says that there is a way.
        deliver(&from, &to, b"first");
        let mut come = std::collections::BTreeSet::new();
        let mut buffer = [0; 2048];
        let mut take = |come: &mut std::collections::BTreeSet<u16>| {
            while let Ok((length, _)) = to.recv_from(&mut buffer) {
                if length == 1200 {
                    assert!(buffer[2..length].iter().all(|byte| *byte == buffer[0]));
                    come.insert(u16::from_be_bytes([buffer[0], buffer[1]]));
                }
            }
        };
        to.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        for number in 0..400_u16 {
            let mut payload = vec![(number >> 8) as u8; 1200];
            payload[1] = number as u8;
            from.send_to(&payload, to.local_addr().unwrap()).unwrap();
            take(&mut come);
        }
        to.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        take(&mut come);
        come.len()
    });
    assert!((340..=375).contains(&arrived[1]), "{arrived:?}");
    assert!(arrived[0] >= 395, "{arrived:?}");
    let restored = triangle.status(1)["packets"]["restored"].as_u64().unwrap();
    assert!(restored >= 20, "{restored}");
    assert!(triangle.said(0, &["overlay", "status"]).contains("10.1.0.1:4000-10.2.0.1:5000/udp,parts"));
}

#[test]
fn a_datagram_longer_than_a_packet_arrives_whole() {
    let Some(triangle) = Triangle::new() else { return };
    (0..NAMES.len()).for_each(|node| triangle.write_with(node, "device_mtu = '9000 B'", ""));
    let _nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    for length in [1000, 1400, 8972, 20_000] {
        let payload = bytes(length);
        let (begun, mut buffer) = (Instant::now(), vec![0; 1 << 16]);
        loop {
            from.send_to(&payload, to.local_addr().unwrap()).unwrap();
            if to.recv_from(&mut buffer).is_ok_and(|(come, _)| buffer[..come] == payload) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{length} bytes do not arrive");
        }
    }
    let status = triangle.status(0);
    let mut names: Vec<&str> =
        status["flows"].as_array().unwrap().iter().filter_map(|flow| flow["flow"].as_str()).collect();
    names.sort_unstable();
    // The longest one leaves its host in fragments, which are long themselves.
    let kinds: Vec<&str> = names.iter().filter_map(|name| name.split('/').nth(1)).collect();
    assert_eq!(kinds, ["ip,parts", "udp", "udp,parts"], "{names:?}");
    for none in ["too_long", "malformed", "not_opened"] {
        assert_eq!(status["packets"][none], 0, "{none}");
    }
}

#[test]
fn short_datagrams_share_packets_and_arrive_as_they_were_sent() {
    let Some(triangle) = Triangle::new() else { return };
    let service = "[[service]]\nname = 'call'\nports = 5000\njoin = '20 ms'\nsmooth = true\n";
    (0..NAMES.len()).for_each(|node| triangle.write(node, service));
    let _nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    deliver(&from, &to, b"first");
    let admitted = || triangle.status(0)["packets"]["admitted"].as_u64().unwrap();
    let (before, count) = (admitted(), 200_u8);
    let (mut come, mut buffer) = (vec![], [0; 2048]);
    let mut take = |come: &mut Vec<u8>| {
        while let Ok((length, _)) = to.recv_from(&mut buffer) {
            // Copies of the first one may come late.
            if length == 60 {
                assert!(buffer[..length].iter().all(|byte| *byte == buffer[0]));
                come.push(buffer[0]);
            }
        }
    };
    to.set_nonblocking(true).unwrap();
    for number in 0..count {
        from.send_to(&[number; 60], to.local_addr().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        take(&mut come);
    }
    let begun = Instant::now();
    while come.len() < count.into() {
        assert!(begun.elapsed() < PATIENCE, "{} have come", come.len());
        std::thread::sleep(Duration::from_millis(5));
        take(&mut come);
    }
    come.sort_unstable();
    assert!(come.into_iter().eq(0..count));
    // 17 of them fit a packet, of what comes within 20 ms.
    let packets = admitted() - before;
    assert!(packets <= u64::from(count) / 4, "{packets} packets");
}
