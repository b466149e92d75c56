//! `[run.windows]`: named parts of a run, of which metrics are taken and claims are made as of the whole.

use crate::cell::{Cell, Reader};
use crate::diagnostic::suggest;
use crate::limits;
use crate::probability::Probability;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use weir_base::Span;

/// A named part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Where it begins, from the start of the run.
    pub from: Span,
    /// Where it ends, from the start of the run.
    pub to: Span,
    /// How near to their final value one-second means are once they have settled, as a share of that value.
    pub tolerance: f64,
}

/// A window as a lab file has it: `["22 s", "30 s"]`, or a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    from: Span,
    to: Span,
    of: Option<String>,
    tolerance: Option<Probability>,
}

/// A window with more than its two times.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Detailed {
    /// Where it begins: from the start of the run, or of the group that `of` names.
    from: Span,
    /// Where it ends, likewise.
    to: Span,
    /// The traffic group from whose `start` the two times count; the run if none.
    of: Option<String>,
    /// How near to their final value one-second means are once `settling_time_s` says that they have settled: a share of
    /// that value, by default "10 %".
    tolerance: Option<Probability>,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Written;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "two times, for example [\"22 s\", \"30 s\"], or a table of `from`, `to` and `of`",
                )
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Written, A::Error> {
                let mut times = Vec::new();
                while let Some(time) = seq.next_element::<Span>()? {
                    times.push(time);
                }
                match times.as_slice() {
                    [from, to] => Ok(Written { from: *from, to: *to, of: None, tolerance: None }),
                    _ => Err(A::Error::custom(format!(
                        "a window is from one time to another, and this has {}; write for example [\"22 s\", \"30 s\"]",
                        times.len()
                    ))),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
                let Detailed { from, to, of, tolerance } =
                    Detailed::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Written { from, to, of, tolerance })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, detailed) = (generator.subschema_for::<Span>(), generator.subschema_for::<Detailed>());
        schemars::json_schema!({
            "description": "A part of a run, from one time to another: two times, or a table.",
            "anyOf": [{ "type": "array", "items": time, "minItems": 2, "maxItems": 2 }, detailed]
        })
    }
}

/// The windows of a cell, in the order in which they begin, with their times from the start of the run.
pub(crate) fn windows(reader: &mut Reader<'_>, cell: &Cell) -> Vec<Window> {
    let mut windows = Vec::new();
    for (name, written) in &cell.timing.windows {
        let path = ["run", "windows", name.as_str()];
        limits::name(reader, "window", &path);
        let start = match &written.of {
            None => Span::ZERO,
            Some(of) => match cell.groups.iter().position(|group| group.name == *of) {
                Some(group) => cell.flows[group].start.least(),
                None => {
                    let help = suggest(of, cell.groups.iter().map(|group| group.name.as_str()));
                    let path = ["run", "windows", name.as_str(), "of"];
                    reader.wrong(&path, format!("there is no traffic group `{of}`"), help);
                    continue;
                }
            },
        };
        let tolerance = written.tolerance.map_or(weir_record::SETTLING_TOLERANCE, |share| share.0);
        if tolerance == 0.0 {
            let path = ["run", "windows", name.as_str(), "tolerance"];
            reader.wrong(
                &path,
                "within a tolerance of nothing, nothing settles",
                "write for example \"10 %\"",
            );
        }
        let window =
            Window { name: name.clone(), from: start + written.from, to: start + written.to, tolerance };
        if let Some((message, help)) = fault(&window, cell) {
            reader.wrong(&path, message, help);
        }
        windows.push(window);
    }
    windows.sort_by_key(|window| (window.from, window.to));
    windows
}

/// What is wrong with the times of a window, and what to do about it.
fn fault(Window { name, from, to, .. }: &Window, cell: &Cell) -> Option<(String, String)> {
    let (duration, sample) = (cell.timing.duration, cell.timing.sample);
    if from >= to {
        let message = format!("the window `{name}` is empty: it is from {from} to {to} of the run");
        return Some((message, "write the earlier time first".into()));
    }
    if *to > duration {
        let message = format!("the window `{name}` ends at {to}, after the run, which lasts {duration}");
        return Some((message, format!("end it by {duration}, or lengthen the run")));
    }
    let period = sample.as_nanos().max(1);
    let (first, last) = (from.as_nanos().div_ceil(period), to.as_nanos() / period);
    (first >= last).then(|| {
        let message =
            format!("no sample period of {sample} lies wholly in the window `{name}`, {from} to {to}");
        (message, "lengthen the window, or shorten run.sample".into())
    })
}
