//! The reports of `weir circuit send --json` as a table. From the second second or the ninth round trip on, whichever is later,
//! each second is to have 99 % of the circuit's ceiling, with nothing refused, retransmitted or lost. `scripts/circuits` runs
//! it.
//!
//! The folder holds a file of lines for each transfer, called ORDER_PATH_RATE_RTT.jsonl; the round trip is the path's, in milliseconds.

use serde_json::Value;
use std::error::Error;
use std::path::Path;

/// The share that each second is to have.
const ENOUGH: f64 = 0.99;
/// Round trips after which a receiver's window, which begins with 64 KiB and doubles, no longer limits the rate.
const ROUNDS: f64 = 9.0;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder of transfers")?;
    let mut files: Vec<_> = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    println!(
        "| path | circuit | round trip | ceiling, Mbit/s | first second | seconds judged | slowest of them | mean of them | refused | retransmitted | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for path in files {
        println!("{}", row(&path)?);
    }
    Ok(())
}

fn row(path: &Path) -> Result<String, Box<dyn Error>> {
    let name = path.file_stem().and_then(|name| name.to_str()).ok_or("a name that is no text")?;
    let [_, what, rate, rtt] = name.split('_').collect::<Vec<_>>()[..] else {
        return Err(format!("{name}: not ORDER_PATH_RATE_RTT").into());
    };
    let rtt_ms: f64 = rtt.trim_end_matches("ms").parse()?;
    let text = std::fs::read_to_string(path)?;
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let number = |line: &Value, key: &str| line[key].as_f64();
    let total =
        lines.iter().find_map(|line| number(line, "sent_bytes")).ok_or(format!("{name}: it did not end"))?;
    // Seconds in which the transfer ran throughout: not the one in which it began, nor the one in which it ended.
    let of_seconds = lines.iter().filter(|line| line["second"].is_u64());
    let began = of_seconds.clone().filter(|line| number(line, "received_bytes") > Some(0.0));
    let whole: Vec<&Value> =
        began.skip(1).filter(|line| number(line, "received_bytes") < Some(total)).collect();
    let first = lines.iter().find(|line| number(line, "received_bytes") > Some(0.0)).ok_or("nothing came")?;
    // The second in which it began is partly before its start, so the one after it is the second at the earliest.
    let skipped = ((ROUNDS * rtt_ms / 1000.0).ceil() as usize).saturating_sub(1);
    let judged: Vec<f64> =
        whole.iter().skip(skipped).filter_map(|line| number(line, "share_of_ceiling")).collect();
    let ceiling = number(first, "goodput_bit_per_s").zip(number(first, "share_of_ceiling"));
    let ceiling = ceiling.map_or(f64::NAN, |(rate, share)| rate / share / 1e6);
    let slowest = judged.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = judged.iter().sum::<f64>() / judged.len() as f64;
    let sum = |key: &str| lines.iter().filter_map(|line| line[key].as_u64()).sum::<u64>();
    let refused = sum("refused_packets");
    let retransmitted =
        lines.iter().rev().find_map(|line| line["retransmitted_packets"].as_u64()).unwrap_or(0);
    let holds = slowest >= ENOUGH && refused == 0 && retransmitted == 0 && !judged.is_empty();
    Ok(format!(
        "| {what} | {rate} | {rtt} | {ceiling:.1} | {:.1} | {} | {:.2} % | {:.2} % | {refused} | {retransmitted} | {} |",
        number(first, "goodput_bit_per_s").unwrap_or(0.0) / 1e6,
        judged.len(),
        slowest * 100.0,
        mean * 100.0,
        if holds { "holds" } else { "**fails**" },
    ))
}
