//! Whatever comes to a member of a group, or from one to its sender, is taken or refused, and nothing panics. The first byte says which of three
//! the rest is: a datagram, what happens to a member, or what members say.

use weir_base::{Span, Time};
use weir_circuit::group::{Datagram, FRAGMENT, Next, Place, Receiver, Sender, checksum};
use weir_circuit::transfer::{Digest, Message};

/// Lengths of the files: one of three fragments, one without a byte, one of a byte more than a fragment.
const LENGTHS: [u64; 3] = [3000, 0, FRAGMENT as u64 + 1];
const SESSION: u64 = 7;

pub(crate) fn check(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => datagram(rest),
        1 => member(rest),
        _ => sender(rest),
    }
}

/// A datagram; its checksum is made right, since a fuzzer does not find it.
fn datagram(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let (Some(sum), Some(place)) = (checksum(&bytes), bytes.get_mut(4..8)) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    if let Some(datagram) = Datagram::decode(&bytes) {
        let mut again = vec![];
        datagram.encode(&mut again);
        assert_eq!(again, bytes);
    }
    Receiver::new(SESSION, LENGTHS.to_vec()).datagram(&bytes, Time::ZERO);
}

/// Four bytes for each thing that happens.
fn member(bytes: &[u8]) {
    let mut receiver = Receiver::new(SESSION, LENGTHS.to_vec());
    let (mut now, mut out) = (Time::ZERO, vec![]);
    for (sequence, [what, file, block, more]) in bytes.as_chunks::<4>().0.iter().enumerate() {
        let (file, block) = (u32::from(*file), u64::from(*block));
        match what % 6 {
            0 | 1 => {
                let place = Place { file, block, fragment: u16::from(more % 5) };
                let length = if what & 8 == 0 { FRAGMENT } else { usize::from(*more) * 4 };
                let payload = &[*what; FRAGMENT][..length];
                Datagram::Fragment { session: SESSION, sequence: sequence as u64, place, payload }
                    .encode(&mut out);
                receiver.datagram(&out, now);
            }
            2 => receiver.wants(file, block, now),
            3 => receiver.has(file, block),
            4 => drop(receiver.again(file, block, now)),
            _ => now += Span::from_millis(u64::from(*more)),
        }
        while let Some(whole) = receiver.take() {
            assert_eq!(whole.payload.len() as u64, LENGTHS[whole.file as usize]);
        }
        // What is due is due once.
        let mut count = 0;
        while let Some(message) = receiver.message(now) {
            assert!(message.encode().is_ok(), "it fits a frame");
            count += 1;
            assert!(count < 20);
        }
        assert!(receiver.next_time() > now);
    }
}

/// A line for each message, of a member whose number is the line's first byte.
fn sender(bytes: &[u8]) {
    let mut sender = Sender::new(LENGTHS.to_vec(), Time::ZERO);
    (0..3).for_each(|member| sender.join(member, Time::ZERO));
    sender.begin();
    let mut now = Time::ZERO;
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some((member, message)) = line.split_first()
            && let Ok(message) = Message::decode(message)
        {
            let _ = sender.hear(usize::from(member % 4), message, now);
        }
        for _ in 0..40 {
            match sender.next(now) {
                Next::Open { .. } => drop(sender.opened(Digest::of(b"x"))),
                Next::Fragment { place, .. } => assert!(place.first_byte() < LENGTHS[place.file as usize]),
                Next::Announcement => {}
                Next::Wait(until) => {
                    assert!(until > now);
                    now = until.min(now + Span::from_millis(50));
                    break;
                }
            }
        }
    }
    assert!(sender.silent(now).count() <= 3);
}
