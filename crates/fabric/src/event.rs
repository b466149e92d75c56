//! The event queue: times and the sources that are due at them, soonest first.
//!
//! A branchless 4-ary heap of 8-byte keys: the time in the high bits, the number of the source in the low ones. The heap
//! stays in one or two cache lines, since few events wait: only the head of a pipe is here, and a timer is pushed again only
//! if it moves to an earlier time. Ties of the same nanosecond go to the lower source number.
//!
//! Time never goes back: to push an event before the last one that was taken off is a panic.

use weir_base::Time;

/// A queue of at most 2^b sources, over 2^(64-b) nanoseconds: with a thousand sources half a year, with a million 4.8 hours.
#[derive(Debug, Clone)]
pub struct EventQueue {
    /// The heap, then at least four keys of [`NOTHING`], so that the four children of a node can always be read.
    keys: Vec<u64>,
    len: usize,
    /// The soonest event's key, as it stands at the root; [`NOTHING`] when there is none.
    soonest: u64,
    /// Its time; [`Time::NEVER`] when there is none.
    next_time: Time,
    source_bits: u32,
    /// The bits of a key that are the source's number.
    source_mask: u64,
    /// The key of the last event taken off, to see that time never goes back.
    passed: u64,
}

const ARITY: usize = 4;
/// A key that no event has: its time would be beyond the horizon.
const NOTHING: u64 = u64::MAX;

impl EventQueue {
    /// A queue for sources `0..sources`.
    pub fn new(sources: usize) -> EventQueue {
        let source_bits = usize::BITS - sources.max(2).saturating_sub(1).leading_zeros();
        EventQueue {
            keys: vec![NOTHING; ARITY + 1],
            len: 0,
            soonest: NOTHING,
            next_time: Time::NEVER,
            source_bits,
            source_mask: (1 << source_bits) - 1,
            passed: 0,
        }
    }

    /// The latest time that it can hold.
    pub fn horizon(&self) -> Time {
        Time::from_nanos((u64::MAX >> self.source_bits) - 1)
    }

    #[inline(always)]
    fn key(&self, at: Time, source: usize) -> u64 {
        debug_assert!(at <= self.horizon() && source >> self.source_bits == 0);
        let first = at.as_nanos() << self.source_bits;
        if first | self.source_mask < self.passed {
            self.refuse(at);
        }
        first | source as u64
    }

    /// A separate function, so that the check itself is three instructions where events are pushed and replaced.
    #[cold]
    #[inline(never)]
    fn refuse(&self, at: Time) -> ! {
        panic!("time goes back: {at:?} after {:?}", self.event(self.passed).0);
    }

    /// The soonest event: its time, or [`Time::NEVER`] when there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.next_time
    }

    /// The time of the last event that was taken off.
    pub fn passed(&self) -> Time {
        self.event(self.passed).0
    }

    /// All events, in no order: time and source.
    pub fn iter(&self) -> impl Iterator<Item = (Time, usize)> + '_ {
        self.keys[..self.len].iter().map(|key| self.event(*key))
    }

    #[inline]
    fn event(&self, key: u64) -> (Time, usize) {
        (Time::from_nanos(key >> self.source_bits), (key & self.source_mask) as usize)
    }

    /// The soonest event, if it is due at `until` or before.
    #[inline]
    pub fn due(&self, until: Time) -> Option<(Time, usize)> {
        self.peek().filter(|(at, _)| *at <= until)
    }

    /// The soonest event: time and source.
    #[inline]
    pub fn peek(&self) -> Option<(Time, usize)> {
        (self.soonest != NOTHING).then_some((self.next_time, (self.soonest & self.source_mask) as usize))
    }

    /// Adds an event. A source may be in the queue more than once. Panics if `at` is before the last event taken off.
    #[inline]
    pub fn push(&mut self, at: Time, source: usize) {
        let key = self.key(at, source);
        let mut hole = self.len;
        self.len += 1;
        if self.len + ARITY > self.keys.len() {
            self.keys.resize((self.len + ARITY) * 2, NOTHING);
        }
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
        if key < self.soonest {
            (self.soonest, self.next_time) = (key, at);
        }
    }

    /// Takes the soonest event off.
    #[inline]
    pub fn pop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.passed = self.soonest;
        self.len -= 1;
        let last = std::mem::replace(&mut self.keys[self.len], NOTHING);
        if self.len > 0 {
            self.sift_down(last);
        } else {
            (self.soonest, self.next_time) = (NOTHING, Time::NEVER);
        }
    }

    /// Replaces the soonest event with another one: a pop and a push in one.
    #[inline(always)]
    pub fn replace(&mut self, at: Time, source: usize) {
        debug_assert!(self.len > 0, "nothing to replace");
        let key = self.key(at, source);
        self.passed = self.soonest;
        self.sift_down(key);
    }

    /// Replaces the root with a key, and sifts it down.
    #[inline(always)]
    fn sift_down(&mut self, key: u64) {
        // The root and its children, as an array of known length: often the heap has no more keys.
        let Some(top) = self.keys.first_chunk_mut::<{ ARITY + 1 }>() else { return };
        let [root, children @ ..] = top;
        if self.len <= 2 {
            // Mostly there are no more: the links of a dumbbell's two directions.
            let [other, ..] = children;
            let soonest = key.min(*other);
            (*root, *other) = (soonest, key.max(*other));
            return self.note(soonest);
        }
        let (least, at) = least_of(children);
        let soonest = key.min(least);
        *root = soonest;
        self.note(soonest);
        if least >= key {
            return;
        }
        let (mut hole, mut first) = (1 + at, (1 + at) * ARITY + 1);
        while first < self.len {
            let Some(children) = self.keys.get(first..).and_then(|keys| keys.first_chunk()) else { break };
            let (least, at) = least_of(children);
            if least >= key {
                break;
            }
            self.keys[hole] = least;
            hole = first + at;
            first = hole * ARITY + 1;
        }
        self.keys[hole] = key;
    }

    /// Notes the key at the root.
    #[inline(always)]
    fn note(&mut self, soonest: u64) {
        self.soonest = soonest;
        self.next_time = Time::from_nanos(soonest >> self.source_bits);
    }
}

/// The least of a node's children and its index, without a branch.
#[inline]
fn least_of(&[a, b, c, d]: &[u64; ARITY]) -> (u64, usize) {
    let (left, at_left) = if b < a { (b, 1) } else { (a, 0) };
    let (right, at_right) = if d < c { (d, 3) } else { (c, 2) };
    if right < left { (right, at_right) } else { (left, at_left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Random;

    #[test]
    fn events_come_out_in_order_of_time_then_source() {
        let mut queue = EventQueue::new(8);
        for (at, source) in [(30, 1), (10, 5), (10, 2), (20, 7)] {
            queue.push(Time::from_nanos(at), source);
        }
        let mut seen = vec![];
        while let Some((at, source)) = queue.peek() {
            queue.pop();
            seen.push((at.as_nanos(), source));
        }
        assert_eq!(seen, [(10, 2), (10, 5), (20, 7), (30, 1)]);
        assert_eq!(queue.next_time(), Time::NEVER);
    }

    #[test]
    fn an_event_queue_agrees_with_a_sorted_list_under_random_operations() {
        let (mut queue, mut model, mut random) = (EventQueue::new(1000), vec![], Random::stream(1, "events"));
        let mut now = 0;
        for _ in 0..20_000 {
            let event = (now + random.below(50), random.below(1000) as usize);
            match (random.below(3), queue.peek()) {
                (0, Some((at, source))) => {
                    model.sort_unstable();
                    assert_eq!(model.remove(0), (at.as_nanos(), source));
                    now = at.as_nanos();
                    queue.pop();
                }
                (1, Some((at, source))) if event.0 >= at.as_nanos() => {
                    model.sort_unstable();
                    assert_eq!(model.remove(0), (at.as_nanos(), source));
                    now = at.as_nanos();
                    queue.replace(Time::from_nanos(event.0), event.1);
                    model.push(event);
                }
                _ => {
                    queue.push(Time::from_nanos(event.0), event.1);
                    model.push(event);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "time goes back")]
    fn time_going_back_is_refused() {
        let mut queue = EventQueue::new(2);
        queue.push(Time::from_nanos(10), 0);
        queue.pop();
        queue.push(Time::from_nanos(9), 0);
    }
}
