//! `weir sliq plan`: the plan that SLIQ's error control chooses for a given channel.

use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;
use weir_base::{Bytes, Rate, Span};
use weir_daemon::{Failure, print, print_json};
use weir_sliq::aec::{Channel, Choice, Goal, Mode, Plan, WORST_PER, choose};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir sliq plan --per 20% --rtt 20ms --owd 10ms --rate 10mbit --packet 1250B --deadline 50ms --target 0.995")]
pub(crate) struct PlanArgs {
    /// The share of packets that are lost, for example 20% or 0.2
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub per: f64,
    /// The longest time from a packet's departure to the arrival of its acknowledgement, for example 20ms
    #[arg(long)]
    pub rtt: Span,
    /// The longest one-way delay to the receiver [default: half of the round trip]
    #[arg(long)]
    pub owd: Option<Span>,
    /// The rate at which the sender sends, for example 10mbit
    #[arg(long)]
    pub rate: Rate,
    /// The length of a packet, for example 1250B
    #[arg(long)]
    pub packet: Bytes,
    /// The time from hand-over to delivery, for example 50ms
    #[arg(long)]
    pub deadline: Span,
    /// The share of packets to be delivered by the deadline
    #[arg(long, value_name = "SHARE", default_value = "0.995", value_parser = share)]
    pub target: f64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A share, as a number or in percent.
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    let share = number.parse::<f64>().map_err(|_| "write a share as 0.2 or 20%".to_owned())? / scale;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("a share lies between 0 and 1 (100%)".to_owned())
    }
}

/// Refuses numbers with which there is no plan.
fn check(args: &PlanArgs, channel: &Channel) -> Result<(), Failure> {
    let refuse = |what: String, help: &str| Err(Failure::bad_input(what, help));
    if args.target <= 0.0 || args.target >= 1.0 {
        let help = "Write --target 0.995, say; no plan delivers everything on a channel that loses packets.";
        return refuse(format!("The target is {}; it must lie between 0 and 1.", args.target), help);
    }
    if args.per > WORST_PER {
        let help = "A channel that loses more counts as gone.";
        return refuse(format!("A loss of {} is more than {WORST_PER}.", args.per), help);
    }
    if args.rate.bits_per_sec() == 0 || args.packet.get() == 0 {
        return refuse(
            "The rate and the packet must be more than 0.".to_owned(),
            "Write --rate 10mbit --packet 1250B.",
        );
    }
    if channel.owd > args.rtt {
        let help = "Write --owd as a part of --rtt.";
        return refuse(
            format!("The one-way delay ({}) is longer than the round trip ({}).", channel.owd, args.rtt),
            help,
        );
    }
    if channel.owd + channel.packet_time > args.deadline {
        let least = channel.owd + channel.packet_time;
        let help = "Write a longer --deadline, or a smaller --packet.";
        return refuse(format!("Nothing arrives by {}: one packet takes {least}.", args.deadline), help);
    }
    Ok(())
}

pub(super) fn plan(args: &PlanArgs) -> Result<(), Failure> {
    let channel = Channel {
        per: args.per,
        rtt: args.rtt,
        owd: args.owd.unwrap_or(args.rtt / 2),
        packet_time: args.rate.time_to_send(args.packet),
        gap: Span::ZERO,
    };
    check(args, &channel)?;
    let goal = Goal { deadline: args.deadline, target: args.target };
    let Some(choice) = choose(&channel, &goal) else {
        return Err(Failure::failed("no plan was found".to_owned()));
    };
    if args.json {
        return print_json(&document(&channel, &goal, &choice));
    }
    print(&text(&goal, &choice))
}

fn document(channel: &Channel, goal: &Goal, choice: &Choice) -> Value {
    json!({
        "per": channel.per,
        "rtt_ms": channel.rtt.as_millis_f64(),
        "owd_ms": channel.owd.as_millis_f64(),
        "packet_time_ms": channel.packet_time.as_millis_f64(),
        "deadline_ms": goal.deadline.as_millis_f64(),
        "target": goal.target,
        "reaches_target": choice.reaches_target,
        "plan": row(&choice.plan),
        "beaten": choice.beaten.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(plan: &Plan) -> Value {
    json!({
        "mode": plan.mode,
        "source_packets": plan.k,
        "rounds": plan.rounds,
        "first_round_packets": plan.first,
        "packets_per_source_packet": plan.sent,
        "least_possible": plan.least,
        "efficiency": plan.efficiency,
        "delivery": plan.delivery,
        "latest_ms": plan.latest.as_millis_f64(),
    })
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::PureArq => "pure ARQ",
        Mode::CodedArq => "coded ARQ",
        Mode::Fec => "FEC",
    }
}

fn text(goal: &Goal, Choice { plan, reaches_target, beaten }: &Choice) -> String {
    let mut text = format!("{}: {}\n", mode(plan.mode), shape(plan));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "It delivers {:.2} % by the deadline ({} at the latest), and {:.1} % of what arrives is of use.",
        100.0 * plan.delivery,
        plan.latest,
        100.0 * plan.efficiency
    );
    if !reaches_target {
        let _ = writeln!(text, "No plan delivers {} % by then; this one delivers most.", 100.0 * goal.target);
    }
    let Some(width) = beaten.iter().map(|other| shape(other).len()).max() else { return text };
    text += "\nThe best of each other kind:\n";
    for other in beaten {
        let _ = writeln!(
            text,
            "  {:9}  {:width$}  {:6.2} % by the deadline, {:5.1} % of use",
            mode(other.mode),
            shape(other),
            100.0 * other.delivery,
            100.0 * other.efficiency
        );
    }
    text
}

/// The shape of a plan in words.
fn shape(plan: &Plan) -> String {
    let of = |n: usize, thing: &str| if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") };
    format!(
        "groups of {}, {}, {} first, {:.3} packets sent for each",
        of(plan.k, "source packet"),
        of(plan.rounds, "round"),
        of(plan.first, "packet"),
        plan.sent
    )
}
