//! Names of cells: an address and an offset, 256 of each (section 3.2).
//!
//! | addresses | offsets 0 to 127 | offsets 128 to 255 |
//! |---|---|---|
//! | 0 to 249: GP1 to GP250 | one cell a flow, written by that flow alone | aggregates ([`crate::Function`]) |
//! | 250 to 253: R1 to R4 | one report pointer a flow | read as zero |
//! | 254: NET | measurements of the path: [`Family`] and [`crate::Statistic`] | as before |
//! | 255: FLOW | measurements of the application's flows | throughput of each flow |
//!
//! The numeric codes are ours; the source's figure has the same order. A cell that was never written reads as zero.

use crate::Statistic;

/// General-purpose addresses: GP1 to GP250 are 0 to 249.
pub const GENERAL: usize = 250;
/// The address of the first report pointer, R1.
pub const R1: u8 = 250;
/// The address of the path's measurements.
pub const NET: u8 = 254;
/// The address of the flows' measurements.
pub const FLOW: u8 = 255;
/// Offset at [`FLOW`] of the throughput of flow 0; flow `f` is at `FLOW_THROUGHPUT + f`. In KiB/s.
pub const FLOW_THROUGHPUT: u8 = 128;
/// Number of offsets of a family.
pub(crate) const FAMILY_SIZE: u8 = 0x10;

/// A cell's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The address.
    pub address: u8,
    /// The offset.
    pub offset: u8,
}

/// A measured quantity. Its family has one offset for each [`Statistic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// NET: round trip time between the APs, in microseconds (up to 16.8 s).
    Rtt,
    /// NET: fraction of the outbound packets lost, in units of 2^-16, as the other AP reports it.
    Loss,
    /// NET: rate of one flowshare for outbound packets, in KiB/s (1,024 bytes), as the other AP reports it.
    Bandwidth,
    /// NET: fraction of the inbound packets lost, in units of 2^-16. Not in the source.
    InboundLoss,
    /// NET: rate of one flowshare for inbound packets, in KiB/s. Not in the source.
    InboundBandwidth,
    /// FLOW: number of flows that sent a packet within their lifetime.
    Flows,
    /// FLOW: throughput of all flows together, outbound, in KiB/s.
    Throughput,
    /// FLOW: length of outbound IP packets, in bytes.
    PacketSize,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 8] = [
        Family::Rtt,
        Family::Loss,
        Family::Bandwidth,
        Family::InboundLoss,
        Family::InboundBandwidth,
        Family::Flows,
        Family::Throughput,
        Family::PacketSize,
    ];

    /// The cell of one statistic of this quantity.
    pub const fn cell(self, statistic: Statistic) -> Cell {
        let (address, place) = match self {
            Family::Rtt => (NET, 0),
            Family::Loss => (NET, 1),
            Family::Bandwidth => (NET, 2),
            Family::InboundLoss => (NET, 3),
            Family::InboundBandwidth => (NET, 4),
            Family::Flows => (FLOW, 0),
            Family::Throughput => (FLOW, 1),
            Family::PacketSize => (FLOW, 2),
        };
        Cell { address, offset: place * FAMILY_SIZE + statistic as u8 }
    }

    /// The family and statistic of a cell; `None` if the cell holds no measurement of a family.
    pub const fn of(cell: Cell) -> Option<(Family, Statistic)> {
        let family = match (cell.address, cell.offset / FAMILY_SIZE) {
            (NET, 0) => Family::Rtt,
            (NET, 1) => Family::Loss,
            (NET, 2) => Family::Bandwidth,
            (NET, 3) => Family::InboundLoss,
            (NET, 4) => Family::InboundBandwidth,
            (FLOW, 0) => Family::Flows,
            (FLOW, 1) => Family::Throughput,
            (FLOW, 2) => Family::PacketSize,
            _ => return None,
        };
        match Statistic::at(cell.offset % FAMILY_SIZE) {
            Some(statistic) => Some((family, statistic)),
            None => None,
        }
    }
}

/// The cell at an offset of the general-purpose address `GP<k>`, `k` from 1 to 250; `None` for any other `k`.
pub const fn general(k: u8, offset: u8) -> Option<Cell> {
    match k {
        1..=250 => Some(Cell { address: k - 1, offset }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_cell_names_its_family_and_statistic() {
        for family in Family::ALL {
            for statistic in Statistic::ALL {
                assert_eq!(Family::of(family.cell(statistic)), Some((family, statistic)));
            }
        }
        assert_eq!(Family::of(Cell { address: FLOW, offset: FLOW_THROUGHPUT }), None);
        assert_eq!(Family::of(Cell { address: 0, offset: 0 }), None);
    }

    #[test]
    fn general_purpose_addresses_begin_at_one() {
        assert_eq!(general(0, 3), None);
        assert_eq!(general(1, 3), Some(Cell { address: 0, offset: 3 }));
        assert_eq!(general(250, 3), Some(Cell { address: 249, offset: 3 }));
        assert_eq!(general(251, 3), None);
    }
}
