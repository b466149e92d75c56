//! Nodes where no TUN device can be made: their programs use a pair of veth devices.

use super::groups::{GROUP, member, with_key};
use super::*;

/// Starts a node that sees no /dev/net/tun, in a mount namespace of its own.
fn start_without_tun(triangle: &Triangle, node: usize) -> Node {
    let hidden = "[ ! -e /dev/net ] || mount -t tmpfs none /dev/net; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hidden, env!("CARGO_BIN_EXE_weir"), "overlay", "node"]);
    command.arg(triangle.path(node)).args(["--metrics", METRICS]).stdin(Stdio::null());
    let (node, told) = triangle.start_by(node, command);
    assert!(
        told.contains("no TUN device can be made") && told.contains("weir0 is a pair of veth devices"),
        "{told}"
    );
    node
}

#[test]
fn without_tun_programs_reach_each_other_by_a_pair_of_devices() {
    let Some(triangle) = Triangle::new() else { return };
    let keys = with_key(&triangle);
    (0..NAMES.len()).for_each(|node| triangle.write_with(node, keys, SERVICE));
    let mut nodes: Vec<Node> = (0..NAMES.len()).map(|node| start_without_tun(&triangle, node)).collect();
    (0..NAMES.len()).for_each(|node| triangle.until(node, "joined", |status| are_up(status) == 2));
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5001));
    assert_eq!(deliver(&from, &to, b"hello"), (site(0).into(), 4000));
    // The longest datagram that fits, and one in fragments.
    for length in [1389 - 28, 4000] {
        deliver(&from, &to, &bytes(length));
    }
    assert_eq!(deliver(&to, &from, b"hello yourself"), (site(1).into(), 5001));

    // TCP, of which the kernel would make bundles without checksums.
    let data = bytes(1 << 20);
    let listener = triangle.inside(2, || TcpListener::bind((site(2), 6000)).unwrap());
    let mut stream = triangle.inside(0, || TcpStream::connect((site(2), 6000)).unwrap());
    let sent = data.clone();
    let sending = std::thread::spawn(move || stream.write_all(&sent).unwrap());
    let mut arrived = vec![];
    listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
    sending.join().unwrap();
    assert!(arrived == data);

    let member = triangle.inside(1, member);
    triangle.until(1, "a member", |status| status["groups"] == serde_json::json!(["239.1.2.3"]));
    let (begun, mut buffer) = (Instant::now(), [0; 64]);
    loop {
        from.send_to(b"to all", (GROUP, 5000)).unwrap();
        match member.recv_from(&mut buffer) {
            Ok((length, source)) => {
                assert_eq!((&buffer[..length], source), (&b"to all"[..], (site(0), 4000).into()));
                break;
            }
            Err(_) => assert!(begun.elapsed() < PATIENCE, "nothing arrives at the group"),
        }
    }
    for none in ["foreign_source", "not_opened", "malformed"] {
        assert_eq!(triangle.status(0)["packets"][none], 0, "{none}");
    }

    // Both devices go with a killed node, and it can start again at once.
    drop((to, member));
    nodes[1].0.kill().unwrap();
    nodes[1].0.wait().unwrap();
    nodes[1] = start_without_tun(&triangle, 1);
    triangle.until(0, "up again", |status| are_up(status) == 2);
    deliver(&from, &triangle.socket(1, 5001), b"after");
    nodes[1].0.kill().unwrap();
    nodes[1].0.wait().unwrap();
    let begun = Instant::now();
    let devices = || triangle.inside(1, || text(&Command::new("ip").arg("link").output().unwrap().stdout));
    while devices().contains("weir0") {
        assert!(begun.elapsed() < PATIENCE, "{}", devices());
        std::thread::sleep(Duration::from_millis(20));
    }
}
