//! A TCP connection: the handshake (RFC 9293, RFC 6298 section 5 for its timer), then a [`Sender`] and a [`Receiver`], which share
//! the segments. Simplifications: no simultaneous open and no RST, TIME-WAIT only answers retransmissions, and options are not
//! negotiated, since both ends are this code.

mod handshake;
mod header;
mod info;

pub use info::Info;

use super::accecn::{self, AccEcnFeedback};
use super::ack::Arrival;
use super::batch::Next;
use super::config::Config;
use super::receiver::{Data, Receiver};
use super::rto::RTO_INITIAL;
use super::sender::{Forced, Sender};
use super::written::Written;
use weir_base::{Ecn, Time};
use weir_control::Feedback;
use weir_endpoint::{Flags, MAX_SACK, Sack, Segment};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    Established,
}

/// The handshake's own timer.
#[derive(Debug, Clone)]
struct Handshake {
    rto: u64,
    deadline: Time,
    first_sent: Option<Time>,
    attempts: u32,
    /// The data that the application has written so far.
    written: Written,
}

/// A segment that leaves before all others.
#[derive(Debug)]
enum First {
    Nothing,
    /// A SYN or a SYN-ACK.
    Syn,
    /// The acknowledgement of the SYN-ACK, which leaves before any data (`tcp_rcv_synsent_state_process`).
    Answer,
    /// An acknowledgement of the state before the last segment.
    Early(Segment),
}

/// One endpoint of a connection.
pub struct Connection {
    config: Config,
    state: State,
    handshake: Handshake,
    peer_sequence: u32,
    sender: Option<Box<Sender>>,
    receiver: Receiver,
    /// The feedback that both sides have agreed on; `None` without ECN.
    agreed: Option<Feedback>,
    /// The codepoint of the packet with the peer's SYN or SYN-ACK.
    opened_with: Ecn,
    first: First,
    /// The newest segment with new data and its packet's codepoint, if the next segment of its batch has the same header fields.
    first_of_batch: Option<(Segment, Ecn)>,
    now: Time,
}

impl Connection {
    /// Opens a connection: a SYN is due at once.
    pub fn client(config: Config, now: Time) -> Connection {
        let mut connection = Connection::server(config);
        connection.open(now);
        connection
    }

    /// Opens a connection that has waited for a SYN until now: its own SYN is due at once.
    pub fn open(&mut self, now: Time) {
        self.now = now;
        if self.state == State::Listen {
            self.state = State::SynSent;
            self.first = First::Syn;
        }
    }

    /// Waits for a SYN.
    pub fn server(config: Config) -> Connection {
        Connection {
            receiver: Receiver::new(&config),
            config,
            state: State::Listen,
            handshake: Handshake {
                rto: RTO_INITIAL,
                deadline: Time::NEVER,
                first_sent: None,
                attempts: 0,
                written: Written::default(),
            },
            peer_sequence: 0,
            sender: None,
            agreed: None,
            opened_with: Ecn::NotEct,
            first: First::Nothing,
            first_of_batch: None,
            now: Time::ZERO,
        }
    }

    /// A segment arrives, with the codepoint of its packet.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, ecn: Ecn, now: Time) {
        self.now = now;
        if self.on_next_data(segment, ecn, now) || (segment.len == 0 && self.on_next_ack(segment, now)) {
            return;
        }
        self.on_other(segment, ecn, now);
    }

    /// Takes a segment that is not of the two most frequent kinds.
    #[inline(never)]
    fn on_other(&mut self, segment: &Segment, ecn: Ecn, now: Time) {
        if segment.flags.has(Flags::SYN) {
            self.on_syn(segment, ecn, now);
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        if self.state == State::SynReceived {
            if segment.ack != self.config.initial_sequence.wrapping_add(1) && self.wire_ack(segment) == 0 {
                return;
            }
            self.establish(segment, now);
            // The three bits of an acknowledgement without data report the handshake, not the counter.
            let counts = segment.len > 0;
            self.on_established(segment, ecn, counts, now);
        } else if self.state == State::Established {
            self.on_established(segment, ecn, true, now);
        }
    }

    /// Takes a segment of an established connection. `counts` says that the three bits of Accurate ECN report the counter.
    fn on_established(&mut self, segment: &Segment, ecn: Ecn, counts: bool, now: Time) {
        let Some(sender) = self.sender.as_deref_mut() else { return };
        let seq = position(segment.seq, self.peer_sequence, self.receiver.next);
        let Some(seq) = seq else { return };
        let has_data = segment.len > 0 || segment.flags.has(Flags::FIN);
        let end = seq + u64::from(segment.sequence_len());
        // All its data is old: it is answered, but its acknowledgement is ignored (`tcp_validate_incoming`).
        let stale = end < self.receiver.last_acked();
        let mut feedback = None;
        if !stale {
            if let Some(counted) = &mut self.receiver.accecn {
                let newer = (segment.tsval.wrapping_sub(self.receiver.recent) as i32) > 0;
                let ace = accecn::ace_of(segment.flags);
                feedback = counts.then_some(AccEcnFeedback { ace, counters: segment.counters, newer });
                if counted.count(ecn, segment.len.into()) && segment.len > 0 {
                    self.receiver.acks.demand();
                }
            }
            self.receiver.take_timestamp(seq, segment.tsval);
            let mut blocks = [(0, 0); MAX_SACK];
            let count = if segment.sack.is_empty() || !self.config.sack {
                0
            } else {
                positions(&segment.sack, self.config.initial_sequence, sender.una, &mut blocks)
            };
            if let Some(ack) = position(segment.ack, self.config.initial_sequence, sender.una) {
                let arrival = Arrival {
                    has_data,
                    ece: segment.flags.has(Flags::ECE),
                    feedback,
                    ..Arrival::plain(segment, ack, seq, &blocks[..count])
                };
                sender.on_ack(&arrival, now);
                sender.check_space(now);
            }
        }
        if has_data {
            if self.receiver.must_tell_first(seq, end, ecn) {
                self.acknowledge_early(now);
                self.receiver.on_delayed_ack_sent(seq);
            }
            let Some(sender) = self.sender.as_deref() else { return };
            let data = Data::of(segment, seq, ecn);
            self.receiver.on_data(&data, sender.rtt.srtt(), sender.rtt.rto(), now);
            self.report_blocks(now);
        } else if stale
            || (seq < self.receiver.next && segment.len == 0 && stale_probe(seq, self.receiver.next))
        {
            self.receiver.ack_due = true;
        }
    }

    /// An acknowledgement of the present state leaves before all others.
    fn acknowledge_early(&mut self, now: Time) {
        let next = self.sender.as_deref().map_or(1, |sender| sender.next);
        let mut early = Segment::default();
        self.compose(&mut early, next, 0, Flags::ACK, now);
        self.first = First::Early(early);
    }

    /// Sends the compressed acknowledgements if the last data displaces a SACK block that they have not reported.
    #[inline]
    fn report_blocks(&mut self, now: Time) {
        if self.receiver.must_tell_blocks() {
            self.acknowledge_early(now);
            self.receiver.on_blocks_sent();
        }
    }

    /// Takes a segment of the most frequent kind and returns whether it is one: the next data in order, without special flags, from
    /// a peer to which nothing is outstanding (header prediction, `tcp_rcv_established`).
    #[inline(always)]
    fn on_next_data(&mut self, segment: &Segment, ecn: Ecn, now: Time) -> bool {
        let Some(sender) = self.sender.as_deref_mut() else { return false };
        let seq = self.receiver.next;
        let predicted = segment.len > 0
            && (segment.flags == Flags::ACK || segment.flags == Flags::ACK.with(Flags::PSH))
            && segment.seq == wire(seq, self.peer_sequence)
            && segment.ack == wire(sender.una, self.config.initial_sequence)
            && segment.sack.is_empty()
            && self.agreed.is_none()
            && sender.board.out() == 0;
        if !predicted {
            return false;
        }
        self.receiver.take_timestamp(seq, segment.tsval);
        let data = Data { fin: false, cwr: false, ..Data::of(segment, seq, ecn) };
        self.receiver.take_in(&data, sender.rtt.srtt(), sender.rtt.rto(), now);
        sender.on_window(seq, segment.window);
        true
    }

    /// Takes a segment of the second most frequent kind and returns whether it is one: an acknowledgement of new data, without data,
    /// special flags or options, that the sender [predicts](Sender::predicts).
    #[inline(never)]
    fn on_next_ack(&mut self, segment: &Segment, now: Time) -> bool {
        let Some(sender) = self.sender.as_deref_mut() else { return false };
        let seq = self.receiver.next;
        let plain = segment.flags == Flags::ACK
            && segment.seq == wire(seq, self.peer_sequence)
            && segment.sack.is_empty()
            && self.agreed.is_none();
        let Some(ack) = position(segment.ack, self.config.initial_sequence, sender.una) else { return false };
        if !plain || !sender.predicts(ack) {
            return false;
        }
        self.receiver.take_timestamp(seq, segment.tsval);
        let arrival = Arrival::plain(segment, ack, seq, &[]);
        sender.on_predicted_ack(&arrival, now);
        sender.check_space(now);
        sender.answers = true;
        true
    }

    /// Handles the deadlines that have passed.
    pub fn on_timer(&mut self, now: Time) {
        self.now = now;
        if now >= self.handshake.deadline {
            self.handshake.deadline = Time::NEVER;
            self.first = First::Syn;
        }
        if self.receiver.acks.deadline() <= now && self.receiver.acks.on_timer(now) {
            self.receiver.ack_due = true;
        }
        if let Some(sender) = self.sender.as_deref_mut() {
            sender.on_timer(now);
        }
    }

    /// When [`Connection::on_timer`], and [`Connection::poll_transmit`] after it, must be called next, for a timer or the pacer.
    #[inline]
    pub fn next_timer(&self) -> Time {
        let timers = self.receiver.acks.deadline();
        match self.sender.as_deref() {
            // The handshake is done, so its timer is not set.
            Some(sender) => timers.min(sender.deadline).min(sender.pacing_deadline(self.now)),
            None => timers.min(self.handshake.deadline),
        }
    }

    /// The next segment that leaves now, with the codepoint of its packet. Must be called until it returns `None` after every
    /// other call that may have changed the state.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        let mut segment = Segment::default();
        self.transmit_into(&mut segment, now).map(|ecn| (segment, ecn))
    }

    /// As [`Connection::poll_transmit`], but writes the segment in place; it is unchanged if nothing leaves.
    #[inline(always)]
    pub fn transmit_into(&mut self, segment: &mut Segment, now: Time) -> Option<Ecn> {
        self.now = now;
        if self.goes_first() {
            return self.transmit_first(segment, now);
        }
        let sender = self.sender.as_deref_mut()?;
        if !sender.waits {
            if std::mem::take(&mut sender.answers) && sender.begins_answer() {
                self.first_of_batch = None;
            }
            match sender.next_in_batch(now) {
                Next::Segment(outgoing) => return Some(self.put_next_on_wire(outgoing, segment, now)),
                Next::Full => sender.end_burst(now),
                Next::Over => {
                    if let Some(outgoing) = sender.poll(now) {
                        return Some(self.put_on_wire(outgoing, segment, now));
                    }
                }
            }
        }
        if self.receiver.ack_due {
            self.acknowledge(segment, now);
            return Some(self.control_codepoint());
        }
        None
    }

    /// Whether a segment waits that leaves before all others.
    #[inline]
    fn goes_first(&self) -> bool {
        !matches!(self.first, First::Nothing)
    }

    /// Whether [`Connection::transmit_into`] would send nothing and change nothing.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        let Some(sender) = self.sender.as_deref() else { return false };
        debug_assert!(!sender.waits || sender.would_wait());
        sender.waits && !self.receiver.ack_due && !self.goes_first()
    }

    /// The host's queue accepts no packet now. Returns whether data that would leave now stays unsent for this reason. Segments of
    /// the handshake and acknowledgements without data do not wait.
    pub fn refused(&mut self, now: Time) -> bool {
        self.now = now;
        self.sender.as_deref_mut().is_some_and(|sender| sender.refused(now))
    }

    /// No more is sent for now, since enough data waits below TCP.
    pub fn throttled(&mut self, now: Time) {
        if let Some(sender) = self.sender.as_deref_mut() {
            sender.end_burst(now);
        }
    }

    /// Bytes of its data that may wait below TCP.
    pub fn small_queue(&self) -> u64 {
        self.sender.as_deref().map_or(u64::MAX, Sender::small_queue)
    }

    /// The data that the application has written.
    fn written(&mut self) -> &mut Written {
        match self.sender.as_deref_mut() {
            Some(sender) => {
                sender.waits = false;
                sender.batch.end();
                &mut sender.written
            }
            None => &mut self.handshake.written,
        }
    }

    /// The application writes. Returns the number of bytes that the send buffer accepts. If these are not all, the application waits, and
    /// the buffer accepts nothing until a third of it is free, when Linux wakes the application.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if let Some(sender) = self.sender.as_deref_mut()
            && !sender.buffer.is_awaited()
        {
            sender.check_app_limited();
        }
        let accepted = if self.written().closed { 0 } else { self.room_for(bytes) };
        self.written().end += accepted;
        if let Some(sender) = self.sender.as_deref_mut() {
            let full = accepted < bytes;
            if !sender.buffer.is_awaited() {
                sender.note_written(sender.written.end - accepted, full);
            }
            if full {
                sender.buffer.wait();
            }
        }
        accepted
    }

    /// The bytes of a write that are accepted: all of them, or whole segments, as the kernel fills one buffer after the other.
    fn room_for(&self, bytes: u64) -> u64 {
        let room = self.writable();
        if bytes <= room {
            return bytes;
        }
        let unsent = self.unsent();
        let whole = (unsent + room) / u64::from(self.config.mss) * u64::from(self.config.mss);
        whole.saturating_sub(unsent)
    }

    /// Written bytes that were not sent yet (`tcpi_notsent_bytes`).
    pub fn unsent(&self) -> u64 {
        match self.sender.as_deref() {
            Some(sender) => sender.written.beyond(sender.next),
            None => self.unacknowledged(),
        }
    }

    /// Largest number of bytes that [`Connection::write`] would accept now.
    pub fn writable(&self) -> u64 {
        match self.sender.as_deref() {
            Some(sender) if sender.buffer.is_awaited() => 0,
            Some(sender) => sender.buffer.capacity().saturating_sub(sender.held()),
            None => self.config.send_buffer.0.get().saturating_sub(self.unacknowledged()),
        }
    }

    /// From now on the application always has data: the send buffer stays full.
    pub fn write_forever(&mut self, greedy: bool) {
        self.written().write_forever(greedy);
    }

    /// The application closes its sending side: the written data is sent, then a FIN.
    pub fn close(&mut self) {
        self.written().close();
    }

    /// The application reads all data that has arrived in order. Returns the number of new bytes.
    pub fn take_read(&mut self) -> u64 {
        self.receiver.take_read()
    }

    /// Whether the handshake is done.
    pub fn is_open(&self) -> bool {
        self.state == State::Established
    }
    /// Whether all data up to the peer's FIN has arrived.
    pub fn finished(&self) -> bool {
        self.receiver.finished()
    }
    /// Whether all written data and the FIN are acknowledged.
    pub fn all_acknowledged(&self) -> bool {
        self.sender.as_deref().is_some_and(Sender::all_acknowledged)
    }
    /// Bytes written that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        match self.sender.as_deref() {
            Some(sender) => sender.written.beyond(sender.una),
            None => self.handshake.written.beyond(1),
        }
    }
}

impl Sender {
    /// When the pacer, or a window below one segment, allows the next segment; [`Time::NEVER`] if it holds none back.
    #[inline]
    fn pacing_deadline(&self, now: Time) -> Time {
        if !self.pacer.is_enforced() && !self.is_sub_mss() {
            return Time::NEVER;
        }
        let ready = self.new_data_ready_at();
        if ready <= now || self.forced != Forced::Nothing { Time::NEVER } else { self.held_until(ready) }
    }
}

/// Whether a segment without data at `seq` is a window probe: it is one position before the expected one.
fn stale_probe(seq: u64, next: u64) -> bool {
    seq + 1 == next
}

/// Writes the positions of SACK blocks within 2 GiB of `near` into `blocks` and returns their number.
#[inline(never)]
fn positions(sack: &Sack, initial: u32, near: u64, blocks: &mut [(u64, u64); MAX_SACK]) -> usize {
    let of =
        |&(start, end): &(u32, u32)| Some((position(start, initial, near)?, position(end, initial, near)?));
    blocks.iter_mut().zip(sack.blocks().iter().filter_map(of)).map(|(to, block)| *to = block).count()
}

fn wire(position: u64, initial: u32) -> u32 {
    initial.wrapping_add(position as u32)
}

/// The position of a sequence number that lies within 2 GiB of `near`; `None` before the SYN.
fn position(number: u32, initial: u32, near: u64) -> Option<u64> {
    let ahead = number.wrapping_sub(wire(near, initial)) as i32;
    near.checked_add_signed(i64::from(ahead))
}
