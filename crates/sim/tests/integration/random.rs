//! Whatever a lab asks for, its runs end, every packet is accounted for, the same run gives the same records, and no metric
//! has a value that it cannot have. It runs a thousand labs at random, or as many as `WEIR_RANDOM_LABS` says, from the
//! number that `WEIR_RANDOM_FIRST` gives; a lab that fails is printed with its number.

mod lab;
mod oracle;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_engine::{Engine, EngineError, Outcome, Watch, run_info};
use weir_plan::{Lab, Run};
use weir_record::{Records, RunSummary};
use weir_sim::Simulator;

/// Progress is reported each 16,384 events and at each sample. A lab has a few thousand packets and at most a few dozen
/// samples.
const MOST_LOOKS: u64 = 500;
/// A plain lab has a sample each round trip, and up to a million packets.
const MOST_LOOKS_PLAIN: u64 = 5_000;

/// The plan accepts at least this many of the labs that are drawn.
const LEAST_ACCEPTED: f64 = 0.75;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

/// Simulates a run, which fails as cancelled when it takes too many events.
fn simulate(run: &Run, most_looks: u64) -> Result<(Records, Outcome), EngineError> {
    let (cancel, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |_| {
        if looks.fetch_add(1, Ordering::Relaxed) > most_looks {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let watch = Watch { cancel: &cancel, progress: &progress, capture: None, folder: None };
    Simulator.check(run)?;
    let mut records = Records::default();
    let outcome = Simulator.run(run, &mut records, &watch)?;
    Ok((records, outcome))
}

/// Checks a lab: an error if it breaks a rule; false if the plan has refused it.
fn check(text: &str, folder: &Path) -> Result<bool, String> {
    let lab = match Lab::from_str(text, "random.toml", folder, &[]) {
        Ok(lab) => lab,
        Err(error) => {
            error.render(false, 100);
            return Ok(false);
        }
    };
    for run in lab.runs() {
        let (records, outcome) =
            simulate(&run, MOST_LOOKS).map_err(|error| format!("it does not end: {error}"))?;
        if !outcome.audit.balances() {
            return Err(format!("packets do not add up: {:?}", outcome.audit));
        }
        let (again, _) = simulate(&run, MOST_LOOKS).map_err(|error| error.to_string())?;
        if records != again {
            return Err("two runs of it differ".into());
        }
        // Under an observer no link is deferred: each event is handled at its turn.
        let mut watched =
            simulate(&Run { packets: true, ..run.clone() }, MOST_LOOKS).map_err(|error| error.to_string())?.0;
        watched.packets.clone_from(&records.packets);
        if records != watched {
            return Err("packet records change the other records".into());
        }
        for warmup in [None, Some(weir_base::Span::ZERO)] {
            let summary = RunSummary::new(&run_info("sim", &run), &records, warmup);
            if !summary.invalid.is_empty() {
                return Err(summary.invalid.join("\n"));
            }
        }
    }
    Ok(true)
}

#[test]
fn every_lab_ends_balances_repeats_and_has_metrics_within_their_range() {
    let folder = tempfile::tempdir().unwrap();
    lab::write_traces(folder.path());
    let accepted = AtomicU64::new(0);
    let count = for_each_number(|number| {
        let text = lab::lab(number);
        match check(&text, folder.path()) {
            Ok(taken) => drop(accepted.fetch_add(u64::from(taken), Ordering::Relaxed)),
            Err(failure) => return Err(format!("{failure}\n{text}")),
        }
        Ok(())
    });
    let share = accepted.into_inner() as f64 / count as f64;
    assert!(share >= LEAST_ACCEPTED, "the plan accepts only {share} of the labs");
}

/// One number in so many has a lab for the rule about STARTUP, so that CI stays short.
const STARTUP_SHARE: u64 = 8;
/// One number in so many has a pair of labs.
const PAIR_SHARE: u64 = 8;

/// Simulates the run of a plain lab.
fn simulate_plain(plain: &oracle::Plain) -> Result<(Run, Records), String> {
    let run = plain.run(Path::new("."));
    let (records, _) = simulate(&run, MOST_LOOKS_PLAIN).map_err(|error| error.to_string())?;
    Ok((run, records))
}

#[test]
fn a_flow_alone_uses_its_link_and_knows_its_rate_and_retransmits_what_is_lost() {
    for_each_number(|number| {
        let plain = oracle::plain(number);
        let (run, records) = simulate_plain(&plain)?;
        oracle::broken(&run, &records).map_or(Ok(()), |broken| Err(format!("{broken}\n{}", plain.text())))
    });
}

#[test]
fn bbr_leaves_startup_within_thirty_round_trips_if_only_the_link_limits_it() {
    for_each_number(|number| {
        if number % STARTUP_SHARE != 0 {
            return Ok(());
        }
        let plain = oracle::startup(number);
        let (run, records) = simulate_plain(&plain)?;
        let stays = oracle::stays_in_startup(&run, &records);
        stays.map_or(Ok(()), |stays| Err(format!("{stays}\n{}", plain.text())))
    });
}

#[test]
fn the_oracle_of_startup_sees_a_flow_that_its_send_buffer_keeps_there() {
    let (run, records) = simulate_plain(&oracle::limited_by_the_send_buffer()).unwrap();
    assert!(oracle::is_observed(&records));
    assert!(oracle::stays_in_startup(&run, &records).is_some());
}

#[test]
fn more_capacity_or_less_loss_or_more_buffer_costs_hardly_any_goodput() {
    for_each_number(|number| {
        if number % PAIR_SHARE != 0 {
            return Ok(());
        }
        let pair = oracle::pair(number / PAIR_SHARE);
        let delivered =
            |plain| simulate_plain(plain).map(|(run, records)| oracle::Delivered::of(&run, &records));
        let broken = pair.broken(delivered(&pair.base)?, delivered(&pair.better)?);
        broken.map_or(Ok(()), |broken| Err(format!("{broken}\n{}", pair.better.text())))
    });
}

/// Calls `check` for as many numbers as asked for, on all processors, and fails with the first failures. Returns how many there were.
fn for_each_number(check: impl Fn(u64) -> Result<(), String> + Sync + std::panic::RefUnwindSafe) -> u64 {
    let (first, count) = (number("WEIR_RANDOM_FIRST", 0), number("WEIR_RANDOM_LABS", 1000));
    let next = AtomicU64::new(first);
    let failures = std::sync::Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first + count {
                return;
            }
            let checked = std::panic::catch_unwind(|| check(number));
            if let Err(failure) = checked.unwrap_or_else(|_| Err("it panics, see above".into())) {
                failures.lock().unwrap().push(format!("lab {number}: {failure}"));
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let failures = failures.into_inner().unwrap();
    let shown = failures.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    assert!(failures.is_empty(), "{} of {count} labs fail\n\n{shown}", failures.len());
    count
}
