//! The file of a node: its own place, all nodes of the overlay, its neighbours, services, and the policy that all nodes share.

mod groups;
mod policy;
mod told;

use super::signing::SigningKey;
use super::signing_key;
use crate::failure::Failure;
use crate::transfer::{Keys, PublicKey};
use groups::Groups;
use policy::Policy;
use serde::{Deserialize, Deserializer, de::Error};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use weir_base::{Bytes, Prefix};
use weir_overlay::NodeId;
use weir_overlay::proxy::udp::trailer;
use weir_overlay::site::{Places, Service, quota};
use weir_sliq::envelope;

/// The format of files that this program reads.
const FORMAT: u32 = 1;
/// The device, unless the file names another.
const DEVICE: &str = "weir0";
/// The largest IP packet of the paths to neighbours, unless the file says otherwise, and its range.
const MTU: u64 = 1500;
const LEAST_MTU: u64 = 1280;
const MOST_MTU: u64 = 9000;
/// Bytes of IPv4 and UDP around each datagram between nodes.
pub(super) const HEADERS: u64 = 28;
/// Bytes of the overlay's header of a packet whose context is known, with three visited nodes.
const HEADER: u64 = 16;
/// Longest name of a device in bytes (linux/if.h).
const LONGEST_DEVICE: usize = 15;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: Spanned<u32>,
    name: Spanned<String>,
    key: Spanned<PathBuf>,
    listen: Spanned<SocketAddr>,
    device: Option<Spanned<String>>,
    address: Option<Spanned<Ipv4Addr>>,
    mtu: Option<Spanned<Bytes>>,
    device_mtu: Option<Spanned<Bytes>>,
    #[serde(default)]
    tcp: Tcp,
    groups: Option<Spanned<Vec<Prefix>>>,
    group_key: Option<Spanned<PathBuf>>,
    group_devices: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    node: Vec<Spanned<Listed>>,
    #[serde(default)]
    neighbour: Vec<Spanned<Near>>,
    #[serde(default)]
    service: Vec<Spanned<Service>>,
    #[serde(default)]
    policy: Policy,
}

/// How TCP connections of the site's programs go to other sites.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Tcp {
    /// Proxies of both sites end them, and carry their bytes.
    #[default]
    Proxy,
    /// As all other packets: hosts' own TCP sees the paths between nodes.
    Carry,
}

/// A node of the overlay. All files list the same ones.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    name: String,
    number: u8,
    #[serde(deserialize_with = "public_key")]
    key: PublicKey,
    #[serde(deserialize_with = "public_key")]
    sign: PublicKey,
    #[serde(default)]
    prefixes: Vec<Prefix>,
}

/// A neighbour: one of the listed nodes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Near {
    name: String,
    at: Option<SocketAddr>,
    quota: Option<quota::Config>,
}

fn public_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// A neighbour as the node knows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Neighbour {
    pub(super) name: String,
    pub(super) id: NodeId,
    pub(super) key: PublicKey,
    /// Where this node asks it for a connection; `None` if the neighbour asks.
    pub(super) asks: Option<SocketAddr>,
    /// What this node takes from it at most.
    pub(super) quota: Option<quota::Config>,
}

/// What a node knows of each node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) key: PublicKey,
    /// The key by which its signatures are verified.
    pub(super) sign: PublicKey,
}

/// What a node is, by its file.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) id: NodeId,
    pub(super) key: PathBuf,
    pub(super) keys: Keys,
    pub(super) listen: SocketAddr,
    pub(super) device: String,
    pub(super) address: Option<IpAddr>,
    pub(super) mtu: Bytes,
    /// The longest IP packet of programs that is not cut into fragments by their host.
    pub(super) device_mtu: Bytes,
    /// Whether TCP connections go over proxies.
    pub(super) proxies: bool,
    pub(super) groups: Groups,
    /// All nodes.
    pub(super) nodes: BTreeMap<NodeId, Known>,
    /// The key by which this node signs.
    pub(super) signing: SigningKey,
    /// The prefixes of each node.
    pub(super) prefixes: Vec<(Prefix, NodeId)>,
    pub(super) neighbours: Vec<Neighbour>,
    pub(super) services: Vec<Service>,
    pub(super) policy: Policy,
}

/// A file that is being read: what is wrong has a line.
struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reading<'_> {
    fn wrong(&self, at: &Range<usize>, message: impl fmt::Display, help: impl Into<String>) -> Failure {
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        Failure::bad_input(format!("{}:{line}: {message}", self.path.display()), help)
    }
}

fn unreadable(path: &Path, error: &dyn fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: {error}", path.display()), "docs/overlay-hosts.md shows whole files")
}

impl Plan {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or something in it is wrong; the error has the line and says what to write.
    pub(super) fn read(path: &Path) -> Result<Plan, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        Plan::parse(path, &text)
    }

    /// Reads the text of the file at `path`, beside which its keys are.
    ///
    /// # Errors
    /// As [`Plan::read`].
    pub(super) fn parse(path: &Path, text: &str) -> Result<Plan, Failure> {
        let file: File =
            toml::from_str(text).map_err(|error| unreadable(path, &error.to_string().trim_end()))?;
        Plan::of(file, &Reading { path, text })
    }

    fn of(file: File, reading: &Reading<'_>) -> Result<Plan, Failure> {
        if *file.format.get_ref() != FORMAT {
            let message = format!("this program reads format {FORMAT}");
            return Err(reading.wrong(&file.format.span(), message, format!("write format = {FORMAT}")));
        }
        let (nodes, prefixes) = listed(&file.node, reading)?;
        let name = file.name.get_ref();
        let Some((id, own)) = nodes.iter().find(|(_, node)| node.name == *name) else {
            let message = format!("no [[node]] has the name {name:?} of this node");
            return Err(reading.wrong(&file.name.span(), message, known("write one of", nodes.values())));
        };
        let key = reading.path.parent().unwrap_or(Path::new("")).join(file.key.get_ref());
        let keys = Keys::of_command(&key, "overlay")?;
        let (id, signing) = (*id, signing_key(&keys)?);
        let sign = signing.public();
        if keys.public != own.key || sign != own.sign {
            let message = format!("[[node]] {name:?} has other keys than {}", key.display());
            let help = format!(
                "write key = \"{}\" and sign = \"{sign}\" there, in the files of all nodes",
                keys.public
            );
            return Err(reading.wrong(&file.key.span(), message, help));
        }
        let listen = *file.listen.get_ref();
        if listen.port() == 0 {
            let message = "neighbours must know the port";
            return Err(reading.wrong(
                &file.listen.span(),
                message,
                format!("write listen = \"{}:7770\"", listen.ip()),
            ));
        }
        let device = file.device.as_ref().map_or(DEVICE, |device| device.get_ref());
        if let Some(spanned) = &file.device {
            named(device, &spanned.span(), reading)?;
        }
        let mtu = file.mtu.as_ref().map_or(Bytes::new(MTU), |mtu| *mtu.get_ref());
        if let Some(spanned) = &file.mtu
            && !(LEAST_MTU..=MOST_MTU).contains(&mtu.get())
        {
            let message = format!("an MTU of {} bytes is out of range", mtu.get());
            return Err(reading.wrong(
                &spanned.span(),
                message,
                format!("write {LEAST_MTU} to {MOST_MTU} B"),
            ));
        }
        let device_mtu = device_mtu(&file, mtu, reading)?;
        let places = Places::new(prefixes.clone());
        let address = file.address.as_ref().map(|address| IpAddr::V4(*address.get_ref()));
        if let Some(spanned) = &file.address
            && places.node_of(spanned.get_ref().to_bits()) != Some(id)
        {
            let message = format!("{} lies in no prefix of {name:?}", spanned.get_ref());
            let help = "the device's address is one of this node's own `prefixes`";
            return Err(reading.wrong(&spanned.span(), message, help));
        }
        let groups = Groups::of(&file, device, reading)?;
        let neighbours = neighbours(&file, id, &nodes, reading)?;
        for spanned in &file.service {
            let service = spanned.get_ref();
            if let Some(fault) = service.fault() {
                let message = format!("service {:?}: {}", service.name, fault.message);
                return Err(reading.wrong(&spanned.span(), message, fault.help));
            }
        }
        let policy = file.policy;
        if let Some(fault) = policy.node().fault() {
            let message = format!("[policy] `{}`: {}", fault.key, fault.message);
            return Err(reading.wrong(&place_of("[policy", reading.text), message, fault.help));
        }
        if let Some(key) = policy.link.fault() {
            let message = format!("[policy.link] `{key}` is at fault");
            return Err(reading.wrong(
                &place_of("[policy", reading.text),
                message,
                "write cc = [\"cubic\", \"copa\"]",
            ));
        }
        let proxies = file.tcp == Tcp::Proxy;
        let services = file.service.into_iter().map(Spanned::into_inner).collect();
        let (name, device) = (name.clone(), device.to_owned());
        Ok(Plan {
            name,
            id,
            key,
            keys,
            listen,
            device,
            address,
            mtu,
            device_mtu,
            proxies,
            groups,
            nodes,
            signing,
            prefixes,
            neighbours,
            services,
            policy,
        })
    }

    /// The largest IP packet of programs that fits in a packet between nodes with all its headers. Larger ones are carried in parts.
    pub(super) fn room(&self) -> Bytes {
        room(self.mtu, &self.policy)
    }

    /// The name of a node.
    pub(super) fn name_of(&self, id: NodeId) -> &str {
        self.nodes.get(&id).map_or("?", |node| node.name.as_str())
    }
}

/// The largest IP packet of programs that fits in a packet of this length between nodes with all its headers.
fn room(mtu: Bytes, policy: &Policy) -> Bytes {
    let around = HEADERS + policy.link.headers(true).get() + HEADER + envelope::LENGTH as u64;
    mtu.saturating_sub(Bytes::new(around))
}

/// The MTU of the device: what fits a packet between nodes, unless the file has another one.
fn device_mtu(file: &File, mtu: Bytes, reading: &Reading<'_>) -> Result<Bytes, Failure> {
    let least = room(mtu, &file.policy);
    let Some(spanned) = &file.device_mtu else { return Ok(least) };
    // As many parts as a datagram may have, of which each has trailers.
    let most = Bytes::new(u64::from(trailer::MOST) * (least.get() - trailer::ORIGINAL as u64));
    let own = *spanned.get_ref();
    if !(least..=most).contains(&own) {
        let message = format!("an MTU of {} bytes of the device is out of range", own.get());
        let help = format!("write {} to {} B, or leave it out", least.get(), most.get());
        return Err(reading.wrong(&spanned.span(), message, help));
    }
    Ok(own)
}

/// Refuses what is no device's name.
fn named(device: &str, at: &Range<usize>, reading: &Reading<'_>) -> Result<(), Failure> {
    if device.is_empty() || device.len() > LONGEST_DEVICE || device.contains(['/', ' ', '%']) {
        let help = format!("write 1 to {LONGEST_DEVICE} letters and digits, as \"{DEVICE}\"");
        return Err(reading.wrong(at, format!("no device can have the name {device:?}"), help));
    }
    Ok(())
}

/// Where a text stands first; the start of the file if it does not.
fn place_of(text: &str, within: &str) -> Range<usize> {
    let at = within.find(text).unwrap_or(0);
    at..at
}

/// What may be written: the names of nodes.
fn known<'a>(begin: &str, nodes: impl Iterator<Item = &'a Known>) -> String {
    let names: Vec<String> = nodes.map(|node| format!("{:?}", node.name)).collect();
    if names.is_empty() {
        "list all nodes as [[node]]".to_owned()
    } else {
        format!("{begin} {}", names.join(", "))
    }
}

type Nodes = BTreeMap<NodeId, Known>;

/// All nodes, and their prefixes.
fn listed(all: &[Spanned<Listed>], reading: &Reading<'_>) -> Result<(Nodes, Vec<(Prefix, NodeId)>), Failure> {
    let (mut nodes, mut prefixes) = (Nodes::new(), Vec::<(Prefix, NodeId)>::new());
    for spanned in all {
        let Listed { name, number, key, sign, prefixes: own } = spanned.get_ref();
        let wrong = |message: String, help: &str| reading.wrong(&spanned.span(), message, help);
        let id = NodeId::new(*number).ok_or_else(|| {
            wrong(format!("node {name:?}: there is no number {number}"), "write a number from 0 to 127")
        })?;
        if nodes.values().any(|other| other.name == *name) {
            return Err(wrong(
                format!("two nodes have the name {name:?}"),
                "give each node a name of its own",
            ));
        }
        if nodes.values().any(|other| other.key == *key) {
            let message = format!("node {name:?} has the key of another node");
            return Err(wrong(message, "`weir overlay keygen` makes keys for each node"));
        }
        if nodes.insert(id, Known { name: name.clone(), key: *key, sign: *sign }).is_some() {
            let message = format!("node {name:?}: another node has the number {number}");
            return Err(wrong(message, "give each node a number of its own"));
        }
        for prefix in own {
            if prefix.address().is_ipv6() {
                let message = format!("node {name:?}: {prefix} is of IPv6");
                return Err(wrong(message, "the overlay carries IPv4; paths between nodes may be of IPv6"));
            }
            if let Some((_, other)) = prefixes.iter().find(|(other, _)| other == prefix) {
                let other = nodes.get(other).map_or("another", |node| node.name.as_str());
                let message = format!("node {name:?}: {prefix} is a prefix of node {other:?} too");
                return Err(wrong(message, "an address is behind one node"));
            }
            prefixes.push((*prefix, id));
        }
    }
    Ok((nodes, prefixes))
}

/// The neighbours of the node `own`.
fn neighbours(
    file: &File,
    own: NodeId,
    nodes: &Nodes,
    reading: &Reading<'_>,
) -> Result<Vec<Neighbour>, Failure> {
    let mut all: Vec<Neighbour> = Vec::new();
    for spanned in &file.neighbour {
        let Near { name, at, quota } = spanned.get_ref();
        let wrong = |message: String, help: String| reading.wrong(&spanned.span(), message, help);
        let Some((id, Known { key, .. })) = nodes.iter().find(|(_, node)| node.name == *name) else {
            return Err(wrong(
                format!("no [[node]] has the name {name:?}"),
                known("write one of", nodes.values()),
            ));
        };
        if *id == own || all.iter().any(|other| other.id == *id) {
            let what = if *id == own { "this node itself" } else { "a neighbour already" };
            return Err(wrong(format!("{name:?} is {what}"), "remove this [[neighbour]]".to_owned()));
        }
        let asks = own < *id;
        if asks && at.is_none() {
            let message = format!("the node of the lower number asks for the connection: where is {name:?}?");
            return Err(wrong(message, "write at = \"ADDRESS:PORT\", its `listen`".to_owned()));
        }
        let listen = *file.listen.get_ref();
        if let Some(at) = at.filter(|at| at.is_ipv4() != listen.is_ipv4()) {
            let message = format!("{at} and the own {listen} are of two versions of IP");
            return Err(wrong(message, "write both as IPv4, or both as IPv6".to_owned()));
        }
        if let Some(fault) = quota.as_ref().and_then(quota::Config::fault) {
            return Err(wrong(format!("neighbour {name:?}: {}", fault.message), fault.help));
        }
        let (name, asks, quota) = (name.clone(), at.filter(|_| asks), quota.clone());
        all.push(Neighbour { name, id: *id, key: *key, asks, quota });
    }
    if all.is_empty() {
        let message = "the node has no neighbour";
        return Err(reading.wrong(&file.name.span(), message, "add [[neighbour]] with `name` and `at`"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
