//! Files of nodes: one that is right, and what is said of each that is not.

use super::Plan;
use crate::transfer::Keys;
use std::path::PathBuf;

/// A folder with a key, and the file of node b of three.
struct Place {
    folder: tempfile::TempDir,
    file: String,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let [a, own, c] = ["a", "b.key", "c"].map(|name| {
            let keys = Keys::generate(&folder.path().join(name)).unwrap();
            format!("key = \"{}\"\nsign = \"{}\"", keys.public, super::signing_key(&keys).unwrap().public())
        });
        let file = format!(
            r#"format = 1
name = "b"
key = "b.key"
listen = "192.0.2.2:7770"
device = "weir0"
address = "10.2.0.1"
mtu = "1500 B"

[[node]]
name = "a"
number = 0
{a}
prefixes = ["10.1.0.0/16"]

[[node]]
name = "b"
number = 1
{own}
prefixes = ["10.2.0.0/16"]

[[node]]
name = "c"
number = 2
{c}
prefixes = ["10.3.0.0/16"]

[[neighbour]]
name = "a"

[[neighbour]]
name = "c"
at = "192.0.2.3:7770"

[[service]]
name = "video"
to = "10.3.0.0/16"
ports = "5000-5010"
admit = {{ kind = "strap", priority = 2.0 }}
rate = "4 Mbit/s"
deadline = "80 ms"

[policy]
k = 1e12
link = {{ cc = ["copa"] }}
"#
        );
        Place { folder, file }
    }

    /// What is read from the file with one text replaced by another.
    fn read(&self, text: &str, by: &str) -> Result<Plan, String> {
        assert!(self.file.contains(text), "{text}");
        let path: PathBuf = self.folder.path().join("b.toml");
        std::fs::write(&path, self.file.replacen(text, by, 1)).unwrap();
        Plan::read(&path).map_err(|failure| {
            assert_eq!(failure.status, 2);
            format!("{} ({})", failure.message, failure.help.unwrap_or_default())
        })
    }
}

#[test]
fn a_right_file_is_told_in_words() {
    let place = Place::new();
    let plan = place.read("format", "format").unwrap();
    // 1500 less 28 of IP and UDP, 43 of SLIQ, 16 of the overlay and 24 of the seal.
    assert_eq!(
        plan.to_string(),
        "\
node \"b\" (number 1), listening on 192.0.2.2:7770
device weir0 with an MTU of 1389 bytes, routes:
  10.1.0.0/16  behind a
  10.3.0.0/16  behind c
TCP connections: over proxies of both sites
neighbours:
  a  asks this node
  c  at 192.0.2.3:7770
services, the first that fits a flow is the flow's:
  video  by strap, within 80 ms
"
    );
}

#[test]
fn what_is_asked_for_services_neighbours_and_groups_is_told() {
    let place = Place::new();
    let service = "ef_deadline = \"50 ms\"\nchunk = \"500 B\"\nfec = { base = 8, total = 10 }\nreorder = \"100 ms\"\njoin = \"2 ms\"\nsmooth = true";
    let told = place.read("deadline = \"80 ms\"", service).unwrap().to_string();
    assert!(
        told.ends_with("  video  by strap, EF within 50 ms, in parts of 500 B, 2 repairs for 8 parts, short ones joined within 2 ms, in order within 100 ms, with the spacing that they had\n"),
        "{told}"
    );
    let quota =
        "at = \"192.0.2.3:7770\"\nquota = { rate = \"100 Mbit/s\", packets = 20000, queue = \"4 MB\" }";
    let told = place.read("at = \"192.0.2.3:7770\"", quota).unwrap().to_string();
    let line = "  c  at 192.0.2.3:7770, 100 Mbit/s at most, 20000 packets a second at most, 4000000 bytes held at most\n";
    assert!(told.contains(line), "{told}");
    let keys = "device_mtu = \"9 kB\"\ngroups = [\"239.1.0.0/16\"]\ngroup_key = \"b.key\"\ngroup_devices = [\"eth1\", \"eth2\"]";
    let told = place.read("mtu = \"1500 B\"", keys).unwrap().to_string();
    for line in [
        "device weir0 with an MTU of 9000 bytes",
        "  hosts at eth1 send to groups and join them\n  hosts at eth2 ",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn what_may_be_left_out_has_a_default() {
    let place = Place::new();
    for line in [
        "device = \"weir0\"\n",
        "address = \"10.2.0.1\"\n",
        "mtu = \"1500 B\"\n",
        "k = 1e12\n",
        "deadline = \"80 ms\"\n",
    ] {
        assert!(place.read(line, "").is_ok(), "{line}");
    }
}

/// Each line: what is replaced, by what, and a part of what is said; the line of the file where it stands.
#[test]
fn a_wrong_file_is_refused_with_its_line_and_what_to_write() {
    let place = Place::new();
    let key = |name: &str| {
        let after = place.file.split(&format!("name = \"{name}\"\nnumber")).nth(1).unwrap();
        after.split('"').nth(1).unwrap().to_owned()
    };
    let (a, b) = (key("a"), key("b"));
    let (same, other) = (format!("key = \"{b}\""), format!("key = \"{a}\""));
    let cases: Vec<(&str, &str, u32, &str)> = vec![
        ("format = 1", "format = 2", 1, "write format = 1"),
        ("format = 1\n", "", 1, "missing field `format`"),
        ("format = 1", "format = one", 1, "TOML parse error at line 1"),
        ("name = \"b\"\nkey", "name = \"d\"\nkey", 2, "write one of \"a\", \"b\", \"c\""),
        ("name = \"b\"\nkey", "nane = \"b\"\nkey", 2, "unknown field `nane`"),
        ("key = \"b.key\"", "key = \"none.key\"", 0, "none.key"),
        ("key = \"b.key\"", "key = \"a\"", 3, "has other keys than"),
        ("key = \"b.key\"", "key = \"b.toml\"", 0, "chmod 600"),
        ("listen = \"192.0.2.2:7770\"", "listen = \"192.0.2.2\"", 4, "TOML parse error at line 4"),
        ("listen = \"192.0.2.2:7770\"", "listen = \"192.0.2.2:0\"", 4, "write listen = \"192.0.2.2:7770\""),
        (
            "listen = \"192.0.2.2:7770\"",
            "listen = \"[2001:db8::2]:7770\"",
            0,
            "write both as IPv4, or both as IPv6",
        ),
        ("listen = \"192.0.2.2:7770\"\n", "", 1, "missing field `listen`"),
        ("device = \"weir0\"", "device = \"\"", 5, "no device can have the name"),
        ("device = \"weir0\"", "device = \"a/b\"", 5, "no device can have the name"),
        ("device = \"weir0\"", "device = \"sixteen-letters-\"", 5, "write 1 to 15 letters"),
        ("address = \"10.2.0.1\"", "address = \"10.1.0.1\"", 6, "lies in no prefix of \"b\""),
        ("address = \"10.2.0.1\"", "address = \"10.2.0.256\"", 6, "TOML parse error at line 6"),
        ("address = \"10.2.0.1\"", "address = \"2001:db8::1\"", 6, "TOML parse error at line 6"),
        ("mtu = \"1500 B\"", "mtu = \"1000 B\"", 7, "write 1280 to 9000 B"),
        ("mtu = \"1500 B\"", "mtu = \"10 kB\"", 7, "write 1280 to 9000 B"),
        ("mtu = \"1500 B\"", "mtu = \"1500 s\"", 7, "TOML parse error at line 7"),
        ("mtu = \"1500 B\"", "mtu = \"1500 B\"\ndevice_mtu = \"1000 B\"", 8, "write 1389 to 42377 B"),
        ("mtu = \"1500 B\"", "mtu = \"1500 B\"\ndevice_mtu = \"43 kB\"", 8, "write 1389 to 42377 B"),
        ("mtu = \"1500 B\"", "mtu = \"1500 B\"\ndevice_mtu = 9000", 8, "TOML parse error at line 8"),
        ("mtu = \"1500 B\"", "mtu = \"1500 B\"\ntcp = \"off\"", 8, "expected `proxy` or `carry`"),
        ("mtu = \"1500 B\"", "mtu = \"1500 B\"\ngroups = [\"239.1.0.0/16\"]", 8, "write group_key = "),
        ("mtu = \"1500 B\"", "mtu = \"1500 B\"\ngroup_key = \"b.key\"", 8, "write groups = "),
        (
            "mtu = \"1500 B\"",
            "groups = [\"224.0.0.0/8\"]\ngroup_key = \"b.key\"",
            7,
            "has no groups that can be carried",
        ),
        (
            "mtu = \"1500 B\"",
            "groups = [\"10.0.0.0/8\"]\ngroup_key = \"b.key\"",
            7,
            "write addresses of 239.0.0.0/8",
        ),
        ("mtu = \"1500 B\"", "groups = [\"239.1.0.0/16\"]\ngroup_key = \"no.key\"", 0, "no.key"),
        (
            "mtu = \"1500 B\"",
            "mtu = \"1500 B\"\ngroup_devices = [\"eth1\"]",
            8,
            "`group_devices` are for `groups`",
        ),
        (
            "mtu = \"1500 B\"",
            "groups = [\"239.1.0.0/16\"]\ngroup_key = \"b.key\"\ngroup_devices = []",
            9,
            "names no device",
        ),
        (
            "mtu = \"1500 B\"",
            "groups = [\"239.1.0.0/16\"]\ngroup_key = \"b.key\"\ngroup_devices = [\"weir0\"]",
            9,
            "is the node's own device",
        ),
        (
            "mtu = \"1500 B\"",
            "groups = [\"239.1.0.0/16\"]\ngroup_key = \"b.key\"\ngroup_devices = [\"eth1\", \"eth1\"]",
            9,
            "is named twice",
        ),
        (
            "mtu = \"1500 B\"",
            "groups = [\"239.1.0.0/16\"]\ngroup_key = \"b.key\"\ngroup_devices = [\"eth 1\"]",
            9,
            "no device can have the name",
        ),
        (
            "mtu = \"1500 B\"",
            "groups = [\"239.1.0.0/16\"]\ngroup_key = \"b.key\"\ngroup_devices = \"eth1\"",
            9,
            "TOML parse error at line 9",
        ),
        ("number = 0", "number = 1", 0, "another node has the number 1"),
        ("number = 0", "number = 128", 9, "write a number from 0 to 127"),
        ("number = 0", "number = -1", 11, "TOML parse error at line 11"),
        ("number = 0\n", "", 9, "missing field `number`"),
        ("name = \"a\"\nnumber", "name = \"b\"\nnumber", 0, "two nodes have the name"),
        (&same, &other, 0, "has the key of another node"),
        (&other, "key = \"ab\"", 12, "a public key has 64 hexadecimal digits"),
        ("\nsign = ", "\nsing = ", 13, "unknown field `sing`"),
        ("prefixes = [\"10.1.0.0/16\"]", "prefixes = [\"10.2.0.0/16\"]", 0, "is a prefix of node"),
        ("prefixes = [\"10.1.0.0/16\"]", "prefixes = [\"10.1.0.1/16\"]", 14, "TOML parse error at line 14"),
        ("prefixes = [\"10.1.0.0/16\"]", "prefixes = [\"2001:db8::/32\"]", 9, "the overlay carries IPv4"),
        ("prefixes = [\"10.1.0.0/16\"]", "prefixes = \"10.1.0.0/16\"", 14, "TOML parse error at line 14"),
        ("prefixes = [\"10.1.0.0/16\"]", "prefix = [\"10.1.0.0/16\"]", 14, "unknown field `prefix`"),
        (
            "[[neighbour]]\nname = \"a\"",
            "[[neighbour]]\nname = \"d\"",
            30,
            "write one of \"a\", \"b\", \"c\"",
        ),
        ("[[neighbour]]\nname = \"a\"", "[[neighbour]]\nname = \"b\"", 30, "is this node itself"),
        (
            "[[neighbour]]\nname = \"a\"",
            "[[neighbour]]\nname = \"c\"\nat = \"192.0.2.3:7770\"",
            34,
            "is a neighbour already",
        ),
        ("at = \"192.0.2.3:7770\"\n", "", 33, "write at = \"ADDRESS:PORT\""),
        ("at = \"192.0.2.3:7770\"", "at = \"192.0.2.3\"", 35, "TOML parse error at line 35"),
        ("at = \"192.0.2.3:7770\"", "at = \"[2001:db8::3]:7770\"", 33, "write both as IPv4, or both as IPv6"),
        ("at = \"192.0.2.3:7770\"", "at = \"192.0.2.3:7770\"\nquota = {}", 33, "bounds nothing"),
        (
            "at = \"192.0.2.3:7770\"",
            "at = \"192.0.2.3:7770\"\nquota = { rate = \"1 kbit/s\" }",
            33,
            "write for example rate",
        ),
        ("at = \"192.0.2.3:7770\"", "at = \"192.0.2.3:7770\"\nquota = { packets = 1 }", 33, "100 at least"),
        ("at = \"192.0.2.3:7770\"", "at = \"192.0.2.3:7770\"\nquota = { queue = \"1 kB\" }", 33, "65536 B"),
        (
            "at = \"192.0.2.3:7770\"",
            "at = \"192.0.2.3:7770\"\nquota = { bytes = \"1 MB\" }",
            36,
            "unknown field `bytes`",
        ),
        (
            "at = \"192.0.2.3:7770\"",
            "at = \"192.0.2.3:7770\"\nquota = \"1 MB\"",
            36,
            "TOML parse error at line 36",
        ),
        ("at = \"192.0.2.3:7770\"", "key = \"x\"", 35, "unknown field `key`"),
        (
            "[[neighbour]]\nname = \"a\"\n\n[[neighbour]]\nname = \"c\"\nat = \"192.0.2.3:7770\"\n",
            "",
            2,
            "add [[neighbour]]",
        ),
        ("rate = \"4 Mbit/s\"\n", "", 37, "write rate = \"4 Mbit/s\""),
        ("priority = 2.0", "priority = 0.0", 37, "must be above 0"),
        ("kind = \"strap\"", "kind = \"strip\"", 41, "strap"),
        ("ports = \"5000-5010\"", "ports = \"5010-5000\"", 40, "is not a range of ports"),
        ("to = \"10.3.0.0/16\"", "to = \"10.3.0.0/33\"", 39, "TOML parse error at line 39"),
        ("deadline = \"80 ms\"", "deadline = \"80\"", 43, "TOML parse error at line 43"),
        ("deadline = \"80 ms\"", "deadline = \"0 s\"", 37, "write for example deadline"),
        ("deadline = \"80 ms\"", "ef_deadline = \"1 min\"", 37, "at most 33.767 s"),
        ("deadline = \"80 ms\"", "ef_deadline = 80", 43, "TOML parse error at line 43"),
        (
            "deadline = \"80 ms\"",
            "dscp = \"AF41\"\nef_deadline = \"80 ms\"",
            37,
            "leave out `dscp`, or write `deadline` instead",
        ),
        ("deadline = \"80 ms\"", "chunk = \"50 B\"", 37, "write for example chunk"),
        ("deadline = \"80 ms\"", "chunk = \"10 kB\"", 37, "100 to 9000 bytes"),
        ("deadline = \"80 ms\"", "chunk = 500", 43, "TOML parse error at line 43"),
        ("deadline = \"80 ms\"", "fec = { base = 8, total = 8 }", 37, "restores nothing"),
        ("deadline = \"80 ms\"", "fec = { base = 17, total = 20 }", 37, "1 to 16 sources"),
        ("deadline = \"80 ms\"", "fec = { base = 8, total = 40 }", 37, "at most 32"),
        (
            "deadline = \"80 ms\"",
            "fec = { base = 8, total = 10, hold = \"0 s\" }",
            37,
            "write for example hold",
        ),
        ("deadline = \"80 ms\"", "fec = { base = 8 }", 43, "missing field `total`"),
        ("deadline = \"80 ms\"", "fec = { base = 8, all = 10 }", 43, "unknown field `all`"),
        ("deadline = \"80 ms\"", "reorder = \"0 s\"", 37, "write for example reorder"),
        ("deadline = \"80 ms\"", "reorder = \"2 min\"", 37, "1 ms to 60 s"),
        ("deadline = \"80 ms\"", "join = \"2 s\"", 37, "at most 1 s"),
        ("deadline = \"80 ms\"", "join = \"1 ms\"\nnewest = true", 37, "leave out one of the two"),
        ("deadline = \"80 ms\"", "smooth = \"yes\"", 43, "TOML parse error at line 43"),
        ("deadline = \"80 ms\"", "reorder = true", 43, "TOML parse error at line 43"),
        ("deadline = \"80 ms\"", "dead = \"80 ms\"", 43, "unknown field `dead`"),
        ("k = 1e12", "k = 0.0", 45, "K must be positive"),
        ("k = 1e12", "kk = 1e12", 46, "unknown field `kk`"),
        ("k = 1e12", "depth = \"nplb\"", 45, "exclude each other"),
        ("k = 1e12", "depth_share = 2.0", 45, "at most 1"),
        ("cc = [\"copa\"]", "cc = []", 45, "write cc"),
        ("cc = [\"copa\"]", "cc = [\"cupa\"]", 47, "TOML parse error at line 47"),
    ];
    assert!(cases.len() >= 50);
    for (text, by, line, told) in cases {
        let Err(said) = place.read(text, by) else { panic!("{text} by {by} is taken") };
        assert!(said.contains(told), "{text} by {by}: {said}");
        let placed = said.contains(&format!("b.toml:{line}: ")) || said.contains(&format!("at line {line},"));
        assert!(line == 0 || placed, "{text} by {by}, line {line}: {said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_refused_with_its_name() {
    let said = Plan::read(std::path::Path::new("/none/such.toml")).err().unwrap();
    assert!(said.message.contains("/none/such.toml"), "{}", said.message);
}
