//! The log of the ensembles at the receivers (section 6.6.2): when each frame began to arrive and was complete, and when all frames
//! of an ensemble were. The sizes of frames are known, so the number of bytes read identifies a flow's current frame.

use super::FrameSizes;
use crate::{Span, Time};
use std::collections::VecDeque;

/// An event of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsembleRecord {
    /// A flow's frame is complete: the ensemble's number, and the time since the frame's write returned.
    Frame(u64, Span),
    /// A flow's frame has begun to arrive: the ensemble's number, and the time since the end of the flow's last frame.
    Stall(u64, Span),
    /// All frames of an ensemble are complete: its number, and the time from the first complete frame to the last.
    Whole(u64, Span),
}

/// One flow.
#[derive(Debug, Clone, Default)]
struct Stream {
    /// The frame that is arriving, and the bytes of it that were read.
    ensemble: u64,
    read: u64,
    /// When the frame before it was complete; `None` for the first frame.
    ended: Option<Time>,
    /// When the writes of the incomplete frames returned, beginning with the one that is arriving.
    written: VecDeque<Time>,
}

/// An ensemble of which some frames are complete, but not all.
#[derive(Debug, Clone, Copy)]
struct Partial {
    whole: usize,
    first: Time,
}

/// The ensembles of one application at its receivers.
#[derive(Debug)]
pub struct EnsembleLog {
    sizes: FrameSizes,
    streams: Vec<Stream>,
    /// Ensembles from the first incomplete one on, and the number of that one.
    partial: VecDeque<Option<Partial>>,
    first: u64,
}

impl EnsembleLog {
    pub(super) fn new(sizes: FrameSizes) -> EnsembleLog {
        EnsembleLog { sizes, streams: vec![Stream::default()], partial: VecDeque::new(), first: 0 }
    }

    /// Adds a flow of the application.
    pub(crate) fn add_flow(&mut self) {
        self.streams.push(Stream::default());
    }

    /// The write of a flow's next frame has returned.
    pub(crate) fn written(&mut self, flow: usize, now: Time) {
        self.streams[flow].written.push_back(now);
    }

    /// A flow's receiver has read `bytes` more bytes.
    pub(crate) fn read(
        &mut self,
        flow: usize,
        mut bytes: u64,
        now: Time,
        mut tell: impl FnMut(EnsembleRecord),
    ) {
        while bytes > 0 {
            let stream = &mut self.streams[flow];
            if stream.read == 0
                && let Some(ended) = stream.ended
            {
                tell(EnsembleRecord::Stall(stream.ensemble, now.since(ended)));
            }
            let size = self.sizes.of(flow, stream.ensemble);
            let part = bytes.min(size - stream.read);
            (stream.read, bytes) = (stream.read + part, bytes - part);
            if stream.read < size {
                return;
            }
            let number = stream.ensemble;
            (stream.ensemble, stream.read, stream.ended) = (number + 1, 0, Some(now));
            // A frame is complete before its write returns only if its last byte was written and read at one instant.
            let written = stream.written.pop_front().unwrap_or(now);
            tell(EnsembleRecord::Frame(number, now.since(written)));
            self.whole(number, now, &mut tell);
        }
    }

    /// A frame of the ensemble with this number is complete.
    fn whole(&mut self, number: u64, now: Time, tell: &mut impl FnMut(EnsembleRecord)) {
        let at = (number - self.first) as usize;
        if self.partial.len() <= at {
            self.partial.resize(at + 1, None);
        }
        let partial = self.partial[at].get_or_insert(Partial { whole: 0, first: now });
        partial.whole += 1;
        // The frames of a flow arrive in order, so ensembles are completed in order.
        if partial.whole == self.streams.len() {
            tell(EnsembleRecord::Whole(number, now.since(partial.first)));
            self.partial.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn an_ensemble_is_complete_with_the_last_of_its_frames() {
        let config: Config = serde_json::from_str(r#"{ "size": "1000 B" }"#).unwrap();
        let mut log = EnsembleLog::new(config.sizes());
        log.add_flow();
        let mut told = vec![];
        for flow in [0, 1] {
            log.written(flow, at(10));
            log.written(flow, at(20));
        }
        let mut read = |flow, bytes, ms| log.read(flow, bytes, at(ms), |record| told.push(record));
        read(0, 600, 30);
        read(1, 999, 31);
        read(0, 400, 40);
        // The rest of the first frame and part of the second arrive at once, seven milliseconds after the other flow's frame.
        read(1, 2, 47);
        read(0, 1000, 50);
        read(1, 999, 61);
        let ms = Span::from_millis;
        use EnsembleRecord::{Frame, Stall, Whole};
        assert_eq!(
            told,
            [
                Frame(0, ms(30)),
                Frame(0, ms(37)),
                Whole(0, ms(7)),
                Stall(1, ms(0)),
                Stall(1, ms(10)),
                Frame(1, ms(30)),
                Frame(1, ms(41)),
                Whole(1, ms(11))
            ]
        );
    }
}
