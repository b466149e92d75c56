//! Accurate ECN (RFC 9768): the receiver counts marks and reports its counters, so that the sender knows the number of marked
//! packets and bytes even if acknowledgements are lost. Three bits of the header (ACE) count packets, and an option counts bytes.
//! Immediate acknowledgements and the interpretation of a wrapped ACE follow the code in Linux 6.18
//! (`tcp_ecn_received_counters`, `__tcp_accecn_process`), which `tcp_ecn` cannot switch on yet.
//!
//! Unlike in Linux, only acknowledgements with new counts carry the option (section 3.2.3.3), not every segment: full data
//! segments keep their payload. The handshake does not test whether the option passes the path, since nothing here removes it.

use weir_base::Ecn;
use weir_endpoint::{AccEcnOption, Flags};

/// Initial values of counters. They are not zero, so that a counter zeroed by a middlebox is detected (section 3.2.1).
const FIRST_PACKETS: u32 = 5;
const FIRST_ECT: u32 = 1;
/// Counters in the option have 24 bits.
const MASK: u32 = 0xff_ffff;
/// Mask of the three bits (`TCP_ACCECN_CEP_ACE_MASK`).
const ACE_MASK: u32 = 7;
/// Number of unreported marks that causes an acknowledgement at once (`TCP_ACCECN_ACE_MAX_DELTA`; section 3.2.2.5.1: at
/// most 7).
const MOST_UNREPORTED: u32 = 6;
/// If fewer bytes are marked than half the bytes of the larger interpretation of ACE, the smaller one is used
/// (`TCP_ACCECN_SAFETY_SHIFT`).
const SAFETY_SHIFT: u32 = 1;

/// The three bits as flags of the header: AE, CWR, ECE.
pub(crate) fn flags_of(ace: u32) -> Flags {
    let pick = |bit: u32, flag| if ace & bit != 0 { flag } else { Flags::NONE };
    pick(4, Flags::AE).with(pick(2, Flags::CWR)).with(pick(1, Flags::ECE))
}

/// The three bits of a header.
pub(crate) fn ace_of(flags: Flags) -> u32 {
    let bit = |flag, value| if flags.has(flag) { value } else { 0 };
    bit(Flags::AE, 4) | bit(Flags::CWR, 2) | bit(Flags::ECE, 1)
}

/// The three bits by which a packet of the handshake reports the codepoint of the packet before it (section 3.1.1, table 2;
/// section 3.2.2.1, table 3).
pub(crate) fn handshake_ace(seen: Ecn) -> u32 {
    match seen {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The receiver's counters.
#[derive(Debug, Clone)]
pub(crate) struct ReceiverCounters {
    /// Packets with CE (`r.cep`).
    cep: u32,
    /// Payload bytes by codepoint (`r.e0b`, `r.ceb`, `r.e1b`).
    e0b: u32,
    ceb: u32,
    e1b: u32,
    /// Marks since the last acknowledgement.
    unreported: u32,
    /// Whether a byte counter has changed since the last report.
    moved: bool,
    /// Whether the counter of marked bytes has changed since the last report.
    marked: bool,
    last: Ecn,
    /// Whether ECT(1) was the last capable codepoint, so that its counter is first in the option.
    prefers_ect1: bool,
}

impl ReceiverCounters {
    /// Counters after a handshake whose last packet had this codepoint.
    pub(crate) fn after(handshake: Ecn) -> ReceiverCounters {
        ReceiverCounters {
            cep: FIRST_PACKETS + u32::from(handshake == Ecn::Ce),
            e0b: FIRST_ECT,
            ceb: 0,
            e1b: FIRST_ECT,
            unreported: 0,
            moved: false,
            marked: false,
            last: handshake,
            prefers_ect1: false,
        }
    }

    /// Counts a packet. Returns whether it demands an acknowledgement at once: its codepoint differs from the last packet's, or
    /// [`MOST_UNREPORTED`] marks are unreported.
    pub(crate) fn count(&mut self, ecn: Ecn, payload: u32) -> bool {
        if ecn == Ecn::Ce {
            self.cep = self.cep.wrapping_add(1);
            self.unreported += 1;
        }
        if payload > 0 {
            let counter = match ecn {
                Ecn::Ect0 => &mut self.e0b,
                Ecn::Ect1 => &mut self.e1b,
                Ecn::Ce => &mut self.ceb,
                Ecn::NotEct => &mut 0,
            };
            *counter = counter.wrapping_add(payload) & MASK;
            self.moved |= ecn.is_capable();
            self.marked |= ecn == Ecn::Ce;
        }
        match ecn {
            Ecn::Ect0 => self.prefers_ect1 = false,
            Ecn::Ect1 => self.prefers_ect1 = true,
            Ecn::Ce | Ecn::NotEct => {}
        }
        let changed = std::mem::replace(&mut self.last, ecn) != ecn;
        changed || self.unreported >= MOST_UNREPORTED
    }

    /// The three bits.
    pub(crate) fn ace(&self) -> u32 {
        self.cep & ACE_MASK
    }

    /// The option, and whether a SACK block should make room for it; `None` if no counter has changed since the last report.
    pub(crate) fn option(&self) -> Option<(AccEcnOption, bool)> {
        self.moved.then(|| (AccEcnOption::new(self.e0b, self.ceb, self.e1b, self.prefers_ect1), self.marked))
    }

    /// An acknowledgement has left, with the option or without.
    pub(crate) fn on_ack_sent(&mut self, with_option: bool) {
        self.unreported = 0;
        if with_option {
            (self.moved, self.marked) = (false, false);
        }
    }
}

/// The feedback of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccEcnFeedback {
    pub(crate) ace: u32,
    pub(crate) counters: AccEcnOption,
    /// Whether it is newer than all before it, by its timestamp.
    pub(crate) newer: bool,
}

/// The data that an acknowledgement has newly delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    pub(crate) segments: u32,
    pub(crate) bytes: u64,
    pub(crate) mss: u64,
}

/// The sender's copy of the receiver's counters.
#[derive(Debug, Clone)]
pub(crate) struct SenderCounters {
    /// Marked packets (`s.cep`).
    cep: u32,
    /// Marked bytes by the option (`s.ceb`), extended to 64 bits.
    ceb: u64,
}

impl SenderCounters {
    /// Counters after a handshake; `marked` says whether the peer reported a mark in it.
    pub(crate) fn after(marked: bool) -> SenderCounters {
        SenderCounters { cep: FIRST_PACKETS + u32::from(marked), ceb: 0 }
    }

    /// Takes the feedback of an acknowledgement and returns the number of newly marked packets.
    pub(crate) fn take(&mut self, feedback: &AccEcnFeedback, delivered: &Delivered) -> u32 {
        // The acknowledgement was or may have been overtaken by a newer one.
        if delivered.segments == 0 && !feedback.newer {
            return 0;
        }
        let newly = self.take_option(&feedback.counters);
        let packets = self.read_ace(feedback.ace, newly, delivered);
        self.cep = self.cep.wrapping_add(packets);
        packets
    }

    /// Takes the option and returns the newly marked bytes; `None` if it is old or does not contain their counter.
    fn take_option(&mut self, counters: &AccEcnOption) -> Option<u64> {
        let ahead = counters.ce()?.wrapping_sub(self.ceb as u32) & MASK;
        // Differences above half the range are negative: an older option.
        if ahead > MASK / 2 {
            return None;
        }
        self.ceb += u64::from(ahead);
        Some(ahead.into())
    }

    /// The number of newly marked packets by the three bits. If more than seven segments were delivered, the bits may have
    /// wrapped; then the marked bytes decide (appendix A.2.1, and the heuristic of `__tcp_accecn_process`).
    fn read_ace(&self, ace: u32, marked_bytes: Option<u64>, delivered: &Delivered) -> u32 {
        let least = ace.wrapping_sub(self.cep) & ACE_MASK;
        let segments = delivered.segments;
        if segments <= ACE_MASK {
            return least;
        }
        let most = segments - ((segments - least) & ACE_MASK);
        let Some(marked) = marked_bytes else { return most };
        if marked == 0 {
            return least;
        }
        if segments >= 2 * (ACE_MASK + 1) {
            if delivered.bytes <= marked {
                return most;
            }
            let likely = (marked * u64::from(segments)).div_ceil(delivered.bytes) as u32;
            return most.min(least + (likely & !ACE_MASK));
        }
        let bytes_of = |packets: u32| u64::from(packets) * delivered.mss;
        if marked <= bytes_of(least) && marked < bytes_of(most) >> SAFETY_SHIFT { least } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn delivered(segments: u32) -> Delivered {
        Delivered { segments, bytes: u64::from(segments) * MSS, mss: MSS }
    }
    fn feedback(counted: &ReceiverCounters, with_option: bool) -> AccEcnFeedback {
        let counters =
            counted.option().filter(|_| with_option).map_or(AccEcnOption::NONE, |(counters, _)| counters);
        AccEcnFeedback { ace: counted.ace(), counters, newer: true }
    }
    fn receive(counted: &mut ReceiverCounters, ecn: Ecn, packets: u32) {
        for _ in 0..packets {
            counted.count(ecn, MSS as u32);
        }
    }

    #[test]
    fn the_three_bits_are_ae_cwr_and_ece() {
        for ace in 0..8 {
            assert_eq!(ace_of(flags_of(ace)), ace);
        }
        assert_eq!(flags_of(5), Flags::AE.with(Flags::ECE));
    }

    #[test]
    fn counters_start_at_five_packets_and_wrap() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        assert_eq!(counted.ace(), 5);
        let mut sum = 0;
        for _ in 0..100 {
            receive(&mut counted, Ecn::Ce, 2);
            sum += known.take(&feedback(&counted, true), &delivered(2));
            counted.on_ack_sent(true);
        }
        assert_eq!((sum, known.ceb), (200, 200 * MSS));
    }

    #[test]
    fn the_next_acknowledgement_makes_up_for_a_lost_one() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        receive(&mut counted, Ecn::Ce, 2);
        counted.on_ack_sent(true);
        receive(&mut counted, Ecn::Ect0, 2);
        receive(&mut counted, Ecn::Ce, 1);
        assert_eq!((known.take(&feedback(&counted, true), &delivered(5)), known.ceb), (3, 3 * MSS));
    }

    #[test]
    fn an_overtaken_acknowledgement_is_ignored() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        receive(&mut counted, Ecn::Ce, 1);
        let old = AccEcnFeedback { newer: false, ..feedback(&counted, true) };
        receive(&mut counted, Ecn::Ce, 2);
        assert_eq!((known.take(&feedback(&counted, true), &delivered(3)), known.ceb), (3, 3 * MSS));
        assert_eq!((known.take(&old, &delivered(0)), known.ceb), (0, 3 * MSS));
        // Its option has no effect either, since its counter is behind the known one.
        assert_eq!(known.take_option(&old.counters), None);
    }

    #[test]
    fn byte_counters_resolve_a_wrap_of_the_packet_counter_within_one_acknowledgement() {
        // (delivered, marked): the three bits alone show the marked packets modulo 8.
        for (segments, marked) in
            [(8, 0), (8, 8), (10, 1), (12, 9), (15, 8), (20, 18), (40, 20), (40, 3), (64, 64)]
        {
            let (mut counted, mut known) =
                (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
            receive(&mut counted, Ecn::Ce, marked);
            receive(&mut counted, Ecn::Ect0, segments - marked);
            let packets = known.take(&feedback(&counted, true), &delivered(segments));
            assert_eq!((packets, known.ceb), (marked, u64::from(marked) * MSS), "{marked} of {segments}");
        }
    }

    #[test]
    fn a_possible_wrap_is_assumed_without_the_option() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        receive(&mut counted, Ecn::Ce, 1);
        receive(&mut counted, Ecn::Ect0, 9);
        // One or nine: the safe reading is nine (appendix A.2.1).
        assert_eq!(known.take(&feedback(&counted, false), &delivered(10)), 9);
        // Up to seven there is only one interpretation.
        receive(&mut counted, Ecn::Ect0, 7);
        let mut known = SenderCounters::after(false);
        assert_eq!(known.take(&feedback(&counted, false), &delivered(7)), 1);
    }

    #[test]
    fn byte_counters_wrap_at_16_mib() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        for _ in 0..20_000 {
            receive(&mut counted, Ecn::Ce, 1);
            known.take(&feedback(&counted, true), &delivered(1));
            counted.on_ack_sent(true);
        }
        assert_eq!(known.ceb, 20_000 * MSS);
    }

    #[test]
    fn a_change_of_codepoint_and_many_marks_cause_an_immediate_acknowledgement() {
        let mut counted = ReceiverCounters::after(Ecn::NotEct);
        let news: Vec<bool> =
            [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0]
                .map(|ecn| counted.count(ecn, 1448))
                .into();
        assert_eq!(news, [true, false, true, false, false, false, false, true, true]);
    }
}
