//! The properties of a link in a lab file that are more than a number: rate or trace, loss in bursts or by bit errors, jitter.

use crate::probability::{EXPECTED, Probability, visit_probability};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use weir_base::{Rate, Span};
use weir_fabric::{BitErrors, Distribution, GilbertElliott, Jitter, Loss, Times};

/// The longest that any delay may be.
pub(crate) const LONGEST_DELAY: Span = Span::from_secs(3600);

/// The rate of a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Speed {
    /// A constant rate.
    Constant(Rate),
    /// The rate in a trace file.
    Trace(TraceFile),
}

/// A recorded link.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceFile {
    /// A file, looked for beside the lab. Mahimahi's format has in each line a whole number of milliseconds at which 1504 bytes
    /// may leave, and the last line is the trace's length; `overhead` is then 4 B by default, as Mahimahi counts. A rate in
    /// steps has lines of `seconds,rate`, from 0 on, in bit/s, in the unit that a first line of names gives, or in a unit of
    /// each line's own; the last step is as long as the one before it.
    #[schemars(example = "lte.down")]
    pub(crate) trace: String,
    /// Whether the trace begins again when it ends; by default true. If not, a rate in steps keeps its last rate, and
    /// Mahimahi's format sends nothing more.
    pub(crate) repeat: Option<bool>,
}

/// Reads a value that is a text or a table.
macro_rules! text_or_table {
    ($type:ident, [$text:ty, $table:ty], $expecting:literal, $of_text:expr, $of_table:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Forms;
                impl<'de> Visitor<'de> for Forms {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                        let of_text: fn($text) -> Result<$type, String> = $of_text;
                        of_text(text.parse().map_err(E::custom)?).map_err(E::custom)
                    }
                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        let table = <$table>::deserialize(MapAccessDeserializer::new(map))?;
                        let of_table: fn($table) -> Result<$type, String> = $of_table;
                        of_table(table).map_err(A::Error::custom)
                    }
                }
                deserializer.deserialize_any(Forms)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let (text, table) = (generator.subschema_for::<$text>(), generator.subschema_for::<$table>());
                let description = concat!("Here stands ", $expecting, ".");
                schemars::json_schema!({ "description": description, "anyOf": [text, table] })
            }
        }
    };
}

text_or_table!(
    Speed,
    [Rate, TraceFile],
    "a rate with its unit, for example \"10 Mbit/s\", or a table with a `trace`",
    |rate| Ok(Speed::Constant(rate)),
    |file| Ok(Speed::Trace(file))
);

/// The shortest mean of a good or a bad time. Each takes a draw, also while nothing is sent.
const SHORTEST_TIME: Span = Span::from_millis(1);

/// The jitter of a link, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Jitters(pub(crate) Jitter);

text_or_table!(
    Jitters,
    [Span, Jitter],
    "a time with its unit, for example \"5 ms\", or a table such as { up_to = \"5 ms\", reorder = true }",
    |up_to| checked(Jitter::uniform(up_to)),
    checked
);

fn checked(jitter: Jitter) -> Result<Jitters, String> {
    let needs = |what: &str, example: &str| {
        let name = format!("{:?}", jitter.distribution).to_lowercase();
        Err(format!("jitter of the distribution {name} needs {what}; write for example {example}"))
    };
    let of_parts = jitter.parts.iter().flat_map(|part| [part.mean, part.deviation]);
    let whole = [jitter.up_to, jitter.mean, jitter.deviation].into_iter().flatten();
    let longest = whole.chain(of_parts).max().unwrap_or_default();
    if longest > LONGEST_DELAY {
        return Err(format!("a delay of {longest} is too long; write at most 1 h"));
    }
    let is_mixture = jitter.distribution == Distribution::Mixture;
    match jitter.distribution {
        _ if !is_mixture && !jitter.parts.is_empty() => {
            Err("`parts` are those of a mixture; write distribution = \"mixture\" beside them".into())
        }
        _ if is_mixture && (jitter.mean.is_some() || jitter.deviation.is_some()) => {
            Err("each part of a mixture has its own mean and deviation; write them within `parts`".into())
        }
        _ if is_mixture && jitter.parts.is_empty() => needs(
            "`parts`",
            "parts = [{ share = 0.9, mean = \"5 ms\" }, { share = 0.1, mean = \"20 ms\", deviation = \"2 ms\" }]",
        ),
        _ if jitter.parts.iter().any(|part| !(part.share > 0.0 && part.share <= 1e9)) => {
            Err("a part of a mixture has a share above 0; write for example share = 0.9 in one part and 0.1 in the other".into())
        }
        Distribution::Uniform if jitter.mean.is_some() || jitter.deviation.is_some() => {
            Err("uniform jitter has a bound, no mean or deviation; write up_to = .., or distribution = \"normal\"".into())
        }
        Distribution::Uniform if jitter.up_to.is_none() => needs("`up_to`", "up_to = \"5 ms\""),
        Distribution::Normal if jitter.mean.is_none() || jitter.deviation.is_none() => {
            needs("`mean` and `deviation`", "mean = \"5 ms\", deviation = \"1 ms\"")
        }
        Distribution::Pareto if jitter.mean.is_none() => needs("`mean`", "mean = \"5 ms\""),
        Distribution::Pareto if jitter.deviation.is_some() => {
            Err("the tail of pareto jitter is set by its shape; write shape = 3 instead of a deviation".into())
        }
        _ if !(jitter.shape > 1.0 && jitter.shape <= 100.0) => {
            Err(format!("a shape of {} gives no mean; write a number above 1, up to 100", jitter.shape))
        }
        _ => Ok(Jitters(jitter)),
    }
}

/// The loss of a link, checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Losses(pub(crate) Loss);

/// Loss in bursts, by its mean and the bursts' mean length, or by the four parameters of a Gilbert-Elliott chain; or loss by bit
/// errors, always or in bad times.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LossTable {
    /// Share of packets lost in the long run.
    mean: Option<Probability>,
    /// Mean number of packets lost in a row, at least 1; with `mean`.
    burst: Option<f64>,
    /// Probability that the good state turns bad before a packet; instead of `mean` and `burst`.
    p: Option<Probability>,
    /// Probability that the bad state turns good before a packet; with `p`.
    r: Option<Probability>,
    /// Probability that a packet of the bad state passes; by default 0.
    h: Option<Probability>,
    /// Probability that a packet of the good state passes; by default 1.
    k: Option<Probability>,
    /// Probability that a bit is wrong, for example 1e-6. A packet with a wrong bit is lost.
    ber: Option<Probability>,
    /// Mean time without bit errors; exponential. With `ber` and `bad`.
    good: Option<Span>,
    /// Mean time with bit errors; exponential. By default there always are errors.
    bad: Option<Span>,
}

impl LossTable {
    fn loss(self) -> Result<Losses, String> {
        match self.ber {
            Some(Probability(ber)) => self.by_errors(ber),
            None if self.good.is_some() || self.bad.is_some() => {
                Err("good and bad times are those of bit errors; write { ber = 1e-5, good = \"10 s\", bad = \"100 ms\" }".into())
            }
            None => self.in_bursts(),
        }
    }

    fn by_errors(self, ber: f64) -> Result<Losses, String> {
        let LossTable { mean, burst, p, r, h, k, good, bad, .. } = self;
        if burst.is_some() || [mean, p, r, h, k].iter().any(Option::is_some) {
            return Err("loss is either by bit errors or in bursts of packets; write { ber = 1e-6 }, or { mean = \"1 %\", burst = 5 }".into());
        }
        let times =
            match (good, bad) {
                (None, None) => None,
                (Some(good), Some(bad)) => Some(Times { good, bad }),
                _ => return Err(
                    "good and bad times go together; write { ber = 1e-5, good = \"10 s\", bad = \"100 ms\" }"
                        .into(),
                ),
            };
        for time in [good, bad].into_iter().flatten() {
            if !(SHORTEST_TIME..=LONGEST_DELAY).contains(&time) {
                return Err(format!("a mean time of {time} is not possible; write from 1 ms to 1 h"));
            }
        }
        Ok(Losses(Loss::Errors(BitErrors { ber, times })))
    }

    fn in_bursts(self) -> Result<Losses, String> {
        let LossTable { mean, burst, p, r, h, k, .. } = self;
        let plain = "write { mean = \"1 %\", burst = 5 } or { p = 0.002, r = 0.2 }";
        match (mean, burst, p, r) {
            (Some(Probability(mean)), Some(burst), None, None) if h.is_none() && k.is_none() => {
                if !(1.0..=1e9).contains(&burst) {
                    return Err(format!("a burst cannot have {burst} packets; write 1 or more"));
                }
                let most = 100.0 * burst / (burst + 1.0);
                let chain = GilbertElliott::with_mean(mean, burst);
                chain.map(|chain| Losses(Loss::Bursts(chain))).ok_or_else(|| {
                    let mean = 100.0 * mean;
                    format!("{mean} % cannot be lost in bursts of {burst}, since a packet passes between two bursts; write at most {most:.1} %, or longer bursts")
                })
            }
            (None, None, Some(Probability(p)), Some(Probability(r))) => {
                let of = |probability: Option<Probability>, default| probability.map_or(default, |Probability(p)| p);
                Ok(Losses(Loss::Bursts(GilbertElliott { p, r, h: of(h, 0.0), k: of(k, 1.0) })))
            }
            (Some(_), None, None, None) => Err("`mean` gives the share of lost packets, but not the length of a burst; write burst = 5, or loss = \"1 %\"".into()),
            _ => Err(format!("loss in bursts has a mean and a burst, or p and r; {plain}")),
        }
    }
}

impl<'de> Deserialize<'de> for Losses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Losses, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Losses;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "{EXPECTED}, or a table such as {{ mean = \"1 %\", burst = 5 }} or {{ ber = 1e-6 }}"
                )
            }
            visit_probability!(|Probability(loss)| Losses(Loss::Independent(loss)));
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Losses, A::Error> {
                LossTable::deserialize(MapAccessDeserializer::new(map))?.loss().map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Losses {
    fn schema_name() -> Cow<'static, str> {
        "Losses".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (plain, table) =
            (generator.subschema_for::<Probability>(), generator.subschema_for::<LossTable>());
        let description = "Here stands a probability, or a table of loss in bursts or by bit errors.";
        schemars::json_schema!({ "description": description, "anyOf": [plain, table] })
    }
}
