//! The counters of a run do not depend on how it is cut into periods.

use super::*;
use proptest::prelude::*;

fn link(at_period: u64, n: [u64; 4]) -> LinkSample {
    let [a, b, c, d] = n;
    LinkSample {
        at: at(100 * at_period),
        link: 1,
        backlog_packets: a as u32,
        backlog_bytes: Bytes::new(1500 * a),
        counters: LinkCounters {
            arrived: [a + 1, b, c, d],
            dropped: [a / 2, b / 3, c / 4, 0],
            marked: [0, b / 2, c / 2, d],
            sent: [a, b, c, d],
            sent_bytes: [1500 * a, 1500 * b, 40 * c, 1500 * d],
            lost: d,
            forwarded: a + b,
            duplicated: c,
            corrupted: b / 5,
            busy: Span::from_micros(a + b),
            capacity: Bytes::new(125_000),
            dropped_for: [a / 4, a / 8, b / 3],
        },
    }
}

fn flow(at_period: u64, n: [u64; 4]) -> FlowSample {
    let [a, b, c, d] = n;
    FlowSample {
        at: at(100 * at_period),
        flow: 1,
        read_bytes: 1448 * b,
        counters: FlowCounters {
            sent_packets: a + 1,
            sent_bytes: 1500 * (a + 1),
            retransmitted: a / 5,
            refused: a / 7,
            received_packets: a,
            received_bytes: 1500 * a,
            received_ce: a / 7,
            first_packet: (a % 3 > 0).then(|| at(100 * at_period - 50)),
            last_arrival: (a % 3 > 1).then(|| at(100 * at_period - 10)),
            last_data: (a % 3 > 1).then(|| at(100 * at_period - 20)),
            rtt_count: c,
            rtt_sum: c * (20_000_000 + d),
            rtt_min: Span::from_nanos(if c > 0 { 20_000_000 } else { 0 }),
            rtt_max: Span::from_nanos(if c > 0 { 20_000_000 + d } else { 0 }),
        },
    }
}

proptest! {
    #[test]
    fn many_periods_count_as_one_long_period(
        counts in prop::collection::vec(prop::array::uniform4(0..10_000u64), 1..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let periods = || (1..).zip(counts.iter().copied());
        let mut fine = Records::default();
        periods().for_each(|(p, n)| fine.link(&link(p, n)));
        periods().for_each(|(p, n)| fine.flow(&flow(p, n)));
        // The same records, merged into two long periods (or one) at any place, each half merged by itself first.
        let (mut coarse, cut) = (Records::default(), cut.index(counts.len()) as u64 + 1);
        for half in [1..cut, cut..counts.len() as u64 + 1] {
            let within = || periods().filter(|(p, _)| half.contains(p));
            let links = within().map(|(p, n)| link(p, n)).reduce(|mut a, b| { a.merge(&b); a });
            let flows = within().map(|(p, n)| flow(p, n)).reduce(|mut a, b| { a.merge(&b); a });
            links.iter().for_each(|sample| coarse.link(sample));
            flows.iter().for_each(|sample| coarse.flow(sample));
        }
        let info = run();
        let [fine, coarse] = [&fine, &coarse].map(|records| View::after(Span::ZERO, &info, records));
        prop_assert_eq!(&fine.links[1].sum, &coarse.links[1].sum);
        prop_assert_eq!(&fine.flows[1].sum, &coarse.flows[1].sum);
        // Metrics of single seconds need separate periods.
        let whole = |metrics: Metrics| -> Vec<(String, Value)> {
            let apart = |name: &str| name.contains("second") || name.contains("settling");
            metrics.iter().filter(|(name, _)| !apart(name)).map(|(name, v)| (name.into(), v)).collect()
        };
        prop_assert_eq!(whole(fine.of_flow(1)), whole(coarse.of_flow(1)));
        for class in weir_base::CODEPOINTS {
            prop_assert_eq!(whole(fine.of_link(1, Some(class))), whole(coarse.of_link(1, Some(class))));
        }
    }
}
