//! Every byte arrives once and in order over any network, and no segment causes a panic.

use crate::pair::{Pair, Script, config};
use proptest::prelude::*;
use weir_base::{Ecn, Rate, Span, Time};
use weir_control::Feedback;
use weir_endpoint::{Flags, Segment};

/// A direction that drops, delays, duplicates and marks some of its first 400 packets.
fn script() -> impl Strategy<Value = Script> {
    let numbers = |most| prop::collection::vec(0u64..400, 0..most);
    let late = prop::collection::vec((0u64..400, 1u64..600), 0..30);
    (numbers(60), late, numbers(30), numbers(30)).prop_map(|(drop, late, twice, mark)| Script {
        drop,
        late: late.into_iter().map(|(n, ms)| (n, Span::from_millis(ms))).collect(),
        twice,
        mark,
        ..Script::default()
    })
}

/// Number of cases: about 200 for each controller.
const CASES: u32 = 3_500;

/// Every controller of the registry.
fn controllers() -> impl Strategy<Value = &'static str> {
    let names: Vec<_> = weir_control::Config::members().iter().map(|member| member.name).collect();
    prop::sample::select(names)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_arrive_once_and_in_order(
        controller in controllers(),
        forth in script(),
        back in script(),
        bytes in 1u64..600_000,
        rtt in 1u64..200,
        (ecn, pacing, compress, sack) in any::<(bool, bool, bool, bool)>(),
        feedback in prop::sample::select(vec![Feedback::Classic, Feedback::Dctcp, Feedback::Accurate]),
        first in any::<u32>(),
    ) {
        let mut config = config(controller);
        config.ecn = ecn;
        config.feedback = feedback;
        config.pacing = pacing;
        config.compress_sack = compress;
        config.sack = sack;
        config.initial_sequence = first;
        let rate = Some(Rate::from_mbit_per_sec(20));
        let mut pair = Pair::new(config, Span::from_millis(rtt), rate, forth, back);
        let info = pair.transfer(bytes, Span::from_secs(3_000));
        prop_assert_eq!(pair.read, bytes);
        prop_assert!(pair.finished_at.is_some());
        prop_assert!(pair.client.all_acknowledged());
        prop_assert_eq!(info.in_flight, 0);
        // The FIN shares the last segment.
        prop_assert_eq!(info.acknowledged.get(), bytes + 1);
    }

    #[test]
    fn random_segments_cause_no_panic_and_no_endless_transmission(
        controller in controllers(),
        segments in prop::collection::vec(
            (any::<[u32; 5]>(), any::<[u32; 6]>(), any::<u16>(), any::<u8>(), 0u32..4, 0u64..1_000),
            1..200,
        ),
        (near, sack) in any::<(bool, bool)>(),
    ) {
        let config = weir_tcp::Config { sack, ..config(controller) };
        let mut pair = Pair::new(config, Span::from_millis(10), None, Script::default(), Script::default());
        pair.write(1_000_000);
        pair.run_until(Time::ZERO + Span::from_millis(25));
        let mut now = pair.now;
        for (numbers, blocks, len, flags, ecn, wait) in segments {
            let squeeze = |number: u32| if near { number % 60_000 } else { number };
            let mut segment = Segment {
                seq: squeeze(numbers[0]),
                ack: squeeze(numbers[1]),
                window: squeeze(numbers[2]),
                tsval: squeeze(numbers[3]),
                tsecr: squeeze(numbers[4]),
                len: if near { len % 3_000 } else { len },
                flags: [Flags::SYN, Flags::FIN, Flags::ACK, Flags::ECE, Flags::CWR]
                    .into_iter()
                    .filter(|flag| u16::from(flags) & flag.bits() != 0)
                    .fold(Flags::NONE, Flags::with),
                ..Segment::default()
            };
            for block in blocks.chunks(2).take(ecn as usize) {
                segment.push_sack(squeeze(block[0]), squeeze(block[1]));
            }
            now += Span::from_micros(wait * 100);
            for endpoint in [&mut pair.client, &mut pair.server] {
                endpoint.on_segment(&segment, Ecn::from_bits(ecn as u8), now);
                for _ in 0..10_000 {
                    if endpoint.poll_transmit(now).is_none() {
                        break;
                    }
                }
                prop_assert!(endpoint.poll_transmit(now).is_none(), "it never stops sending");
                endpoint.on_timer(now);
                prop_assert!(endpoint.take_read() < 1 << 40);
            }
        }
    }
}
