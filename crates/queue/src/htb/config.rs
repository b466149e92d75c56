//! The parameters of HTB, and the checks of their consistency.

use crate::psched::ETHERNET_HEADER;
use crate::{bands, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::collections::{BTreeMap, BTreeSet};
use weir_base::{Bytes, Dscp, Ecn, Rate};

/// Number of priorities of leaves (TC_HTB_NUMPRIO, linux/pkt_sched.h).
pub(super) const PRIORITIES: usize = 8;
/// Largest depth of the tree (TC_HTB_MAXDEPTH).
pub(super) const DEPTH: usize = 8;
/// Largest number of classes: a class's identifier has 16 bits.
const MOST_CLASSES: usize = 65_535;
/// Default size of a bucket: a frame of the MTU that `tc` assumes (tc/q_htb.c).
const DEFAULT_BURST: Bytes = Bytes::new(1600);

/// Parameters of the hierarchical token bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Config {
    /// The classes, each after its parent. Classes of equal priority take turns in this order.
    pub classes: Vec<Class>,
    /// Bytes that each packet counts in addition to its IP length. Linux counts Ethernet's header of 14 B.
    pub overhead: Bytes,
    /// Most packets that may wait unshaped, because no class takes them.
    pub direct_limit: u32,
}

impl crate::Parameters for Config {
    fn inner(&self) -> (&'static str, Vec<&crate::Config>) {
        ("classes", self.classes.iter().map(|class| &class.queue).collect())
    }
    /// The sum of the ceilings of the leaves that take these flows.
    fn shaping(&self, flows: &[u32]) -> Option<crate::Shaping> {
        let leaves: Option<BTreeSet<&str>> =
            flows.iter().map(|flow| Some(&*self.leaf_of(*flow)?.name)).collect();
        let leaves = leaves.filter(|leaves| !leaves.is_empty())?;
        let theirs = self.classes.iter().filter(|class| leaves.contains(class.name.as_str()));
        let rates = theirs.map(|class| class.ceil.unwrap_or(class.rate).bits_per_sec());
        let rate = Rate::from_bits_per_sec(rates.fold(0, u64::saturating_add));
        Some(crate::Shaping { rate, overhead: self.overhead })
    }
    fn change_fault(&self, next: &crate::Config) -> Option<String> {
        let crate::Config::Htb(next) = next else { return None };
        let old: BTreeMap<&str, &Class> = self.classes.iter().map(|it| (it.name.as_str(), it)).collect();
        next.classes.iter().find_map(|class| {
            let (name, old) = (&class.name, old.get(class.name.as_str())?);
            if old.parent != class.parent {
                return Some(format!(
                    "the class `{name}` cannot change its parent; give the new class another name"
                ));
            }
            (old.queue != class.queue).then(|| format!("the queue of the class `{name}` cannot change"))
        })
    }
}

/// A class: a leaf with a queue, or an inner class that lends to the classes that name it as their parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// Name of the class that it borrows from. By default the class is a root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Guaranteed rate; at least 8 bit/s.
    #[serde(deserialize_with = "parameter::rate")]
    pub rate: Rate,
    /// Largest rate, of which the class borrows the part above `rate` from its parent. By default `rate`: the class does not borrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceil: Option<Rate>,
    /// Size of the bucket of `rate`: the bytes that the class may send at once after an idle time; 64 B to 1 GiB.
    #[serde(deserialize_with = "parameter::burst")]
    pub burst: Bytes,
    /// Size of the bucket of `ceil`; 64 B to 1 GiB.
    #[serde(deserialize_with = "parameter::burst")]
    pub cburst: Bytes,
    /// Bytes that a leaf sends in its turn among leaves of equal priority; by default what `rate` sends in 100 ms, but 1000 B to
    /// 200 kB (Linux's r2q of 10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Bytes>,
    /// Priority of a leaf; 0 to 7. Among leaves that may send, the lowest number goes first.
    #[serde(deserialize_with = "priority")]
    pub prio: u8,
    /// ECN codepoints that a leaf takes, as packets arrive with them. A leaf with none of this, `dscp` and `flows` takes the packets that
    /// no other leaf takes; without such a leaf those packets precede all others, unshaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Vec<Ecn>>,
    /// DSCPs that a leaf takes (`["EF", "CS5"]`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Vec<Dscp>>,
    /// Flows that a leaf takes, numbered from 0 in the order of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<u32>>,
    /// The queue of a leaf; by default tail drop of 1000 packets.
    #[schemars(schema_with = "bands::nested")]
    pub queue: crate::Config,
}

impl Default for Class {
    fn default() -> Class {
        Class {
            name: "leaf".into(),
            parent: None,
            rate: Rate::from_mbit_per_sec(10),
            ceil: None,
            burst: DEFAULT_BURST,
            cburst: DEFAULT_BURST,
            quantum: None,
            prio: 0,
            ecn: None,
            dscp: None,
            flows: None,
            queue: bands::default_queue(),
        }
    }
}

impl Class {
    /// Whether it takes packets by what their headers say.
    pub fn has_filter(&self) -> bool {
        self.ecn.is_some() || self.dscp.is_some()
    }
}

impl Default for Config {
    /// One class of 10 Mbit/s for all packets.
    fn default() -> Config {
        Config {
            classes: vec![Class::default()],
            overhead: ETHERNET_HEADER,
            // Linux takes the device's `txqueuelen`.
            direct_limit: 1000,
        }
    }
}

fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        prio if usize::from(prio) < PRIORITIES => Ok(prio),
        prio => {
            Err(D::Error::custom(format!("a prio of {prio} is out of range; write 0 to {}", PRIORITIES - 1)))
        }
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Config::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Config, D::Error> {
        let config = Config::deserialize(deserializer)?;
        match config.wrong() {
            Some(wrong) => Err(D::Error::custom(wrong)),
            None => Ok(config),
        }
    }
}

impl Config {
    /// The leaf that takes all packets of a flow: the one that names it, or else the one that takes what no other does. `None` if
    /// there is none, or if leaves share the flow's packets by codepoint or DSCP.
    fn leaf_of(&self, flow: u32) -> Option<&Class> {
        let is_leaf =
            |class: &&Class| self.classes.iter().all(|child| child.parent.as_ref() != Some(&class.name));
        let mut leaves = self.classes.iter().filter(is_leaf);
        let named =
            leaves.clone().find(|leaf| leaf.flows.as_ref().is_some_and(|flows| flows.contains(&flow)));
        let has_filters = leaves.clone().any(|leaf| leaf.has_filter());
        let rest = leaves.find(|leaf| leaf.flows.is_none() && !leaf.has_filter());
        named.or(rest).filter(|_| !has_filters)
    }

    /// The first inconsistency, as an error message; `None` if there is none.
    fn wrong(&self) -> Option<String> {
        if !(1..=MOST_CLASSES).contains(&self.classes.len()) {
            let count = self.classes.len();
            return Some(format!("{count} classes are out of range; write 1 to {MOST_CLASSES}"));
        }
        let mut depths = BTreeMap::new();
        for class in &self.classes {
            let Class { name, parent, rate, ceil, .. } = class;
            let depth = match parent {
                None => 0,
                Some(parent) => match depths.get(parent.as_str()) {
                    Some(depth) => depth + 1,
                    None => {
                        return Some(format!(
                            "there is no class `{parent}` before `{name}`, which names it as its parent; write the parent first"
                        ));
                    }
                },
            };
            if depth >= DEPTH {
                return Some(format!(
                    "`{name}` is the {}th class below a root; a tree is {DEPTH} deep at most",
                    depth + 1
                ));
            }
            if depths.insert(name.as_str(), depth).is_some() {
                return Some(format!("two classes are called `{name}`; give one another name"));
            }
            if ceil.is_some_and(|ceil| ceil < *rate) {
                return Some(format!(
                    "the ceil of `{name}` is below its rate of {rate}; write {rate} or more"
                ));
            }
        }
        None
    }
}
