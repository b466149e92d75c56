//! Progress of a tree of runs, and the time left: on a terminal one line that is redrawn, elsewhere a plain line now and then.

use crate::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between lines if stderr is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Steps that the bar gives to a run.
const STEPS: f64 = 1000.0;

/// The progress of all runs, on stderr.
pub(crate) struct Line {
    bar: ProgressBar,
    began: Instant,
    state: Mutex<State>,
}

/// How far each run has come, and what that adds up to.
struct State {
    shares: Vec<f64>,
    sum: f64,
    ended: usize,
    failed: usize,
    kept: usize,
    /// When the next line is due, where lines are written.
    next: Instant,
}

impl State {
    /// `3 of 20 runs, 1 failed`; runs that were there already are not counted.
    fn words(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("{} of {} runs{failed}", self.ended, self.shares.len() - self.kept)
    }
}

impl Line {
    /// A line for this many runs.
    pub(crate) fn new(runs: usize) -> Line {
        let bar = ProgressBar::new(runs as u64 * STEPS as u64);
        if std::io::stderr().is_terminal() {
            bar.set_style(
                ProgressStyle::with_template(
                    "{bar:30} {percent:>3} %  {msg}  {elapsed} gone, about {eta} left",
                )
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let began = Instant::now();
        let next = began + BETWEEN_LINES;
        let state = State { shares: vec![0.0; runs], sum: 0.0, ended: 0, failed: 0, kept: 0, next };
        Line { bar, began, state: Mutex::new(state) }
    }

    /// Redraws the line, or prints the next one if it is due.
    pub(crate) fn tick(&self) {
        if !self.bar.is_hidden() {
            return self.bar.tick();
        }
        let now = Instant::now();
        let mut state = self.state();
        if now < state.next || state.ended == state.shares.len() - state.kept {
            return;
        }
        state.next = now + BETWEEN_LINES;
        let share = state.sum / (state.shares.len() - state.kept) as f64;
        let line = told(&state.words(), share, now.duration_since(self.began));
        drop(state);
        say(&line);
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// A share of a run is done.
    pub(crate) fn share(&self, run: usize, share: f64) {
        self.note(run, share, |_| ());
    }

    /// A run was there already. It does not count as work, so that the estimate covers only what is left.
    pub(crate) fn kept(&self) {
        self.state().kept += 1;
        self.bar.dec_length(STEPS as u64);
    }

    /// A run has ended.
    pub(crate) fn ended(&self, run: usize, well: bool) {
        self.note(run, 1.0, |state| {
            state.ended += 1;
            state.failed += usize::from(!well);
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, run: usize, share: f64, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.shares[run], share);
        state.sum += share - before;
        change(&mut state);
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position((state.sum * STEPS) as u64);
        let message = state.words();
        drop(state);
        if self.bar.message() != message {
            self.bar.set_message(message);
        }
    }
}

/// A plain line: the runs that are done, the share of all work, and the time left at this pace.
fn told(words: &str, share: f64, gone: Duration) -> String {
    let left = match share > 0.0 {
        true => format!(", about {} left", rounded(gone.mul_f64((1.0 - share).max(0.0) / share))),
        false => String::new(),
    };
    format!("weir: {words}, {:.0} %; {} gone{left}", 100.0 * share, rounded(gone))
}

/// A time, rounded to seconds, minutes or tenths of hours.
fn rounded(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_finished_and_the_remaining_runs() {
        // A quarter took 30 s; three quarters take 90.
        let line = told("5 of 20 runs", 0.25, Duration::from_secs(30));
        assert_eq!(line, "weir: 5 of 20 runs, 25 %; 30 s gone, about 90 s left");
        assert_eq!(told("0 of 2 runs", 0.0, Duration::from_secs(600)), "weir: 0 of 2 runs, 0 %; 10 min gone");
    }
}
