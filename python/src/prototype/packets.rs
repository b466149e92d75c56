//! What the hooks of a queue take: its link and its packets.

use super::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_base::Ecn;
use weir_queue::{Arrival, Decision, DropReason};

/// The link of a queue.
#[pyclass(module = "weir._weir", frozen)]
pub(crate) struct Link {
    pub(super) link: weir_queue::Link,
    pub(super) random: Stream,
}

#[pymethods]
impl Link {
    /// Its initial rate in bit/s.
    #[getter]
    fn rate(&self) -> u64 {
        self.link.rate.bits_per_sec()
    }
    /// The base RTT of the lab in ns; None if it has no single one.
    #[getter]
    fn base_rtt(&self) -> Option<u64> {
        self.link.base_rtt.map(|rtt| rtt.as_nanos())
    }
    /// Length of the largest IP packet, in bytes.
    #[getter]
    fn mtu(&self) -> u64 {
        self.link.mtu.get()
    }
    /// The queue's own random.Random, seeded by the run.
    #[getter]
    fn random(&self) -> Stream {
        self.random.clone()
    }
}

/// The decisions of a hook, in their order.
pub(super) type Decisions = Arc<Mutex<Vec<Decision>>>;

/// A packet in a queue.
#[pyclass(module = "weir._weir", frozen)]
pub(crate) struct Packet {
    arrival: Arrival,
    decisions: Decisions,
    now: Mutex<Now>,
}

/// What a packet is now.
#[derive(Clone, Copy)]
struct Now {
    is_held: bool,
    ecn: Ecn,
}

impl Packet {
    pub(super) fn new(arrival: &Arrival, decisions: &Decisions) -> Packet {
        let now = Mutex::new(Now { is_held: true, ecn: arrival.ecn });
        Packet { arrival: *arrival, decisions: Arc::clone(decisions), now }
    }

    /// Takes it out of the queue of these decisions, to be sent; returns its number.
    pub(super) fn send(&self, decisions: &Decisions) -> PyResult<u64> {
        if !Arc::ptr_eq(decisions, &self.decisions) {
            return Err(PyValueError::new_err("dequeue returned a packet of another queue"));
        }
        self.held("sent")?.is_held = false;
        Ok(self.arrival.number)
    }

    fn held(&self, what: &str) -> PyResult<MutexGuard<'_, Now>> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_held {
            return Ok(now);
        }
        Err(PyValueError::new_err(format!("a packet is {what} that has left the queue")))
    }

    fn decide(&self, decision: Decision) {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
    }
}

#[pymethods]
impl Packet {
    /// Length of the IP packet in bytes, with its headers.
    #[getter]
    fn length(&self) -> u32 {
        self.arrival.length
    }
    /// Number of its flow in the run, from 0.
    #[getter]
    fn flow(&self) -> u32 {
        self.arrival.flow.0
    }
    /// Its codepoint: "not-ect", "ect1", "ect0" or "ce".
    #[getter]
    fn ecn(&self) -> &'static str {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).ecn.name()
    }
    /// Its DSCP, 0 to 63.
    #[getter]
    fn dscp(&self) -> u8 {
        self.arrival.dscp.get()
    }
    /// When it arrived, in ns.
    #[getter]
    fn arrived(&self) -> u64 {
        self.arrival.now.as_nanos()
    }

    /// Drops it. reason: "full" (no room), "signal" (a congestion signal) or "overload" (it could have been marked).
    ///
    /// Raises ValueError if it has left the queue.
    fn drop(&self, reason: &str) -> PyResult<()> {
        let reason = match reason {
            "full" => DropReason::Full,
            "signal" => DropReason::Signal,
            "overload" => DropReason::Overload,
            other => {
                let message = format!(
                    "a packet is dropped for {other:?}, expected \"full\", \"signal\" or \"overload\""
                );
                return Err(PyValueError::new_err(message));
            }
        };
        self.held("dropped")?.is_held = false;
        self.decide(Decision::Drop(self.arrival.number, reason));
        Ok(())
    }

    /// Marks it CE.
    ///
    /// Raises ValueError if it is not ECN-capable or has left the queue.
    fn mark(&self) -> PyResult<()> {
        let mut now = self.held("marked")?;
        if !now.ecn.is_capable() {
            return Err(PyValueError::new_err("a packet is marked that is not ECN-capable"));
        }
        now.ecn = Ecn::Ce;
        self.decide(Decision::Mark(self.arrival.number));
        Ok(())
    }
}

/// Adds the classes to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Link>()?;
    module.add_class::<Packet>()
}
