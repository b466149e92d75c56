//! The parameters of HTB, and what does not fit together in them.

use crate::psched::ETHERNET_HEADER;
use crate::{bands, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::collections::BTreeMap;
use weir_base::{Bytes, Ecn, Rate};

/// Priorities of leaves (TC_HTB_NUMPRIO, linux/pkt_sched.h).
pub(super) const PRIORITIES: usize = 8;
/// Levels of the tree (TC_HTB_MAXDEPTH).
pub(super) const DEPTH: usize = 8;
/// Most classes: what 16 bits of a class's identifier number.
const MOST_CLASSES: usize = 65_535;
/// What a bucket holds when nothing is said: a frame of the MTU that `tc` takes (tc/q_htb.c).
const DEFAULT_BURST: Bytes = Bytes::new(1600);

/// Parameters of the hierarchical token bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Config {
    /// The classes, each after its parent. Those of equal priority take turns in this order.
    pub classes: Vec<Class>,
    /// Bytes that each packet counts beside its IP length. Linux counts Ethernet's header of 14 B.
    pub overhead: Bytes,
    /// Most packets that wait unshaped.
    pub direct_limit: u32,
}

impl crate::Parameters for Config {
    fn inner(&self) -> (&'static str, Vec<&crate::Config>) {
        ("classes", self.classes.iter().map(|class| &class.queue).collect())
    }
    fn change_fault(&self, next: &crate::Config) -> Option<String> {
        let crate::Config::Htb(next) = next else { return None };
        let old: BTreeMap<&str, &Class> = self.classes.iter().map(|it| (it.name.as_str(), it)).collect();
        next.classes.iter().find_map(|class| {
            let (name, old) = (&class.name, old.get(class.name.as_str())?);
            if old.parent != class.parent {
                return Some(format!(
                    "the class `{name}` cannot get another parent; give the new one another name"
                ));
            }
            (old.queue != class.queue).then(|| format!("the queue of the class `{name}` cannot change"))
        })
    }
}

/// A class: a leaf with a queue, or, when others name it as their parent, an inner one that lends to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The class that it borrows from, by name; a root class has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it may always send; at least 8 bit/s.
    #[serde(deserialize_with = "parameter::rate")]
    pub rate: Rate,
    /// What it may send at most, borrowing the rest from its parent; by default `rate`: it does not borrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceil: Option<Rate>,
    /// What it may send at once after a rest; 64 B to 1 GiB.
    #[serde(deserialize_with = "parameter::burst")]
    pub burst: Bytes,
    /// The same at `ceil`.
    #[serde(deserialize_with = "parameter::burst")]
    pub cburst: Bytes,
    /// Bytes that a leaf sends in its turn when it borrows; by default what `rate` sends in 100 ms, 1000 B to 200 kB (Linux's r2q of 10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Bytes>,
    /// Of leaves that may send, those of the lowest number go first; 0 to 7.
    #[serde(deserialize_with = "priority")]
    pub prio: u8,
    /// Codepoints on arrival that a leaf takes: any of these. A leaf with neither this nor `flows` takes what no other takes;
    /// without such a leaf that goes before all else, unshaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Vec<Ecn>>,
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
            flows: None,
            queue: bands::default_queue(),
        }
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
    /// The first thing that does not fit together.
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
