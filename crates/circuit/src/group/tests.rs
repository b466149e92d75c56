//! A sender and its members over a network that loses, repeats, reorders and damages datagrams.

use super::*;
use crate::transfer::{BLOCK, Digest, Message, blocks};
use std::collections::BTreeMap;
use weir_base::{Random, Time};

/// What the network does to datagrams, each with a probability.
#[derive(Clone, Copy, Default)]
struct Network {
    lost: f64,
    repeated: f64,
    damaged: f64,
    /// Longest delay; datagrams overtake each other.
    delay: Span,
}

const MESSAGES: Span = Span::from_millis(3);

/// What arrives somewhere.
enum Arrival {
    Datagram(usize, Vec<u8>),
    ToMember(usize, Message),
    ToSender(usize, Message),
}

struct Member {
    receiver: Receiver,
    digests: BTreeMap<(u32, u64), Digest>,
    blocks: BTreeMap<(u32, u64), Vec<u8>>,
    stored: u32,
    network: Network,
}

struct Transfer {
    files: Vec<Vec<u8>>,
    sender: Sender,
    members: Vec<Member>,
    arrivals: BTreeMap<(Time, u64), Arrival>,
    made: u64,
    random: Random,
    now: Time,
}

fn content(length: u64, salt: u8) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ salt).collect()
}

impl Transfer {
    fn new(lengths: &[u64], networks: &[Network]) -> Transfer {
        let sender = Sender::new(lengths.to_vec(), Time::ZERO);
        let files = lengths.iter().enumerate().map(|(file, length)| content(*length, file as u8)).collect();
        let mut transfer = Transfer {
            files,
            sender,
            members: vec![],
            arrivals: BTreeMap::new(),
            made: 0,
            random: Random::stream(1, "group"),
            now: Time::ZERO,
        };
        networks.iter().for_each(|network| transfer.join(*network, &[]));
        transfer.sender.begin();
        transfer
    }

    /// A member joins, which has these blocks.
    fn join(&mut self, network: Network, has: &[(u32, u64)]) {
        let lengths: Vec<u64> = self.files.iter().map(|file| file.len() as u64).collect();
        let number = self.members.len();
        let blocks: BTreeMap<_, _> = has.iter().map(|at| (*at, self.block(*at).to_vec())).collect();
        let receiver = Receiver::new(7, lengths);
        self.members.push(Member { receiver, digests: BTreeMap::new(), blocks, stored: 0, network });
        self.sender.join(number, self.now);
        for &(file, block) in has {
            let has = Message::Has { file, first: block, digests: vec![self.digest((file, block))] };
            self.sender.hear(number, has, self.now).unwrap();
        }
        self.sender.hear(number, Message::Ready { receive_buffer: None }, self.now).unwrap();
        let told: Vec<Message> = self.sender.digests().collect();
        told.into_iter().for_each(|message| self.say(Arrival::ToMember(number, message), MESSAGES));
    }

    fn block(&self, (file, block): (u32, u64)) -> &[u8] {
        let file = &self.files[file as usize];
        let from = (block * BLOCK) as usize;
        &file[from..file.len().min(from + BLOCK as usize)]
    }

    fn digest(&self, at: (u32, u64)) -> Digest {
        Digest::of_block(self.block(at), at.1, self.files[at.0 as usize].len() as u64)
    }

    fn say(&mut self, arrival: Arrival, after: Span) {
        self.made += 1;
        self.arrivals.insert((self.now + after, self.made), arrival);
    }

    /// A datagram goes to all members.
    fn send(&mut self, datagram: &[u8]) {
        for number in 0..self.members.len() {
            let Network { lost, repeated, damaged, delay } = self.members[number].network;
            let copies = if self.random.chance(repeated) { 2 } else { 1 };
            for _ in 0..copies {
                let mut bytes = datagram.to_vec();
                if self.random.chance(lost) {
                    continue;
                }
                if self.random.chance(damaged) {
                    let at = self.random.below(8 * bytes.len() as u64) as usize;
                    bytes[at / 8] ^= 1 << (at % 8);
                }
                let after = Span::from_millis(1) + self.random.within(delay);
                self.say(Arrival::Datagram(number, bytes), after);
            }
        }
    }

    /// A member tells what it has to tell, and checks the blocks that are whole.
    fn settle(&mut self, number: usize) {
        while let Some(Whole { file, block, payload }) = self.members[number].receiver.take() {
            let is_right = payload == self.block((file, block));
            let now = self.now;
            let member = &mut self.members[number];
            match is_right {
                true => {
                    member.receiver.has(file, block);
                    member.blocks.insert((file, block), payload);
                }
                false => member.receiver.again(file, block, now).unwrap(),
            }
        }
        while let Some(message) = self.members[number].receiver.message(self.now) {
            self.say(Arrival::ToSender(number, message), MESSAGES);
        }
        // Files are stored in their order once all of their blocks and digests are there.
        while let Some(file) = self.files.get(self.members[number].stored as usize) {
            let (stored, all) = (self.members[number].stored, blocks(file.len() as u64));
            let member = &mut self.members[number];
            let has = |block| {
                member.blocks.contains_key(&(stored, block)) && member.digests.contains_key(&(stored, block))
            };
            if !(0..all).all(has) {
                break;
            }
            let digests: Vec<Digest> = (0..all).map(|block| member.digests[&(stored, block)]).collect();
            member.stored += 1;
            self.say(
                Arrival::ToSender(
                    number,
                    Message::Stored { file: stored, digest: Digest::of_file(&digests) },
                ),
                MESSAGES,
            );
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now = self.now;
        match arrival {
            Arrival::Datagram(number, bytes) => {
                self.members[number].receiver.datagram(&bytes, now);
                self.settle(number);
            }
            Arrival::ToMember(number, Message::Digest { file, block, digest }) => {
                assert_eq!(digest, self.digest((file, block)));
                let member = &mut self.members[number];
                member.digests.insert((file, block), digest);
                match member.blocks.contains_key(&(file, block)) {
                    true => member.receiver.has(file, block),
                    false => member.receiver.wants(file, block, now),
                }
                self.settle(number);
            }
            Arrival::ToMember(..) => panic!("a member is told digests alone"),
            Arrival::ToSender(number, message) => self.sender.hear(number, message, now).unwrap(),
        }
    }

    /// Goes on until the members of these numbers are done; returns how long it took.
    fn run(&mut self, until_done: &[usize]) -> Span {
        let began = self.now;
        let mut datagram = vec![];
        while !until_done.iter().all(|number| self.sender.is_done(*number)) {
            assert!(self.now.since(began) < Span::from_secs(600), "it does not end");
            let wait = match self.sender.next(self.now) {
                Next::Open { file, block } => {
                    let digest = self.digest((file, block));
                    self.sender.opened(digest);
                    (0..self.members.len()).for_each(|number| {
                        self.say(Arrival::ToMember(number, Message::Digest { file, block, digest }), MESSAGES)
                    });
                    continue;
                }
                Next::Fragment { place, sequence } => {
                    let from = place.first_byte() as usize;
                    let block = self.block((place.file, place.block));
                    let at = from % BLOCK as usize;
                    let payload = &block[at..block.len().min(at + FRAGMENT)];
                    Datagram::Fragment { session: 7, sequence, place, payload }.encode(&mut datagram);
                    self.send(&datagram.clone());
                    continue;
                }
                Next::Announcement => {
                    Datagram::Announcement { session: 7, port: 1 }.encode(&mut datagram);
                    self.send(&datagram.clone());
                    continue;
                }
                Next::Wait(until) => until,
            };
            let members = self.members.iter().map(|member| member.receiver.next_time());
            let timers = members.min().unwrap_or(Time::NEVER).min(wait);
            match self.arrivals.first_key_value().map(|((at, _), _)| *at) {
                Some(at) if at <= timers => {
                    self.now = at;
                    let (_, arrival) = self.arrivals.pop_first().unwrap();
                    self.arrive(arrival);
                }
                _ => {
                    self.now = self.now.max(timers);
                    (0..self.members.len()).for_each(|number| self.settle(number));
                }
            }
        }
        self.now.since(began)
    }

    fn assert_whole(&self, number: usize) {
        for (file, content) in self.files.iter().enumerate() {
            for block in 0..blocks(content.len() as u64) {
                let at = (file as u32, block);
                assert!(self.members[number].blocks[&at] == self.block(at), "{at:?} of member {number}");
            }
        }
    }

    /// Datagrams that all fragments of the files take.
    fn fragments(&self) -> u64 {
        self.files.iter().map(|file| file.len().div_ceil(FRAGMENT) as u64).sum()
    }
}

const CLEAN: Network = Network { lost: 0.0, repeated: 0.0, damaged: 0.0, delay: Span::ZERO };

#[test]
fn over_a_clean_network_each_fragment_is_sent_once_whatever_the_lengths() {
    let mut transfer = Transfer::new(&[0, 1, BLOCK, 0, 2 * BLOCK + 17, FRAGMENT as u64], &[CLEAN; 3]);
    transfer.run(&[0, 1, 2]);
    assert_eq!(transfer.sender.datagrams(), transfer.fragments());
    (0..3).for_each(|number| transfer.assert_whole(number));
    assert_eq!(transfer.sender.digest(2), Some(Digest::of(&transfer.files[2])));
}

#[test]
fn what_is_lost_damaged_or_overtaken_is_repaired_for_each_member() {
    let bad = |lost, damaged| Network { lost, damaged, repeated: 0.05, delay: Span::from_millis(20) };
    let mut transfer = Transfer::new(&[2 * BLOCK + 5, 3000], &[bad(0.05, 0.02), CLEAN, bad(0.3, 0.0)]);
    transfer.run(&[0, 1, 2]);
    (0..3).for_each(|number| transfer.assert_whole(number));
    // What one member asks for serves all; 37 % of the fragments are lost by one member or another, and of these again.
    let sent = transfer.sender.datagrams() as f64 / transfer.fragments() as f64;
    assert!((1.2..2.2).contains(&sent), "{sent}");
}

#[test]
fn a_late_member_gets_what_it_lacks_and_an_earlier_attempt_counts() {
    let mut transfer = Transfer::new(&[4 * BLOCK], &[CLEAN]);
    transfer.run(&[0]);
    let before = transfer.sender.datagrams();
    transfer.join(CLEAN, &[(0, 0), (0, 2), (0, 3)]);
    transfer.run(&[1]);
    transfer.assert_whole(1);
    assert_eq!(transfer.sender.datagrams() - before, u64::from(fragments_of(BLOCK as u32)));
    // Blocks that every member has are not sent at all.
    let mut transfer = Transfer::new(&[2 * BLOCK], &[]);
    transfer.join(CLEAN, &[(0, 0), (0, 1)]);
    transfer.join(CLEAN, &[(0, 1)]);
    transfer.run(&[0, 1]);
    assert_eq!(transfer.sender.datagrams(), u64::from(fragments_of(BLOCK as u32)));
}

#[test]
fn a_member_that_hears_nothing_is_told_and_does_not_hold_the_others_up() {
    let deaf = Network { lost: 1.0, ..CLEAN };
    let mut alone = Transfer::new(&[2 * BLOCK], &[CLEAN]);
    let took = alone.run(&[0]);
    let mut transfer = Transfer::new(&[2 * BLOCK], &[CLEAN, deaf]);
    let with_it = transfer.run(&[0]);
    transfer.assert_whole(0);
    assert!(with_it < took + Span::from_secs(5), "{with_it} and {took}");
    // It still says each second that it is there.
    transfer.sender.hear(1, Message::Progress { bytes: 0, after_ns: None }, transfer.now).unwrap();
    let silent: Vec<_> = transfer.sender.silent(transfer.now).collect();
    assert!(matches!(silent[..], [(1, Quiet::Deaf, span)] if span > Span::from_millis(500)), "{silent:?}");
    // Then it is gone.
    let later = transfer.now + Span::from_secs(11);
    transfer
        .sender
        .hear(1, Message::Heard { sequence: transfer.sender.datagrams(), count: 1 }, transfer.now)
        .unwrap();
    let silent: Vec<_> = transfer.sender.silent(later).collect();
    assert_eq!(silent, [(1, Quiet::Mute, Span::from_secs(11))]);
    transfer.sender.leave(1);
    assert_eq!(transfer.sender.silent(later).count(), 0);
}

#[test]
fn nothing_beyond_the_window_is_sent_while_nobody_answers() {
    let mut sender = Sender::new(vec![BLOCK], Time::ZERO);
    let hear = |sender: &mut Sender, message| sender.hear(0, message, Time::ZERO);
    sender.join(0, Time::ZERO);
    hear(&mut sender, Message::Ready { receive_buffer: None }).unwrap();
    sender.begin();
    assert_eq!(sender.next(Time::ZERO), Next::Announcement);
    assert_eq!(sender.next(Time::ZERO), Next::Open { file: 0, block: 0 });
    sender.opened(Digest::of(b""));
    let mut now = Time::ZERO;
    let mut sent = 0;
    while now < Time::ZERO + Span::from_secs(10) {
        match sender.next(now) {
            Next::Wait(until) => now = until,
            Next::Fragment { .. } => sent += 1,
            _ => {}
        }
    }
    // 32 at once, and 8 each half second afterwards.
    assert!((32 + 8 * 15..=32 + 8 * 20).contains(&sent), "{sent}");
}

#[test]
fn messages_that_no_member_sends_are_refused() {
    let mut sender = Sender::new(vec![BLOCK], Time::ZERO);
    let missing = |block, ranges: &[(u16, u16)]| Message::Missing { file: 0, block, ranges: ranges.to_vec() };
    sender.join(0, Time::ZERO);
    assert!(sender.hear(0, missing(0, &[]), Time::ZERO).is_err(), "it has not told what it has");
    sender.hear(0, Message::Ready { receive_buffer: None }, Time::ZERO).unwrap();
    for message in [
        Message::Ready { receive_buffer: None },
        missing(1, &[(0, 1)]),
        missing(0, &[(0, 4097)]),
        missing(0, &[(4095, 2)]),
        missing(0, &[(1, u16::MAX)]),
        Message::Heard { sequence: 1, count: 1 },
        Message::Stored { file: 0, digest: Digest::of(b"") },
        Message::Stored { file: 1, digest: Digest::of(b"") },
        Message::Begin { streams: 1 },
    ] {
        assert!(sender.hear(0, message.clone(), Time::ZERO).is_err(), "{message:?}");
    }
    // What has not been sent yet is not sent again.
    sender.hear(0, missing(0, &[(0, 4096)]), Time::ZERO).unwrap();
    sender.begin();
    assert_eq!(sender.next(Time::ZERO), Next::Announcement);
    assert_eq!(sender.next(Time::ZERO), Next::Open { file: 0, block: 0 });
    // Nobody has this number any more.
    assert_eq!(sender.hear(9, missing(7, &[]), Time::ZERO), Ok(()));
}

#[test]
fn a_block_that_is_always_damaged_is_given_up() {
    let mut receiver = Receiver::new(7, vec![3]);
    let place = Place { file: 0, block: 0, fragment: 0 };
    let mut datagram = vec![];
    receiver.wants(0, 0, Time::ZERO);
    for attempt in 0..6 {
        Datagram::Fragment { session: 7, sequence: attempt, place, payload: b"abc" }.encode(&mut datagram);
        receiver.datagram(&datagram, Time::ZERO);
        assert_eq!(receiver.take(), Some(Whole { file: 0, block: 0, payload: b"abc".to_vec() }));
        assert_eq!(receiver.again(0, 0, Time::ZERO).is_err(), attempt == 5);
        let asks = std::iter::from_fn(|| receiver.message(Time::ZERO)).last();
        assert_eq!(asks, Some(Message::Missing { file: 0, block: 0, ranges: vec![(0, 1)] }));
    }
    // Other sessions, and fragments that no file has, change nothing.
    for (session, fragment, payload) in [(8, 0, &b"abc"[..]), (7, 1, b"abc"), (7, 0, b"ab"), (7, 0, b"abcd")]
    {
        let place = Place { fragment, ..place };
        Datagram::Fragment { session, sequence: 99, place, payload }.encode(&mut datagram);
        receiver.datagram(&datagram, Time::ZERO);
        assert_eq!(receiver.take(), None);
    }
    let later = Time::ZERO + Span::from_millis(60);
    assert_eq!(receiver.message(later), Some(Message::Heard { sequence: 6, count: 6 }));
}
