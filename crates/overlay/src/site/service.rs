//! What a site's programs are to have of the overlay: services, each a pattern of datagrams with a utility and a deadline (digest A 7.1).

use crate::admission::Terms;
use crate::context::{EF, Inner};
use crate::message::header::LONGEST_TIME_TO_GO;
use crate::proxy::udp;
use crate::utility;
use crate::utility::log;
use core::net::{IpAddr, Ipv4Addr};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Dscp, ParameterError, Ports, Prefix, Rate, Span, Time};

/// Stands for a program without a rate of its own, and for a flow without a cap: more than any link carries.
const UNLIMITED: Rate = Rate::from_mbit_per_sec(100_000);

/// The least and the most of a part: more than any packet has room for.
const LEAST_CHUNK: Bytes = Bytes::new(100);
const MOST_CHUNK: Bytes = Bytes::new(9000);
/// The longest time for which a group waits for its parts, and the times for which a datagram may wait for others, of which trailers have 16 bits
/// in milliseconds.
const MOST_HOLD: Span = Span::from_secs(10);
const MOST_JOIN: Span = Span::from_secs(1);
const LEAST_REORDER: Span = Span::from_millis(1);
const MOST_REORDER: Span = Span::from_secs(60);

/// A service. Datagrams for which all of its conditions hold are its own; the first service that fits a flow is the flow's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name in messages and tables.
    pub name: String,
    /// Where its datagrams come from; by default anywhere in the site.
    pub from: Option<Prefix>,
    /// Where they go; by default anywhere.
    pub to: Option<Prefix>,
    /// Their destination ports, of UDP and TCP; by default all, and those of other protocols.
    pub ports: Option<Ports>,
    /// Their differentiated services code point; by default any.
    pub dscp: Option<Dscp>,
    /// The utility by which each of its flows is admitted; by default "log" without a cap.
    pub admit: Option<utility::Config>,
    /// The rate of payload that each flow offers. A utility that is the whole rate or nothing needs it.
    pub rate: Option<Rate>,
    /// The time within which each packet must arrive; by default it may take any.
    pub deadline: Option<Span>,
    /// The same for the datagrams that their program marks EF (code point 46), in the place of `deadline`.
    pub ef_deadline: Option<Span>,
    /// Each flow ends when so many bytes of its payload were admitted, and begins anew with its next packet. The utility "file" needs it.
    pub size: Option<Bytes>,
    /// Datagrams with more payload than this are carried in parts, and put together where they leave; by default those for which a packet has
    /// no room.
    pub chunk: Option<Bytes>,
    /// Repairs, by which parts that are lost on the way are restored where they leave, without being sent again; by default none.
    pub fec: Option<Fec>,
    /// Short datagrams of a flow are joined to one packet, as many as fit: one waits so long at most for others to be joined to, up to 1 s; by
    /// default each is a packet by itself.
    pub join: Option<Span>,
    /// Whether datagrams leave with the spacing that they had where they entered: each that was faster than datagrams are on average waits
    /// for the difference, up to 1 s and not beyond its deadline; by default none waits.
    #[serde(default)]
    pub smooth: bool,
    /// Datagrams leave in the order in which they were sent: each waits for those before it, so long at most; by default none waits.
    pub reorder: Option<Span>,
    /// Whether only the newest datagram of a flow waits for its admission, in the place of an older one; by default up to 490 wait, in their
    /// order.
    #[serde(default)]
    pub newest: bool,
}

/// Repairs of a service's datagrams: any `base` of the `total` parts and repairs of a group restore all of it (digest A 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fec {
    /// Parts of a group, 1 to 16. A datagram that is not cut is one part.
    pub base: u8,
    /// Parts and repairs of a group, up to 32.
    pub total: u8,
    /// A group that has not all its parts after this time gets its repairs then, up to 10 s.
    #[serde(default = "hold")]
    pub hold: Span,
}

/// A group waits for so long unless the file says otherwise: short beside most deadlines.
fn hold() -> Span {
    Span::from_millis(20)
}

impl Service {
    /// The first fault.
    pub fn fault(&self) -> Option<ParameterError> {
        self.fault_of_admission().or_else(|| self.fault_of_deadlines()).or_else(|| self.fault_of_parts())
    }

    fn fault_of_parts(&self) -> Option<ParameterError> {
        let fault = |key, message: &str, help: &str| Some(ParameterError::new(key, message, help));
        if self.chunk.is_some_and(|chunk| !(LEAST_CHUNK..=MOST_CHUNK).contains(&chunk)) {
            let message = "`chunk` is 100 to 9000 bytes";
            return fault("chunk", message, "write for example chunk = \"1000 B\"");
        }
        if let Some(fec) = self.fec {
            if fec.total <= fec.base {
                let help = "write for example fec = { base = 8, total = 10 }";
                return fault("total", "`fec` without repairs restores nothing", help);
            }
            if fec.hold.is_zero() || fec.hold > MOST_HOLD {
                let help = "write for example hold = \"20 ms\"";
                return fault("hold", "`hold` of `fec` is above 0 and at most 10 s", help);
            }
        }
        if let Some(join) = self.join {
            if join.is_zero() || join > MOST_JOIN {
                return fault(
                    "join",
                    "`join` is above 0 and at most 1 s",
                    "write for example join = \"2 ms\"",
                );
            }
            if self.newest {
                let message = "`join` lets datagrams wait for others, of which `newest` keeps one";
                return fault("join", message, "leave out one of the two");
            }
        }
        if self.reorder.is_some_and(|time| time < LEAST_REORDER || time > MOST_REORDER) {
            let help = "write for example reorder = \"100 ms\"";
            return fault("reorder", "`reorder` is 1 ms to 60 s", help);
        }
        self.proxied().fault()
    }

    /// Whether all of its datagrams are parts, with what repairs, order, blobs and smoothed release need beside them.
    pub(super) fn is_proxied(&self) -> bool {
        self.fec.is_some() || self.reorder.is_some() || self.join.is_some() || self.smooth
    }

    /// How the UDP proxy carries its datagrams.
    pub(super) fn proxied(&self) -> udp::Service {
        let plain = udp::Service::whole();
        let coded =
            self.fec.map_or(plain, |Fec { base, total, hold }| udp::Service { base, total, hold, ..plain });
        udp::Service {
            chunk: self.chunk.map_or(plain.chunk, |chunk| chunk.get().min(plain.chunk.into()) as u16),
            join: self.join,
            is_timed: self.smooth,
            is_ordered: self.reorder.is_some(),
            hold_back: self.reorder,
            ..coded
        }
    }

    fn fault_of_deadlines(&self) -> Option<ParameterError> {
        for (key, deadline) in [("deadline", self.deadline), ("ef_deadline", self.ef_deadline)] {
            if deadline.is_some_and(|deadline| deadline.is_zero() || deadline > LONGEST_TIME_TO_GO) {
                let most = LONGEST_TIME_TO_GO.as_secs_f64();
                let message = format!("`{key}` is above 0 and at most {most} s");
                return Some(ParameterError::new(
                    key,
                    message,
                    format!("write for example {key} = \"80 ms\""),
                ));
            }
        }
        let has_no_ef = self.dscp.is_some_and(|dscp| dscp.get() != EF);
        (has_no_ef && self.ef_deadline.is_some()).then(|| {
            let message = "no datagram of a service with another `dscp` is marked EF";
            ParameterError::new("ef_deadline", message, "leave out `dscp`, or write `deadline` instead")
        })
    }

    fn fault_of_admission(&self) -> Option<ParameterError> {
        let Some(admit) = &self.admit else { return None };
        let needs = |key, message: &str, help: &str| Some(ParameterError::new(key, message, help));
        if let Some(fault) = admit.fault() {
            return Some(fault);
        }
        if admit.whole(Rate::from_bits_per_sec(0)).is_some_and(|rate| rate.bits_per_sec() == 0)
            && self.rate.is_none()
        {
            let message = format!("`{}` needs the rate that a flow offers", admit.name());
            return needs("rate", &message, "write rate = \"4 Mbit/s\" beside `admit`");
        }
        if matches!(admit, utility::Config::File(_)) && self.size.is_none() {
            return needs(
                "size",
                "`file` needs the size of a transfer",
                "write size = \"20 MB\" beside `admit`",
            );
        }
        None
    }

    /// The deadline of datagrams with this code point.
    fn deadline_of(&self, dscp: u8) -> Option<Span> {
        self.ef_deadline.filter(|_| dscp == EF).or(self.deadline)
    }

    fn fits(&self, inner: &Inner) -> bool {
        let within = |prefix: &Option<Prefix>, address: u32| {
            prefix.is_none_or(|prefix| prefix.contains(IpAddr::V4(Ipv4Addr::from_bits(address))))
        };
        within(&self.from, inner.source)
            && within(&self.to, inner.destination)
            && self.ports.is_none_or(|ports| inner.source_port > 0 && ports.contains(inner.destination_port))
            && self.dscp.is_none_or(|dscp| dscp.get() == inner.dscp)
    }
}

/// Whether flows of these services may be refused: a planner has something to decide.
pub(super) fn plans(services: &[Service]) -> bool {
    services.iter().filter_map(|service| service.admit.as_ref()).any(utility::Config::may_be_refused)
}

/// The service of a flow, by its place; `None` if none fits.
pub(super) fn service_of(services: &[Service], inner: &Inner) -> Option<usize> {
    services.iter().position(|service| service.fits(inner))
}

/// What a flow of this service, or of none, is and asks for from now on.
pub(super) fn terms(service: Option<&Service>, inner: &Inner, now: Time) -> Terms {
    let elastic = || utility::Config::Log(log::Config { cap: UNLIMITED, ..log::Config::default() });
    Terms {
        utility: service.and_then(|service| service.admit.clone()).unwrap_or_else(elastic),
        offered: service.and_then(|service| service.rate).unwrap_or(UNLIMITED),
        deadline: service.and_then(|service| service.deadline_of(inner.dscp)),
        size: service.and_then(|service| service.size),
        begins: now,
        ends: Time::NEVER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(json: serde_json::Value) -> Service {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_first_service_whose_conditions_all_hold_is_the_flows() {
        let services = [
            service(serde_json::json!({ "name": "voice", "ports": "5000-5010", "dscp": "EF" })),
            service(serde_json::json!({ "name": "site b", "to": "10.2.0.0/16" })),
        ];
        let inner =
            Inner { destination: 0x0a02_0001, source_port: 9, destination_port: 5004, ..Inner::default() };
        assert_eq!(service_of(&services, &Inner { dscp: 46, ..inner }), Some(0));
        assert_eq!(service_of(&services, &inner), Some(1));
        assert_eq!(service_of(&services, &Inner { destination: 0x0a03_0001, ..inner }), None);
        // A datagram without ports is of no service that names some.
        assert_eq!(service_of(&services, &Inner { dscp: 46, source_port: 0, ..inner }), Some(1));
    }

    #[test]
    fn datagrams_marked_ef_have_a_deadline_of_their_own() {
        let deadline = |json: serde_json::Value, dscp| {
            let inner = Inner { dscp, ..Inner::default() };
            terms(Some(&service(json)), &inner, Time::ZERO).deadline.map(Span::as_millis)
        };
        let both = serde_json::json!({ "name": "call", "deadline": "1 s", "ef_deadline": "50 ms" });
        assert_eq!((deadline(both.clone(), EF), deadline(both, 0)), (Some(50), Some(1000)));
        let urgent = serde_json::json!({ "name": "call", "ef_deadline": "50 ms" });
        assert_eq!((deadline(urgent.clone(), EF), deadline(urgent, 45)), (Some(50), None));
        let all = serde_json::json!({ "name": "call", "deadline": "1 s" });
        assert_eq!((deadline(all.clone(), EF), deadline(all, 0)), (Some(1000), Some(1000)));
    }

    #[test]
    fn a_deadline_that_no_header_can_tell_is_refused() {
        let told = |json| service(json).fault().map(|fault| fault.key);
        assert_eq!(told(serde_json::json!({ "name": "x", "deadline": "33.767 s" })), None);
        assert_eq!(told(serde_json::json!({ "name": "x", "deadline": "33.768 s" })), Some("deadline"));
        assert_eq!(told(serde_json::json!({ "name": "x", "ef_deadline": "0 s" })), Some("ef_deadline"));
        let other = serde_json::json!({ "name": "x", "dscp": "AF41", "ef_deadline": "1 s" });
        assert_eq!(told(other), Some("ef_deadline"));
        assert_eq!(told(serde_json::json!({ "name": "x", "dscp": "EF", "ef_deadline": "1 s" })), None);
    }

    #[test]
    fn parts_repairs_and_order_are_told_to_the_proxy_and_what_it_cannot_do_is_refused() {
        let json = serde_json::json!({
            "name": "video", "chunk": "500 B", "fec": { "base": 8, "total": 10 }, "reorder": "100 ms"
        });
        let proxied = service(json).proxied();
        assert_eq!((proxied.base, proxied.total, proxied.chunk), (8, 10, 500));
        assert_eq!((proxied.hold, proxied.is_ordered), (Span::from_millis(20), true));
        assert!(!service(serde_json::json!({ "name": "x", "chunk": "500 B" })).is_proxied());
        let told = |json: serde_json::Value| {
            let mut whole = serde_json::json!({ "name": "x" });
            whole.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
            service(whole).fault().map(|fault| fault.key)
        };
        let fec = |base, total, hold: &str| serde_json::json!({ "fec": { "base": base, "total": total, "hold": hold } });
        assert_eq!(told(fec(16, 32, "10 s")), None);
        assert_eq!(told(fec(17, 20, "1 s")), Some("base"));
        assert_eq!(told(fec(0, 2, "1 s")), Some("base"));
        assert_eq!(told(fec(8, 33, "1 s")), Some("total"));
        assert_eq!(told(fec(8, 8, "1 s")), Some("total"));
        assert_eq!(told(fec(8, 10, "0 s")), Some("hold"));
        assert_eq!(told(fec(8, 10, "11 s")), Some("hold"));
        assert_eq!(told(serde_json::json!({ "chunk": "99 B" })), Some("chunk"));
        assert_eq!(told(serde_json::json!({ "join": "1 s", "smooth": true })), None);
        assert_eq!(told(serde_json::json!({ "join": "0 s" })), Some("join"));
        assert_eq!(told(serde_json::json!({ "join": "1.1 s" })), Some("join"));
        assert_eq!(told(serde_json::json!({ "join": "1 ms", "newest": true })), Some("join"));
        assert_eq!(told(serde_json::json!({ "chunk": "9001 B" })), Some("chunk"));
        assert_eq!(told(serde_json::json!({ "reorder": "0 s" })), Some("reorder"));
        assert_eq!(told(serde_json::json!({ "reorder": "61 s" })), Some("reorder"));
    }

    #[test]
    fn a_utility_that_lacks_a_number_is_refused() {
        let told = |json| service(json).fault().map(|fault| fault.key);
        assert_eq!(told(serde_json::json!({ "name": "video", "admit": "strap" })), Some("rate"));
        assert_eq!(told(serde_json::json!({ "name": "video", "admit": "strap", "rate": "4 Mbit/s" })), None);
        assert_eq!(told(serde_json::json!({ "name": "file", "admit": "file" })), Some("size"));
        assert_eq!(
            told(serde_json::json!({ "name": "x", "admit": { "kind": "log", "priority": 0.0 } })),
            Some("priority")
        );
    }
}
