//! How far the runs of a session are, and the time left.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far the runs of a session are. Threads of runs report to it.
pub struct Completion(Mutex<State>);

/// How far each run has come, and what that adds up to.
struct State {
    /// Share of each run that is done, and the phase that the run belongs to.
    runs: Vec<(f64, usize)>,
    phases: [Phase; 2],
    /// When the latest progress was reported.
    latest: Instant,
    ended: usize,
    failed: usize,
    kept: usize,
}

/// The runs of one kind, which take turns with those of other kinds: simulated ones come first, live ones after them. Each kind has a
/// pace of its own.
#[derive(Debug, Clone, Copy, Default)]
struct Phase {
    /// Runs that belong to it and have work left, as a sum of shares.
    left: f64,
    /// Runs that were done, as a sum of shares, and the time that they took together.
    done: f64,
    took: Duration,
    /// The time of a run that is known before the first one has ended: live runs take as long as their lab says.
    known: Option<Duration>,
}

impl Phase {
    /// The time of one run: as measured, after a tenth of a run or where it is not known before.
    fn pace(&self) -> Option<Duration> {
        let measured = || (self.done > 0.0).then(|| self.took.div_f64(self.done));
        if self.done < 0.1 { self.known.or_else(measured) } else { measured() }
    }

    /// The time that its runs still take. `None` if nothing is known of it yet.
    fn left(&self) -> Option<Duration> {
        if self.left < 1e-9 { Some(Duration::ZERO) } else { Some(self.pace()?.mul_f64(self.left)) }
    }
}

impl State {
    /// The state at the start; live runs all count with the longest of their times.
    fn new(runs: &[Option<Duration>], now: Instant) -> State {
        let mut phases = [Phase::default(); 2];
        phases[1].known = runs.iter().flatten().max().copied();
        let phase = |run: &Option<Duration>| usize::from(run.is_some());
        runs.iter().for_each(|run| phases[phase(run)].left += 1.0);
        let runs = runs.iter().map(|run| (0.0, phase(run))).collect();
        State { runs, phases, latest: now, ended: 0, failed: 0, kept: 0 }
    }

    /// `3 of 20 runs, 1 failed`; runs that were there already are not counted.
    fn words(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("{} of {} runs{failed}", self.ended, self.runs.len() - self.kept)
    }

    fn gone(&self) -> Duration {
        self.phases.iter().map(|phase| phase.took).sum()
    }

    fn left(&self) -> Option<Duration> {
        self.phases.iter().map(Phase::left).sum()
    }

    /// Share of the time that is gone, as far as it can be told.
    fn share(&self) -> f64 {
        let gone = self.gone().as_secs_f64();
        self.left().map_or(0.0, |left| gone / (gone + left.as_secs_f64()).max(f64::MIN_POSITIVE))
    }

    /// A run has come this far at this time. The time since the latest report belongs to the run's phase.
    fn reach(&mut self, run: usize, share: f64, now: Instant) {
        let (before, phase) = self.runs[run];
        let phase = &mut self.phases[phase];
        phase.took += now.saturating_duration_since(self.latest);
        phase.done += share - before;
        phase.left -= share - before;
        self.runs[run].0 = share;
        self.latest = now;
    }

    /// The runs that are done, and the time that is gone and left: the line's text after the bar.
    fn text(&self) -> String {
        let left = self.left().map_or(String::new(), |left| format!(", about {} left", rounded(left)));
        format!("{}; {} gone{left}", self.words(), rounded(self.gone()))
    }
}

impl Completion {
    /// Of these runs: `None` for a simulated one, for a live one the time that it takes beside others of its kind.
    pub(crate) fn new(runs: &[Option<Duration>]) -> Completion {
        Completion(Mutex::new(State::new(runs, Instant::now())))
    }

    /// Share of the session's time that is gone, in `[0, 1]`, as far as it can be told.
    pub fn share(&self) -> f64 {
        self.state().share()
    }

    /// The runs that are done, and the time that is gone and left, in words.
    pub fn text(&self) -> String {
        self.state().text()
    }

    /// Whether no run is left.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.ended == state.runs.len() - state.kept
    }

    /// A share of a run is done.
    pub(crate) fn reach(&self, run: usize, share: f64) {
        self.state().reach(run, share, Instant::now());
    }

    /// A run was there already. It does not count as work, so that the estimate covers only what is left.
    pub(crate) fn kept(&self, run: usize) {
        let mut state = self.state();
        let (share, phase) = state.runs[run];
        state.phases[phase].left -= 1.0 - share;
        state.kept += 1;
    }

    /// A run has ended.
    pub(crate) fn ended(&self, run: usize, well: bool) {
        let mut state = self.state();
        state.reach(run, 1.0, Instant::now());
        state.ended += 1;
        state.failed += usize::from(!well);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_line_shows_the_finished_and_the_remaining_runs() {
        // A quarter took 30 s; three quarters take 90.
        let began = Instant::now();
        let mut state = State::new(&[None; 20], began);
        (0..5).for_each(|run| state.reach(run, 1.0, began + secs(30)));
        state.ended = 5;
        assert_eq!(state.text(), "5 of 20 runs; 30 s gone, about 90 s left");
        assert!((state.share() - 0.25).abs() < 1e-9);
        assert_eq!(State::new(&[None; 2], began).text(), "0 of 2 runs; 0 s gone");
    }

    #[test]
    fn live_runs_take_the_time_of_their_lab_however_quick_simulated_ones_were() {
        // Ten simulated runs took 1 s each; ten live ones of 36 s are still to come.
        let began = Instant::now();
        let runs: Vec<Option<Duration>> = (0..20).map(|run| (run >= 10).then_some(secs(36))).collect();
        let mut state = State::new(&runs, began);
        (0..10).for_each(|run| state.reach(run, 1.0, began + secs(run as u64 + 1)));
        assert_eq!(state.left(), Some(secs(360)));
        // The first of them takes 40 s: nine of 40 s are left.
        state.reach(10, 1.0, began + secs(50));
        assert_eq!(state.left(), Some(secs(360)));
        state.reach(11, 0.5, began + secs(70));
        assert_eq!(state.left(), Some(secs(340)));
    }
}
