//! Which stream sends next: the one of the highest priority, which is 0; streams of the same priority take turns (the GNAT software).

use super::LOWEST_PRIORITY;
use super::send::Outgoing;
use std::collections::BTreeMap;

/// The stream that was served last, for each priority.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    served: [Option<u8>; LOWEST_PRIORITY as usize + 1],
}

impl Schedule {
    /// The next stream among those that want to send; `None` if none does.
    pub(crate) fn next(
        &self,
        streams: &BTreeMap<u8, Outgoing>,
        wants: impl Fn(&Outgoing) -> bool,
    ) -> Option<u8> {
        // The lowest key wins: the priority, then whether its turn is over, then the number.
        let key = |(id, stream): (&u8, &Outgoing)| {
            let priority = stream.priority();
            let over = self.served[usize::from(priority)].is_some_and(|served| *id <= served);
            (priority, over, *id)
        };
        let (.., id) = streams.iter().filter(|(_, stream)| wants(stream)).map(key).min()?;
        Some(id)
    }

    /// A packet of a stream has left.
    pub(crate) fn served(&mut self, id: u8, stream: &Outgoing) {
        self.served[usize::from(stream.priority())] = Some(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamParameters;

    #[test]
    fn the_highest_priority_is_served_first_and_equal_priorities_take_turns() {
        let stream = |id, priority| {
            let parameters = StreamParameters { priority, ..StreamParameters::default() };
            (id, Outgoing::new(id, &parameters, true, (100, 100)))
        };
        let streams = BTreeMap::from([stream(0, 3), stream(1, 0), stream(2, 0), stream(5, 0)]);
        let mut schedule = Schedule::default();
        let mut order = |wants: fn(&Outgoing) -> bool| {
            let id = schedule.next(&streams, wants)?;
            schedule.served(id, &streams[&id]);
            Some(id)
        };
        let served: Vec<Option<u8>> = (0..5).map(|_| order(|_| true)).collect();
        assert_eq!(served, [1, 2, 5, 1, 2].map(Some));
        assert_eq!(order(|stream| stream.priority() > 0), Some(0));
        assert_eq!(order(|_| false), None);
    }
}
