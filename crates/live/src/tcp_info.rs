//! The kernel's state of a connection: `TCP_INFO` (tcp(7), `tcp_get_info` in net/ipv4/tcp.c) as a transport sample.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use weir_base::{Rate, Span, Time};
use weir_endpoint::Limits;
use weir_record::TransportSample;

/// `TCP_INFINITE_SSTHRESH` of include/net/tcp.h: no loss so far.
const INFINITE: u32 = 0x7fff_ffff;
/// `TCPI_OPT_SACK` of include/uapi/linux/tcp.h: both ends use SACK.
const TCPI_OPT_SACK: u8 = 2;

/// Whether the kernel says that the application limited the newest delivery rate: the lowest bit of the eighth byte of `struct tcp_info`
/// (`tcpi_delivery_rate_app_limited`), which is a bit field without a name in `libc`.
fn is_app_limited(socket: BorrowedFd<'_>) -> bool {
    let mut bytes = [0u8; 8];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the pointer names as many bytes as the length says; the kernel writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    result == 0 && length as usize == bytes.len() && bytes[7] & 1 != 0
}

/// Reads the state of a connection as a sample of a flow at a time, and what limited it, if the kernel tells.
///
/// # Errors
/// The kernel's.
pub(crate) fn sample(
    socket: impl AsFd,
    flow: u32,
    at: Time,
) -> io::Result<(TransportSample, Option<Limits>)> {
    let socket = socket.as_fd();
    let (info, length) = weir_linux::tcp_info::tcp_info(socket)?;
    let micros = |value: u32| Span::from_micros(value.into());
    // Rates are in bytes a second; all ones is no rate.
    let rate = |bytes: u64| bytes.checked_mul(8).filter(|bits| *bits > 0).map(Rate::from_bits_per_sec);
    let knows_timeouts = length >= offset_of!(libc::tcp_info, tcpi_total_rto) + size_of::<u16>();
    let sample = TransportSample {
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
    };
    let knows_limits = length >= offset_of!(libc::tcp_info, tcpi_sndbuf_limited) + size_of::<u64>();
    let limits = knows_limits.then(|| Limits {
        busy: Span::from_micros(info.tcpi_busy_time),
        receive_window: Span::from_micros(info.tcpi_rwnd_limited),
        send_buffer: Span::from_micros(info.tcpi_sndbuf_limited),
        app_limited: is_app_limited(socket),
    });
    Ok((sample, limits))
}
