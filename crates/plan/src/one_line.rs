//! A link's settings in one line, as the command line has them: `rate=50mbit/10mbit rtt=40ms queue=pie:target=5ms`.
//!
//! Words are separated by spaces; each is a key of a lab's link and a value. A value is TOML, or text without quotes. Two values with a slash
//! between them are those of the directions down and up; an empty one is left out. `queue=KIND:KEY=VALUE:KEY=VALUE` is a queue with parameters.

use crate::diagnostic::{Fault, Origin};
use crate::tree::{Entry, Item, Node, Table, parse_value};

/// Reads the words of a line. `file` is its number among the sources.
pub(crate) fn parse(line: &str, file: usize) -> Result<Table, Vec<Fault>> {
    let (mut table, mut faults) = (Table::default(), vec![]);
    for (start, word) in words(line) {
        let whole = Origin::new(file, start..start + word.len());
        let Some((key, value)) =
            word.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty())
        else {
            let help = "write KEY=VALUE, for example rate=20mbit";
            faults.push(Fault::new(whole, format!("`{word}` is not a key and a value"), help));
            continue;
        };
        if table.get(key).is_some() {
            faults.push(Fault::new(whole, format!("`{key}` is given twice"), "remove one of the two"));
            continue;
        }
        let named = Origin::new(file, start..start + key.len());
        match both_ways(key, value, file, start + key.len() + 1) {
            Ok(value) => drop(table.0.insert(key.into(), Entry { named, value })),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() { Ok(table) } else { Err(faults) }
}

/// Whether a value is written as TOML, with quotes or brackets.
fn is_toml(value: &str) -> bool {
    value.starts_with(['"', '\'', '[', '{'])
}

/// A value for both directions, or two with a slash between them. The slash of a prefix in `to` is part of it.
fn both_ways(key: &str, value: &str, file: usize, at: usize) -> Result<Node, Vec<Fault>> {
    if is_toml(value) {
        return parse_value(value, file, at);
    }
    let whole = Origin::new(file, at..at + value.len());
    if key == "to" {
        return Ok(Node { item: Item::String(value.into()), origin: whole });
    }
    match slashes(value).as_slice() {
        [] => one_way(key, value, file, at),
        &[slash] => {
            let ways = [("down", at, &value[..slash]), ("up", at + slash + 1, &value[slash + 1..])];
            let mut table = Table::default();
            for (way, at, value) in ways.into_iter().filter(|(_, _, value)| !value.is_empty()) {
                let value = one_way(key, value, file, at)?;
                table.0.insert(way.into(), Entry { named: value.origin, value });
            }
            Ok(Node { item: Item::Table(table), origin: whole })
        }
        _ => {
            let message = format!("`{value}` has more than two directions");
            Err(vec![Fault::new(whole, message, format!("write {key}=DOWN/UP"))])
        }
    }
}

/// The slashes between directions: not those of the unit `bit/s`.
fn slashes(value: &str) -> Vec<usize> {
    let of_a_unit = |at: usize| value[..at].ends_with("bit") && value[at + 1..].starts_with('s');
    value.match_indices('/').map(|(at, _)| at).filter(|at| !of_a_unit(*at)).collect()
}

/// The value of one direction.
fn one_way(key: &str, value: &str, file: usize, at: usize) -> Result<Node, Vec<Fault>> {
    if key == "queue" && value.contains(':') { queue(value, file, at) } else { parse_value(value, file, at) }
}

/// A queue with parameters: `KIND:KEY=VALUE:KEY=VALUE`.
fn queue(text: &str, file: usize, at: usize) -> Result<Node, Vec<Fault>> {
    let (mut table, mut start) = (Table::default(), at);
    for part in text.split(':') {
        let origin = Origin::new(file, start..start + part.len());
        let (key, value, skipped) = match part.split_once('=') {
            Some((key, value)) => (key, value, key.len() + 1),
            None if start == at => ("kind", part, 0),
            None => {
                let help = "write KIND:KEY=VALUE, for example tail-drop:limit=1000p";
                return Err(vec![Fault::new(origin, format!("`{part}` is not a parameter"), help)]);
            }
        };
        let value = parse_value(value, file, start + skipped)?;
        table.0.insert(key.into(), Entry { named: origin, value });
        start += part.len() + 1;
    }
    Ok(Node { item: Item::Table(table), origin: Origin::new(file, at..at + text.len()) })
}

/// The words of a line, each with its place. A space inside brackets or quotes separates no words.
fn words(line: &str) -> Vec<(usize, &str)> {
    let (mut words, mut begun) = (vec![], None);
    let (mut depth, mut quote) = (0usize, None);
    for (at, c) in line.char_indices() {
        if c.is_whitespace() && depth == 0 && quote.is_none() {
            words.extend(begun.take().map(|start| (start, &line[start..at])));
            continue;
        }
        begun = begun.or(Some(at));
        match (quote, c) {
            (Some(open), _) => quote = Some(open).filter(|open| *open != c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    words.extend(begun.map(|start| (start, &line[start..])));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(line: &str) -> serde_json::Value {
        parse(line, 0).unwrap_or_else(|faults| panic!("{faults:?}")).to_json().into()
    }

    #[test]
    fn words_are_keys_and_values_of_a_link() {
        let line = "rate=50mbit/10Mbit/s rtt=40ms  loss=0.01 queue=pie:target=5ms:limit=100p";
        let expected = serde_json::json!({
            "rate": { "down": "50mbit", "up": "10Mbit/s" },
            "rtt": "40ms",
            "loss": 0.01,
            "queue": { "kind": "pie", "target": "5ms", "limit": "100p" },
        });
        assert_eq!(json(line), expected);
    }

    #[test]
    fn toml_may_have_spaces_and_an_empty_direction_is_left_out() {
        let line =
            "loss=/1% rate={ down = { trace = \"a/b c\" }, up = \"5 Mbit/s\" } drop=[1, 2] queue=/codel";
        let expected = serde_json::json!({
            "loss": { "up": "1%" },
            "rate": { "down": { "trace": "a/b c" }, "up": "5 Mbit/s" },
            "drop": [1, 2],
            "queue": { "up": "codel" },
        });
        assert_eq!(json(line), expected);
    }

    #[test]
    fn what_is_wrong_is_shown_at_its_word() {
        let faults = |line: &str| {
            let at = |fault: Fault| fault.origin.map(|origin| line[origin.start..origin.end].to_owned());
            parse(line, 0).unwrap_err().into_iter().filter_map(at).collect::<Vec<_>>()
        };
        assert_eq!(faults("rate=1mbit fast =3 x="), ["fast", "=3", "x="]);
        assert_eq!(faults("rate=1mbit rate=2mbit"), ["rate=2mbit"]);
        assert_eq!(faults("rate=1mbit/2mbit/3mbit"), ["1mbit/2mbit/3mbit"]);
        assert_eq!(faults("queue=pie:target"), ["target"]);
    }
}
