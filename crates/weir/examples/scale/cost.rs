//! Measures costs: wall time, and time of all processors.

use std::time::Instant;

/// The cost of some work, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Wall time.
    pub(crate) wall: f64,
    /// Time of all processors, user and system, of this process and of the children that it waited for.
    pub(crate) cpu: f64,
}

/// Does some work and measures its cost.
///
/// # Errors
/// The error of the work.
pub(crate) fn measured(what: impl FnOnce() -> Result<(), String>) -> Result<Cost, String> {
    let (began, before) = (Instant::now(), processor_seconds()?);
    what()?;
    Ok(Cost { wall: began.elapsed().as_secs_f64(), cpu: processor_seconds()? - before })
}

/// The measurements with the median, the shortest and the longest wall time.
pub(crate) struct Median {
    pub(crate) median: Cost,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Median {
    /// The median of one measurement or more.
    pub(crate) fn of(mut all: Vec<Cost>) -> Median {
        all.sort_by(|a, b| a.wall.total_cmp(&b.wall));
        Median { median: all[all.len() / 2], least: all[0].wall, most: all[all.len() - 1].wall }
    }
}

/// Processor time of this process and of the children that it has waited for: utime, stime, cutime and cstime of proc(5), in
/// ticks of 10 ms (USER_HZ is 100 on every Linux that weir builds for).
fn processor_seconds() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    // The fields after the name, which is in parentheses; the first of them is the third.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(14 - 3).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
