//! `[stations.NAME]`: machines at routers of the lab's network, each with its place beside its kind and parameters.

use crate::diagnostic::suggest;
use crate::read::read;
use crate::reader::Beside;
use crate::reader::Reader;
use crate::run::Station;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use std::borrow::Cow;
use weir_base::ParameterError;
use weir_fabric::Network;
use weir_station::Config;

/// Where a station stands. Its kind and its parameters stand beside this.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct StationPosition {
    /// The router at which it stands, by name: "left" or "right" of a dumbbell, "n0", "n1" and so on of a chain.
    #[schemars(example = &"r1")]
    pub(crate) at: String,
    /// Links at that router, by name (`["down"]`): the station sees only packets that reach the router by one of them or leave
    /// it by one. By default it sees every packet.
    #[serde(default)]
    pub(crate) links: Vec<String>,
}

impl Beside for StationPosition {
    const OWN: &'static [&'static str] = &["at", "links"];
}

/// A station with its place, for the schema. It is read in two parts.
pub(crate) struct Section;

impl JsonSchema for Section {
    fn schema_name() -> Cow<'static, str> {
        Config::WHAT.into()
    }

    /// A table of `kind` and parameters as every registry has it, with the keys of [`StationPosition`] in it.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let place = StationPosition::json_schema(generator).to_value();
        let mut schema = Config::json_schema(generator).to_value();
        schema["description"] = "A station at a router: a table of `at`, `kind` and parameters.".into();
        if let Some(forms) = schema["anyOf"].as_array_mut() {
            forms.retain(|form| form["properties"].is_object());
            for form in forms {
                for key in StationPosition::OWN {
                    form["properties"][*key] = place["properties"][*key].clone();
                }
                form["required"] = serde_json::json!(["at", "kind"]);
            }
        }
        schema.try_into().unwrap_or_default()
    }
}

/// Reads the stations. The network has only the lab's own nodes so far.
pub(crate) fn place(reader: &mut Reader<'_>, network: &Network) -> Vec<Station> {
    let mut stations = Vec::new();
    let Some(node) = reader.node(&["stations"]) else { return stations };
    let Some(table) = node.as_table() else {
        let message = format!("stations is {}, not stations by name", node.what());
        let help = "write [stations.NAME], and under it at = .. and kind = ..";
        reader.wrong(&["stations"], message, help);
        return stations;
    };
    let names: Vec<String> = table.keys().map(String::from).collect();
    for name in &names {
        let path = ["stations", name.as_str()];
        reader.name("station", &path);
        if network.nodes.iter().any(|node| node.name == *name) {
            reader.wrong(&path, format!("`{name}` is a station and a node"), "give the station another name");
        }
        let Some((Some(place), rest)) = reader.beside::<StationPosition>(&path) else { continue };
        match read::<Config>(&rest) {
            Ok(station) => stations.extend(placed(reader, network, &stations, name, &place, station)),
            // The schema explains what is wrong with its kind and parameters.
            Err(_) if reader.schema => {}
            Err(fault) => reader.faults.push(fault),
        }
    }
    stations
}

fn placed(
    reader: &mut Reader<'_>,
    network: &Network,
    others: &[Station],
    name: &str,
    place: &StationPosition,
    station: Config,
) -> Option<Station> {
    let wrong_at = ["stations", name, "at"];
    let Some(at) = network.nodes.iter().position(|node| node.name == place.at) else {
        let help = suggest(&place.at, network.nodes.iter().map(|node| node.name.as_str()));
        reader.wrong(&wrong_at, format!("there is no router `{}`", place.at), help);
        return None;
    };
    if let Some(other) = others.iter().find(|other| other.at == at) {
        let message = format!("the router `{}` already has the station `{}`", place.at, other.name);
        reader.wrong(
            &wrong_at,
            message,
            "place one of the two at another router; a [graph] has as many as it needs",
        );
        return None;
    }
    let mut links = Vec::new();
    for wanted in &place.links {
        let touches = |index: &usize| network.links[*index].from == at || network.links[*index].to == at;
        match network.links.iter().position(|link| link.name == *wanted).filter(touches) {
            Some(index) => links.push(index),
            None => {
                let here =
                    (0..network.links.len()).filter(touches).map(|index| network.links[index].name.as_str());
                let help = suggest(wanted, here);
                let message = format!("no link `{wanted}` begins or ends at `{}`", place.at);
                reader.wrong(&["stations", name, "links"], message, help);
            }
        }
    }
    if matches!(station, Config::OverlayNode(_)) {
        let help = format!("write [overlay], and under it nodes = [\"{}\"]", place.at);
        reader.wrong(&["stations", name], "nodes of the overlay are placed by [overlay]", help);
        return None;
    }
    if let Some(ParameterError { key, message, help }) = station.fault(!place.links.is_empty()) {
        let path = ["stations", name, key];
        // A missing key is reported at the station itself.
        let path = if reader.has(&path) { &path[..] } else { &path[..2] };
        reader.wrong(path, message, help);
    }
    Some(Station { name: name.into(), at, links, station })
}
