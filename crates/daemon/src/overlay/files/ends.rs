//! How a transfer to a group has ended for each receiver.

use crate::failure::Failure;
use crate::output::print;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_base::{Span, Time};

/// The end of a receiver.
enum End {
    /// It has stored all files, and said digests that are the sender's.
    Whole,
    /// Its connection has ended; it may join again.
    Lost(Time),
    Failed(String),
}

/// The ends of all receivers that do not take part any more.
#[derive(Default)]
pub(super) struct Ends(BTreeMap<IpAddr, End>);

impl Ends {
    /// A receiver has stored all files.
    pub(super) fn whole(&mut self, address: IpAddr) {
        self.0.insert(address, End::Whole);
    }

    /// The connection of a receiver has ended.
    pub(super) fn lost(&mut self, address: IpAddr, now: Time) {
        self.0.insert(address, End::Lost(now));
    }

    /// A receiver will not have all files.
    pub(super) fn failed(&mut self, address: IpAddr, why: String) {
        self.0.insert(address, End::Failed(why));
    }

    /// A receiver takes part again.
    pub(super) fn returns(&mut self, address: IpAddr) {
        self.0.remove(&address);
    }

    /// Gives up those that have not joined again within a time.
    pub(super) fn give_up_lost(&mut self, at_most: Span, now: Time) {
        for end in self.0.values_mut() {
            if matches!(end, End::Lost(at) if now.since(*at) > at_most) {
                *end = End::Failed("its connection has ended".to_owned());
            }
        }
    }

    /// Whether one may join again.
    pub(super) fn awaits(&self) -> bool {
        self.0.values().any(|end| matches!(end, End::Lost(_)))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// How many do not have all files.
    pub(super) fn failures(&self) -> usize {
        self.0.values().filter(|end| !matches!(end, End::Whole)).count()
    }

    /// Each receiver as JSON.
    pub(super) fn documents(&self) -> Value {
        let document = |(address, end): (&IpAddr, &End)| {
            let (whole, why) = end.told();
            json!({ "address": address.to_string(), "whole": whole, "why": why })
        };
        self.0.iter().map(document).collect()
    }

    /// Prints a line for each receiver.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let line = |(address, end): (&IpAddr, &End)| match end.told() {
            (true, _) => format!("{address} has all of it, with the same digests\n"),
            (false, why) => format!("{address} does not have all of it: {}\n", why.unwrap_or_default()),
        };
        print(&self.0.iter().map(line).collect::<String>())
    }
}

impl End {
    /// Whether all files are there, and why not.
    fn told(&self) -> (bool, Option<&str>) {
        match self {
            End::Whole => (true, None),
            End::Lost(_) => (false, Some("its connection has ended")),
            End::Failed(why) => (false, Some(why)),
        }
    }
}
