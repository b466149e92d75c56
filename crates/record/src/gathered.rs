//! A run's records gathered in memory, column by column: what a shard is written from and read back to, and what a recorder
//! holds before it writes. It takes a tenth of what [`Records`] take and is quick to fill.

use crate::records::Records;
use crate::table::Batch;
use crate::tables::Table;
use crate::types::{
    DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder, RttSample, StateSample,
    TransportSample,
};

/// A run's records, by table and column.
#[derive(Debug, Clone, PartialEq)]
pub struct Gathered {
    pub(crate) batches: [Batch; Table::ALL.len()],
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered::new()
    }
}

impl Gathered {
    /// Nothing yet.
    pub fn new() -> Gathered {
        Gathered { batches: Table::ALL.map(|table| Batch::new(&table.columns())) }
    }

    /// Removes all records and keeps the room that they took: one run after another is gathered without asking for memory.
    /// A clone takes no more than its records need.
    pub fn clear(&mut self) {
        self.batches.iter_mut().for_each(Batch::clear);
    }

    /// The records, but not the packets: what [`Records::read`] gives of a run's folder.
    pub fn records(&self) -> Records {
        // The columns were filled by the records' own types, or checked when they were read.
        self.load().unwrap_or_default()
    }

    /// The records, if every column holds what it should.
    pub(crate) fn load(&self) -> Result<Records, String> {
        let mut records = Records::default();
        for table in Table::BUT_PACKETS {
            records.append(table, &self.batches[table as usize])?;
        }
        Ok(records)
    }

    /// The rows of a table, which it has no more afterwards; but it has room for as many more.
    pub(crate) fn take(&mut self, table: Table) -> Batch {
        let batch = &mut self.batches[table as usize];
        let empty = Batch::with_room(&table.columns(), batch.rows);
        std::mem::replace(batch, empty)
    }
}

impl Recorder for Gathered {
    #[inline]
    fn link(&mut self, sample: &LinkSample) {
        self.batches[Table::Links as usize].push(sample);
    }
    #[inline]
    fn delay(&mut self, sample: &DelaySample) {
        self.batches[Table::Delays as usize].push(sample);
    }
    #[inline]
    fn flow(&mut self, sample: &FlowSample) {
        self.batches[Table::Flows as usize].push(sample);
    }
    #[inline]
    fn rtt(&mut self, sample: &RttSample) {
        self.batches[Table::Rtts as usize].push(sample);
    }
    #[inline]
    fn transport(&mut self, sample: &TransportSample) {
        self.batches[Table::Transport as usize].push(sample);
    }
    #[inline]
    fn state(&mut self, sample: &StateSample<&str>) {
        self.batches[Table::States as usize].push(sample);
    }
    #[inline]
    fn event(&mut self, event: &FlowEvent) {
        self.batches[Table::Events as usize].push(event);
    }
    #[inline]
    fn message(&mut self, message: &Message) {
        self.batches[Table::Messages as usize].push(message);
    }
    #[inline]
    fn packet(&mut self, packet: &PacketRecord) {
        self.batches[Table::Packets as usize].push(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{busy_records, replay};

    #[test]
    fn what_is_gathered_after_another_run_is_what_is_gathered_first() {
        let (mut first, mut second) = (Gathered::new(), Gathered::new());
        replay(&busy_records(), &mut first);
        let messages = Records { messages: busy_records().messages, ..Records::default() };
        replay(&messages, &mut second);
        second.clear();
        assert_eq!(second, Gathered::new());
        replay(&busy_records(), &mut second);
        assert_eq!(second, first);
    }
}
