//! An engine's measurements of itself, in words for a page: lateness, load, settings. The keys are the engine's own and
//! carry their units; this file knows none of them.

use crate::number::{count, number};
use serde_json::{Map, Value};
use weir_engine::Audit;

/// Names and their values.
pub(crate) type Facts = Vec<(String, String)>;

/// All facts in two lists: the short ones, then those that are nested deeper (settings of each host).
pub(crate) fn facts(environment: &Map<String, Value>) -> (Facts, Facts) {
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for (key, value) in environment {
        let name = words(key);
        match value {
            Value::Object(inner) if inner.values().any(Value::is_object) => {
                for (hosts, settings) in gathered(inner) {
                    long.push((format!("{name}: {hosts}"), settings));
                }
            }
            Value::Null => {}
            Value::Object(inner) if inner.is_empty() => {}
            value => short.push((name, written(value))),
        }
    }
    (short, long)
}

/// The members of an object as text; members with the same value are joined under all their names.
fn gathered(of: &Map<String, Value>) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for (key, value) in of {
        let text = written(value);
        match rows.iter_mut().find(|(_, known)| *known == text) {
            Some((keys, _)) => *keys = format!("{keys}, {key}"),
            None => rows.push((key.clone(), text)),
        }
    }
    rows
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Number(n) => match n.as_u64() {
            Some(whole) => count(whole),
            None => n.as_f64().map(number).unwrap_or_default(),
        },
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(written).collect::<Vec<_>>().join(", "),
        Value::Object(inner) => {
            let parts: Vec<String> =
                inner.iter().map(|(key, value)| format!("{key} {}", written(value))).collect();
            parts.join("; ")
        }
    }
}

fn words(key: &str) -> String {
    key.replace('_', " ")
}

/// Where all packets ended, in words.
pub(crate) fn audit(audit: &Audit) -> String {
    let some = |number: u64, what: &str| {
        if number > 0 { format!(", {} {what}", count(number)) } else { String::new() }
    };
    let sum = format!(
        "{} sent{}{}; {} delivered{}, {} dropped by queues, {} lost by links{}{}, {} in flight at the end, {} lost elsewhere",
        count(audit.sent),
        some(audit.duplicated, "duplicated by links"),
        some(audit.made, "made by stations"),
        count(audit.delivered),
        some(audit.corrupted, "damaged by links and discarded by hosts"),
        count(audit.dropped),
        count(audit.lost),
        some(audit.discarded, "discarded by stations"),
        some(audit.held, "held by stations"),
        count(audit.in_flight),
        count(audit.leaked)
    );
    format!("{sum}: the sum {}", if audit.balances() { "is right" } else { "is wrong" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_the_same_settings_are_listed_once() {
        let environment = serde_json::json!({
            "kernel": "6.18", "memory_locked": true, "lateness_us": { "p50": 28.288, "max": 12345.6 }, "drops_outside": {},
            "sysctls": { "a": { "tcp_ecn": "0" }, "b": { "tcp_ecn": "0" }, "c": { "tcp_ecn": "1" } }
        });
        let (short, long) = facts(environment.as_object().unwrap());
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(
            short,
            [
                pair("kernel", "6.18"),
                pair("memory locked", "yes"),
                pair("lateness us", "p50 28.3; max 12346")
            ]
        );
        assert_eq!(long, [pair("sysctls: a, b", "tcp_ecn 0"), pair("sysctls: c", "tcp_ecn 1")]);
    }

    #[test]
    fn an_audit_that_fails_says_so() {
        let mut packets = Audit { sent: 1200, delivered: 1190, dropped: 8, in_flight: 2, ..Audit::default() };
        assert!(audit(&packets).ends_with(": the sum is right"));
        packets.delivered -= 1;
        assert!(audit(&packets).ends_with(": the sum is wrong"));
    }
}
