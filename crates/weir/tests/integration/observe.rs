//! `weir observe`: a token bucket in a namespace, against its own counters; what cannot be observed; queues that change meanwhile. Where
//! nothing may be loaded the tests skip and say so; with WEIR_REQUIRE_LIVE=1 that is a failure.

use crate::place::{Place, status, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use weir_base::{Bytes, Rate};
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_linux::netlink::{End, Netlink};
use weir_shaper::{Device, Handle, Step, Tbf};

const NEAR: &str = "10.77.0.1";
const FAR: &str = "10.77.0.2";
const HANDLE: Handle = Handle::new(5, 0);
/// How often an observation is repeated if events were missed: a machine may not call programs in some contexts.
const ATTEMPTS: usize = 5;

/// A namespace with a device `a` whose frames nobody answers; `None` where weir may load nothing.
fn namespace() -> Option<Namespace> {
    let skipped = |why: &str| {
        println!("skipped: {why}");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        None
    };
    let made = Namespace::new().and_then(|namespace| {
        namespace
            .inside(|| {
                // Otherwise the device would send solicitations of its own.
                set_sysctl("ipv6.conf.default.disable_ipv6", "1")?;
                let mut netlink = Netlink::open()?;
                let end = |name, last| End { name, mac: [2, 0, 0, 0, 0, last], namespace: None };
                netlink.add_veth(&end("a", 1), &end("b", 2), 1500)?;
                let index = |name| weir_linux::device::index_of_name(name).unwrap();
                netlink.set_up(index("b"))?;
                netlink.set_up(index("a"))?;
                netlink.add_address(index("a"), NEAR.parse().unwrap())?;
                netlink.add_neighbour(index("a"), FAR.parse().unwrap(), [2, 0, 0, 0, 0, 2])?;
                netlink.add_route(index("a"), Some(FAR.parse().unwrap()), FAR.parse().unwrap())?;
                shape(1);
                weir(&["a", "--for", "1 ms"]).output()
            })
            .map(|tried| (namespace, tried))
    });
    match made {
        Ok((namespace, tried)) if status(&tried) == 0 => Some(namespace),
        Ok((_, tried)) => skipped(&text(&tried.stderr)),
        Err(error) => skipped(&error.to_string()),
    }
}

/// Gives `a` a token bucket of this many Mbit/s, and room for 20 packets of 1000 bytes.
fn shape(mbit: u64) {
    let tbf = Tbf {
        rate: Rate::from_mbit_per_sec(mbit),
        burst: Bytes::new(2000),
        limit: Bytes::new(20_000),
        peakrate: None,
        mtu: Bytes::new(2000),
    };
    Device::open("a").unwrap().apply(&Step::Tbf { handle: HANDLE, parent: Handle::ROOT, tbf }).unwrap();
}

fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("observe").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An observation that has begun.
fn begun(args: &[&str]) -> Child {
    let mut child = weir(args).spawn().unwrap();
    let mut line = String::new();
    // The rest of standard error is short, and stays in the pipe.
    BufReader::with_capacity(1, child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("observing a (tbf 5:)"), "{line}");
    child
}

fn ended(mut child: Child) -> (i32, Value) {
    let mut out = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut out).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}")))
}

/// Sends packets whose frames have 1000 bytes, as fast as they can be sent.
fn send(packets: usize) {
    let socket = UdpSocket::bind((NEAR, 0)).unwrap();
    // Headers of Ethernet, IPv4 and UDP have 42 bytes.
    (0..packets).for_each(|_| {
        // A packet that the queue refuses may be reported as an error.
        let _ = socket.send_to(&[0; 958], (FAR, 9));
    });
}

#[test]
fn a_token_bucket_is_observed_as_it_counts_itself() {
    let Some(namespace) = namespace() else { return };
    let place = Place::new();
    let out = place.path("out").display().to_string();
    let attempt = || {
        let (code, document) = namespace
            .inside(|| {
                let child = begun(&["a", "--for", "600 ms", "--json", "--out", &out]);
                send(60);
                Ok(ended(child))
            })
            .unwrap();
        assert_eq!(code == 0, document["checks"]["invalid"] == Value::Array(vec![]));
        (code == 0).then_some(document)
    };
    let document = (0..ATTEMPTS).find_map(|_| attempt()).expect("valid at least once");
    let number = |value: &Value| value.as_u64().unwrap();
    let (packets, drops) = (number(&document["packets"]), number(&document["drops"]));
    assert_eq!(packets + drops, 60, "{document}");
    // The bucket of 2000 bytes and the queue of 20,000 bytes: the others are refused, but for those that a little time lets through.
    assert!((25..=40).contains(&drops), "{drops}");
    assert_eq!(document["drops_by_reason"]["qdisc_drop"]["at_arrival"], drops);
    assert_eq!(document["by_codepoint"]["not-ect"]["packets"], packets);
    assert_eq!(number(&document["bytes"]), 1000 * packets);
    assert_eq!(document["checks"]["kernel"]["drops"]["most"], drops);
    assert!(number(&document["backlog"]["max_bytes"]) >= 19_000, "{}", document["backlog"]);
    assert_eq!((&document["queue"], &document["ended"]), (&Value::from("tbf"), &Value::Null));
    let written: Value = serde_json::from_slice(&fs::read(place.path("out/analysis.json")).unwrap()).unwrap();
    assert!(written["periods"].as_array().is_some_and(|periods| !periods.is_empty()));
    assert!(fs::read_to_string(place.path("out/index.html")).unwrap().contains("left the queue tbf 5:"));
    assert!(fs::read_to_string(place.path("out/series.csv")).unwrap().starts_with("start_s,packets,"));
}

#[test]
fn a_queue_that_is_replaced_and_a_device_that_is_removed_end_the_result() {
    let Some(namespace) = namespace() else { return };
    let replaced = namespace.inside(|| {
        let child = begun(&["a", "--json"]);
        Device::open("a").unwrap().apply(&Step::RemoveRoot).unwrap();
        Ok(ended(child))
    });
    let (code, document) = replaced.unwrap();
    assert_eq!((code, &document["ended"]), (0, &Value::from("the queue tbf was replaced by noqueue")));
    let removed = namespace.inside(|| {
        shape(1);
        let child = begun(&["a", "--json"]);
        let done = Command::new("ip").args(["link", "delete", "dev", "a"]).status().unwrap();
        assert!(done.success());
        Ok(ended(child))
    });
    let (code, document) = removed.unwrap();
    assert_eq!((code, &document["ended"]), (0, &Value::from("the device was removed")));
}

#[test]
fn what_cannot_be_observed_is_refused_with_the_reason() {
    let refused = |args: &[&str], message: &str, help: &str| {
        let output = weir(args).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(status(&output), 2, "{args:?}: {said}");
        assert!(said.contains(message) && said.contains(help), "{args:?}: {said}");
    };
    refused(&["no-such-device"], "there is no device no-such-device", "ip link");
    refused(&["lo"], "lo has no queue (noqueue)", "tc qdisc add");
    refused(&["lo", "--for", "0s"], "above 0", "--for");
}

#[test]
fn a_kernel_without_type_information_and_a_user_without_rights_are_told() {
    let Some(namespace) = namespace() else { return };
    let refused = |before: &[&str], message: &str, help: &str| {
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).arg(env!("CARGO_BIN_EXE_weir")).args(["observe", "a", "--for", "1 ms"]);
        let output = namespace.inside(|| command.output()).unwrap();
        let said = text(&output.stderr);
        assert_eq!(status(&output), 2, "{said}");
        assert!(said.contains(message) && said.contains(help), "{said}");
    };
    // An empty folder in place of the kernel's, for this process alone.
    let hide = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    refused(
        &["unshare", "--mount", "sh", "-c", hide, "sh"],
        "this kernel lacks its type information, /sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF adds it",
        "weir analyze BEFORE AFTER",
    );
    refused(
        &["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"],
        "this process may not load programs into the kernel",
        "run as root",
    );
}
