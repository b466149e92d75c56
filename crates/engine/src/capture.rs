//! A packet capture of one link, for Wireshark: each packet from its IP header on, stamped with the start of its
//! transmission (pcap with nanosecond stamps, link type RAW).

use crate::EngineError;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_base::Time;
use weir_fabric::{Observer, PacketEvent, Wire};
use weir_plan::Run;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

/// Writes packets of one link to a file. [`Capture::finish`] returns the first error.
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
    /// Index of the link of this name, among all links of the run.
    ///
    /// # Errors
    /// The run has no such link.
    pub fn find_link(run: &Run, link: &str) -> Result<usize, EngineError> {
        if let Some((index, _)) = run.instrumented_links().find(|(_, measured)| measured.name == link) {
            return Ok(index);
        }
        let names: Vec<_> = run.instrumented_links().map(|(_, measured)| measured.name.as_str()).collect();
        Err(EngineError::Unable {
            what: format!("there is no link `{link}` to capture"),
            help: format!("the links of this run are {}", names.join(", ")),
        })
    }

    /// A capture of the link of this name, in `<link>.pcap` in a folder.
    ///
    /// # Errors
    /// The run has no such link, or the file cannot be made.
    pub fn of_link(run: &Run, link: &str, folder: &Path) -> Result<Capture, EngineError> {
        let index = Capture::find_link(run, link)?;
        Capture::create(index, &folder.join(format!("{link}.pcap")))
            .map_err(|error| EngineError::Failed(error.to_string()))
    }

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

    /// Ends the capture and flushes its file.
    ///
    /// # Errors
    /// The first error of writing.
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
