//! Zombie latency reduction: where more packets than a mark have stood for a whole window, zombies take their place in the depth.
//!
//! Source: digest A 6.6, X 1.5. Three differences. The study's mark is 6,000 bytes, which are 48 ms at 1 Mbit/s; here it is a time at the
//! destination's own drain rate. The study adds a zombie for each packet that leaves, so that what stands counts again in each window;
//! here zombies are remembered until what stands could have drained, and come faster, also when nothing leaves. The study's window (rule `study`, though its
//! build left it off) grows to 5 s within a second wherever a zombie leaves; after a link's rate falls, packets then stand for that long.
//! The order of zombies and packets (improved ZLR) is the forwarder's.

use super::Seen;
use super::window::Window;
use weir_base::{Span, Time};

/// Over this the net change of the depth and the drain rate are measured (digest A 6.6).
const CHANGE_WINDOW: Span = Span::from_millis(300);
/// Of the study's rule: the window grows at most this often, and shrinks at most that often (digest A 6.6).
const GROW_EVERY: Span = Span::from_millis(50);
const SHRINK_EVERY: Span = Span::from_millis(300);
/// Of the study's rule: the window shrinks only when so long no zombie was added (digest A 6.6).
const SHRINK_AFTER: Span = Span::from_secs(2);
/// Of the study's rule: the step by which the window adapts, and its first length (digest A 6.6).
const STEP: Span = Span::from_millis(200);
const STUDY_WINDOW: Span = Span::from_secs(1);
/// Zombies are remembered for this many times as long as they and what stands take to drain: the link drains what stands only by what
/// admission leaves free, which is a third of it where the depth is half too large.
const MEMORY: u64 = 4;

/// How the window adapts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// What stands is found in the shortest window, and zombies are remembered as long as it needs to drain.
    #[default]
    Drain,
    /// One window for both, which grows when zombies leave and shrinks when for long none was added.
    Study,
}

/// Parameters of ZLR.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Packets that stand for longer than this are replaced. The study has 6,000 bytes, which are 4.8 ms at 10 Mbit/s.
    pub mark: Span,
    /// How the window adapts.
    pub rule: Rule,
    /// Shortest window; the study has 0.2 s.
    pub shortest: Span,
    /// Longest window; the study has 5 s.
    pub longest: Span,
    /// Zombie bytes for each byte that leaves while packets stand; the study has 1.
    pub gain: u32,
    /// Zombie bytes that leave for each that the link has time for. With 1, as in the study, depths fall no faster than without
    /// virtual depth, so that zombies that came for a burst keep the depth too high for long.
    pub drain: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mark: Span::from_millis(5),
            rule: Rule::Drain,
            shortest: Span::from_millis(100),
            longest: Span::from_secs(1),
            gain: 4,
            drain: 2,
        }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<&'static str> {
        if self.shortest < Span::from_millis(1) {
            return Some("shortest");
        }
        if self.longest < self.shortest {
            return Some("longest");
        }
        if self.drain == 0 {
            return Some("drain");
        }
        (self.gain == 0).then_some("gain")
    }
}

/// State of a destination.
#[derive(Debug, Clone)]
pub struct State {
    /// The least depth of packets.
    depth: Window,
    /// Zombies that were added.
    memory: Window,
    /// Bytes that left, zombies included.
    left: Window,
    /// Of [`Rule::Study`].
    study: Option<Box<Study>>,
}

/// What the study's rule keeps in addition.
#[derive(Debug, Clone)]
struct Study {
    /// The present window.
    length: Span,
    /// Bytes that came, zombies included.
    came: Window,
    grew: Time,
    shrank: Time,
    added_at: Time,
}

impl Study {
    fn new(config: &Config, now: Time) -> Study {
        let length = STUDY_WINDOW.min(config.longest).max(config.shortest);
        Study { length, came: Window::new(now), grew: now, shrank: now, added_at: now }
    }

    /// The window grows when zombies leave or few packets wait, and shrinks when for long no zombie was added.
    fn adapt(&mut self, config: &Config, seen: Seen, mark: u64, zombie_left: bool, now: Time) {
        let grows = seen.zombies > 0 && (zombie_left || seen.real < mark / 3);
        if grows && now.since(self.grew) >= GROW_EVERY {
            self.length = (self.length + STEP).min(config.longest);
            self.grew = now;
        } else if !grows && now.since(self.shrank) >= SHRINK_EVERY && now.since(self.added_at) >= SHRINK_AFTER
        {
            self.length = self.length.saturating_sub(STEP).max(config.shortest);
            self.shrank = now;
        }
    }

    /// Whether the depth falls by more than a third of the mark in a second, as 2,000 B/s are a third of the study's 6,000 B. So many bytes
    /// have left.
    fn is_falling(&self, left: u64, mark: u64) -> bool {
        let change = self.came.sum() as i64 - left as i64;
        change < -((mark as f64 / 3.0 * CHANGE_WINDOW.as_secs_f64()) as i64)
    }
}

impl State {
    pub(super) fn new(config: &Config, now: Time) -> State {
        let study = (config.rule == Rule::Study).then(|| Box::new(Study::new(config, now)));
        State { depth: Window::new(now), memory: Window::new(now), left: Window::new(now), study }
    }

    fn advance(&mut self, config: &Config, real: u64, now: Time) {
        let length = self.study.as_ref().map_or(config.shortest, |study| study.length);
        self.depth.advance(length, real, now);
        self.left.advance(CHANGE_WINDOW, 0, now);
        let memory = match &mut self.study {
            Some(study) => {
                study.came.advance(CHANGE_WINDOW, 0, now);
                length
            }
            None => self.time_to_drain(self.depth.least() + self.memory.sum()) * MEMORY,
        };
        self.memory.advance(memory.min(config.longest).max(config.shortest), 0, now);
    }

    /// How long bytes take at the present drain rate; very long if nothing drains.
    fn time_to_drain(&self, bytes: u64) -> Span {
        let left = self.left.sum();
        if left == 0 {
            return Span::MAX;
        }
        let nanos = match bytes.checked_mul(CHANGE_WINDOW.as_nanos()) {
            Some(scaled) => scaled / left,
            None => {
                let scaled = u128::from(bytes) * u128::from(CHANGE_WINDOW.as_nanos());
                u64::try_from(scaled / u128::from(left)).unwrap_or(u64::MAX)
            }
        };
        Span::from_nanos(nanos)
    }

    /// The mark in bytes: what leaves in its time at the present drain rate.
    fn mark(&self, config: &Config) -> u64 {
        let (left, mark) = (self.left.sum(), config.mark.as_nanos());
        match left.checked_mul(mark) {
            Some(scaled) => scaled / CHANGE_WINDOW.as_nanos(),
            None => (u128::from(left) * u128::from(mark) / u128::from(CHANGE_WINDOW.as_nanos())) as u64,
        }
    }

    /// Returns zombie bytes to add. By the study's rule there are none: only a departure adds some.
    pub(super) fn on_arrival(&mut self, config: &Config, bytes: u64, seen: Seen, now: Time) -> u64 {
        self.advance(config, seen.real.saturating_sub(bytes), now);
        match &mut self.study {
            Some(study) => {
                study.came.add(bytes);
                0
            }
            None => self.replace(config, bytes, now),
        }
    }

    pub(super) fn on_departure(&mut self, config: &Config, bytes: u64, seen: Seen, now: Time) -> u64 {
        self.advance(config, seen.real + bytes, now);
        self.depth.lower(seen.real);
        self.left.add(bytes);
        let (left, mark) = (self.left.sum(), self.mark(config));
        if let Some(study) = &mut self.study {
            study.adapt(config, seen, mark, false, now);
            if study.is_falling(left, mark) {
                return 0;
            }
        }
        self.replace(config, bytes, now)
    }

    /// Zombie bytes for packets that stand and have none yet.
    fn replace(&mut self, config: &Config, bytes: u64, now: Time) -> u64 {
        let replaced = self.memory.sum() + self.mark(config);
        let standing = self.depth.least().saturating_sub(replaced);
        if standing == 0 {
            return 0;
        }
        let once = bytes.min(super::LARGEST);
        // More than one for one is added only as far as packets stand.
        let zombie = (once * u64::from(config.gain)).min(standing).max(once);
        self.memory.add(zombie);
        if let Some(study) = &mut self.study {
            study.came.add(zombie);
            study.added_at = now;
        }
        zombie
    }

    pub(super) fn on_zombie(&mut self, config: &Config, bytes: u64, seen: Seen, now: Time) {
        self.advance(config, seen.real, now);
        self.depth.lower(seen.real);
        self.left.add(bytes);
        let mark = self.mark(config);
        if let Some(study) = &mut self.study {
            study.adapt(config, seen, mark, true, now);
        }
    }
}
