//! The handshake (RFC 9293), with ECN's negotiation in it (RFC 3168, RFC 9768 section 3.1).

use super::super::accecn::{self, ReceiverCounters, SenderCounters};
use super::super::jiffies;
use super::super::sender::{Sender, micros};
use super::{Connection, First, State};
use weir_base::{Ecn, Time};
use weir_control::Feedback;
use weir_endpoint::{Flags, Segment};

impl Connection {
    pub(super) fn wire_ack(&self, segment: &Segment) -> u64 {
        u64::from(segment.ack.wrapping_sub(self.config.initial_sequence) as i32 > 0)
    }

    pub(super) fn on_syn(&mut self, segment: &Segment, ecn: Ecn, now: Time) {
        match self.state {
            State::Listen if !segment.flags.has(Flags::ACK) => {
                self.peer_sequence = segment.seq;
                self.receiver.recent = segment.tsval;
                self.opened_with = ecn;
                self.agreed = self.grant(segment.flags);
                self.state = State::SynReceived;
                self.first = First::Syn;
            }
            State::SynSent
                if segment.flags.has(Flags::ACK)
                    && segment.ack == self.config.initial_sequence.wrapping_add(1) =>
            {
                self.peer_sequence = segment.seq;
                self.receiver.recent = segment.tsval;
                self.opened_with = ecn;
                self.agreed = self.granted(segment.flags);
                self.establish(segment, now);
                self.first = First::Answer;
            }
            // Our SYN-ACK was lost, or the answer to it.
            State::SynReceived if segment.seq == self.peer_sequence => self.first = First::Syn,
            State::Established if segment.seq == self.peer_sequence => self.receiver.ack_due = true,
            _ => {}
        }
    }

    /// The feedback agreed on with a client whose SYN has these flags: Accurate ECN if both ends support it, otherwise RFC 3168
    /// (RFC 9768, section 3.1); `None` without ECN.
    fn grant(&self, asked: Flags) -> Option<Feedback> {
        let classic = Flags::ECE.with(Flags::CWR);
        match self.config.feedback {
            _ if !self.config.ecn || !asked.has(classic) => None,
            Feedback::Accurate if !asked.has(Flags::AE) => Some(Feedback::Classic),
            feedback => Some(feedback),
        }
    }

    /// The feedback that a server has agreed to, by the flags of its SYN-ACK (RFC 9768, table 2); `None` without ECN.
    fn granted(&self, answer: Flags) -> Option<Feedback> {
        let asked_accurately = self.config.feedback == Feedback::Accurate;
        match accecn::ace_of(answer) {
            _ if !self.config.ecn => None,
            0b010 | 0b011 | 0b100 | 0b110 if asked_accurately => Some(Feedback::Accurate),
            0b001 | 0b101 if asked_accurately => Some(Feedback::Classic),
            0b001 | 0b101 => Some(self.config.feedback),
            _ => None,
        }
    }

    pub(super) fn establish(&mut self, segment: &Segment, now: Time) {
        self.state = State::Established;
        self.handshake.deadline = Time::NEVER;
        self.first = First::Nothing;
        let rtt = self.handshake_rtt(segment, now);
        let mut sender =
            Box::new(Sender::new(&self.config, self.handshake.written, now, segment.window, rtt));
        self.receiver.window.begin(now);
        let accurate = self.agreed == Some(Feedback::Accurate);
        sender.ecn.echoes = self.agreed.is_some() && !accurate;
        self.receiver.feedback = self.agreed;
        if accurate {
            // The acknowledgement that ends the handshake reports a mark of the SYN-ACK.
            let ends = !segment.flags.has(Flags::SYN) && segment.len == 0;
            let reports_mark = ends && accecn::ace_of(segment.flags) == accecn::handshake_ace(Ecn::Ce);
            sender.ecn.accecn = Some(SenderCounters::after(reports_mark));
            // A server is opened by the SYN, which is not counted.
            let counted = if segment.flags.has(Flags::SYN) { self.opened_with } else { Ecn::NotEct };
            self.receiver.accecn = Some(ReceiverCounters::after(counted));
        }
        sender.counters.retransmitted = u64::from(self.handshake.attempts.saturating_sub(1));
        sender.counters.timeouts = sender.counters.retransmitted;
        self.sender = Some(sender);
    }

    /// The RTT of the handshake in microseconds or, after a retransmission, the RTT by the echoed timestamp; `None` without an echo.
    fn handshake_rtt(&self, segment: &Segment, now: Time) -> Option<u64> {
        match self.handshake.first_sent {
            Some(sent) if self.handshake.attempts == 1 => Some(micros(now) - micros(sent)),
            _ if segment.tsecr != 0 => {
                let clock = &self.config.clock;
                clock.since(segment.tsecr, now).map(|since| since.max(clock.tick).as_micros())
            }
            _ => None,
        }
    }

    /// A segment of the handshake, or an acknowledgement of the state before the last segment.
    #[cold]
    pub(super) fn transmit_first(&mut self, segment: &mut Segment, now: Time) -> Option<Ecn> {
        match std::mem::replace(&mut self.first, First::Nothing) {
            First::Nothing => return None,
            First::Syn => {
                let (syn, ecn) = self.send_syn(now);
                *segment = syn;
                return Some(ecn);
            }
            First::Answer => {
                self.acknowledge(segment, now);
                if self.agreed == Some(Feedback::Accurate) {
                    let ace = accecn::handshake_ace(self.opened_with);
                    segment.flags = Flags::ACK.with(accecn::flags_of(ace));
                }
            }
            First::Early(acknowledgement) => *segment = acknowledgement,
        }
        Some(self.control_codepoint())
    }

    fn send_syn(&mut self, now: Time) -> (Segment, Ecn) {
        let handshake = &mut self.handshake;
        handshake.attempts += 1;
        handshake.first_sent.get_or_insert(now);
        handshake.deadline = jiffies::deadline(now, handshake.rto);
        handshake.rto *= 2;
        let answer = self.state == State::SynReceived;
        let mut flags = Flags::SYN;
        if answer {
            flags = flags.with(Flags::ACK);
            flags = flags.with(match self.agreed {
                Some(Feedback::Accurate) => accecn::flags_of(accecn::handshake_ace(self.opened_with)),
                Some(Feedback::Classic | Feedback::Dctcp) => Flags::ECE,
                None => Flags::NONE,
            });
        } else if self.config.ecn && self.handshake.attempts <= 2 {
            // ECN is given up after a lost SYN, since a middlebox may not support it (RFC 3168, section 6.1.1.1).
            flags = flags.with(Flags::ECE).with(Flags::CWR);
            if self.config.feedback == Feedback::Accurate {
                flags = flags.with(Flags::AE);
            }
        }
        let segment = Segment {
            seq: self.config.initial_sequence,
            ack: if answer { self.peer_sequence.wrapping_add(1) } else { 0 },
            window: self.receiver.window.of_syn(1, answer),
            tsval: self.config.clock.ticks(now),
            tsecr: self.receiver.recent,
            flags,
            ..Segment::default()
        };
        let asked = self.config.feedback == Feedback::Dctcp && flags.has(Flags::ECE);
        (segment, if asked { self.config.codepoint.as_ecn() } else { Ecn::NotEct })
    }
}
