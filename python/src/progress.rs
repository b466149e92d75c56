//! What a session shows: the thread that called weir.run() prints it, since only this thread may use Python.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_session::{Completion, Show};

/// Shortest interval between two texts.
const INTERVAL: Duration = Duration::from_millis(250);

/// What there is to show.
pub(crate) struct Shown(Mutex<State>);

struct State {
    notes: Vec<String>,
    text: Option<String>,
    next: Instant,
}

impl Shown {
    /// Nothing to show yet.
    pub(crate) fn new() -> Shown {
        Shown(Mutex::new(State { notes: vec![], text: None, next: Instant::now() + INTERVAL }))
    }

    /// The newest text about the runs, unless it was taken before.
    pub(crate) fn take_text(&self) -> Option<String> {
        self.state().text.take()
    }

    /// The notes and warnings that came before the runs.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Show for Shown {
    fn tell(&self, text: &str) {
        let text = ["weir: ", "warning: "].iter().find_map(|start| text.strip_prefix(start)).unwrap_or(text);
        self.state().notes.push(text.into());
    }

    fn changed(&self, runs: &Completion) {
        self.tick(runs);
    }

    fn tick(&self, runs: &Completion) {
        let mut state = self.state();
        let now = Instant::now();
        if now >= state.next {
            state.next = now + INTERVAL;
            state.text = Some(format!("{:3.0} %  {}", 100.0 * runs.share(), runs.text()));
        }
    }

    fn ended(&self) {}
}
