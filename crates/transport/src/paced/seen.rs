//! Which packets have arrived, so that a packet that arrives twice is read once: a window of packet numbers, as IPsec's against replays
//! (RFC 4303, section 3.4.3). A packet older than the window counts as one that has arrived.

/// Numbers in the window, the newest one included.
const WINDOW: u32 = 1024;
const WORDS: usize = (WINDOW / u64::BITS) as usize;

/// The packets that have arrived.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The highest number; `None` before the first packet.
    highest: Option<u32>,
    /// A bit for each number of the window, at its place modulo the window's length.
    bits: [u64; WORDS],
}

impl Seen {
    /// A packet of this number has arrived. Returns whether it is the first one.
    pub(super) fn is_new(&mut self, number: u32) -> bool {
        let highest = *self.highest.get_or_insert(number);
        let ahead = number.wrapping_sub(highest);
        if (ahead as i32) > 0 {
            for newer in 0..ahead.min(WINDOW) {
                let (word, bit) = place(number.wrapping_sub(newer));
                self.bits[word] &= !bit;
            }
            self.highest = Some(number);
        } else if highest.wrapping_sub(number) >= WINDOW {
            return false;
        }
        let (word, bit) = place(number);
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        new
    }
}

/// The word and the bit of a number.
fn place(number: u32) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / u64::BITS) as usize, 1 << (at % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_new_once_in_whatever_order() {
        let mut seen = Seen::default();
        // The numbers wrap around.
        let first = u32::MAX - 2;
        let arrivals = [0, 2, 1, 1, 0, 5, 3, 5, 4, 2];
        let new = arrivals.map(|number: u32| seen.is_new(first.wrapping_add(number)));
        assert_eq!(new, [true, true, true, false, false, true, true, false, true, false]);
    }

    #[test]
    fn a_packet_older_than_the_window_is_not_new_and_a_gap_clears_it() {
        let mut seen = Seen::default();
        assert!((0..2000).all(|number| seen.is_new(number)));
        assert!(!seen.is_new(1999 - 1024) && !seen.is_new(1999 - 1023));
        assert!(seen.is_new(9000) && seen.is_new(9000 - 1023) && !seen.is_new(9000 - 1024));
    }
}
