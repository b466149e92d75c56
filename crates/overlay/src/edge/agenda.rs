//! When each of several things is due: a tournament over their times, or over what else they wait for. The soonest is known at once, to
//! change one costs the logarithm of their number, and those that are due are found in the order of their numbers.

/// Times of things `0..count`.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    /// A binary tree without pointers: node n has the children 2n and 2n + 1 and the sooner of their times. The root is node 1.
    times: Vec<T>,
    /// The first leaf, which is also their number: a power of two.
    leaves: usize,
    /// The time of a thing that is not due by itself, later than all others.
    never: T,
}

impl<T: Copy + Ord> Agenda<T> {
    /// Without things.
    pub(super) fn new(never: T) -> Agenda<T> {
        Agenda::of(std::iter::empty(), never)
    }

    /// All of these times, in the order of the things' numbers.
    fn of(times: impl Iterator<Item = T>, never: T) -> Agenda<T> {
        let times: Vec<T> = times.collect();
        let leaves = times.len().next_power_of_two();
        let mut agenda = Agenda { times: vec![never; 2 * leaves], leaves, never };
        for (place, time) in agenda.times[leaves..].iter_mut().zip(times) {
            *place = time;
        }
        for node in (1..leaves).rev() {
            agenda.times[node] = agenda.sooner(node);
        }
        agenda
    }

    fn sooner(&self, node: usize) -> T {
        self.times[2 * node].min(self.times[2 * node + 1])
    }

    /// The soonest time.
    pub(super) fn soonest(&self) -> T {
        self.times[1]
    }

    /// When a thing is due.
    pub(super) fn time(&self, number: usize) -> T {
        self.times.get(self.leaves + number).copied().unwrap_or(self.never)
    }

    /// A thing is due at another time. It may be a new one.
    pub(super) fn set(&mut self, number: usize, time: T) {
        if number >= self.leaves {
            let times = self.times.split_off(self.leaves);
            let new = std::iter::repeat_n(self.never, number - self.leaves).chain([time]);
            *self = Agenda::of(times.into_iter().chain(new), self.never);
            return;
        }
        let mut node = self.leaves + number;
        self.times[node] = time;
        // The nodes above are the same when one of them is.
        while node > 1 {
            node /= 2;
            let sooner = self.sooner(node);
            if self.times[node] == sooner {
                break;
            }
            self.times[node] = sooner;
        }
    }

    /// A thing is not due any more. Returns when it would have been.
    pub(super) fn take(&mut self, number: usize) -> T {
        let time = self.time(number);
        self.set(number, self.never);
        time
    }

    /// The first thing of this number or more that is due now.
    pub(super) fn due(&self, from: usize, now: T) -> Option<usize> {
        let mut node = self.leaves + from;
        if from >= self.leaves {
            return None;
        }
        // Up to the first subtree on the right that has one that is due, then down to the first of its leaves.
        while self.times[node] > now {
            while node % 2 == 1 {
                node /= 2;
                if node <= 1 {
                    return None;
                }
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.times[node] > now);
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Random, Span, Time};

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_numbers() {
        let mut agenda = Agenda::of([5, 2, 9, 2, 7].map(at).into_iter(), Time::NEVER);
        assert_eq!(agenda.soonest(), at(2));
        assert_eq!(
            (agenda.due(0, at(2)), agenda.due(2, at(2)), agenda.due(4, at(2))),
            (Some(1), Some(3), None)
        );
        assert_eq!(agenda.take(1), at(2));
        agenda.set(3, at(8));
        assert_eq!((agenda.soonest(), agenda.due(0, at(4))), (at(5), None));
        assert_eq!((agenda.due(0, at(9)), agenda.due(1, at(9))), (Some(0), Some(2)));
    }

    #[test]
    fn without_anything_nothing_is_due() {
        let agenda = Agenda::new(Time::NEVER);
        assert_eq!((agenda.soonest(), agenda.due(0, at(1)), agenda.due(1, at(1))), (Time::NEVER, None, None));
    }

    /// As a search of all times finds it, for every count of things up to 20.
    #[test]
    fn it_agrees_with_a_search_of_all_times() {
        let mut random = Random::stream_of(7, "agenda", 0);
        for count in 1..=20_usize {
            let mut times = vec![Time::NEVER; count];
            let mut agenda = Agenda::new(Time::NEVER);
            (0..count).for_each(|number| agenda.set(number, Time::NEVER));
            for _ in 0..200 {
                let number = random.below(count as u64) as usize;
                times[number] = at(random.below(30));
                agenda.set(number, times[number]);
                let now = at(random.below(30));
                let from = random.below(count as u64 + 1) as usize;
                let first = (from..count).find(|number| times[*number] <= now);
                assert_eq!(agenda.due(from, now), first, "{times:?} from {from} at {now:?}");
                assert_eq!(Some(agenda.soonest()), times.iter().copied().min());
            }
        }
    }
}
