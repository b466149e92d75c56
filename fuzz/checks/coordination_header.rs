//! Whatever packet passes an aggregation point, the point neither panics nor changes more than the header, and the checksum
//! stays right. A point with keys lets through only what is sealed with them. An endpoint accepts or refuses any header without
//! a panic.

use core::net::{IpAddr, Ipv4Addr};
use weir_base::{Span, Time};
use weir_coord::cell::{Cell, Family};
use weir_coord::endpoint::{Endpoint, Identity};
use weir_coord::header::{LONGEST, Version};
use weir_coord::seal::{Key, Leg};
use weir_coord::{Config, FiveTuple, Packet, Point, Side, Statistic, Verdict};

const CONFIG: &str = r#"
[[application]]
id = 0
name = "plain"
local = ["10.1.0.0/16"]
local_ports = "0-65535"
remote = ["10.2.0.0/16"]
remote_ports = "0-65535"
[[application]]
id = 31
name = "rap"
flows = 100
local = ["10.1.0.0/16"]
local_ports = "0-65535"
remote = ["10.2.0.0/16"]
remote_ports = "0-65535"
estimator = { kind = "rap", fine_grain = true }
"#;

/// The key of the applications, and the key of the two aggregation points.
const APPLICATION: Key = Key::new([7; 16]);
const PEER: Key = Key::new([9; 16]);

/// The checksum of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if sum == 0xffff { 0xffff } else { !(sum as u16) }
}

/// Drives an aggregation point and an endpoint, without keys and with them; the bytes are the packets.
pub(crate) fn check(bytes: &[u8]) {
    drive(bytes, false);
    drive(bytes, true);
}

fn drive(bytes: &[u8], keyed: bool) {
    let mut config = Config::from_toml(CONFIG).expect("the configuration is right");
    if keyed {
        config.peer_key = Some(PEER);
        config.application.iter_mut().for_each(|application| application.key = Some(APPLICATION));
    }
    let mut point = Point::new(&config, 1, 1).expect("the configuration is right");
    let watched = [Family::Rtt, Family::Loss].map(|family| family.cell(Statistic::Latest));
    let key = keyed.then_some(APPLICATION);
    let identity = Identity { application: 0, flow: 1, protocol: 0, key, epoch: 1 };
    let mut endpoint = Endpoint::new(identity, Version::One, &watched);
    let mut now = Time::ZERO;
    // Each piece of 42 bytes is a packet: side and flow, the time since the last one and whether it is sealed, the payload.
    for piece in bytes.chunks(42) {
        let [first, gap, payload @ ..] = piece else { return };
        now += Span::from_micros(1 << (gap % 28));
        let (near, far) = (IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)));
        let port = u16::from(first >> 1);
        let tuple = FiveTuple { source: near, source_port: port, destination: far, destination_port: port };
        let (side, tuple) =
            if first & 1 == 0 { (Side::Local, tuple) } else { (Side::Path, tuple.reversed()) };
        let mut payload = payload.to_vec();
        payload.resize(payload.len().next_multiple_of(2), 0);
        let (key, leg) = if side == Side::Local { (APPLICATION, Leg::Out) } else { (PEER, Leg::Path) };
        let whole = payload.len() >= LONGEST;
        if keyed && whole && gap & 0x80 == 0 {
            key.seal(leg, &mut payload);
        }
        let sealed = whole && key.verify(leg, &payload);
        let behind = payload.get(LONGEST..).map(<[u8]>::to_vec);
        let mut sum = checksum(&payload);
        let length = 28 + payload.len() as u32;
        let packet = Packet { side, tuple, length, payload: &mut payload, checksum: Some(&mut sum) };
        let verdict = point.handle(packet, now);
        assert!(!keyed || sealed || matches!(verdict, Verdict::Refuse(_)), "{verdict:?} without a tag");
        assert_eq!(sum, checksum(&payload));
        assert_eq!(payload.get(LONGEST..).map(<[u8]>::to_vec), behind);
        let opened = endpoint.open(&payload, |cell: Cell, value| {
            assert!(watched.contains(&cell) && value < 1 << 24);
        });
        let forwarded = matches!(verdict, Verdict::Forward | Verdict::Return);
        assert!(
            !keyed || forwarded || opened.is_err(),
            "an endpoint with a key takes what no point has sealed"
        );
        if let Some(due) = point.next_timer().filter(|due| *due <= now) {
            point.on_timer(due.max(now));
        }
    }
}
