//! The report on a transfer: a line each second, and one at its end.

use super::super::args::SendArgs;
use super::super::entry::Up;
use super::super::host::Host;
use super::CONTROL;
use crate::failure::Failure;
use crate::output::{print, say, write};
use crate::transfer::Sums;
use rustix::net::sockopt;
use serde_json::json;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_base::{Bytes, Rate, Span};
use weir_linux::tcp_info::Losses;
use weir_shaper::{Device, Handle};

/// The state of the report.
pub(super) struct Report {
    json: bool,
    start: Instant,
    total: u64,
    streams: Vec<TcpStream>,
    control: String,
    /// The circuit's class, if this user can see it, and the goodput that its rate allows.
    class: Option<(Device, Handle)>,
    ceiling: Option<Rate>,
    told: LastReported,
}

/// The values that were reported last.
#[derive(Debug, Clone, Copy, Default)]
struct LastReported {
    /// Time since the start, by the clock of the host that counted the bytes.
    after: Duration,
    bytes: u64,
    losses: Losses,
    refused: Option<u64>,
}

impl Report {
    pub(super) fn new(total: u64, args: &SendArgs, host: SocketAddr, streams: &[TcpStream]) -> Report {
        let streams: Vec<TcpStream> = streams.iter().filter_map(|stream| stream.try_clone().ok()).collect();
        let control =
            streams.first().and_then(|stream| sockopt::tcp_congestion(stream).ok()).unwrap_or_default();
        let circuit = circuit_to(host);
        let ceiling = circuit.as_ref().and_then(|(_, up)| Some(up.plan().ok()?.ceiling));
        let mut class = circuit.and_then(|(device, up)| Some((Device::open(&device).ok()?, up.handle())));
        let refused = refused(&mut class);
        if control != CONTROL && args.cc.is_none() {
            say(&format!(
                "note: no circuit is up here, so the transfer uses {control}: `weir circuit up` sets one up"
            ));
        }
        let told = LastReported { refused, ..LastReported::default() };
        Report { json: args.json, start: Instant::now(), total, streams, control, class, ceiling, told }
    }

    fn now(&mut self, bytes: u64, after: Duration) -> LastReported {
        let mut losses = Losses::default();
        for stream in &self.streams {
            let of = weir_linux::tcp_info::losses(stream).unwrap_or_default();
            losses.retransmitted += of.retransmitted;
            losses.unneeded += of.unneeded;
        }
        LastReported { after, bytes, losses, refused: refused(&mut self.class) }
    }

    /// Reports the bytes that the receiver has received up to a time by its clock.
    pub(super) fn second(&mut self, bytes: u64, after_ns: Option<u64>) -> Result<(), Failure> {
        let (before, now) =
            (self.told, self.now(bytes, after_ns.map_or_else(|| self.start.elapsed(), Duration::from_nanos)));
        self.told = now;
        let rate = rate(now.bytes.saturating_sub(before.bytes), now.after.saturating_sub(before.after));
        let retransmitted = now.losses.retransmitted.saturating_sub(before.losses.retransmitted);
        let unneeded = now.losses.unneeded.saturating_sub(before.losses.unneeded).min(retransmitted);
        let refused = now.refused.zip(before.refused).map(|(now, before)| now.saturating_sub(before));
        let second = now.after.as_secs_f64().round() as u64;
        let share = self.ceiling.map(|most| rate.bits_per_sec() as f64 / most.bits_per_sec() as f64);
        if self.json {
            let document = json!({
                "second": second,
                "goodput_bit_per_s": rate.bits_per_sec(),
                "share_of_ceiling": share,
                "retransmitted_packets": retransmitted,
                "lost_packets": retransmitted - unneeded,
                "refused_packets": refused,
                "received_bytes": bytes,
            });
            return write(&format!("{document}\n"));
        }
        let refused = refused.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let share =
            share.map_or_else(String::new, |share| format!(" ({:.2} % of the ceiling)", share * 100.0));
        print(&format!(
            "{second:>5} s  {:>9.3} Mbit/s{share}  {:>5.1} %  {retransmitted} retransmitted, {} lost in the network, {refused} refused at the shaper\n",
            rate.bits_per_sec() as f64 / 1e6,
            bytes as f64 * 100.0 / self.total.max(1) as f64,
            retransmitted - unneeded,
        ))
    }

    pub(super) fn end(&mut self, sums: &Sums) -> Result<(), Failure> {
        let Sums { kept, again, .. } = sums;
        let sent = self.total.saturating_sub(*kept);
        let now = self.now(sent, self.start.elapsed());
        let rate = rate(sent, now.after);
        if self.json {
            let document = json!({
                "files": sums.documents(),
                "seconds": now.after.as_secs_f64(),
                "sent_bytes": sent,
                "kept_bytes": kept,
                "blocks_sent_again": again,
                "goodput_bit_per_s": rate.bits_per_sec(),
                "retransmitted_packets": now.losses.retransmitted,
                "control": self.control,
            });
            return write(&format!("{document}\n"));
        }
        print(&format!(
            "{}{} in {:.1} s, {:.3} Mbit/s under {}; {} were there already; {again} blocks and {} packets retransmitted\n",
            sums.rows(),
            Bytes::new(sent),
            now.after.as_secs_f64(),
            rate.bits_per_sec() as f64 / 1e6,
            self.control,
            Bytes::new(*kept),
            now.losses.retransmitted,
        ))?;
        sums.nothing_to_do().map_or(Ok(()), print)
    }
}

fn rate(bytes: u64, passed: Duration) -> Rate {
    let nanos = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX).max(1);
    Rate::from_bytes_in(Bytes::new(bytes), Span::from_nanos(nanos))
}

/// The circuit that leads to a host, and its device: the longest prefix decides. `None` if there is none, or this user may not
/// look.
pub(super) fn circuit_to(host: SocketAddr) -> Option<(String, Up)> {
    let (circuits, _) = Host::look().ok()??;
    let all = circuits.devices().iter().flat_map(|device| device.circuits.iter().map(move |up| (device, up)));
    let leading = all.filter_map(|(device, up)| {
        let destination = up.destination().ok()?;
        destination.contains(host.ip()).then(|| (destination.length(), device, up))
    });
    let (_, device, up) = leading.max_by_key(|(length, ..)| *length)?;
    Some((device.name.clone(), up.clone()))
}

/// How many packets the shaper has refused; `None` if that is unknown.
fn refused(class: &mut Option<(Device, Handle)>) -> Option<u64> {
    let (device, handle) = class.as_mut()?;
    device.counters(&[*handle]).ok()?.first()?.map(|counters| counters.drops)
}
