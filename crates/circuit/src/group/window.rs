//! How many datagrams may be on their way: the window, which is set anew each 100 ms (digest A 7.6, NORM flow control). It doubles in each period
//! until the first loss, grows by a step afterwards, and is halved by a period in which a member has lost much.

use weir_base::{Span, Time};

/// Time between two updates (digest A 7.6).
pub(super) const PERIOD: Span = Span::from_millis(100);
/// Datagrams of the first window, of the least and of the largest one. A node of the overlay keeps 490 of a flow that wait for their admission
/// (digest A 7.1): the largest window leaves none without room there.
const FIRST: u64 = 32;
const LEAST: u64 = 8;
const MOST: u64 = 448;
/// Datagrams by which a window grows after the first loss.
const STEP: u64 = 16;
/// The part of a period's datagrams that may seem lost: datagrams of several paths overtake each other.
const TOLERATED: f64 = 0.1;

/// The window.
#[derive(Debug)]
pub(super) struct Window {
    size: u64,
    doubles: bool,
    /// Whether it was used up in this period.
    was_full: bool,
    update_at: Time,
}

impl Window {
    pub(super) fn new(now: Time) -> Window {
        Window { size: FIRST, doubles: true, was_full: false, update_at: now + PERIOD }
    }

    /// Whether so many datagrams on their way leave room for one more.
    pub(super) fn has_room(&mut self, on_their_way: u64) -> bool {
        let has_room = on_their_way < self.size;
        self.was_full |= !has_room;
        has_room
    }

    /// When it is set anew.
    pub(super) fn update_at(&self) -> Time {
        self.update_at
    }

    /// Sets it anew, after a period in which the member that has lost most has lost this part; `None` if no member has heard anything.
    pub(super) fn update(&mut self, lost: Option<f64>, now: Time) {
        self.update_at = now + PERIOD;
        let was_full = std::mem::take(&mut self.was_full);
        let Some(lost) = lost else { return };
        self.size = match (lost > TOLERATED, self.doubles) {
            (true, _) => self.size / 2,
            (false, true) if was_full => 2 * self.size,
            (false, false) if was_full => self.size + STEP,
            _ => self.size,
        }
        .clamp(LEAST, MOST);
        self.doubles &= lost <= TOLERATED;
    }

    /// Begins anew: nothing is heard of what was sent.
    pub(super) fn restart(&mut self) {
        (self.size, self.doubles) = (LEAST, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_until_the_first_loss_and_stays_within_what_a_node_keeps() {
        let mut window = Window::new(Time::ZERO);
        let mut update = |lost, is_used: bool| {
            assert!(!window.has_room(window.size));
            window.was_full = is_used;
            window.update(Some(lost), Time::ZERO);
            window.size
        };
        assert_eq!([update(0.0, true), update(0.05, true), update(0.0, false)], [64, 128, 128]);
        assert_eq!([update(0.2, true), update(0.0, true), update(1.0, false)], [64, 80, 40]);
        assert_eq!((0..10).map(|_| update(1.0, true)).last(), Some(LEAST));
        assert_eq!((0..40).map(|_| update(0.0, true)).last(), Some(MOST));
        window.update(None, Time::ZERO);
        assert_eq!(window.size, MOST);
        window.restart();
        assert!(window.has_room(LEAST - 1) && !window.has_room(LEAST));
    }
}
