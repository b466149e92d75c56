mod pair;
use pair::config;
use std::collections::VecDeque;
use std::time::Instant;
use weir_base::{Bytes, Ecn, Random, Span, Time};
use weir_transport::tcp::{Connection, Segment};
fn run(label: &str, window: u64, loss: f64, packets: u64) {
    let mut c = config("cubic");
    c.send_buffer = (Bytes::new(window * 1448), Bytes::new(window * 1448));
    c.receive_buffer = (Bytes::new(64 << 20), Bytes::new(64 << 20));
    let mut a = Connection::client(c.clone(), Time::ZERO);
    let mut b = Connection::server(c);
    a.write_forever();
    let mut random = Random::stream(1, "loss");
    // a pipe that serialises at 1 us a packet and has 1 ms delay each way
    let mut forth: VecDeque<(Time, Segment)> = VecDeque::new();
    let mut back: VecDeque<(Time, Segment)> = VecDeque::new();
    let mut now = Time::ZERO;
    let mut free = Time::ZERO;
    let mut sent = 0u64;
    let delay = Span::from_millis(20);
    let start = Instant::now();
    let mut acks = 0u64;
    while sent < packets {
        while let Some((s, _)) = a.poll_transmit(now) {
            if s.len > 0 {
                sent += 1;
            }
            free = free.max(now) + Span::from_nanos(12_000);
            if s.len > 0 && random.chance(loss) {
                continue;
            }
            forth.push_back((free + delay, s));
        }
        while let Some((s, _)) = b.poll_transmit(now) {
            acks += 1;
            back.push_back((now + delay, s));
        }
        b.take_read();
        let (f, k) = (forth.front().map_or(Time::NEVER, |x| x.0), back.front().map_or(Time::NEVER, |x| x.0));
        let t = a.next_timer().min(b.next_timer());
        now = f.min(k).min(t);
        if now == f {
            let s = forth.pop_front().unwrap().1;
            b.on_segment(&s, Ecn::NotEct, now);
        } else if now == k {
            let s = back.pop_front().unwrap().1;
            a.on_segment(&s, Ecn::NotEct, now);
        } else {
            a.on_timer(now);
            b.on_timer(now);
        }
    }
    let e = start.elapsed();
    let i = a.info().unwrap();
    println!(
        "SPEED {label}: {:.1} ns a data segment, {acks} acks, cwnd {} flight {} retrans {} timeouts {} rec {}",
        e.as_nanos() as f64 / packets as f64,
        i.cwnd,
        i.in_flight,
        i.retransmitted,
        i.timeouts,
        i.recoveries
    );
}
#[test]
fn speed() {
    run("clean 8333", 8333, 0.0, 3_000_000);
    run("clean 100", 100, 0.0, 3_000_000);
    run("loss 1e-4", 8333, 1e-4, 3_000_000);
    run("loss 1%", 8333, 0.01, 1_000_000);
    run("loss 5%", 8333, 0.05, 300_000);
}
