//! The secrets of a connection, by which captured packets of it can be opened. They are for tests and for those who look for a fault in what
//! two ends say to each other: who has them reads, and could forge, all packets of the connection.
//!
//! As text they are one line, `SLIQ CONNECTION SENT RECEIVED`: the connection's number and both secrets in hexadecimal digits, the secrets as
//! the end has them that wrote the line. The line of either end is enough. [`Unsealing`] derives later keys from the first ones, as the ends do
//! ([`seal`](super::seal)).

use super::seal::{Epoch, KEY, PHASE, low};
use crate::wire::{HEADER, Header, Kind, TAG, whole};
use weir_base::Hex;
use zeroize::Zeroizing;

/// What a line begins with.
const NAME: &str = "SLIQ";
/// How many changes of keys may lie before the first packet of a capture that opens: a day and a half if keys change by time.
const BEFORE_FIRST: u64 = 1024;
/// How many may lie between two packets that open.
const BETWEEN: u64 = 8;

/// The secrets of both directions from which the first keys of a connection are derived.
pub struct Secrets {
    /// The number of the connection, of 24 bits.
    pub connection: u32,
    sent: Zeroizing<[u8; KEY]>,
    received: Zeroizing<[u8; KEY]>,
}

impl Secrets {
    /// Those of a connection, as one end has them.
    pub(super) fn new(connection: u32, [sent, received]: [Zeroizing<[u8; KEY]>; 2]) -> Secrets {
        Secrets { connection, sent, received }
    }

    /// The line, without its end.
    pub fn line(&self) -> String {
        format!("{NAME} {:06x} {} {}", self.connection, Hex(&*self.sent), Hex(&*self.received))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &str) -> Result<Secrets, &'static str> {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(NAME) {
            return Err("it does not begin with SLIQ");
        }
        let number = words.next().filter(|digits| digits.len() == 6 && !digits.starts_with('+'));
        let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let connection = number.ok_or("the connection's number is no six hexadecimal digits")?;
        let mut secret = || words.next().and_then(bytes).ok_or("a secret is no 64 hexadecimal digits");
        let secrets = [secret()?, secret()?];
        match words.next() {
            None => Ok(Secrets::new(connection, secrets)),
            Some(_) => Err("there is more behind the second secret"),
        }
    }
}

/// A secret from its digits.
fn bytes(digits: &str) -> Option<Zeroizing<[u8; KEY]>> {
    let digits = digits.as_bytes();
    let mut secret = Zeroizing::new([0; KEY]);
    if digits.len() != 2 * KEY || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, digits) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(secret)
}

/// The number of the connection that a packet may be a sealed one of. `None` if it is too short for one, of another kind, or not of SLIQ.
pub fn connection_of(packet: &[u8]) -> Option<u32> {
    let mut header = *packet.first_chunk::<HEADER>().filter(|_| packet.len() >= HEADER + TAG)?;
    header[0] &= !PHASE;
    let (header, _) = Header::read(&header)?;
    (header.kind == Kind::Within).then_some(header.connection)
}

/// Opens captured packets of a connection, whoever sent them. Unlike an end it opens a packet as often as it is given.
pub struct Unsealing([Direction; 2]);

impl Unsealing {
    /// With these secrets; `None` if the cryptography refuses them.
    pub fn new(secrets: &Secrets) -> Option<Unsealing> {
        Some(Unsealing([Direction::new(&secrets.sent)?, Direction::new(&secrets.received)?]))
    }

    /// Opens a packet from SLIQ's header on. `into` is then the packet in clear, without the tag and with the bit of its key phase clear.
    /// Returns false if the packet is not one of the connection's sealed ones.
    pub fn open(&mut self, packet: &[u8], into: &mut Vec<u8>) -> bool {
        self.0.iter_mut().any(|direction| direction.open(packet, into))
    }
}

/// One direction.
struct Direction {
    before: Option<Epoch>,
    present: Epoch,
    /// The number of changes of keys before the present ones.
    changes: u64,
    /// The number after that of the packet that was opened last; `None` before the first.
    next: Option<u64>,
}

impl Direction {
    fn new(secret: &Zeroizing<[u8; KEY]>) -> Option<Direction> {
        Some(Direction { before: None, present: Epoch::new(secret.clone())?, changes: 0, next: None })
    }

    fn open(&mut self, packet: &[u8], into: &mut Vec<u8>) -> bool {
        let Some(header) = packet.first_chunk::<HEADER>().filter(|_| packet.len() >= HEADER + TAG) else {
            return false;
        };
        let number = whole(low(header), self.next.unwrap_or(0));
        let is_odd = header[0] & PHASE != 0;
        let fits = |changes: u64| (changes % 2 == 1) == is_odd;
        let opened = match &self.before {
            _ if fits(self.changes) && opens(&self.present, packet, number, into) => true,
            Some(before) if !fits(self.changes) => opens(before, packet, number, into),
            _ => false,
        };
        if opened || self.follow(packet, number, fits, into) {
            self.next = Some(number + 1);
            return true;
        }
        false
    }

    /// Opens a packet with later keys, which are the present ones from then on.
    fn follow(&mut self, packet: &[u8], number: u64, fits: impl Fn(u64) -> bool, into: &mut Vec<u8>) -> bool {
        let most = if self.next.is_none() { BEFORE_FIRST } else { BETWEEN };
        let (mut before, mut after) = (None, self.present.next());
        for changes in self.changes + 1..=self.changes + most {
            let Some(epoch) = after else { return false };
            if fits(changes) && opens(&epoch, packet, number, into) {
                // The keys just before the new ones may still be in use by packets that were overtaken.
                let previous = std::mem::replace(&mut self.present, epoch);
                self.before = before.or(Some(previous));
                self.changes = changes;
                return true;
            }
            after = epoch.next();
            before = Some(epoch);
        }
        false
    }
}

/// Opens a packet with these keys.
fn opens(keys: &Epoch, packet: &[u8], number: u64, into: &mut Vec<u8>) -> bool {
    into.clear();
    into.extend_from_slice(packet);
    let Some((header, rest)) = into.split_first_chunk_mut::<HEADER>() else { return false };
    if !keys.open(header, number, rest) {
        return false;
    }
    header[0] &= !PHASE;
    into.truncate(packet.len() - TAG);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Seal;
    use weir_base::{Span, Time};

    fn secret(byte: u8) -> Zeroizing<[u8; KEY]> {
        Zeroizing::new([byte; KEY])
    }

    /// Two ends, and the secrets as the first of them has them.
    fn ends() -> ([Seal; 2], Secrets) {
        let seal = |(a, b)| Seal::new(secret(a), secret(b), Time::ZERO).unwrap();
        let ends = [(1, 2), (2, 1)].map(seal);
        let secrets = Secrets::new(0xab_cdef, ends[0].secrets().unwrap());
        (ends, secrets)
    }

    fn packet(number: u32) -> Vec<u8> {
        [&[0x53, 0xab, 0xcd, 0xef][..], &number.to_be_bytes(), &[0; 4], b"what is said"].concat()
    }

    fn sealed(end: &mut Seal, number: u32, at: Time) -> Vec<u8> {
        let mut packet = packet(number);
        assert!(end.seal(&mut packet, at));
        packet
    }

    #[test]
    fn packets_of_both_ends_open_by_the_line_of_either_and_by_no_other() {
        let ([mut a, mut b], secrets) = ends();
        let own = Secrets::new(0xab_cdef, b.secrets().unwrap());
        assert_eq!(secrets.line(), format!("SLIQ abcdef {} {}", "01".repeat(32), "02".repeat(32)));
        let packets =
            [sealed(&mut a, 0, Time::ZERO), sealed(&mut b, 0, Time::ZERO), sealed(&mut a, 1, Time::ZERO)];
        let opened = |line: &str, sealed: &[u8]| {
            let (mut reader, mut into) = (Unsealing::new(&Secrets::read(line).unwrap()).unwrap(), vec![]);
            reader.open(sealed, &mut into).then_some(into)
        };
        for line in [secrets.line(), own.line()] {
            for (sealed, number) in packets.iter().zip([0, 0, 1]) {
                assert_eq!(opened(&line, sealed), Some(packet(number)));
                assert_eq!(opened(&line, &sealed[..sealed.len() - 1]), None, "it was cut");
            }
        }
        let other = Secrets::new(0xab_cdef, [secret(1), secret(3)]);
        assert_eq!(opened(&other.line(), &packets[1]), None);
        assert_eq!(opened(&secrets.line(), &packet(0)), None, "a plain packet");
    }

    #[test]
    fn a_capture_that_begins_after_changes_of_keys_opens_with_the_first_secrets() {
        let ([mut a, mut b], secrets) = ends();
        let at = |secs| Time::ZERO + Span::from_secs(secs);
        let mut all = vec![];
        for number in 0..10u32 {
            let now = at(u64::from(number) * 130);
            let there = sealed(&mut a, number, now);
            assert!(b.open(&mut there.clone(), now).is_some());
            let back = sealed(&mut b, number, now);
            assert!(a.open(&mut back.clone(), now).is_some());
            all.push(there);
        }
        assert!(a.secrets().is_none(), "the first secrets are wiped by then");
        let (mut reader, mut into) = (Unsealing::new(&secrets).unwrap(), vec![]);
        // The sixth packet is the first one; then one that was overtaken by a change of keys, and the last.
        for number in [5u32, 4, 5, 6, 9] {
            assert!(reader.open(&all[number as usize], &mut into), "{number}");
            assert_eq!(into, packet(number));
        }
    }

    #[test]
    fn what_is_no_line_is_refused_with_the_reason() {
        let told = |line: &str| Secrets::read(line).err().unwrap_or("it is read");
        let digits = "01".repeat(32);
        assert_eq!(told("TLS 000000"), "it does not begin with SLIQ");
        assert_eq!(told("SLIQ 12345"), "the connection's number is no six hexadecimal digits");
        assert_eq!(told("SLIQ 12345g"), "the connection's number is no six hexadecimal digits");
        assert_eq!(told(&format!("SLIQ 123456 {digits}")), "a secret is no 64 hexadecimal digits");
        assert_eq!(
            told(&format!("SLIQ 123456 {digits} +1{}", &digits[2..])),
            "a secret is no 64 hexadecimal digits"
        );
        assert_eq!(
            told(&format!("SLIQ 123456 {digits} {digits} x")),
            "there is more behind the second secret"
        );
        assert_eq!(told(&format!("  SLIQ 123456  {digits} {digits}\r\n")), "it is read");
    }
}
