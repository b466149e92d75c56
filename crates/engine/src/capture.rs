//! A packet capture of one link, for Wireshark: each packet as its transmission begins, from its IP header on
//! (pcap with nanosecond stamps, link type RAW).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_base::Time;
use weir_fabric::{Observer, PacketEvent, Wire};

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

/// Writes packets of one link to a file. The first error is kept and told by [`Capture::finish`].
#[derive(Clone)]
pub struct Capture {
    link: usize,
    sink: Arc<Mutex<Sink>>,
}

struct Sink {
    writer: Option<PcapWriter<BufWriter<File>>>,
    error: Option<String>,
    frame: Vec<u8>,
}

impl Capture {
    /// A capture of the link of this index.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(link: usize, path: &Path) -> io::Result<Capture> {
        let header = PcapHeader {
            ts_resolution: TsResolution::NanoSecond,
            datalink: DataLink::RAW,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let file = BufWriter::new(File::create(path)?);
        let writer =
            PcapWriter::with_header(file, header).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Capture {
            link,
            sink: Arc::new(Mutex::new(Sink { writer: Some(writer), error: None, frame: Vec::new() })),
        })
    }

    /// Ends the capture; what was written is then whole.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(&self) -> Result<(), String> {
        let mut sink = self.sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let flushed =
            sink.writer.take().map(|writer| writer.into_writer().into_inner().map_err(|e| e.to_string()));
        match (sink.error.take(), flushed) {
            (Some(error), _) | (None, Some(Err(error))) => Err(error),
            _ => Ok(()),
        }
    }
}

impl<P: Wire> Observer<P> for Capture {
    fn packet(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time) {
        if link != self.link || event != PacketEvent::Sent {
            return;
        }
        let mut sink = self.sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Sink { writer: Some(writer), error, frame } = &mut *sink else { return };
        frame.clear();
        packet.write_to(frame);
        let length = frame.len() as u32;
        let record = PcapPacket::new(Duration::from_nanos(now.as_nanos()), length, frame);
        if let Err(failure) = writer.write_packet(&record) {
            error.get_or_insert_with(|| failure.to_string());
        }
    }
}
