//! One line that tells how far a tree of runs has come and how long it will take, where a person watches.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;

/// Steps that the bar gives to a run.
const STEPS: f64 = 1000.0;

/// The progress of all runs, on stderr.
pub(crate) struct Line {
    bar: ProgressBar,
    state: Mutex<State>,
}

/// How far each run has come, and what that adds up to.
struct State {
    shares: Vec<f64>,
    sum: f64,
    ended: usize,
    failed: usize,
}

impl Line {
    /// A line for so many runs.
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
        let state = State { shares: vec![0.0; runs], sum: 0.0, ended: 0, failed: 0 };
        Line { bar, state: Mutex::new(state) }
    }

    /// Time has passed: the line says how much.
    pub(crate) fn tick(&self) {
        self.bar.tick();
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// A share of a run is done.
    pub(crate) fn share(&self, run: usize, share: f64) {
        if !self.bar.is_hidden() {
            self.note(run, share, |_| ());
        }
    }

    /// A run was there already: it is no work, so that the estimate is of what is left.
    pub(crate) fn kept(&self) {
        self.bar.dec_length(STEPS as u64);
    }

    /// A run has ended.
    pub(crate) fn ended(&self, run: usize, well: bool) {
        if self.bar.is_hidden() {
            return;
        }
        self.note(run, 1.0, |state| {
            state.ended += 1;
            state.failed += usize::from(!well);
        });
    }

    fn note(&self, run: usize, share: f64, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = std::mem::replace(&mut state.shares[run], share);
        state.sum += share - before;
        change(&mut state);
        self.bar.set_position((state.sum * STEPS) as u64);
        let failed = if state.failed > 0 { format!(", {} failed", state.failed) } else { String::new() };
        let all = self.bar.length().unwrap_or_default() / STEPS as u64;
        let message = format!("{} of {all} runs{failed}", state.ended);
        drop(state);
        if self.bar.message() != message {
            self.bar.set_message(message);
        }
    }
}
