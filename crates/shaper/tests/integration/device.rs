//! Shapers of devices in network namespaces of their own: set by steps and by the `tc` commands that steps print, changed, counted,
//! removed and restored.

use std::net::UdpSocket;
use std::process::Command;
use weir_base::{Bytes, Rate};
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_shaper::{Class, Device, Handle, Match, Problem, Snapshot, Step, Tbf};

pub(crate) const TESTS: [(&str, fn()); 6] = [
    ("a_step_does_what_its_tc_command_does", a_step_does_what_its_tc_command_does),
    ("a_class_that_is_taken_away_leaves_no_trace", a_class_that_is_taken_away_leaves_no_trace),
    ("what_others_have_set_is_put_back_to_the_byte", what_others_have_set_is_put_back_to_the_byte),
    ("filters_send_packets_to_their_class_and_refusals_are_counted", filters_send_packets_to_their_class),
    ("a_thousand_classes_come_and_go", a_thousand_classes_come_and_go),
    ("what_is_not_there_is_said_to_be_so", what_is_not_there_is_said_to_be_so),
];

const ROOT: Handle = Handle::new(0x7765, 0);

fn class(minor: u16) -> Handle {
    Handle::new(ROOT.major(), minor)
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

/// Runs a function in a new namespace with two pairs of devices, `a` and `b`, which are up.
fn inside(work: impl FnOnce() + Send) {
    let work = || {
        // No host solicits neighbours or routers.
        let _ = set_sysctl("ipv6.conf.all.disable_ipv6", "1");
        for name in ["a", "b"] {
            run(&format!("ip link add name {name} txqueuelen 1000 type veth peer name {name}-peer"));
            run(&format!("ip link set dev {name} up"));
            run(&format!("ip link set dev {name}-peer up"));
        }
        work();
        Ok(())
    };
    Namespace::new().unwrap().inside(work).unwrap();
}

fn htb(minor: u16, mbits: u64) -> Step {
    let rate = Rate::from_mbit_per_sec(mbits);
    // Whole ticks at the rates of these tests: some releases of `tc` cut the time of a bucket to whole microseconds.
    let burst = Bytes::new(80_000);
    let (handle, parent) = (class(minor), ROOT);
    let quantum = Bytes::new(60_000);
    Step::Class(Class { handle, parent, rate, ceil: rate, burst, cburst: burst, quantum, prio: 3 })
}

fn tree() -> Step {
    Step::Htb { handle: ROOT, parent: Handle::ROOT, default: 0, direct_limit: 1000 }
}

fn leaf(minor: u16, limit: u64) -> Step {
    Step::Bfifo { handle: Handle::new(minor, 0), parent: class(minor), limit: Bytes::new(limit) }
}

fn filter(address: &str, length: u8, port: Option<u16>, minor: u16) -> Step {
    let matches = Match { address: address.parse().unwrap(), length, port };
    Step::Filter { parent: ROOT, matches, class: class(minor) }
}

fn tbf(peak: Option<u64>) -> Step {
    let tbf = Tbf {
        rate: Rate::from_mbit_per_sec(95),
        burst: Bytes::new(15_140),
        limit: Bytes::new(500_000),
        peakrate: peak.map(Rate::from_mbit_per_sec),
        mtu: Bytes::new(1514),
    };
    Step::Tbf { handle: ROOT, parent: Handle::ROOT, tbf }
}

/// Several circuits, IPv4 and IPv6, one of them with a rate beyond 32 bits.
fn many() -> Vec<Step> {
    let mut steps = vec![tree()];
    for (minor, mbits) in [(1, 500), (2, 100), (0x1f, 40_000)] {
        steps.extend([htb(minor, mbits), leaf(minor, 1_000_000)]);
    }
    steps.push(Step::Pfifo { handle: Handle::new(0x77, 0), parent: class(2), limit: 200 });
    steps.extend([
        filter("10.1.0.0", 16, None, 1),
        filter("10.1.2.3", 32, Some(5001), 2),
        filter("10.1.2.4", 32, None, 2),
        filter("2001:db8::", 33, None, 0x1f),
        filter("0.0.0.0", 0, None, 0x1f),
    ]);
    steps
}

fn apply(device: &mut Device, steps: &[Step]) -> Snapshot {
    steps.iter().for_each(|step| device.apply(step).unwrap_or_else(|problem| panic!("{problem}")));
    device.snapshot().unwrap()
}

fn a_step_does_what_its_tc_command_does() {
    for steps in [vec![tbf(None)], vec![tbf(Some(200))], many()] {
        inside(|| {
            let (mut a, mut b) = (Device::open("a").unwrap(), Device::open("b").unwrap());
            let by_steps = apply(&mut a, &steps);
            steps.iter().for_each(|step| run(&step.tc("b")));
            let by_tc = b.snapshot().unwrap();
            assert!(by_steps.is_like(&by_tc), "{by_steps:#?}\n{by_tc:#?}");
            assert_eq!(by_steps.root().unwrap().0, ROOT);
        });
    }
}

fn a_class_that_is_taken_away_leaves_no_trace() {
    inside(|| {
        let mut a = Device::open("a").unwrap();
        assert_eq!(a.sizes().unwrap(), (1500, 1000));
        let default = a.snapshot().unwrap();
        assert_eq!(default.root(), None);
        let one = apply(&mut a, &[tree(), htb(1, 500), leaf(1, 1_000_000), filter("10.1.0.0", 16, None, 1)]);
        for prefix in [16, 24] {
            let address = if prefix == 16 { "10.2.0.0" } else { "10.1.1.0" };
            let two = apply(&mut a, &[htb(2, 100), leaf(2, 99_000), filter(address, prefix, None, 2)]);
            assert!(two.has_class(class(2)) && two != one);
            let changed = apply(&mut a, &[htb(2, 50), leaf(2, 50_000)]);
            assert_ne!(changed, two);
            assert_eq!(apply(&mut a, &[htb(2, 100), leaf(2, 99_000)]), two, "changed back");
            let filters = Step::RemoveFilters { parent: ROOT, class: class(2) };
            let gone = [filters, Step::RemoveClass { handle: class(2) }];
            assert_eq!(apply(&mut a, &gone), one);
            assert_eq!(apply(&mut a, &gone), one, "what is not there can be taken away again");
        }
        assert_eq!(apply(&mut a, &[Step::RemoveRoot]), default);
    });
}

fn what_others_have_set_is_put_back_to_the_byte() {
    let foreign = [
        "tc qdisc add dev a root handle 5: tbf rate 20mbit burst 3000 limit 200000",
        "tc qdisc add dev a root handle 6: htb default 30\n\
         tc class add dev a parent 6: classid 6:1 htb rate 6mbit burst 15k\n\
         tc class add dev a parent 6:1 classid 6:10 htb rate 5mbit ceil 6mbit burst 15k\n\
         tc class add dev a parent 6:1 classid 6:30 htb rate 1kbit ceil 6mbit burst 15k prio 2\n\
         tc qdisc add dev a parent 6:10 handle 10: pfifo limit 50\n\
         tc filter add dev a parent 6: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 6:10\n\
         tc filter add dev a parent 6: protocol ip prio 1 u32 match ip sport 22 0xffff flowid 6:30",
        "tc qdisc add dev a root handle 7: bfifo limit 12345",
    ];
    for commands in foreign {
        inside(|| {
            commands.lines().for_each(run);
            run("tc qdisc add dev a clsact");
            let mut a = Device::open("a").unwrap();
            let before = a.snapshot().unwrap();
            assert_ne!(before.root().unwrap().0, ROOT);
            let scratch = || {
                let mut scratch = Device::scratch("try", 1000, 1500).unwrap();
                Ok(scratch.can_hold(&before).unwrap())
            };
            assert!(Namespace::new().unwrap().inside(scratch).unwrap(), "{commands}");
            apply(&mut a, &[Step::RemoveRoot]);
            apply(&mut a, &many());
            a.restore(&before).unwrap_or_else(|problem| panic!("{problem}: {commands}"));
            assert_eq!(a.snapshot().unwrap(), before);
            a.restore(&before).unwrap();
        });
    }
}

/// Counts packets and bytes of each class, and the packets that it refused.
fn filters_send_packets_to_their_class() {
    inside(|| {
        run("ip address add 10.0.0.1/8 dev a");
        for host in ["10.1.0.9", "10.1.2.3", "10.9.9.9"] {
            run(&format!("ip neighbour add {host} lladdr 02:00:00:00:00:09 nud permanent dev a"));
        }
        let mut a = Device::open("a").unwrap();
        // 8 kbit/s, and room for two packets of 1042 bytes beside the one that is sent at once.
        let slow = Step::Class(Class { burst: Bytes::new(1042), cburst: Bytes::new(1042), ..of(htb(3, 1)) });
        apply(
            &mut a,
            &[
                tree(),
                htb(1, 500),
                leaf(1, 1_000_000),
                htb(2, 500),
                leaf(2, 1_000_000),
                slow,
                leaf(3, 2 * 1042),
                filter("10.1.0.0", 16, None, 1),
                filter("10.1.2.3", 32, None, 2),
                filter("10.9.0.0", 16, Some(9000), 3),
            ],
        );
        let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
        let send = |count: usize, to: &str| (0..count).for_each(|_| drop(socket.send_to(&[0; 1000], to)));
        send(10, "10.1.0.9:1");
        send(5, "10.1.2.3:1");
        send(20, "10.9.9.9:9000");
        send(7, "10.9.9.9:9001");
        let handles = [class(1), class(2), class(3), class(4), ROOT];
        let counted = a.counters(&handles).unwrap();
        let told = |at: usize| counted[at].unwrap();
        // 1000 bytes, headers of UDP, IP and Ethernet.
        assert_eq!((told(0).packets, told(0).bytes), (10, 10 * 1042));
        assert_eq!((told(1).packets, told(1).bytes), (5, 5 * 1042));
        assert_eq!(told(2).packets + told(2).drops + told(2).backlog / 1042, 20, "{:?}", told(2));
        assert!(told(2).drops > 0, "{:?}", told(2));
        assert_eq!(counted[3], None);
        assert_eq!(told(4).packets, 15 + told(2).packets + 7, "what no filter takes goes unshaped");
    });
}

/// The class of a step, at 8 kbit/s instead of its own rate.
fn of(step: Step) -> Class {
    let Step::Class(class) = step else { unreachable!("it is a class") };
    let rate = Rate::from_bits_per_sec(8000);
    Class { rate, ceil: rate, ..class }
}

fn a_thousand_classes_come_and_go() {
    inside(|| {
        let mut a = Device::open("a").unwrap();
        let empty = apply(&mut a, &[tree()]);
        for minor in 1..=1000 {
            let address = format!("10.{}.{}.0", minor / 256, minor % 256);
            let steps =
                [htb(minor, u64::from(minor)), leaf(minor, 100_000), filter(&address, 24, None, minor)];
            steps.iter().for_each(|step| a.apply(step).unwrap());
        }
        assert!(a.snapshot().unwrap().has_class(class(1000)));
        for minor in 1..=1000 {
            a.apply(&Step::RemoveFilters { parent: ROOT, class: class(minor) }).unwrap();
            a.apply(&Step::RemoveClass { handle: class(minor) }).unwrap();
        }
        assert_eq!(a.snapshot().unwrap(), empty);
    });
}

fn what_is_not_there_is_said_to_be_so() {
    inside(|| {
        assert!(matches!(Device::open("no-such"), Err(Problem::NoDevice(name)) if name == "no-such"));
        let mut a = Device::open("a").unwrap();
        let refused = a.apply(&htb(1, 1)).unwrap_err();
        assert!(
            refused.to_string().contains("tc class replace dev a parent 7765: classid 7765:1"),
            "{refused}"
        );
    });
}
