//! What the hosts of each flow have counted so far: the application thread writes it, the pump records it.

use std::sync::atomic::{AtomicU64, Ordering};
use weir_engine::HostCounts;

/// A flow's [`HostCounts`], shared between the two threads.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts {
    read_bytes: AtomicU64,
    retransmitted: AtomicU64,
}

impl SharedCounts {
    /// Sets the bytes that the receiving application has read.
    pub(crate) fn set_read(&self, bytes: u64) {
        self.read_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets the data packets that the sending transport has retransmitted.
    pub(crate) fn set_retransmitted(&self, packets: u64) {
        self.retransmitted.store(packets, Ordering::Relaxed);
    }

    /// The counts as they are now.
    pub(crate) fn get(&self) -> HostCounts {
        HostCounts {
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            retransmitted: self.retransmitted.load(Ordering::Relaxed),
        }
    }
}
