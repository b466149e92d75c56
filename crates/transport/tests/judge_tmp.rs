mod pair;
use pair::{Pair, Script, config};
use weir_base::{Rate, Span, Time};
use weir_transport::tcp::Flags;
fn nums(s: &str) -> Vec<u64> {
    s.split(',').filter(|x| !x.is_empty()).map(|x| x.parse().unwrap()).collect()
}
fn lates(s: &str) -> Vec<(u64, Span)> {
    s.split(',')
        .filter(|x| !x.is_empty())
        .map(|x| {
            let (a, b) = x.split_once(':').unwrap();
            (a.parse().unwrap(), Span::from_secs_f64(b.parse().unwrap()))
        })
        .collect()
}
#[test]
fn judge() {
    let Ok(text) = std::env::var("SCENARIO") else { return };
    // cc;bytes;rate;rtt_us;drop;late;data_only;back_drop;dumpfile;ecn
    let f: Vec<&str> = text.split(';').collect();
    let mut c = config(f[0]);
    c.ecn = f[9] == "1";
    let rate: u64 = f[2].parse().unwrap();
    let mut p = Pair::new(
        c,
        Span::from_micros(f[3].parse().unwrap()),
        Some(Rate::from_bits_per_sec(rate)),
        Script { drop: nums(f[4]), late: lates(f[5]), data_only: f[6] == "1", ..Script::default() },
        Script { drop: nums(f[7]), ..Script::default() },
    );
    let bytes: u64 = f[1].parse().unwrap();
    p.write(bytes);
    if f[11] != "1" {
        p.finish();
    }
    if let Some((a, b)) = f[10].split_once(':') {
        p.forth.script.stall = Some((a.parse().unwrap(), Span::from_secs_f64(b.parse().unwrap())));
    }
    let mut cw = vec![];
    let mut last = (0, 0, weir_control::Phase::Open);
    let limit = Time::ZERO + Span::from_secs(if f[11] == "1" { 10 } else { 60 });
    while p.step(limit) {
        if let Some(i) = p.client.info() {
            let k = (i.cwnd, i.ssthresh.unwrap_or(0), i.phase);
            if k != last {
                cw.push(format!(
                    "S {:.1} cwnd {} ssthresh {} {:?} rto {} inflight {} lost {}",
                    p.now.as_secs_f64() * 1e3,
                    k.0,
                    k.1,
                    k.2,
                    i.rto,
                    i.in_flight,
                    i.lost
                ));
                last = k;
            }
        }
        if f[11] == "1" && p.read == bytes && p.finished_at.is_none() {
            p.finished_at = Some(p.now);
        }
        if f[11] != "1" && p.finished_at.is_some() && p.client.all_acknowledged() {
            break;
        }
    }
    let i = p.info();
    println!(
        "RESULT time {:.4} n {} retrans {} timeouts {} probes {} recoveries {} undos {} cwnd {} ssthresh {} srtt {:?} rto {} reordering {}",
        p.finished_at.map_or(0.0, |t| t.as_secs_f64()),
        p.read,
        i.retransmitted,
        i.timeouts,
        i.probes,
        i.recoveries,
        i.undos,
        i.cwnd,
        i.ssthresh.unwrap_or(0),
        i.srtt,
        i.rto,
        i.reordering
    );
    if !f[8].is_empty() {
        let mut ev = vec![];
        for (d, log) in [(">", &p.forth.log), ("<", &p.back.log)] {
            for (t, s, e) in log {
                ev.push((
                    *t,
                    format!(
                        "{:9.2} {d} seq {} len {} ack {} fl {:x} win {} sack {:?} ecn {}",
                        t.as_secs_f64() * 1e3,
                        s.seq,
                        s.len,
                        s.ack,
                        s.flags.bits(),
                        s.window,
                        s.sack(),
                        *e as u8
                    ),
                ));
            }
        }
        ev.sort_by_key(|e| e.0);
        let mut out: Vec<String> = ev.into_iter().map(|e| e.1).collect();
        out.extend(cw);
        std::fs::write(f[8], out.join("\n")).unwrap();
    }
    let _ = Flags::NONE;
}
