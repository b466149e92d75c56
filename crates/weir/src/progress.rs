//! Shows a tree of runs: on a terminal one line that is redrawn, elsewhere a plain line now and then.

use crate::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_session::{Completion, Show};

/// Interval between lines if stderr is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Steps of the bar.
const STEPS: f64 = 1000.0;

/// The progress of all runs, on stderr.
pub(crate) struct Line {
    bar: ProgressBar,
    /// When the next line is due, where lines are written.
    next: Mutex<Instant>,
}

impl Line {
    /// A line that shows nothing yet.
    pub(crate) fn new() -> Line {
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), ProgressDrawTarget::hidden());
        if std::io::stderr().is_terminal() {
            bar.set_style(
                ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        Line { bar, next: Mutex::new(Instant::now() + BETWEEN_LINES) }
    }
}

impl Show for Line {
    fn tell(&self, text: &str) {
        say(text);
    }

    fn changed(&self, runs: &Completion) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position((runs.share() * STEPS) as u64);
        let message = runs.text();
        if self.bar.message() != message {
            self.bar.set_message(message);
        }
    }

    fn tick(&self, runs: &Completion) {
        if !self.bar.is_hidden() {
            return self.bar.tick();
        }
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if now < *next || runs.is_over() {
            return;
        }
        *next = now + BETWEEN_LINES;
        drop(next);
        say(&format!("weir: {:.0} %, {}", 100.0 * runs.share(), runs.text()));
    }

    fn ended(&self) {
        self.bar.finish_and_clear();
    }
}
