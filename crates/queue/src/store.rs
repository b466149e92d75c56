//! One slab for the packets of many queues. Each queue is a chain of places in the slab, and free places are reused. Once the slab
//! has grown to the largest backlog so far, no packet needs an allocation. An empty queue takes eight bytes.

/// The index of no place; larger than every place's index.
const NONE: u32 = u32::MAX;

/// The slab: places with a packet, if any, and the index of the next place in the chain or in the list of free places.
#[derive(Debug)]
pub(crate) struct Store<P> {
    places: Vec<(Option<P>, u32)>,
    free: u32,
}

/// A first-in, first-out queue within a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    pub(crate) const EMPTY: Chain = Chain { head: NONE, tail: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

impl<P> Store<P> {
    pub(crate) fn new() -> Store<P> {
        Store { places: Vec::new(), free: NONE }
    }

    #[inline]
    pub(crate) fn push(&mut self, chain: &mut Chain, packet: P) {
        let mut place = self.free;
        if let Some(slot) = self.places.get_mut(place as usize) {
            self.free = slot.1;
            *slot = (Some(packet), NONE);
        } else {
            place = self.places.len() as u32;
            self.places.push((Some(packet), NONE));
        }
        if chain.is_empty() {
            chain.head = place;
        } else {
            self.places[chain.tail as usize].1 = place;
        }
        chain.tail = place;
    }

    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<P> {
        let place = chain.head;
        let slot = self.places.get_mut(place as usize)?;
        chain.head = slot.1;
        slot.1 = self.free;
        self.free = place;
        slot.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_keep_their_order_and_free_slots_are_reused() {
        let (mut store, mut odd, mut even) = (Store::new(), Chain::EMPTY, Chain::EMPTY);
        for round in 0..3 {
            for n in 0..10 {
                store.push(if n % 2 == 0 { &mut even } else { &mut odd }, n + 10 * round);
            }
            let order: Vec<i32> = std::iter::from_fn(|| store.pop(&mut even)).collect();
            assert_eq!(order, [0, 2, 4, 6, 8].map(|n| n + 10 * round));
            let order: Vec<i32> = std::iter::from_fn(|| store.pop(&mut odd)).collect();
            assert_eq!(order, [1, 3, 5, 7, 9].map(|n| n + 10 * round));
        }
        assert_eq!(store.places.len(), 10);
        assert!(odd.is_empty() && even.is_empty());
    }
}
