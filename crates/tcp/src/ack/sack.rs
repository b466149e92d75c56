//! The processing of SACK blocks (RFC 2018, and RFC 2883 for duplicates) as in Linux `tcp_sacktag_write_queue`.

use super::super::scoreboard::{EVER_RETRANS, RETRANS, SACKED};
use super::super::sender::{Sender, micros};
use super::{Arrival, Effects, Tally, widen};
use weir_base::Time;
use weir_control::Phase;
use weir_endpoint::MAX_SACK;

impl Sender {
    /// Marks the segments that the SACK blocks report (`tcp_sacktag_write_queue`).
    pub(super) fn take_sack(
        &mut self,
        arrival: &Arrival<'_>,
        prior_una: u64,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        let duplicate = self.take_dsack(arrival, prior_una, effects);
        let mut known = [(0, 0); 4];
        let (mut parts, mut count) = ([(0, 0, false); 2 * MAX_SACK], 0);
        for (index, &(start, end)) in arrival.sack.iter().enumerate() {
            let is_duplicate = duplicate && index == 0;
            if start >= end || end > self.next || end <= self.una || (start < self.una && !is_duplicate) {
                continue;
            }
            // Most of a block was reported before: only its new ends are walked.
            let mut news = [(start, end), (end, end)];
            if !is_duplicate {
                known[index.min(3)] = (start, end);
                let touches = |old: &&(u64, u64)| old.0 < old.1 && old.0 <= end && old.1 >= start;
                if let Some(&(old_start, old_end)) = self.known_blocks.iter().find(touches) {
                    news = [(start, old_start.min(end)), (old_end.max(start), end)];
                }
            }
            for (start, end) in news.into_iter().filter(|(start, end)| start < end) {
                parts[count] = (start, end, is_duplicate);
                count += 1;
            }
        }
        // In ascending order: what is newly reported behind another new block is no sign of reordering.
        parts[..count].sort_unstable_by_key(|part| part.0);
        for &(start, end, is_duplicate) in &parts[..count] {
            self.mark_range(start, end, is_duplicate, effects, tally, now);
        }
        self.known_blocks = known;
        if let Some(low) = tally.reordered.take()
            && (self.phase != Phase::Loss || self.undo.marker.is_some())
        {
            self.rack.saw_reordering(low, self.highest_sacked(), u64::from(self.mss));
        }
    }

    /// Reads a DSACK from the first block and returns whether it is one (`tcp_check_dsack`, `tcp_dsack_seen`).
    fn take_dsack(&mut self, arrival: &Arrival<'_>, prior_una: u64, effects: &mut Effects) -> bool {
        let (start, end) = arrival.sack[0];
        let inside = arrival.sack.get(1).is_some_and(|next| end <= next.1 && start >= next.0);
        if !(start < arrival.ack || inside) {
            return false;
        }
        let length = end.saturating_sub(start);
        if length == 0 || length > u64::from(self.max_window) {
            return false;
        }
        let mut segments = 1;
        if length > u64::from(self.mss) {
            segments = length.div_ceil(u64::from(self.mss));
        } else if self.probe_end != 0 && self.probe_end == end {
            effects.dsack_of_probe = true;
        }
        self.dsacked += segments;
        // There are more duplicates than retransmissions: the network duplicates packets.
        if self.dsacked > self.counters.retransmitted {
            return false;
        }
        if self.rack.reordering_seen && !effects.dsack_of_probe {
            self.rack.dsack_seen = true;
        }
        effects.dsack = true;
        self.delivery.delivered += segments;
        if end <= prior_una {
            self.undo.on_duplicate(end, segments as u32);
        }
        true
    }

    /// Marks the segments within a range (`tcp_sacktag_one`).
    fn mark_range(
        &mut self,
        start: u64,
        end: u64,
        duplicate: bool,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        let (at, least_rtt) = (micros(now), self.least_rtt());
        for number in self.board.at_or_after(start)..self.board.next() {
            let sent = self.board.get(number);
            if sent.end() > end {
                break;
            }
            let resent = sent.has(RETRANS | EVER_RETRANS);
            if duplicate && resent {
                self.undo.on_duplicate(sent.end(), 1);
                if sent.has(SACKED) {
                    tally.reorder(sent.start);
                }
            }
            if sent.end() <= self.una {
                continue;
            }
            if !sent.has(SACKED) {
                self.rack.advance(at, least_rtt, resent, sent.sent_at, sent.end());
                if !resent {
                    if sent.start < self.highest_sacked() {
                        tally.reorder(sent.start);
                    }
                    effects.original_delivered |= sent.end() <= self.high_seq;
                    widen(&mut tally.sacked_sent, sent.sent_at);
                }
                self.delivery.on_delivered(&mut tally.sampling, sent);
                self.delivery.delivered += 1;
                effects.data_sacked = true;
                self.board.mark_sacked(number);
            }
            if duplicate {
                self.board.clear_retransmission(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::written::Written;
    use weir_endpoint::Segment;

    const MSS: u64 = 1000;
    const START: Time = Time::from_nanos(1_000_000_000);

    /// Whether a sender of ten segments sees reordering if acknowledgements report these blocks, in segments.
    fn sees_reordering(acknowledgements: &[&[(u64, u64)]]) -> bool {
        let config = Config { mss: MSS as u16, ..Config::new("newreno".parse().expect("it is registered")) };
        let written = Written { end: 1 + 10 * MSS, ..Written::default() };
        let mut sender = Sender::new(&config, written, START, 1 << 20, Some(20_000));
        while sender.poll(START).is_some() {}
        let now = START + weir_base::Span::from_millis(20);
        for blocks in acknowledgements {
            let sack: Vec<_> = blocks.iter().map(|&(from, to)| (1 + from * MSS, 1 + to * MSS)).collect();
            let segment = Segment { window: 1 << 20, ..Segment::default() };
            let arrival = Arrival::plain(&segment, 1, 0, &sack);
            sender.on_ack(&arrival, now);
        }
        sender.rack.reordering_seen
    }

    #[test]
    fn blocks_that_are_new_in_one_acknowledgement_are_no_sign_of_reordering_but_a_lower_one_later_is() {
        assert!(!sees_reordering(&[&[(6, 7), (3, 4), (1, 2)]]));
        assert!(!sees_reordering(&[&[(1, 2)], &[(3, 4), (1, 2)], &[(6, 7), (3, 4), (1, 2)]]));
        assert!(sees_reordering(&[&[(6, 7)], &[(3, 4), (6, 7)]]));
    }
}
