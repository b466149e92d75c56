//! Ends whose clocks differ in offset, rate and tick: TCP itself does not depend on it.

use crate::pair::{Pair, Script, config};
use weir_base::{Clock, Rate, Span, Time};
use weir_tcp::Config;

fn with(clock: Clock) -> Config {
    Config { clock, ..config("cubic") }
}

fn between(client: Clock, server: Clock) -> Pair {
    Pair::between(with(client), with(server), Span::from_millis(20), Some(Rate::from_mbit_per_sec(10)))
}

/// A clock that counts microseconds.
fn micros() -> Clock {
    Clock { tick: Span::from_micros(1), ..Clock::default() }
}

#[test]
fn each_end_stamps_with_its_own_clock_and_echoes_the_others() {
    let server = Clock { offset: Some(Span::from_secs(40)), skew_ppm: 1_000, tick: Span::from_millis(4) };
    let mut pair = between(micros(), server);
    pair.transfer(2_000_000, Span::from_secs(10));
    assert!(pair.finished_at.is_some());
    for (clock, log) in [(micros(), &pair.forth.log), (server, &pair.back.log)] {
        assert!(log.iter().all(|(at, segment, _)| segment.tsval == clock.ticks(*at)));
    }
    // 40 s are 10,000 ticks of 4 ms; the transfer takes about two seconds.
    let (_, last, _) = pair.back.log.last().unwrap();
    assert!((10_400..10_700).contains(&last.tsval), "{}", last.tsval);
    let echoes = |(_, segment, _): &(Time, weir_endpoint::Segment, _)| segment.tsecr > 10_000;
    assert!(pair.forth.log.iter().skip(1).all(echoes));
}

#[test]
fn timestamp_clocks_do_not_change_a_transfer_with_losses() {
    let run = |clock: Clock| {
        let script = Script { drop: vec![30, 31, 90, 200], ..Script::default() };
        let (rtt, rate) = (Span::from_millis(20), Some(Rate::from_mbit_per_sec(10)));
        let mut pair = Pair::new(with(clock), rtt, rate, script, Script::default());
        let info = pair.transfer(2_000_000, Span::from_secs(10));
        (pair.finished_at.unwrap(), info.retransmitted, info.timeouts, info.undos)
    };
    let plain = run(Clock::default());
    assert!(plain.1 >= 4);
    // Also over the wrap of 32 bits: with the second offset, the milliseconds wrap a second after the start.
    for offset in [Span::from_secs(1_000_000), Span::from_millis(4_294_966_296)] {
        assert_eq!(run(Clock { offset: Some(offset), ..Clock::default() }), plain);
    }
    assert_eq!(run(Clock { skew_ppm: 100, ..Clock::default() }), plain);
}
