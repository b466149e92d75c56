//! The records of a finished run by column: a shard is written from these and read back to them.

use crate::records::Records;
use crate::table::Batch;
use crate::tables::Table;

/// A run's records, by table and column.
#[derive(Debug, Clone, PartialEq)]
pub struct Gathered {
    pub(crate) batches: [Batch; Table::ALL.len()],
}

impl Gathered {
    /// No records.
    pub(crate) fn new() -> Gathered {
        Gathered { batches: Table::ALL.map(|table| Batch::new(&table.columns())) }
    }

    /// The records without the packets, as [`Records::read`] reads them from a run's folder.
    pub fn records(&self) -> Records {
        // The columns were filled by the records' own types, or checked when they were read.
        self.load().unwrap_or_default()
    }

    /// The records without the packets.
    ///
    /// # Errors
    /// A column holds values that its record type does not allow.
    pub(crate) fn load(&self) -> Result<Records, String> {
        let mut records = Records::default();
        for table in Table::BUT_PACKETS {
            records.append(table, &self.batches[table as usize])?;
        }
        Ok(records)
    }
}

impl From<&Records> for Gathered {
    fn from(records: &Records) -> Gathered {
        Gathered { batches: Table::ALL.map(|table| records.batch(table, 0)) }
    }
}
