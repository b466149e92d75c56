//! What a sender prints: a line each time that its receiver reports, and the sums at the end.

use super::Sums;
use crate::failure::Failure;
use crate::output::{print, write};
use serde_json::{Value, json};
use weir_base::{Bytes, Rate, Span, Time};

/// The report of a transfer.
pub(crate) struct Report {
    json: bool,
    began: Time,
    /// The bytes received, as last reported, and when.
    told: (u64, Time),
    /// The time within which it should end.
    deadline: Option<Span>,
}

impl Report {
    /// The report of a transfer that begins now.
    pub(crate) fn new(json: bool, now: Time) -> Report {
        Report { json, began: now, told: (0, now), deadline: None }
    }

    /// The same of one that should end within a time.
    pub(crate) fn within(self, deadline: Option<Span>) -> Report {
        Report { deadline, ..self }
    }

    /// Prints the number of bytes that the receiver has, and the goodput since its last report.
    pub(crate) fn second(&mut self, bytes: u64, now: Time) -> Result<(), Failure> {
        let (before, at) = std::mem::replace(&mut self.told, (bytes, now));
        let rate = rate(bytes.saturating_sub(before), now.since(at));
        let second = now.since(self.began).as_secs_f64();
        if self.json {
            let document = json!({
                "seconds": second,
                "received_bytes": bytes,
                "goodput_bit_per_s": rate.bits_per_sec(),
            });
            return write(&format!("{document}\n"));
        }
        print(&format!(
            "{second:>7.1} s  {:>9.3} Mbit/s  {}\n",
            rate.bits_per_sec() as f64 / 1e6,
            Bytes::new(bytes)
        ))
    }

    /// Prints what was sent, with further keys in the document of `--json`.
    pub(crate) fn end(&self, sums: &Sums, more: &[(&str, Value)], now: Time) -> Result<(), Failure> {
        let Sums { total, kept, .. } = sums;
        let (sent, took) = (total.saturating_sub(*kept), now.since(self.began));
        let rate = rate(sent, took);
        let in_time = self.deadline.map(|deadline| took <= deadline);
        if self.json {
            let mut document = json!({
                "files": sums.documents(),
                "seconds": took.as_secs_f64(),
                "sent_bytes": sent,
                "kept_bytes": kept,
                "goodput_bit_per_s": rate.bits_per_sec(),
            });
            for (key, value) in more {
                document[*key] = value.clone();
            }
            if let Some(in_time) = in_time {
                document["in_time"] = in_time.into();
            }
            return write(&format!("{document}\n"));
        }
        print(&format!(
            "{}{} in {:.1} s, {:.3} Mbit/s; {} were there already\n",
            sums.rows(),
            Bytes::new(sent),
            took.as_secs_f64(),
            rate.bits_per_sec() as f64 / 1e6,
            Bytes::new(*kept),
        ))?;
        if let (Some(deadline), Some(in_time)) = (self.deadline, in_time) {
            print(&format!("{} the deadline of {deadline}\n", if in_time { "within" } else { "after" }))?;
        }
        sums.nothing_to_do().map_or(Ok(()), print)
    }
}

fn rate(bytes: u64, passed: Span) -> Rate {
    Rate::from_bytes_in(Bytes::new(bytes), passed.max(Span::from_nanos(1)))
}
