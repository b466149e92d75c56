//! Packet captures of links, for Wireshark: each packet from its IP header on, stamped with the start of its transmission
//! (pcap with nanosecond stamps, link type RAW). [`segments`] reads one again.

mod read;
mod written;

pub use read::{captured, segments, segments_of};
pub use written::PacketFile;

use crate::EngineError;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use weir_base::Time;
use weir_fabric::{Observer, PacketEvent, Wire};
use weir_plan::Run;

/// Writes packets of links, each to a file of its own. [`Capture::finish`] returns the first error.
#[derive(Clone)]
pub struct Capture {
    /// The links by index, each with its file.
    links: Vec<(usize, Arc<Mutex<Sink>>)>,
}

struct Sink {
    writer: Option<PacketFile>,
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

    /// Captures of the links of these names, as [`Capture::of_link`]; `None` without names.
    ///
    /// # Errors
    /// The run has no link of a name, or a file cannot be made.
    pub fn of_links(run: &Run, links: &[String], folder: &Path) -> Result<Option<Capture>, EngineError> {
        let mut all = Capture { links: vec![] };
        for (index, link) in links.iter().enumerate() {
            // The file of a link that is named twice must not be made twice.
            if !links[..index].contains(link) {
                all.links.extend(Capture::of_link(run, link, folder)?.links);
            }
        }
        Ok((!links.is_empty()).then_some(all))
    }

    /// A capture of the link of this index.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(link: usize, path: &Path) -> io::Result<Capture> {
        let sink = Sink { writer: Some(PacketFile::create(path)?), error: None, frame: Vec::new() };
        Ok(Capture { links: vec![(link, Arc::new(Mutex::new(sink)))] })
    }

    /// Ends the captures and flushes their files.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(&self) -> Result<(), String> {
        let ended: Vec<_> = self.links.iter().map(|(_, sink)| locked(sink).finish()).collect();
        ended.into_iter().collect()
    }
}

impl Sink {
    fn finish(&mut self) -> Result<(), String> {
        let flushed = self.writer.take().map(|writer| writer.finish().map_err(|error| error.to_string()));
        match (self.error.take(), flushed) {
            (Some(error), _) | (None, Some(Err(error))) => Err(error),
            _ => Ok(()),
        }
    }
}

fn locked(sink: &Mutex<Sink>) -> MutexGuard<'_, Sink> {
    sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<P: Wire> Observer<P> for Capture {
    fn packet(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time) {
        if event != PacketEvent::Sent {
            return;
        }
        let Some((_, sink)) = self.links.iter().find(|(known, _)| *known == link) else { return };
        let mut sink = locked(sink);
        let Sink { writer: Some(writer), error, frame } = &mut *sink else { return };
        frame.clear();
        packet.write_to(frame);
        if let Err(failure) = writer.write(now, frame) {
            error.get_or_insert_with(|| failure.to_string());
        }
    }
}
