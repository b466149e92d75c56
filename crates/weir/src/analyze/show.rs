//! An analysis as text.

use super::Document;
use std::fmt::Write;
use weir_observe::{DirectionReport, Ended, FlowReport, KindReport, Side, StampedReport};
use weir_report::number::{count, number};

/// The columns of the table of flows, which the page has too.
pub(super) const COLUMNS: [&str; 14] = [
    "from",
    "to",
    "packets",
    "Mbit/s",
    "peak Mbit/s",
    "retransmitted",
    "seen twice",
    "spurious",
    "reordered",
    "copies",
    "CE",
    "missed",
    "RTT ms min/median/p99",
    "captured",
];
/// The number of columns that name a flow.
pub(super) const NAMES: usize = 2;

/// A row of the table for each direction with data, or for the first direction of a flow without any.
pub(super) fn rows(flow: &FlowReport) -> Vec<[String; COLUMNS.len()]> {
    let directions = [(&flow.there, &flow.from, &flow.to), (&flow.back, &flow.to, &flow.from)];
    let has_data = |direction: &DirectionReport| direction.data_packets > 0;
    let with_data = directions.iter().filter(|(direction, ..)| has_data(direction));
    let mut rows: Vec<_> = with_data.map(|(direction, from, to)| row(flow, direction, from, to)).collect();
    if rows.is_empty() {
        rows.push(row(flow, &flow.there, &flow.from, &flow.to));
    }
    rows
}

fn row(flow: &FlowReport, direction: &DirectionReport, from: &str, to: &str) -> [String; COLUMNS.len()] {
    let tcp = direction.tcp.as_ref();
    let tcp_count =
        |of: fn(&weir_observe::TcpReport) -> u64| tcp.map(|tcp| count(of(tcp))).unwrap_or_default();
    let rtt = tcp.and_then(|tcp| tcp.rtt_ms.as_ref());
    let name = |text: &str| match flow.protocol.as_str() {
        "tcp" => text.to_owned(),
        other => format!("{text} {other}"),
    };
    [
        name(from),
        to.to_owned(),
        count(direction.packets),
        direction.rate_mbps.map(number).unwrap_or_default(),
        direction.peak_rate_mbps.map(number).unwrap_or_default(),
        tcp_count(|tcp| tcp.retransmissions),
        tcp_count(|tcp| tcp.retransmissions_seen_twice),
        tcp_count(|tcp| tcp.spurious_retransmissions),
        tcp_count(|tcp| tcp.reordered),
        tcp_count(|tcp| tcp.copies),
        count(direction.ecn.get("ce").copied().unwrap_or_default()),
        tcp_count(|tcp| tcp.missed_packets),
        rtt.map(|rtt| format!("{}/{}/{}", number(rtt.min), number(rtt.p50), number(rtt.p99)))
            .unwrap_or_default(),
        match flow.captured_at {
            None => String::new(),
            Some(Side::First) => format!("at {}", flow.from),
            Some(Side::Second) => format!("at {}", flow.to),
            Some(Side::Between) => "between".into(),
        },
    ]
}

/// The sentence that an analysis begins with.
pub(super) fn sentence(document: &Document<'_>) -> String {
    let totals = document.analysis.totals();
    let plural =
        |number: u64, what: &str| format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" });
    let (mut retransmitted, mut segments) = (0, 0);
    for flow in document.analysis.flows() {
        for direction in [flow.there, flow.back] {
            if let Some(tcp) = direction.tcp {
                retransmitted += tcp.retransmissions;
                segments += direction.segments;
            }
        }
    }
    format!(
        "{} of {} in {} s; {} of {} of TCP were retransmitted",
        plural(totals.packets, "packet"),
        plural(totals.flows as u64, "flow"),
        number(totals.duration_s),
        count(retransmitted),
        plural(segments, "data segment"),
    )
}

/// What of the file is not in the numbers, a sentence each.
pub(super) fn notes(document: &Document<'_>) -> Vec<String> {
    let totals = document.analysis.totals();
    let mut notes = vec![];
    match document.ended {
        Ended::Complete => {}
        Ended::Cut { at_byte } => notes.push(format!("the file is cut within what begins at byte {at_byte}")),
        Ended::Damaged { at_byte, why } => {
            notes.push(format!("the file is damaged at byte {at_byte}: {why}; the rest was not read"));
        }
    }
    let unread = document.unread;
    let mut told = |number: u64, what: &str| {
        if number > 0 {
            notes.push(format!("{} packets {what}", count(number)));
        }
    };
    told(unread.packets_dropped_by_capture, "were lost by the capturing machine, as the file says");
    told(unread.packets_without_time, "have no time and were left out");
    told(unread.packets_without_interface, "are of interfaces that the file does not describe");
    for (why, number) in &totals.skipped {
        told(*number, &format!("were left out: {}", why.words()));
    }
    told(totals.packets_of_further_flows, "are of further flows; --most-flows tells more apart");
    told(totals.packets_out_of_order, "are earlier than the packet before them in the file");
    notes
}

/// What packets report of a queue, a line for each kind.
pub(super) fn queue(stamped: &StampedReport) -> Vec<String> {
    let percent =
        |share: Option<f64>| share.map(|share| format!(" ({} %)", number(share))).unwrap_or_default();
    let line = |name: &str, kind: &KindReport| {
        let delay = kind.delay_ms.as_ref().map_or_else(String::new, |delay| {
            let [mean, p50, p99] = [delay.mean, delay.p50, delay.p99].map(number);
            format!("; delay in the queue {mean} ms, median {p50}, p99 {p99}")
        });
        format!(
            "{name}: {} packets, {} dropped{}, {} marked{}{delay}",
            count(kind.packets),
            count(kind.drops),
            percent(kind.drop_percent),
            count(kind.marks),
            percent(kind.mark_percent),
        )
    };
    let mut lines = vec![line("with ECN", &stamped.ecn), line("without ECN", &stamped.not_ecn)];
    if stamped.packets_without_report > 0 {
        lines.push(format!("{} packets cannot report", count(stamped.packets_without_report)));
    }
    lines
}

/// The text: a sentence, what is not in it, and the table.
pub(super) fn text(document: &Document<'_>, most: usize) -> String {
    let totals = document.analysis.totals();
    let mut text = format!("{}: {}\n", document.file, sentence(document));
    for note in notes(document) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {note}");
    }
    if let Some(stamped) = document.analysis.stamped() {
        text += "\n";
        for line in queue(&stamped) {
            let _ = writeln!(text, "{line}");
        }
    }
    let largest = document.analysis.largest(most);
    if largest.is_empty() {
        return text;
    }
    let mut table = vec![COLUMNS.map(str::to_owned)];
    table.extend(largest.iter().flat_map(rows));
    text += "\n";
    text += &aligned(&table);
    if totals.flows > largest.len() {
        let _ = writeln!(text, "and {} smaller flows (--flows shows more)", totals.flows - largest.len());
    }
    text
}

/// Lines of equal columns, without those in which only the heading is filled or all counts are 0.
fn aligned(table: &[[String; COLUMNS.len()]]) -> String {
    let kept = |column: &usize| {
        table[1..].iter().any(|row| !matches!(row[*column].as_str(), "" | "0"))
            || COLUMNS[*column] == "retransmitted"
    };
    let columns: Vec<usize> = (0..COLUMNS.len()).filter(kept).collect();
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in table {
        let mut line = String::new();
        for &column in &columns {
            let (cell, width) = (&row[column], width(column));
            let _ = match column < NAMES || column + 1 == COLUMNS.len() {
                true => write!(line, "{cell:width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text += "\n";
    }
    text
}
