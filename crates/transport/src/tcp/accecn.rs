//! Accurate ECN (RFC 9768): the receiver counts marks and tells its counters, so that the sender learns how many packets and
//! bytes were marked, whichever acknowledgements are lost. Three bits of the header (ACE) count packets, and an option counts
//! bytes. When to acknowledge at once and how a wrapped ACE is read follow the code that Linux 6.18 holds
//! (`tcp_ecn_received_counters`, `__tcp_accecn_process`); its `tcp_ecn` does not yet let it be switched on.
//!
//! Unlike Linux, the option goes on acknowledgements that have something new to count (section 3.2.3.3), not on every segment:
//! full data segments keep their payload. The handshake does not test whether the option passes: here nothing strips it.

use super::segment::{AccEcnOption, Flags};
use weir_base::Ecn;

/// Where counters start, so that one that a middlebox has zeroed shows (section 3.2.1).
const FIRST_PACKETS: u32 = 5;
const FIRST_ECT: u32 = 1;
/// AccEcnOption of the option have 24 bits.
const MASK: u32 = 0xff_ffff;
/// What the three bits hold (`TCP_ACCECN_CEP_ACE_MASK`).
const ACE_MASK: u32 = 7;
/// So many marks that no acknowledgement has told of are told at once (`TCP_ACCECN_ACE_MAX_DELTA`; section 3.2.2.5.1: at
/// most 7).
const MOST_UNREPORTED: u32 = 6;
/// Fewer marked bytes than half of what the larger reading of ACE means speak for the smaller one
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

/// How a packet of the handshake tells of the codepoint of the one before it (section 3.1.1, table 2; section 3.2.2.1,
/// table 3).
pub(crate) fn handshake_ace(seen: Ecn) -> u32 {
    match seen {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// What a receiver has counted.
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
    /// The byte counters have moved since they were last told.
    moved: bool,
    /// They have moved by a mark.
    marked: bool,
    last: Ecn,
    /// ECT(1) was the last capable codepoint: its counter goes first in the option.
    prefers_ect1: bool,
}

impl ReceiverCounters {
    /// After a handshake whose last packet had this codepoint.
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

    /// A packet has come. Answers whether that is worth an acknowledgement at once: the codepoint is another than the last
    /// packet's, or many marks wait to be told.
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

    /// The counters, if they are worth a place in the header, and whether a SACK block should make room for them.
    pub(crate) fn option(&self) -> Option<(AccEcnOption, bool)> {
        self.moved.then(|| (AccEcnOption::new(self.e0b, self.ceb, self.e1b, self.prefers_ect1), self.marked))
    }

    /// An acknowledgement has left, with the option or without.
    pub(crate) fn on_told(&mut self, with_option: bool) {
        self.unreported = 0;
        if with_option {
            (self.moved, self.marked) = (false, false);
        }
    }
}

/// What an acknowledgement tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccEcnFeedback {
    pub(crate) ace: u32,
    pub(crate) counters: AccEcnOption,
    /// It is newer than all before it, by its timestamp.
    pub(crate) newer: bool,
}

/// What an acknowledgement has delivered, besides what it tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    pub(crate) segments: u32,
    pub(crate) bytes: u64,
    pub(crate) mss: u64,
}

/// What the sender knows of the receiver's counters.
#[derive(Debug, Clone)]
pub(crate) struct SenderCounters {
    /// Marked packets (`s.cep`).
    cep: u32,
    /// Marked bytes by the option (`s.ceb`), all 64 bits of them.
    ceb: u64,
    /// Marked bytes that the controller was told of.
    reported: u64,
}

impl SenderCounters {
    /// After a handshake in which the peer tells of a mark, or not.
    pub(crate) fn after(marked: bool) -> SenderCounters {
        SenderCounters { cep: FIRST_PACKETS + u32::from(marked), ceb: 0, reported: 0 }
    }

    /// Takes in an acknowledgement; answers how many packets and bytes are newly known to be marked.
    pub(crate) fn take(&mut self, told: &AccEcnFeedback, delivered: &Delivered) -> (u32, u64) {
        // An old acknowledgement that was overtaken, or one that may be.
        if delivered.segments == 0 && !told.newer {
            return (0, 0);
        }
        let newly = self.take_option(&told.counters);
        let packets = self.read_ace(told.ace, newly, delivered);
        self.cep = self.cep.wrapping_add(packets);
        let bytes = match newly {
            Some(_) => self.ceb.saturating_sub(self.reported),
            None => (u64::from(packets) * delivered.mss).min(delivered.bytes),
        };
        self.reported += bytes;
        (packets, bytes)
    }

    /// Takes in the option; answers by how much the marked bytes have grown, `None` where it does not tell.
    fn take_option(&mut self, counters: &AccEcnOption) -> Option<u64> {
        let ahead = counters.ce()?.wrapping_sub(self.ceb as u32) & MASK;
        // Half of the circle lies behind: an older option.
        if ahead > MASK / 2 {
            return None;
        }
        self.ceb += u64::from(ahead);
        Some(ahead.into())
    }

    /// How many packets the three bits stand for: where more than seven were delivered they may have wrapped, and the marked
    /// bytes tell (appendix A.2.1, and the heuristic of `__tcp_accecn_process`).
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
    fn told(counted: &ReceiverCounters, with_option: bool) -> AccEcnFeedback {
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
        let mut sum = (0, 0);
        for _ in 0..100 {
            receive(&mut counted, Ecn::Ce, 2);
            let (packets, bytes) = known.take(&told(&counted, true), &delivered(2));
            counted.on_told(true);
            sum = (sum.0 + packets, sum.1 + bytes);
        }
        assert_eq!(sum, (200, 200 * MSS));
    }

    #[test]
    fn a_lost_acknowledgement_is_made_up_for_by_the_next() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        receive(&mut counted, Ecn::Ce, 2);
        counted.on_told(true);
        receive(&mut counted, Ecn::Ect0, 2);
        receive(&mut counted, Ecn::Ce, 1);
        assert_eq!(known.take(&told(&counted, true), &delivered(5)), (3, 3 * MSS));
    }

    #[test]
    fn an_overtaken_acknowledgement_tells_nothing() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        receive(&mut counted, Ecn::Ce, 1);
        let old = AccEcnFeedback { newer: false, ..told(&counted, true) };
        receive(&mut counted, Ecn::Ce, 2);
        assert_eq!(known.take(&told(&counted, true), &delivered(3)), (3, 3 * MSS));
        assert_eq!(known.take(&old, &delivered(0)), (0, 0));
        // Nor does its option when it delivers by a SACK block: two of three bytes counters lie behind.
        assert_eq!(known.take_option(&old.counters), None);
    }

    #[test]
    fn a_wrap_within_one_acknowledgement_is_read_by_the_bytes() {
        // (delivered, marked): the three bits alone stand for marked modulo 8.
        for (segments, marked) in
            [(8, 0), (8, 8), (10, 1), (12, 9), (15, 8), (20, 18), (40, 20), (40, 3), (64, 64)]
        {
            let (mut counted, mut known) =
                (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
            receive(&mut counted, Ecn::Ce, marked);
            receive(&mut counted, Ecn::Ect0, segments - marked);
            let (packets, bytes) = known.take(&told(&counted, true), &delivered(segments));
            assert_eq!((packets, bytes), (marked, u64::from(marked) * MSS), "{marked} of {segments}");
        }
    }

    #[test]
    fn without_the_option_a_possible_wrap_is_taken_for_one() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        receive(&mut counted, Ecn::Ce, 1);
        receive(&mut counted, Ecn::Ect0, 9);
        // One or nine: the safe reading is nine (appendix A.2.1).
        assert_eq!(known.take(&told(&counted, false), &delivered(10)), (9, 9 * MSS));
        // Up to seven there is only one reading.
        receive(&mut counted, Ecn::Ect0, 7);
        let mut known = SenderCounters::after(false);
        assert_eq!(known.take(&told(&counted, false), &delivered(7)), (1, MSS));
    }

    #[test]
    fn byte_counters_wrap_at_16_mib() {
        let (mut counted, mut known) = (ReceiverCounters::after(Ecn::NotEct), SenderCounters::after(false));
        let mut sum = 0;
        for _ in 0..20_000 {
            receive(&mut counted, Ecn::Ce, 1);
            sum += known.take(&told(&counted, true), &delivered(1)).1;
            counted.on_told(true);
        }
        assert_eq!(sum, 20_000 * MSS);
    }

    #[test]
    fn changes_and_many_marks_are_told_at_once() {
        let mut counted = ReceiverCounters::after(Ecn::NotEct);
        let news: Vec<bool> =
            [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0]
                .map(|ecn| counted.count(ecn, 1448))
                .into();
        assert_eq!(news, [true, false, true, false, false, false, false, true, true]);
    }
}
