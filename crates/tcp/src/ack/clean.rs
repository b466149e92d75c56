//! The removal of acknowledged segments and the RTT samples that they give (`tcp_clean_rtx_queue`, `tcp_ack_update_rtt`).

use super::super::scoreboard::{EVER_RETRANS, SACKED};
use super::super::sender::{Sender, instant, micros};
use super::super::undo::before;
use super::{Effects, Tally, widen};
use weir_base::Time;

impl Sender {
    /// Removes the cumulatively acknowledged segments and samples the RTT. `prior_una` is the first unacknowledged position before the
    /// acknowledgement, `prior_highest` the end of the highest SACKed segment.
    pub(super) fn clean_queue(
        &mut self,
        prior_una: u64,
        prior_highest: u64,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        let prior_sacked = self.board.sacked;
        let low = if self.board.is_plain() {
            self.clean_plain(effects, tally, now)
        } else {
            self.clean_marked(effects, tally, now)
        };
        self.sample_rtt(prior_una, prior_sacked, effects, tally, now);
        if self.sack {
            self.check_sack_reordering(low, prior_highest);
            return;
        }
        if effects.data_acked {
            self.remove_duplicates(tally.acked_segments);
        }
        // Without SACK it is unknown which segments arrived before the retransmission.
        effects.original_delivered &= !effects.retransmission_acked;
    }

    /// An original that starts at `low` was delivered only now: below `highest`, where a segment was SACKed before, that is a sign of
    /// reordering (`tcp_check_sack_reordering`).
    #[inline(always)]
    pub(super) fn check_sack_reordering(&mut self, low: Option<u64>, highest: u64) {
        if let Some(low) = low
            && low < highest
        {
            self.rack.saw_reordering(low, self.highest_sacked(), u64::from(self.mss));
        }
    }

    /// Removes segments of a board without marks, for which the first and the last segment suffice. Returns the start of the first;
    /// `None` if there are none.
    #[inline(always)]
    pub(super) fn clean_plain(&mut self, effects: &mut Effects, tally: &mut Tally, now: Time) -> Option<u64> {
        let (first, last, count) = self.board.pop_through(self.una)?;
        tally.acked_sent = Some((first.sent_at, last.sent_at));
        tally.acked_segments += count;
        effects.data_acked = true;
        effects.original_delivered |= first.end() <= self.high_seq;
        if self.sack {
            self.delivery.delivered += u64::from(count);
            self.rack.advance(micros(now), self.least_rtt(), false, last.sent_at, last.end());
        }
        self.delivery.on_delivered(&mut tally.sampling, &last);
        Some(first.start)
    }

    /// Removes segments one by one, by their marks. Returns the start of the first segment that is newly delivered and was never
    /// retransmitted; `None` if there is none.
    #[inline(never)]
    fn clean_marked(&mut self, effects: &mut Effects, tally: &mut Tally, now: Time) -> Option<u64> {
        let (at, least_rtt) = (micros(now), self.least_rtt());
        let mut low = None;
        while let Some(sent) = self.board.head().filter(|sent| sent.end() <= self.una) {
            let resent = sent.has(EVER_RETRANS);
            effects.retransmission_acked |= resent;
            if !sent.has(SACKED) {
                if !resent {
                    widen(&mut tally.acked_sent, sent.sent_at);
                    effects.original_delivered |= sent.end() <= self.high_seq;
                    low.get_or_insert(sent.start);
                }
                if self.sack {
                    self.delivery.delivered += 1;
                    // With an echo from before the retransmission it was the original that arrived.
                    let spurious = resent && before(effects.echoed, self.clock.ticks(instant(sent.sent_at)));
                    if !spurious {
                        self.rack.advance(at, least_rtt, resent, sent.sent_at, sent.end());
                    }
                }
            }
            self.delivery.on_delivered(&mut tally.sampling, sent);
            tally.acked_segments += 1;
            effects.data_acked = true;
            self.board.pop();
        }
        low
    }

    /// Samples the RTT (`tcp_ack_update_rtt`), and decides whether the timer is set anew.
    #[inline(always)]
    pub(super) fn sample_rtt(
        &mut self,
        prior_una: u64,
        prior_sacked: u32,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        let at = micros(now);
        let (mut sample, mut newest) = (None, None);
        if let Some((first, last)) = tally.acked_sent
            && !effects.retransmission_acked
        {
            sample = Some(at - first);
            newest = Some(at - last);
            effects.maybe_delayed = tally.acked_segments == 1
                && prior_sacked == 0
                && self.una - prior_una < u64::from(self.mss)
                && tally.sampling.prior_delivered + 1 == self.delivery.delivered
                && !effects.alert();
        }
        let mut by_sack = None;
        if let Some((first, last)) = tally.sacked_sent {
            by_sack = Some(at - first);
            newest = Some(at - last);
        }
        sample = sample.or(by_sack);
        if sample.is_none() && effects.echoed != 0 && effects.data_acked {
            let since = self.clock.since(effects.echoed, now);
            if let Some(since) = since {
                sample = Some(since.max(self.clock.tick).as_micros());
                newest = sample;
            }
        }
        tally.rtt = newest;
        if let (Some(sample), Some(newest)) = (sample, newest) {
            if !(effects.maybe_delayed && newest > self.least_rtt()) {
                self.sample_min_rtt(now, newest);
            }
            self.rtt.sample(sample, self.una, self.next);
        }
        if effects.data_acked {
            effects.set_timer = true;
        } else if let (Some(rtt), Some(head)) = (by_sack, self.board.head()) {
            // Only for data sent after the head; otherwise the timeout could be delayed without end.
            effects.set_timer = rtt > at.saturating_sub(head.sent_at);
        }
    }
}
