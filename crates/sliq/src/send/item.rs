//! What a stream sends next, and how long its frame is.

use crate::wire::{DATA_HEADER, DUE, Data, PART_HEADER, Part, REPAIR_HEADER, Repair};

/// What a stream sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// A segment.
    Data {
        data: Data,
        /// Whether it is a retransmission.
        again: bool,
        /// The round of its group.
        round: u8,
    },
    /// A repair packet, and the round of its group.
    Repair(Repair, u8),
    /// A part of a segment that is retransmitted, and the part's index.
    Part(Part, u8),
}

impl Item {
    /// Whether it carries what was sent before, or repairs it.
    pub(crate) fn is_again(&self) -> bool {
        !matches!(self, Item::Data { again: false, .. })
    }

    /// Bytes of its frame with the payload.
    pub(crate) fn frame(&self) -> u32 {
        let due = |data: &Data| if data.due.is_some() { DUE as u32 } else { 0 };
        match self {
            Item::Data { data, .. } => DATA_HEADER as u32 + due(data) + u32::from(data.length),
            Item::Part(part, _) => PART_HEADER as u32 + due(&part.segment) + u32::from(part.length),
            Item::Repair(repair, _) => REPAIR_HEADER as u32 + u32::from(repair.length),
        }
    }
}
