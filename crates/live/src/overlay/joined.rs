//! The time before a run's clock starts: the fabric carries what daemons say to each other until all have found their neighbours. Links have
//! no losses and no changes then, and nothing is recorded.

use super::{Daemons, Dissolved};
use crate::pump::{Setup, pump};
use crate::testbed::Testbed;
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_base::{Span, not_started};
use weir_engine::EngineError;
use weir_fabric::Loss;
use weir_linux::clock::Clock;
use weir_plan::Run;

/// How long nodes may take to find their neighbours.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two questions.
const AGAIN: Duration = Duration::from_millis(50);

/// Waits until each node's neighbours are up.
///
/// # Errors
/// A daemon has ended, or they do not find each other in time; with what a daemon has said last. Or the run was cancelled.
pub(crate) fn join(
    dissolved: &Dissolved,
    testbed: &Testbed,
    daemons: &mut Daemons<'_>,
    cancel: &AtomicBool,
) -> Result<(), EngineError> {
    let failed =
        |error: io::Error| EngineError::Failed(format!("the overlay's nodes cannot be joined: {error}"));
    let run = quiet(&dissolved.run);
    let stop = AtomicBool::new(false);
    let setup = Setup::idle(&run, Clock::starting_in(Span::ZERO), testbed, &stop, Some(dissolved));
    let setup = setup.map_err(failed)?;
    std::thread::scope(|scope| {
        let pumping =
            std::thread::Builder::new().name("weir-pump".into()).spawn_scoped(scope, || pump(setup));
        let pumping = pumping.map_err(not_started).map_err(failed)?;
        let joined = wait(dissolved, daemons, cancel);
        stop.store(true, Ordering::Release);
        let pumped = pumping.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")));
        joined.and(pumped.map(drop).map_err(failed))
    })
}

/// Waits until each node's neighbours are up, while something carries what they say to each other.
///
/// # Errors
/// Those of [`join`], but for the fabric's.
pub(super) fn wait(
    dissolved: &Dissolved,
    daemons: &mut Daemons<'_>,
    cancel: &AtomicBool,
) -> Result<(), EngineError> {
    let begun = Instant::now();
    let mut number = 0;
    while number < daemons.count() {
        if let Some(ended) = daemons.ended() {
            return Err(EngineError::Failed(ended));
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(EngineError::Cancelled);
        }
        // One that has just started does not answer yet.
        let missing = daemons.ask(number).map_or_else(|_| vec!["itself".to_owned()], |status| down(&status));
        if missing.is_empty() {
            number += 1;
            continue;
        }
        if begun.elapsed() > PATIENCE {
            let (name, missing) = (&dissolved.sites[number].name, missing.join(", "));
            let what = format!("the node {name} has waited {} s for {missing}", PATIENCE.as_secs());
            return Err(EngineError::Failed(daemons.with_last_words(number, &what)));
        }
        std::thread::sleep(AGAIN);
    }
    Ok(())
}

/// The neighbours that are not up, or whose capacity is not known.
fn down(status: &Value) -> Vec<String> {
    let all = status["neighbours"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ready =
        |one: &Value| one["up"] == true && one["capacity_mbps"].as_f64().is_some_and(|rate| rate > 0.0);
    let names = all.iter().filter(|one| !is_ready(one));
    names.map(|one| one["name"].as_str().unwrap_or("?").to_owned()).collect()
}

/// The network of a run without traffic, losses and changes.
fn quiet(run: &Run) -> Run {
    let mut run = run.clone();
    (run.flows, run.packets) = (Vec::new(), false);
    (run.duration, run.sample) = (Span::from_nanos(2 * PATIENCE.as_nanos() as u64), Span::from_secs(1));
    for link in &mut run.network.links {
        (link.schedule, link.outages, link.drop, link.reorder) = Default::default();
        (link.loss, link.duplicate, link.corrupt) = (Loss::default(), 0.0, 0.0);
    }
    run
}
