//! `labs/agreement-shapers.toml` on both engines: rates behind each shaper, and the packets that it refused, side by side.
//! `scripts/agreement` runs it on the result folder.

use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// Bounds within which rates, and the shares of refused packets, agree.
const RATES: f64 = 0.01;
const REFUSED: f64 = 0.02;

/// The measurements of one engine in a cell: rates by name, and the share of packets refused, each of all repeats.
#[derive(Default)]
struct Measured {
    rates: BTreeMap<String, Vec<f64>>,
    refused: Vec<f64>,
    retransmissions: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name the result folder")?;
    let folder = Path::new(&folder);
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("summary.json"))?)?;
    let mut cells: BTreeMap<String, BTreeMap<String, Measured>> = BTreeMap::new();
    for run in summary["runs"].as_array().ok_or("no runs")? {
        let (engine, shaper) = (text(&run["engine"])?, text(&run["params"]["shaper"])?);
        let cell = cells.entry(shaper.clone()).or_default().entry(engine.clone()).or_default();
        let number = |value: &Value| value.as_f64().ok_or("a number is missing");
        // Connections to one bucket share it by chance; a class belongs to one group.
        match shaper.starts_with("HTB") {
            true => {
                for group in run["groups"].as_array().ok_or("no groups")? {
                    let rate = number(&group["goodput_mbps"])?;
                    cell.rates.entry(text(&group["name"])?).or_default().push(rate);
                }
            }
            false => {
                cell.rates.entry("all".into()).or_default().push(number(&run["metrics"]["goodput_mbps"])?)
            }
        }
        let refused = match engine.as_str() {
            "live" => {
                let path = folder.join("runs").join(text(&run["id"])?).join("run.json");
                let document: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
                let shaped = find(&document, "shaped_packets").ok_or("no shaped packets")?;
                let (sent, refused) = (number(&shaped["dtn"]["sent"])?, number(&shaped["dtn"]["refused"])?);
                refused / (sent + refused)
            }
            _ => {
                let queue =
                    run["queues"].as_array().and_then(|all| all.iter().find(|it| it["link"] == "dtn"));
                let sent = number(&queue.ok_or("no card")?["arrived_packets"])?;
                let refused = number(&run["metrics"]["refusals"])?;
                refused / (sent + refused)
            }
        };
        cell.refused.push(refused);
        cell.retransmissions += number(&run["metrics"]["retransmissions"])?;
    }
    println!(
        "| shaper | connections | kernel, Mbit/s | simulated | apart | refused, kernel | simulated | retransmitted, kernel and simulated | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (shaper, engines) in &cells {
        let (Some(live), Some(sim)) = (engines.get("live"), engines.get("sim")) else { continue };
        for (name, of) in &live.rates {
            let (kernel, simulated) = (mean(of), mean(sim.rates.get(name).map_or(&[][..], Vec::as_slice)));
            let apart = simulated / kernel - 1.0;
            let refused = [mean(&live.refused), mean(&sim.refused)];
            let agrees = apart.abs() <= RATES && (refused[0] - refused[1]).abs() <= REFUSED;
            println!(
                "| {shaper} | {name} | {kernel:.3} | {simulated:.3} | {:+.2} % | {:.2} % | {:.2} % | {} and {} | {} |",
                apart * 100.0,
                refused[0] * 100.0,
                refused[1] * 100.0,
                live.retransmissions,
                sim.retransmissions,
                if agrees { "agrees" } else { "**differs**" }
            );
        }
    }
    Ok(())
}

fn text(value: &Value) -> Result<String, Box<dyn Error>> {
    Ok(value.as_str().ok_or("a text is missing")?.to_owned())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// All values with this key, wherever they are in a document.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => {
            object.get(key).or_else(|| object.values().find_map(|inner| find(inner, key)))
        }
        Value::Array(list) => list.iter().find_map(|inner| find(inner, key)),
        _ => None,
    }
}
