//! `weir overlay status`, `why` and `set`: what a running node says, for people and for programs.

use super::control::{Question, ask, running};
use crate::failure::Failure;
use crate::output::{print, print_json};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  weir overlay status\n  weir overlay status a --watch\n  weir overlay status --json"
)]
pub(super) struct StatusArgs {
    /// The node's name [default: all nodes on this host]
    node: Option<String>,
    /// Show it again each second, until interrupted
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir overlay why 10.1.0.1:5000-10.2.0.1:5000

Each line is a decision: what stopped or started the flow, and the two numbers that were compared. docs/overlay.md explains the rules.")]
pub(super) struct WhyArgs {
    /// The flow, as `weir overlay status` names it, or a part of its name
    flow: String,
    /// The node's name, if several run here
    #[arg(long)]
    node: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir overlay set --flow 10.1.0.1:5000-10.2.0.1:5000 --priority 4
  weir overlay set --k 1e13
  weir overlay set --drain on            before an upgrade: other nodes take other ways

It holds until the node ends. K must be the same in all nodes, so set it in each.")]
pub(super) struct SetArgs {
    /// The flow, as `weir overlay status` names it, or a part of its name
    #[arg(long, requires = "priority")]
    flow: Option<String>,
    /// The flow's priority, above 0
    #[arg(long, requires = "flow", required_unless_present_any = ["k", "drain"])]
    priority: Option<f64>,
    /// K in bits squared per second
    #[arg(long, conflicts_with = "flow")]
    k: Option<f64>,
    /// Whether the node lets other nodes' packets take other ways; its own flows, and those to it, go on
    #[arg(long, value_name = "ON|OFF", conflicts_with_all = ["flow", "k"], hide_possible_values = true)]
    drain: Option<Switch>,
    /// The node's name, if several run here
    #[arg(long)]
    node: Option<String>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir overlay add 'name = \"video\", ports = 5000, admit = \"strap\", rate = \"4 Mbit/s\"'
  weir overlay add --flow 10.1.0.1:5000-10.2.0.1:6000 'name = \"call\", admit = { kind = \"log\", priority = 4.0 }'

The service comes before those of the node's file. It holds until the node ends, or reads its file again.")]
pub(super) struct AddArgs {
    /// The keys of a [[service]], separated by commas, as docs/overlay-hosts.md has them
    service: String,
    /// It is for this flow only, as `weir overlay status` names it: sets from, to and ports
    #[arg(long)]
    flow: Option<String>,
    /// The node's name, if several run here
    #[arg(long)]
    node: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir overlay del video

A service of the node's file comes back when the node reads its file again.")]
pub(super) struct DelArgs {
    /// The service's name
    service: String,
    /// The node's name, if several run here
    #[arg(long)]
    node: Option<String>,
}

/// A service's keys as an inline table.
#[derive(Deserialize)]
struct Written {
    service: toml::Table,
}

impl AddArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = the_node(self.node.as_ref())?;
        let wrong = |message: &dyn std::fmt::Display| {
            let help = "write keys of a [[service]], as 'name = \"video\", ports = 5000, admit = \"strap\", rate = \"4 Mbit/s\"'";
            Failure::bad_input(format!("the service cannot be read: {message}"), help)
        };
        let Written { service: mut keys } = toml::from_str(&format!("service = {{ {} }}", self.service))
            .map_err(|error| wrong(&error.message()))?;
        if let Some(part) = &self.flow {
            let status = ask(&name, &Question::Status)?;
            let flow = flow_of(&status, part)?;
            for key in ["from", "to", "ports"] {
                let Some(value) = flow["keys"][key].as_str() else { continue };
                if keys.insert(key.to_owned(), value.into()).is_some() {
                    return Err(Failure::bad_input(
                        format!("--flow sets `{key}` too"),
                        format!("leave out --flow, or `{key}`"),
                    ));
                }
            }
        }
        let service = keys.try_into().map_err(|error: toml::de::Error| wrong(&error.message()))?;
        ask(&name, &Question::Add(Box::new(service))).map(drop)
    }
}

impl DelArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = the_node(self.node.as_ref())?;
        ask(&name, &Question::Remove(self.service.clone())).map(drop)
    }
}

/// The node of this name, or the only one.
pub(super) fn the_node(named: Option<&String>) -> Result<String, Failure> {
    if let Some(name) = named {
        return Ok(name.clone());
    }
    let mut all = running();
    match all.len() {
        0 => Err(Failure::bad_input("no overlay node runs here", "`weir overlay node FILE` starts one")),
        1 => Ok(all.remove(0)),
        _ => Err(Failure::bad_input(
            "several nodes run here",
            format!("write --node {}", all.join(" or --node ")),
        )),
    }
}

impl StatusArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        loop {
            let names = self.node.clone().map_or_else(running, |name| vec![name]);
            let all = names.iter().map(|name| ask(name, &Question::Status)).collect::<Result<Vec<_>, _>>()?;
            if self.json {
                return print_json(&all);
            }
            let text = match &all[..] {
                [] => "no overlay node runs here\n".to_owned(),
                all => all.iter().map(text).collect::<Vec<_>>().join("\n"),
            };
            if !self.watch {
                return print(&text);
            }
            // Clears the screen (ECMA-48); the text itself is made printable.
            crate::output::write("\x1b[H\x1b[J")?;
            print(&text)?;
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

impl WhyArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = the_node(self.node.as_ref())?;
        let status = ask(&name, &Question::Status)?;
        let flow = flow_of(&status, &self.flow)?;
        let mut told =
            format!("{}  to {}, by {}", word(&flow["flow"]), word(&flow["to"]), word(&flow["utility"]));
        if let Some(service) = flow["service"].as_str() {
            let _ = write!(told, " of service {service}");
        }
        let _ = write!(told, ", priority {}", word(&flow["priority"]));
        if let Some(deadline) = flow["deadline_ms"].as_f64() {
            let _ = write!(told, ", within {deadline} ms");
        }
        told.push('\n');
        let _ = writeln!(
            told,
            "  {}, admitted at {}; the depth at its source is {:.0} bits; {} packets wait, {} were refused",
            word(&flow["stands"]),
            rate(&flow["rate_mbps"], "0 Mbit/s"),
            number(&flow["price_bits"]),
            word(&flow["waiting"]),
            word(&flow["refused"])
        );
        let decisions = flow["decisions"].as_array().map_or(&[][..], Vec::as_slice);
        if decisions.is_empty() {
            told.push_str("  nothing was decided about it: its utility takes the share that there is\n");
        }
        for one in decisions {
            let _ = writeln!(
                told,
                "  {:>8.2} s ago  {:12}  by the {:7}  {:18} {:>14.0} {:>14.0}",
                number(&one["ago_s"]),
                word(&one["stands"]),
                word(&one["by"]),
                word(&one["rule"]),
                number(&one["value"]),
                number(&one["bound"])
            );
        }
        print(&told)
    }
}

impl SetArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = the_node(self.node.as_ref())?;
        let question = match (&self.flow, self.priority, self.k, self.drain) {
            (_, _, _, Some(switch)) => Question::Drain(switch == Switch::On),
            (Some(part), Some(priority), _, _) => {
                let status = ask(&name, &Question::Status)?;
                Question::Priority { flow: word(&flow_of(&status, part)?["flow"]), priority }
            }
            (_, _, Some(k), _) => Question::K(k),
            _ => {
                let help = "write --flow FLOW --priority P, --k K, or --drain on";
                return Err(Failure::bad_input("nothing to set", help));
            }
        };
        ask(&name, &question).map(drop)
    }
}

/// The flow whose name has this part.
fn flow_of<'a>(status: &'a Value, part: &str) -> Result<&'a Value, Failure> {
    let all = status["flows"].as_array().map_or(&[][..], Vec::as_slice);
    let named: Vec<&Value> = all.iter().filter(|flow| word(&flow["flow"]).contains(part)).collect();
    let names = || named.iter().map(|flow| word(&flow["flow"])).collect::<Vec<_>>().join(", ");
    match named[..] {
        [one] => Ok(one),
        [] => Err(Failure::bad_input(
            format!("no flow {part:?} has sent within two minutes"),
            "`weir overlay status` lists the flows",
        )),
        _ => Err(Failure::bad_input(
            format!("several flows have {part:?} in their names"),
            format!("write one of {}", names()),
        )),
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// A rate in Mbit/s as text: `none` if there is none, and no number beyond what any link carries.
fn rate(mbps: &Value, none: &str) -> String {
    match number(mbps) {
        0.0 => none.to_owned(),
        mbps if mbps >= 100_000.0 => "any rate".to_owned(),
        mbps => format!("{mbps:.3} Mbit/s"),
    }
}

/// The status of a node as text.
fn text(status: &Value) -> String {
    let mut text = format!(
        "node {} (number {}), for {:.0} s",
        word(&status["name"]),
        word(&status["number"]),
        number(&status["up_s"])
    );
    // Writing to a String cannot fail.
    let _ = match status["k"].as_f64() {
        Some(k) => writeln!(text, ", K {k:.3e}"),
        None => writeln!(text, ", no capacity known yet"),
    };
    if status["drained"] == Value::Bool(true) {
        let _ = writeln!(
            text,
            "  drained: it forwards nothing of other nodes, and still holds {} packets",
            word(&status["held"])
        );
    }
    let part = |name: &str| status[name].as_array().map_or(&[][..], Vec::as_slice).to_vec();
    let neighbours: Vec<[String; 7]> = part("neighbours")
        .iter()
        .map(|one| {
            let state = if one["up"] == Value::Bool(true) { "up" } else { "down" };
            [
                word(&one["name"]),
                state.to_owned(),
                rate(&one["capacity_mbps"], "not known"),
                format!("{:.1} ms", number(&one["delay_ms"])),
                format!("{:.2} %", number(&one["loss_percent"])),
                format!("{:.1} MB", number(&one["sent_bytes"]) / 1e6),
                word(&one["over_quota"]),
            ]
        })
        .collect();
    table(&mut text, ["neighbour", "", "capacity", "delay", "loss", "sent", "over quota"], &neighbours);
    let flows: Vec<[String; 7]> = part("flows")
        .iter()
        .map(|one| {
            [
                word(&one["flow"]),
                one["service"].as_str().unwrap_or("-").to_owned(),
                word(&one["to"]),
                word(&one["stands"]),
                rate(&one["rate_mbps"], "0 Mbit/s"),
                word(&one["waiting"]),
                word(&one["refused"]),
            ]
        })
        .collect();
    if !flows.is_empty() {
        table(&mut text, ["flow", "service", "to", "stands", "admitted", "waiting", "refused"], &flows);
    }
    let counted = status["packets"].as_object().into_iter().flatten();
    let counted: Vec<String> = counted
        .filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !counted.is_empty() {
        let _ = writeln!(text, "  packets: {}", counted.join(", "));
    }
    text
}

/// Rows below their heads, in columns.
fn table<const N: usize>(text: &mut String, heads: [&str; N], rows: &[[String; N]]) {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([heads[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut line = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    };
    line(&heads.map(str::to_owned));
    rows.iter().for_each(|row| line(row));
}
