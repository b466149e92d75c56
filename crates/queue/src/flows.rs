//! Flow queueing (RFC 8290, section 4; Linux `sch_fq_codel`, `sch_fq_pie`): a hash of its flow puts each packet into a bucket.
//! Deficit round robin serves the buckets; buckets that have just become active precede the others. The discipline that uses
//! this decides about drops within a bucket.

use crate::store::{Chain, Store};
use crate::{Backlog, parameter};
use weir_base::{Bytes, Packet, Random};

/// The index of no bucket; larger than every bucket's index.
const NONE: u32 = u32::MAX;

/// A bucket: its place in the round, its packets and its AQM's state.
#[derive(Debug)]
struct Bucket<S> {
    chain: Chain,
    backlog: Backlog,
    /// Bytes that the bucket may still send in this turn; negative when the last packet was larger than the rest, as in Linux.
    deficit: i64,
    /// The next bucket in the same list, or `NONE`.
    next: u32,
    listed: bool,
    state: S,
}

/// A linked list of buckets; each bucket holds the index of the next.
#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NONE, tail: NONE };
}

/// A bucket's packets with the state that its AQM keeps for it.
pub(crate) struct Turn<'a, P, S> {
    store: &'a mut Store<P>,
    bucket: &'a mut Bucket<S>,
    total: &'a mut Backlog,
}

impl<P: Packet, S> Turn<'_, P, S> {
    pub(crate) fn state(&mut self) -> &mut S {
        &mut self.bucket.state
    }
    pub(crate) fn backlog(&self) -> Backlog {
        self.bucket.backlog
    }
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<P> {
        let packet = self.store.pop(&mut self.bucket.chain)?;
        self.bucket.backlog.remove(&packet);
        self.total.remove(&packet);
        Some(packet)
    }
}

/// Buckets of packets, and the order in which they are served.
#[derive(Debug)]
pub(crate) struct Flows<P, S> {
    store: Store<P>,
    buckets: Vec<Bucket<S>>,
    new: List,
    old: List,
    backlog: Backlog,
    quantum: i64,
    /// Perturbs the hash, so that the seed decides which flows share a bucket.
    perturbation: u64,
}

impl<P: Packet, S> Flows<P, S> {
    pub(crate) fn new(count: u32, quantum: Bytes, mut random: Random, state: impl Fn() -> S) -> Flows<P, S> {
        let bucket = || Bucket {
            chain: Chain::EMPTY,
            backlog: Backlog::default(),
            deficit: 0,
            next: NONE,
            listed: false,
            state: state(),
        };
        Flows {
            store: Store::new(),
            buckets: (0..count.clamp(1, parameter::MOST_FLOWS)).map(|_| bucket()).collect(),
            new: List::EMPTY,
            old: List::EMPTY,
            backlog: Backlog::default(),
            quantum: quantum.get().max(1) as i64,
            perturbation: random.bits(),
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The bucket of a packet's flow: a hash of the flow number (the finaliser of SplitMix64), scaled to the number of buckets.
    #[inline]
    pub(crate) fn bucket_of(&self, packet: &P) -> u32 {
        let mut hash = u64::from(packet.flow().0) ^ self.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((hash >> 32) * self.buckets.len() as u64) >> 32) as u32
    }

    pub(crate) fn turn(&mut self, bucket: u32) -> Turn<'_, P, S> {
        Turn { store: &mut self.store, bucket: &mut self.buckets[bucket as usize], total: &mut self.backlog }
    }

    /// Puts a packet into a bucket; a bucket outside the round joins the new ones with a full quantum.
    #[inline]
    pub(crate) fn push(&mut self, index: u32, packet: P) {
        self.backlog.add(&packet);
        let bucket = &mut self.buckets[index as usize];
        bucket.backlog.add(&packet);
        self.store.push(&mut bucket.chain, packet);
        if !bucket.listed {
            bucket.listed = true;
            bucket.deficit = self.quantum;
            append(&mut self.buckets, &mut self.new, index);
        }
    }

    /// The next packet in the round. `serve` takes a packet out of the bucket whose turn it is, and may drop others before it.
    #[inline]
    pub(crate) fn pop(&mut self, mut serve: impl FnMut(&mut Turn<'_, P, S>) -> Option<P>) -> Option<P> {
        loop {
            let is_new = self.new.head != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = list.head;
            let bucket = self.buckets.get_mut(index as usize)?;
            let spent = bucket.deficit <= 0;
            if !spent {
                let mut turn = Turn { store: &mut self.store, bucket, total: &mut self.backlog };
                if let Some(packet) = serve(&mut turn) {
                    bucket.deficit -= i64::from(packet.wire_length());
                    return Some(packet);
                }
            }
            list.head = bucket.next;
            if spent {
                bucket.deficit += self.quantum;
            } else if !is_new || self.old.head == NONE {
                bucket.listed = false;
                continue;
            }
            // An empty new bucket joins the old ones first, so that its next packet does not make it new again at once.
            append(&mut self.buckets, &mut self.old, index);
        }
    }

    /// The bucket that holds the most bytes.
    pub(crate) fn fattest(&self) -> u32 {
        let mut most = (0, Bytes::ZERO);
        for (index, bucket) in self.buckets.iter().enumerate() {
            if bucket.backlog.bytes > most.1 {
                most = (index as u32, bucket.backlog.bytes);
            }
        }
        most.0
    }

    /// The number of new and of old buckets in the round.
    pub(crate) fn active(&self) -> (u32, u32) {
        let count = |list: List| {
            let mut at = list.head;
            std::iter::from_fn(|| {
                let here = Some(at).filter(|at| *at != NONE)?;
                at = self.buckets[here as usize].next;
                Some(here)
            })
            .count() as u32
        };
        (count(self.new), count(self.old))
    }

    /// The states of all buckets that hold packets or are in the round.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&S, Backlog)> {
        self.buckets.iter().filter(|bucket| bucket.listed).map(|bucket| (&bucket.state, bucket.backlog))
    }
}

#[inline]
fn append<S>(buckets: &mut [Bucket<S>], list: &mut List, index: u32) {
    buckets[index as usize].next = NONE;
    if list.head == NONE {
        list.head = index;
    } else {
        buckets[list.tail as usize].next = index;
    }
    list.tail = index;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestPacket;
    use weir_base::Ecn;

    fn flows(count: u32) -> Flows<TestPacket, ()> {
        Flows::new(count, Bytes::new(1500), Random::stream(1, "queue"), || ())
    }
    fn packet(flow: u32, length: u32) -> TestPacket {
        TestPacket { flow, ..TestPacket::new(length, Ecn::NotEct) }
    }
    fn order(flows: &mut Flows<TestPacket, ()>) -> Vec<u32> {
        std::iter::from_fn(|| flows.pop(|turn| turn.pop())).map(|packet| packet.flow).collect()
    }

    #[test]
    fn flows_of_unequal_packets_share_by_bytes() {
        // Packets of 1500 and 500 bytes: one large packet for three small ones.
        let mut flows = flows(1024);
        for _ in 0..4 {
            flows.push(0, packet(0, 1500));
        }
        for _ in 0..12 {
            flows.push(1, packet(1, 500));
        }
        assert_eq!(order(&mut flows), [0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]);
        assert_eq!((flows.backlog(), flows.active()), (Backlog::default(), (0, 0)));
    }

    #[test]
    fn a_new_flow_is_served_before_backlogged_flows() {
        let mut flows = flows(1024);
        for _ in 0..3 {
            flows.push(0, packet(0, 1500));
            flows.push(1, packet(1, 1500));
        }
        assert_eq!(flows.pop(|turn| turn.pop()).unwrap().flow, 0);
        assert_eq!(flows.pop(|turn| turn.pop()).unwrap().flow, 1);
        assert_eq!(flows.pop(|turn| turn.pop()).unwrap().flow, 0);
        flows.push(2, packet(2, 100));
        assert_eq!(order(&mut flows), [2, 1, 0, 1]);
    }

    #[test]
    fn hashing_spreads_flows_and_depends_on_the_seed() {
        // A thousand flows over 1024 buckets: a random function is expected to fill 1024 (1 - e^(-1000/1024)) = 638 buckets.
        let buckets = |seed| {
            let flows: Flows<TestPacket, ()> =
                Flows::new(1024, Bytes::new(1500), Random::stream(seed, "queue"), || ());
            (0..1000).map(|flow| flows.bucket_of(&packet(flow, 100))).collect::<Vec<u32>>()
        };
        let (one, two) = (buckets(1), buckets(2));
        let distinct = one.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!((600..680).contains(&distinct), "{distinct}");
        assert_ne!(one, two);
        assert_eq!(one, buckets(1));
    }
}
