//! Handshakes between two ends in memory.

use super::*;

const SHARED: [u8; KEY] = [9; KEY];
const NOW: Time = Time::ZERO;

struct Both {
    client: Keys,
    server: [u8; KEY],
    responder: Responder,
}

/// A client, and a server that allows it.
fn both() -> Both {
    let (client, server) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let public = server.public;
    let responder = Responder::new(server, SHARED, &[client.public], &[5; KEY]);
    Both { client, server: public, responder }
}

impl Both {
    fn ask(&self, stamp: u64) -> Initiator {
        Initiator::new(&self.client, &self.server, &SHARED, 77, stamp).unwrap()
    }
}

fn agreed(answer: Answer) -> (Vec<u8>, Box<Seal>) {
    let Answer::Agreed { reply, seal, connection: 77, .. } = answer else { panic!("they do not agree") };
    (reply, seal)
}

fn is_nothing(answer: Answer) -> bool {
    matches!(answer, Answer::Nothing)
}

fn packet() -> Vec<u8> {
    let mut packet = vec![0x53, 0, 0, 77, 0, 0, 0, 1, 0, 0, 0, 0];
    packet.extend(b"hello");
    packet
}

#[test]
fn two_ends_that_know_each_others_keys_complete_the_handshake() {
    let mut both = both();
    let mut initiator = both.ask(1);
    let request = initiator.request(0, 0);
    assert_eq!(request.len(), REQUEST);
    let (reply, mut there) = agreed(both.responder.take(&request, b"address", false, NOW));
    assert!(reply.len() < REQUEST);
    let Some(Step::Agreed(mut here, _)) = initiator.take(&reply, NOW) else { panic!("no agreement") };
    let mut said = packet();
    assert!(here.seal(&mut said, NOW));
    assert_eq!(there.open(&mut said, NOW), Some((1, &mut packet()[..])));
}

#[test]
fn a_repeated_request_gets_the_same_reply_and_another_one_with_its_stamp_gets_none() {
    let mut both = both();
    let earlier = both.ask(4).request(0, 0);
    let mut initiator = both.ask(5);
    let (reply, _) = agreed(both.responder.take(&initiator.request(0, 0), b"a", false, NOW));
    let Answer::Reply(again) = both.responder.take(&initiator.request(1, 9), b"a", false, NOW) else {
        panic!("a second agreement")
    };
    // The answer carries the number and the time of the request that it answers.
    assert_eq!(Header::read(&again).map(|(header, _)| (header.number, header.timestamp)), Some((1, 9)));
    assert_eq!(again[HEADER..], reply[HEADER..]);
    assert!(matches!(initiator.take(&again, NOW), Some(Step::Agreed(_, 1))));
    assert!(is_nothing(both.responder.take(&both.ask(5).request(0, 0), b"a", false, NOW)));
    // A request that was overtaken is not a replay.
    agreed(both.responder.take(&earlier, b"a", false, NOW));
    agreed(both.responder.take(&both.ask(6).request(0, 0), b"a", false, NOW));
}

#[test]
fn a_bounded_number_of_requests_is_remembered_and_older_ones_count_as_replayed() {
    let mut asked = Asked::default();
    let remembered = REMEMBERED as u64;
    for stamp in 1..=remembered + 1 {
        assert!(!asked.knows(stamp));
        asked.remember(stamp, b"", b"");
    }
    assert!(asked.knows(0) && asked.knows(1) && asked.knows(2) && !asked.knows(remembered + 2));
    assert_eq!(asked.answered.len(), REMEMBERED);
}

#[test]
fn an_unauthorized_client_or_one_with_another_secret_completes_no_handshake() {
    let mut both = both();
    let stranger = Keys::generate().unwrap();
    let ask = |keys, server, shared| Initiator::new(keys, server, shared, 77, 9).unwrap().request(0, 0);
    let request = ask(&stranger, &both.server, &SHARED);
    assert!(is_nothing(both.responder.take(&request, b"a", false, NOW)));
    let request = ask(&both.client, &stranger.public, &SHARED);
    assert!(is_nothing(both.responder.take(&request, b"a", false, NOW)));
    // A wrong secret shows only in the answer, which then does not open; the request does not depend on it.
    let mut other = Initiator::new(&both.client, &both.server, &[8; KEY], 77, 9).unwrap();
    let (reply, _) = agreed(both.responder.take(&other.request(0, 0), b"a", false, NOW));
    assert!(other.take(&reply, NOW).is_none());
}

#[test]
fn forged_and_truncated_handshake_packets_are_ignored() {
    let mut both = both();
    let mut initiator = both.ask(1);
    let request = initiator.request(0, 0);
    let message = HEADER + COOKIE + 2;
    for at in (1..4).chain(message..message + 90) {
        let mut forged = request.clone();
        forged[at] ^= 1;
        assert!(is_nothing(both.responder.take(&forged, b"a", false, NOW)), "byte {at}");
    }
    for length in [0, 5, HEADER, 100, REQUEST - 1] {
        assert!(is_nothing(both.responder.take(&request[..length], b"a", false, NOW)));
    }
    let (reply, _) = agreed(both.responder.take(&request, b"a", false, NOW));
    for at in (0..4).chain(HEADER..reply.len()) {
        let mut forged = reply.clone();
        forged[at] ^= 1;
        assert!(initiator.take(&forged, NOW).is_none(), "byte {at}");
        assert!(initiator.take(&reply[..at], NOW).is_none());
    }
    assert!(initiator.take(&request, NOW).is_none(), "its own request came back");
    assert!(matches!(initiator.take(&reply, NOW), Some(Step::Agreed(..))));
}

#[test]
fn a_responder_under_load_requires_a_cookie_valid_for_the_address_and_a_time() {
    let mut both = both();
    let mut initiator = both.ask(1);
    let Answer::Reply(cookie) = both.responder.take(&initiator.request(0, 0), b"here", true, NOW) else {
        panic!("no cookie")
    };
    assert_eq!(cookie.len(), HEADER + COOKIE);
    assert!(matches!(initiator.take(&cookie, NOW), Some(Step::Again)));
    let request = initiator.request(1, 0);
    // The cookie is valid for this address only, and for two to four minutes.
    assert!(matches!(both.responder.take(&request, b"elsewhere", true, NOW), Answer::Reply(_)));
    let late = NOW + COOKIE_TIME * 2;
    assert!(matches!(both.responder.take(&request, b"here", true, late), Answer::Reply(_)));
    let (reply, _) = agreed(both.responder.take(&request, b"here", true, NOW + COOKIE_TIME));
    assert!(matches!(initiator.take(&reply, NOW), Some(Step::Agreed(..))));
}
