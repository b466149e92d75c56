//! Whatever programs and neighbours send to a site, it neither panics nor stands still, and what it holds stays bounded. What leaves for
//! programs is a datagram, whose addresses are behind the nodes at which its flow has entered and leaves, or that goes to a group.

use weir_base::{Bytes, Rate, Span, Time};
use weir_overlay::cat::Delay;
use weir_overlay::proxy::udp::Code;
use weir_overlay::site::datagram::{addresses, read};
use weir_overlay::site::{Config, Outside, Places, Plain, Service, Site};
use weir_overlay::{Inner, NodeId, Reported, Signal};

/// A code whose repair is the last source.
#[derive(Debug)]
struct Last;

impl Code for Last {
    fn encode(&self, sources: &[&[u8]], _: usize, repair: &mut Vec<u8>) {
        repair.clear();
        repair.extend_from_slice(sources.last().copied().unwrap_or_default());
    }
    fn restore(&self, sources: &mut [Option<Vec<u8>>], repairs: &[(usize, &[u8])]) -> bool {
        let (Some(last), Some((_, repair))) = (sources.last_mut(), repairs.first()) else { return false };
        let is_missing = last.is_none();
        *last = Some(repair.to_vec());
        is_missing
    }
}

/// Node 0 has 10.1.0.0/16, node 1 has 10.2.0.0/16.
fn site() -> Site<Reported, Plain> {
    let [own, other] = [0, 1].map(|number| NodeId::new(number).expect("a small number"));
    let prefix = |text: &str| text.parse().expect("a prefix");
    let services: Vec<Service> = serde_json::from_str(
        r#"[
            { "name": "voice", "ports": "5000-5010", "admit": { "kind": "strap" }, "rate": "1 Mbit/s", "deadline": "50 ms" },
            { "name": "video", "ports": "5011-5020", "fec": { "base": 2, "total": 3 }, "reorder": "30 ms" }
        ]"#,
    )
    .expect("services");
    let config = Config {
        id: own,
        epoch: 7,
        seed: 1,
        node: weir_overlay::Config::default(),
        places: Places::new(vec![(prefix("10.1.0.0/16"), own), (prefix("10.2.0.0/16"), other)])
            .with_groups(vec![prefix("239.1.0.0/16")]),
        networks: vec![0x0a01_0001],
        services,
        longest: Bytes::new(200),
        code: &Last,
        around: Bytes::new(71),
    };
    let mut site = Site::new(config, Plain).expect("a sound configuration");
    // Little enough that a flood meets it.
    let quota = serde_json::from_str(r#"{ "packets": 100, "queue": "64 KiB" }"#).expect("a quota");
    site.connect(link(), other, Some(&quota));
    site
}

fn link() -> Reported {
    let (capacity, delay) = (Rate::from_mbit_per_sec(10), Delay::constant(Span::from_millis(5)));
    Reported { is_up: true, waiting: Bytes::ZERO, capacity, delay, loss: 0.0 }
}

/// Checks what leaves for programs.
struct Checks;

impl Outside for Checks {
    fn packet(&mut self, _: usize, _: &[u8], _: &[u8], _: bool) {}
    fn signal(&mut self, _: usize, _: &[u8], _: Signal) {}
    fn deliver(&mut self, datagram: &[u8]) {
        assert!(datagram.len() < 1 << 16 && read(datagram).is_ok(), "{datagram:?}");
        let (source, destination) = addresses(datagram).expect("it was read");
        // What goes to a group may come from a host of the site's own network.
        let is_within = destination >> 16 == 0xef01 && source >> 16 == 0x0a01;
        assert!(is_within || source >> 16 == 0x0a02, "{source:x}");
        assert!(matches!(destination >> 16, 0x0a01 | 0xef01), "{destination:x}");
    }
    fn deliver_to_network(&mut self, network: usize, datagram: &[u8]) {
        assert!(network == 0 && datagram.len() < 1 << 16 && read(datagram).is_ok(), "{datagram:?}");
        let (source, destination) = addresses(datagram).expect("it was read");
        // From another site, from the device, or a question to hosts.
        assert!(matches!(source >> 16, 0x0a01 | 0x0a02), "{source:x}");
        assert!(destination >> 16 == 0xef01 || destination == 0xe000_0001, "{destination:x}");
    }
    fn segment(&mut self, flow: &Inner, _: &[u8]) {
        assert_eq!((flow.source >> 16, flow.destination >> 16), (0x0a02, 0x0a01));
    }
}

/// Drives a site. A piece is a byte for its kind, a byte for its length, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    let (mut site, mut now, mut rest) = (site(), Time::ZERO, data);
    while let [kind, length, after @ ..] = rest {
        let (piece, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        match kind & 3 {
            0 if kind & 4 != 0 => site.from_network(0, piece, now, &mut Checks),
            0 => site.from_program(piece, now, &mut Checks),
            1 => site.from_neighbour(0, piece, now, &mut Checks),
            2 => now += Span::from_millis(u64::from(*length) * u64::from(kind >> 2)),
            _ => site.refill(now, &mut Checks),
        }
        if let Some(cat) = site.node_mut().cat_mut(0) {
            *cat = link();
        }
        // At one time there is a bounded number of things to do.
        for turn in 0.. {
            site.on_timer(now, &mut Checks);
            if site.next_time(now) > now {
                break;
            }
            assert!(turn < 64, "it stands still at {now:?}");
        }
    }
    assert!(site.told().count() <= 4096);
    assert!(site.told().all(|flow| flow.waiting <= 490));
}
