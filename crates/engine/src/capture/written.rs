//! A capture that is being written.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;
use weir_base::Time;

/// A file of IP packets: pcap with nanosecond stamps, link type RAW.
pub struct PacketFile(PcapWriter<BufWriter<File>>);

impl PacketFile {
    /// Makes the file. One of this name is replaced.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<PacketFile> {
        let header = PcapHeader {
            ts_resolution: TsResolution::NanoSecond,
            datalink: DataLink::RAW,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(BufWriter::new(File::create(path)?), header);
        writer.map(PacketFile).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Appends a whole packet, from its IP header on, with its time since 1970 or since a run began.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, at: Time, packet: &[u8]) -> io::Result<()> {
        let record = PcapPacket::new(Duration::from_nanos(at.as_nanos()), packet.len() as u32, packet);
        self.0.write_packet(&record).map(drop).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Ends the capture and flushes the file.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.0.into_writer().into_inner().map(drop).map_err(|error| error.into_error())
    }
}
