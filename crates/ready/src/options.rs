//! What a user chooses of a test, and the settings of a lab that follow from it.

use std::str::FromStr;
use weir_base::{Rate, Span};

/// The choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Rate of the line towards the user.
    pub down: Rate,
    /// Rate from the user.
    pub up: Rate,
    /// Round-trip time without queues.
    pub rtt: Span,
    /// The queues that are compared; the test's own if empty.
    pub queues: Vec<QueueChoice>,
    /// The controllers that are compared; the test's own if empty.
    pub controllers: Vec<String>,
    /// Repeats of each cell.
    pub repeats: u32,
}

/// Reads the rates of a line: `50/10` (down and up, in Mbit/s) or `1Gbit/s/100Mbit/s`; one rate holds for both directions.
///
/// # Errors
/// Text that is no rate, or a rate of zero.
pub fn read_rates(text: &str) -> Result<[Rate; 2], String> {
    // `Mbit/s` has a slash of its own.
    let text = text.replace("bit/s", "bit");
    let one = |part: &str| {
        let unit = if part.trim().parse::<f64>().is_ok() { "Mbit/s" } else { "/s" };
        let rate = format!("{part}{unit}").parse::<Rate>().map_err(|error| error.to_string())?;
        if rate.bits_per_sec() == 0 { Err("a line needs a rate above 0".into()) } else { Ok(rate) }
    };
    match text.split('/').collect::<Vec<_>>()[..] {
        [both] => one(both).map(|rate| [rate, rate]),
        [down, up] => Ok([one(down)?, one(up)?]),
        _ => Err("write DOWN/UP in Mbit/s, for example 50/10".into()),
    }
}

/// Reads the time of a round trip.
///
/// # Errors
/// Text that is no time, or a time of zero.
pub fn read_time(text: &str) -> Result<Span, String> {
    let time = text.parse::<Span>().map_err(|error| error.to_string())?;
    if time.is_zero() { Err("a round trip takes more than 0 s".into()) } else { Ok(time) }
}

/// A queue with parameters, as a user writes it: `tail-drop:limit=1000p`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueChoice {
    kind: String,
    parameters: Vec<(String, String)>,
}

impl FromStr for QueueChoice {
    type Err = String;

    /// Reads `KIND` or `KIND:KEY=VALUE:KEY=VALUE`. In a value the unit may follow the number at once, and `p` stands for packets.
    fn from_str(text: &str) -> Result<QueueChoice, String> {
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let names = weir_queue::Config::NAMES
            .iter()
            .flat_map(|(name, aliases)| std::iter::once(name).chain(*aliases));
        if !names.clone().any(|name| *name == kind) {
            return Err(format!("`{kind}` is not a queue; {}", weir_plan::suggest(kind, names.copied())));
        }
        let parameters = parts.map(|part| {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!(
                    "`{part}` is not a parameter; write {kind}:KEY=VALUE, for example tail-drop:limit=1000p"
                ));
            };
            Ok((key.to_owned(), spelled_out(value)))
        });
        Ok(QueueChoice { kind: kind.into(), parameters: parameters.collect::<Result<_, _>>()? })
    }
}

impl QueueChoice {
    /// The queue as a lab has it.
    pub fn value(&self) -> String {
        let parameters: String =
            self.parameters.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
        format!("{{ kind = {}{parameters} }}", quoted(&self.kind))
    }

    /// Its name in sentences.
    pub fn label(&self) -> String {
        let parameters =
            self.parameters.iter().map(|(key, value)| format!(" {key} {}", value.trim_matches('"')));
        weir_report::naming::spelled(&self.kind) + &parameters.collect::<String>()
    }
}

/// A value as TOML: numbers and booleans as they are, a number with a unit as text with a space between them.
fn spelled_out(value: &str) -> String {
    if value.parse::<f64>().is_ok() || matches!(value, "true" | "false") {
        return value.into();
    }
    let unit_at = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(unit_at);
    match (number, unit.trim()) {
        ("", text) => quoted(text),
        (number, "p") => quoted(&format!("{number} packets")),
        (number, unit) => quoted(&format!("{number} {unit}")),
    }
}

/// Text in a lab.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Options {
    /// The settings of the line itself, which all tests share.
    pub(crate) fn line(&self) -> Vec<String> {
        let (down, up) = (quoted(&self.down.to_string()), quoted(&self.up.to_string()));
        vec![
            format!("run.repeats={}", self.repeats),
            format!("dumbbell.rate={{ down = {down}, up = {up} }}"),
            format!("dumbbell.rtt={}", quoted(&self.rtt.to_string())),
        ]
    }

    /// The settings that compare these queues: one as a plain value, several as a level.
    pub(crate) fn queue(queues: &[QueueChoice]) -> Vec<String> {
        match queues {
            [] => vec![],
            [one] => vec![format!("dumbbell.queue={}", one.value())],
            several => {
                let labels = several.iter().map(|queue| {
                    format!("{} = {{ \"dumbbell.queue\" = {} }}", quoted(&queue.label()), queue.value())
                });
                vec![format!("vary.queue={{ {} }}", labels.collect::<Vec<_>>().join(", "))]
            }
        }
    }

    /// The settings that give these groups a controller: one as a plain value, several as a level that all groups follow.
    pub(crate) fn controller(controllers: &[String], groups: &[&str]) -> Vec<String> {
        match controllers {
            [] => vec![],
            [one] => groups.iter().map(|group| format!("traffic.{group}.cc={}", quoted(one))).collect(),
            several => {
                let label = |cc: &String| {
                    let each = groups.iter().map(|group| format!("\"traffic.{group}.cc\" = {}", quoted(cc)));
                    format!("{} = {{ {} }}", quoted(cc), each.collect::<Vec<_>>().join(", "))
                };
                vec![format!("vary.cc={{ {} }}", several.iter().map(label).collect::<Vec<_>>().join(", "))]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_as_a_user_writes_them() {
        let queue: QueueChoice = "tail-drop:limit=1000p".parse().unwrap();
        assert_eq!(queue.value(), r#"{ kind = "tail-drop", limit = "1000 packets" }"#);
        assert_eq!(queue.label(), "tail drop limit 1000 packets");
        let queue: QueueChoice = "pie:target=5ms:ecn=false:alpha=0.5".parse().unwrap();
        assert_eq!(queue.value(), r#"{ kind = "pie", target = "5 ms", ecn = false, alpha = 0.5 }"#);
        assert!("fq-codle".parse::<QueueChoice>().unwrap_err().contains("did you mean `fq-codel`"));
        assert!("pie:fast".parse::<QueueChoice>().unwrap_err().contains("KEY=VALUE"));
    }

    #[test]
    fn rates_and_times_are_read_as_a_user_writes_them() {
        let mbit = Rate::from_mbit_per_sec;
        assert_eq!(read_rates("50/10").unwrap(), [mbit(50), mbit(10)]);
        assert_eq!(read_rates("1 Gbit/s/100Mbit/s").unwrap(), [mbit(1000), mbit(100)]);
        assert_eq!(read_rates("2.5").unwrap(), [Rate::from_bits_per_sec(2_500_000); 2]);
        for text in ["", "fast", "0/10", "1/2/3", "-5/10"] {
            assert!(read_rates(text).is_err(), "{text}");
        }
        assert_eq!(read_time("40ms").unwrap(), Span::from_millis(40));
        assert_eq!(read_time("1.5 s").unwrap(), Span::from_millis(1500));
        for text in ["", "40", "soon", "0ms"] {
            assert!(read_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_choice_is_a_value_and_several_are_a_level() {
        let queues = |texts: &[&str]| {
            Options::queue(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(queues(&["codel"]), [r#"dumbbell.queue={ kind = "codel" }"#]);
        assert_eq!(
            queues(&["codel", "pie"]),
            [
                r#"vary.queue={ "CoDel" = { "dumbbell.queue" = { kind = "codel" } }, "PIE" = { "dumbbell.queue" = { kind = "pie" } } }"#
            ]
        );
        assert_eq!(
            Options::controller(&["bbr".into()], &["a", "b"]),
            [r#"traffic.a.cc="bbr""#, r#"traffic.b.cc="bbr""#]
        );
    }
}
