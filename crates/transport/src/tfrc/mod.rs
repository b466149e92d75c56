//! TCP-Friendly Rate Control (RFC 5348) as a transport of its own: the reference flows of the coordination study. The receiver
//! measures the loss event rate and reports once a round trip; the sender computes its rate with the throughput equation.
//!
//! Rates and packet sizes count IP bytes. Not implemented: the smaller rate while the queue grows (section 4.5, optional) and ECN.

mod receiver;
mod sender;

use crate::paced::{Flow, HEADER};
use crate::{End, Transport};
use receiver::Receiver;
use schemars::JsonSchema;
use sender::Sender;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::Bytes;
use weir_base::within;
use weir_endpoint::Setup;

/// Parameters of TFRC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Length of an IP packet, at most the path's MTU, which is the default.
    pub packet: Option<Bytes>,
    /// Whether old loss intervals lose weight while the open interval is long (RFC 5348, section 5.5).
    pub discounting: bool,
    /// Retransmission timeout of the TCP in the equation, in round trips.
    #[serde(deserialize_with = "timeout_rtts")]
    #[schemars(range(min = 1.0, max = 100.0))]
    pub timeout_rtts: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { packet: None, discounting: true, timeout_rtts: 4.0 }
    }
}

fn timeout_rtts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 1.0..=100.0)
}

/// Length of a flow's IP packets: `packet`, at least its headers and one byte of data, at most the MTU.
pub(crate) fn packet_length(packet: Option<Bytes>, setup: &Setup<'_>) -> u32 {
    let least = u64::from(setup.ip_header) + 8 + HEADER as u64 + 1;
    packet.unwrap_or(setup.mtu).get().clamp(least, setup.mtu.get().max(least)) as u32
}

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        !datagrams
    }
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        let packet = packet_length(self.packet, setup);
        [(); 2].map(|()| {
            let sender = Sender::new(packet, self.timeout_rtts);
            let receiver = Receiver::new(self.discounting, self.timeout_rtts);
            End::Other(Box::new(Flow::new(sender, receiver, packet, setup.ip_header, setup.ecn)))
        })
    }
}

/// The receiver's report, 16 bytes behind the kind.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Report {
    /// Timestamp of the last data packet, in microseconds.
    timestamp: u32,
    /// Time since its arrival, in microseconds.
    delay: u32,
    /// Receive rate of the last round trip, in bytes a second.
    received: u32,
    /// Loss event rate in units of 2^-32; zero before the first loss.
    loss: u32,
}

/// A loss event rate of one, in the units of a report.
const WHOLE: f64 = 4_294_967_296.0;

impl Report {
    fn encoded(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (field, number) in
            bytes.chunks_exact_mut(4).zip([self.timestamp, self.delay, self.received, self.loss])
        {
            field.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn decoded(bytes: &[u8]) -> Option<Report> {
        let bytes: &[u8; 16] = bytes.first_chunk()?;
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Report { timestamp: number(0), delay: number(4), received: number(8), loss: number(12) })
    }

    fn loss_event_rate(&self) -> f64 {
        f64::from(self.loss) / WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_back_as_it_was_written() {
        let report = Report { timestamp: 1, delay: 2, received: 1 << 31, loss: 42_949_673 };
        assert_eq!(Report::decoded(&report.encoded()), Some(report));
        assert!((report.loss_event_rate() - 0.01).abs() < 1e-9);
        assert_eq!(Report::decoded(&[0; 15]), None);
    }
}
