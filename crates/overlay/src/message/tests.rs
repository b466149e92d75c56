use super::header::{Header, LONGEST, Unreadable};
use super::*;
use crate::cat::Delay;
use crate::context::{Context, Inner};
use crate::harness::{id, set};
use crate::nodes::{NodeId, Nodes, PerNode};
use crate::packet::{GroupId, Key};
use proptest::prelude::*;
use weir_base::Span;

fn nodes() -> impl Strategy<Value = Nodes> {
    prop_oneof![any::<u128>(), (any::<u128>(), any::<u128>(), any::<u128>()).prop_map(|(a, b, c)| a & b & c)]
        .prop_map(Nodes::from_bits)
}
fn node_id() -> impl Strategy<Value = NodeId> {
    (0u8..128).prop_map(id)
}
fn per_node<T: std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = PerNode<T>> {
    prop::collection::btree_map(0u8..128, value, 0..40).prop_map(|map| {
        let mut table = PerNode::default();
        map.into_iter().for_each(|(node, value)| table.set(id(node), value));
        table
    })
}
/// Numbers that 16 bits hold exactly.
fn exact() -> impl Strategy<Value = u64> + Clone {
    any::<u16>().prop_map(short::decode)
}
fn depth() -> impl Strategy<Value = Depth> + Clone {
    (exact(), prop_oneof![Just(0), exact()]).prop_map(|(total, sensitive)| Depth { total, sensitive })
}
fn stamp() -> impl Strategy<Value = Stamp> {
    (any::<u32>(), any::<u32>()).prop_map(|(epoch, sequence)| Stamp { epoch, sequence })
}
fn flow() -> impl Strategy<Value = Flow> {
    (node_id(), any::<u8>(), any::<u16>()).prop_map(|(source, generation, number)| Flow {
        source,
        generation,
        number,
    })
}
fn key() -> impl Strategy<Value = Key> {
    prop_oneof![node_id().prop_map(Key::Node), any::<u32>().prop_map(|group| Key::Group(GroupId(group)))]
}
fn groups() -> impl Strategy<Value = GroupDepths> {
    let of = prop_oneof![per_node(depth()).prop_map(Ok), exact().prop_map(Err)];
    prop::collection::btree_map(any::<u32>(), of, 0..5).prop_map(|map| {
        let mut groups = GroupDepths::default();
        for (group, depths) in map {
            match depths {
                Ok(members) => groups.push_members(GroupId(group), &members),
                Err(total) => groups.push_total(GroupId(group), total),
            }
        }
        groups
    })
}
fn links() -> impl Strategy<Value = Links> {
    let link = (any::<u16>(), any::<u16>(), 0u64..4095).prop_map(|(mean, deviation, kbit)| {
        let deviation = f64::from(deviation) * 1e-4;
        let delay = Delay { mean: Span::from_micros(100) * u64::from(mean), variance: deviation * deviation };
        LinkInfo { delay, capacity: Rate::from_bits_per_sec(kbit * 1000) }
    });
    let span = any::<u16>().prop_map(|units| Span::from_micros(100) * u64::from(units));
    (node_id(), stamp(), prop::option::of(0u8..127), any::<bool>(), per_node(link), per_node(span)).prop_map(
        |(origin, stamp, k, is_drained, neighbours, queue_delays)| Links {
            origin,
            stamp,
            k,
            is_drained,
            neighbours,
            queue_delays,
        },
    )
}
fn message() -> impl Strategy<Value = Message> {
    let depths = (stamp(), key(), key(), per_node(depth()), per_node(depth()), groups());
    let joined = prop::collection::btree_set(any::<u32>(), 0..50);
    prop_oneof![
        depths.prop_map(|(stamp, first, last, nodes, sums, groups)| {
            Message::Depths(Depths { stamp, range: Range { first, last }, nodes, sums, groups })
        }),
        (node_id(), any::<u32>(), any::<Option<u32>>())
            .prop_map(|(node, epoch, heard)| Message::Hello(Hello { node, epoch, heard })),
        links().prop_map(Message::Links),
        (node_id(), stamp(), joined).prop_map(|(origin, stamp, joined)| {
            Message::Groups(Groups { origin, stamp, joined: joined.into_iter().map(GroupId).collect() })
        }),
        (0u64..0xff_ffff).prop_map(|kbit| Message::Capacity(Rate::from_bits_per_sec(kbit * 1000))),
        (flow(), node_id(), any::<u8>(), 0u64..1 << 62, 0u64..1 << 62, 0u64..1 << 63).prop_map(
            |(flow, from, hops, highest, in_time, bytes)| {
                let in_time = in_time.min(highest);
                Message::Report(Report { flow, from, hops, highest, in_time, bytes })
            }
        ),
        flow().prop_map(Message::Known),
        flow().prop_map(Message::Unknown),
    ]
}
fn context() -> impl Strategy<Value = Context> {
    let inner = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u8>(), any::<u8>());
    (key(), nodes(), any::<bool>(), inner).prop_map(|(to, nodes, is_sensitive, inner)| {
        let (source, destination, source_port, destination_port, protocol, dscp) = inner;
        let inner = Inner { source, destination, source_port, destination_port, protocol, dscp };
        let receivers = match to {
            Key::Node(node) => Nodes::of(node),
            Key::Group(_) => nodes,
        };
        Context { to, receivers, is_sensitive, inner }
    })
}

/// Equal, but for a variance that went through its root.
fn assert_same(read: &Message, written: &Message) {
    let (Message::Links(read), Message::Links(written)) = (read, written) else {
        return assert_eq!(read, written);
    };
    let plain = |links: &Links| {
        let mut links = links.clone();
        let deviations: Vec<f64> =
            links.neighbours.iter().map(|(_, link)| libm::sqrt(link.delay.variance)).collect();
        links.neighbours.iter_mut().for_each(|(_, link)| link.delay.variance = 0.0);
        (links, deviations)
    };
    let ((read, left), (written, right)) = (plain(read), plain(written));
    assert_eq!(read, written);
    assert!(left.iter().zip(&right).all(|(left, right)| (left - right).abs() < 1.1e-4), "{left:?} {right:?}");
}

proptest! {
    #[test]
    fn messages_read_back_as_written_one_after_another(messages in prop::collection::vec(message(), 1..4)) {
        let mut bytes = vec![];
        messages.iter().for_each(|message| message.encode(&mut bytes));
        let mut rest = &bytes[..];
        for message in &messages {
            let (read, after) = Message::decode(rest).unwrap();
            assert_same(&read, message);
            rest = after;
        }
        prop_assert!(rest.is_empty());
    }

    /// So the origin's signature holds wherever a node writes again what it has read.
    #[test]
    fn what_was_read_is_written_as_it_was(message in message()) {
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        message.encode(&mut bytes);
        Message::decode(&bytes).unwrap().0.encode(&mut again);
        prop_assert_eq!(bytes, again);
    }
    #[test]
    fn a_part_of_a_message_is_refused(message in message(), part in 0.0..1.0) {
        let mut bytes = vec![];
        message.encode(&mut bytes);
        let length = (bytes.len() as f64 * part) as usize;
        prop_assert!(Message::decode(&bytes[..length]).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Message::decode(&bytes);
        let _ = Header::decode(&bytes, |_| None);
    }

    #[test]
    fn headers_read_back_as_written(
        context in context(), flow in flow(), sequence in 0u32..1 << 24, mixed in any::<u8>(), checksum in any::<u16>(),
        left in prop::option::of(0u64..30_000_000_000), visited in nodes(), some in any::<u128>(), attach in any::<bool>(),
    ) {
        let receivers = match context.to {
            Key::Node(_) => context.receivers,
            Key::Group(_) => context.receivers.and(Nodes::from_bits(some)),
        };
        let (ecn, hops, time_to_go) = (mixed >> 6, mixed & 63, left.map(Span::from_nanos));
        let header = Header { flow, sequence, ecn, hops, checksum, time_to_go, visited, receivers };
        let mut bytes = vec![];
        header.encode(&context, attach, &mut bytes);
        prop_assert!(bytes.len() <= LONGEST);
        bytes.extend([1, 2, 3]);
        let (read, with, attached, length) = Header::decode(&bytes, |_| Some(context)).unwrap();
        prop_assert_eq!((with, attached, length), (context, attach, bytes.len() - 3));
        prop_assert_eq!(Header { time_to_go, ..read }, header);
        if let (Some(read), Some(left)) = (read.time_to_go, time_to_go) {
            prop_assert!(read <= left && left.saturating_sub(read) < Span::from_millis(1), "{} for {}", read, left);
        }
        if !attach {
            prop_assert_eq!(Header::decode(&bytes, |_| None), Err(Unreadable::Unknown(flow)));
        }
    }

    #[test]
    fn a_number_in_16_bits_is_within_1_part_in_4096(value in 0u64..4_000_000_000_000) {
        let read = short::decode(short::encode(value));
        prop_assert!(read.abs_diff(value) <= value / 4096, "{} for {}", read, value);
        prop_assert_eq!(short::encode(read), short::encode(value));
    }
}

#[test]
fn the_largest_numbers_saturate() {
    assert_eq!(short::encode(u64::MAX), u16::MAX);
    assert_eq!(short::decode(u16::MAX), 4095 << 30);
}

fn length(message: &Message) -> usize {
    let mut bytes = vec![];
    message.encode(&mut bytes);
    bytes.len()
}

#[test]
fn depths_of_100_bins_fit_625_bytes_with_67_of_headers() {
    let stamp = Stamp { epoch: 1_700_000_000, sequence: 77 };
    let mut unicast = Depths::new(stamp, Range::ALL);
    for node in 0..100 {
        unicast.nodes.set(id(node), Depth { total: 123_456, sensitive: 23_456 });
    }
    assert!(length(&Message::Depths(unicast.clone())) + 67 <= 625, "{}", length(&Message::Depths(unicast)));
    // Twelve groups of eight members and four nodes, all with sensitive traffic too.
    let mut mixed = Depths::new(stamp, Range::ALL);
    let mut members = PerNode::default();
    (0..8).for_each(|node| members.set(id(node), Depth { total: 123_456, sensitive: 23_456 }));
    (0..12).for_each(|n| mixed.groups.push_members(GroupId(0xe000_0000 + n), &members));
    (0..4).for_each(|node| mixed.nodes.set(id(node), Depth { total: 1, sensitive: 1 }));
    assert!(length(&Message::Depths(mixed.clone())) + 67 <= 625, "{}", length(&Message::Depths(mixed)));
}

fn header_length(context: &Context, receivers: Nodes, left: Option<Span>, visited: Nodes) -> usize {
    let flow = Flow { source: id(3), generation: 1, number: 9 };
    let header =
        Header { flow, sequence: 1, ecn: 0, hops: 2, checksum: 7, time_to_go: left, visited, receivers };
    let mut bytes = vec![];
    header.encode(context, false, &mut bytes);
    bytes.len()
}

#[test]
fn the_inner_headers_and_all_of_the_overlay_take_11_to_22_bytes() {
    let to =
        Context { to: Key::Node(id(5)), receivers: set(&[5]), is_sensitive: false, inner: Inner::default() };
    let left = Some(Span::from_millis(60));
    assert_eq!(header_length(&to, set(&[5]), None, Nodes::EMPTY), 11);
    assert_eq!(header_length(&to, set(&[5]), left, set(&[100, 101])), 16);
    assert_eq!(header_length(&to, set(&[5]), left, (1..9).map(|n| id(14 * n)).collect()), 22);
    let members: Nodes = (0..24).map(id).collect();
    let all = Context { to: Key::Group(GroupId(0xe309_121f)), receivers: members, ..to };
    assert_eq!(header_length(&all, members, None, Nodes::EMPTY), 14);
}

#[test]
fn a_restarted_node_with_low_numbers_is_newer() {
    let stamp = |epoch, sequence| Stamp { epoch, sequence };
    assert!(stamp(2, 0).is_newer_than(stamp(1, 5000)));
    assert!(!stamp(1, 5001).is_newer_than(stamp(2, 0)));
    assert!(stamp(1, 2).is_newer_than(stamp(1, u32::MAX)));
    assert!(!stamp(1, 2).is_newer_than(stamp(1, 2)));
}
