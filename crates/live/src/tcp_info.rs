//! The kernel's state of a connection: `TCP_INFO` (tcp(7), `tcp_get_info` in net/ipv4/tcp.c) as a transport sample.

use std::io;
use std::mem::offset_of;
use std::os::fd::AsFd;
use weir_base::{Rate, Span, Time};
use weir_record::TransportSample;

/// `TCP_INFINITE_SSTHRESH` of include/net/tcp.h: no loss so far.
const INFINITE: u32 = 0x7fff_ffff;
/// `TCPI_OPT_SACK` of include/uapi/linux/tcp.h: both ends use SACK.
const TCPI_OPT_SACK: u8 = 2;

/// Reads the state of a connection as a sample of a flow at a time.
///
/// # Errors
/// The kernel's.
pub(crate) fn sample(socket: impl AsFd, flow: u32, at: Time) -> io::Result<TransportSample> {
    let (info, length) = weir_linux::tcp_info::tcp_info(socket)?;
    let micros = |value: u32| Span::from_micros(value.into());
    // Rates are in bytes a second; all ones is no rate.
    let rate = |bytes: u64| bytes.checked_mul(8).filter(|bits| *bits > 0).map(Rate::from_bits_per_sec);
    let knows_timeouts = length >= offset_of!(libc::tcp_info, tcpi_total_rto) + size_of::<u16>();
    Ok(TransportSample {
        at,
        flow,
        cwnd: info.tcpi_snd_cwnd.into(),
        ssthresh: (info.tcpi_snd_ssthresh < INFINITE).then(|| info.tcpi_snd_ssthresh.into()),
        // `tcp_packets_in_flight`: sent, minus what has left the network, plus what was retransmitted.
        in_flight: f64::from(info.tcpi_unacked) - f64::from(info.tcpi_sacked) - f64::from(info.tcpi_lost)
            + f64::from(info.tcpi_retrans),
        srtt: micros(info.tcpi_rtt),
        min_rtt: if info.tcpi_min_rtt == u32::MAX { Span::ZERO } else { micros(info.tcpi_min_rtt) },
        rto: micros(info.tcpi_rto),
        pacing_rate: rate(info.tcpi_pacing_rate),
        delivery_rate: rate(info.tcpi_delivery_rate),
        retransmissions: info.tcpi_total_retrans.into(),
        timeouts: knows_timeouts.then(|| info.tcpi_total_rto.into()),
        spurious: (info.tcpi_options & TCPI_OPT_SACK != 0).then(|| info.tcpi_dsack_dups.into()),
    })
}
