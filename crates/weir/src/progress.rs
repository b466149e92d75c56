//! One line that tells how far a tree of runs has come and how long it will take, where a person watches.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;
use weir_engine::{Outcome, Progress};

/// Steps that the bar gives to a run.
const STEPS: f64 = 1000.0;

/// The progress of all runs, on stderr.
pub(crate) struct Line {
    bar: ProgressBar,
    cells: Vec<String>,
    shares: Mutex<Vec<f64>>,
}

impl Line {
    /// A line for these runs.
    pub(crate) fn new(cells: Vec<String>) -> Line {
        let bar = ProgressBar::new(cells.len() as u64 * STEPS as u64);
        if std::io::stderr().is_terminal() {
            bar.set_style(
                ProgressStyle::with_template(
                    "{bar:30} {percent:>3} %  {msg}  {elapsed} gone, about {eta} left",
                )
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.enable_steady_tick(Duration::from_millis(250));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let shares = Mutex::new(vec![0.0; cells.len()]);
        Line { bar, cells, shares }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Line {
    fn share(&self, cell: usize, share: f64) {
        if self.bar.is_hidden() {
            return;
        }
        let mut shares = self.shares.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shares[cell] = share;
        self.bar.set_position((shares.iter().sum::<f64>() * STEPS) as u64);
    }

    fn ended(&self, cell: usize, outcome: Result<&Outcome, &str>) {
        self.share(cell, 1.0);
        match outcome {
            Ok(_) => self.bar.set_message(self.cells[cell].clone()),
            Err(error) => self.bar.suspend(|| eprintln!("weir: run {} failed: {error}", self.cells[cell])),
        }
    }
}
