//! A controller of weir's own for Python: a class may follow it, and differ in one hook.

use super::events::{Ack, Congestion, Delivered, Restart, Sent, Start, Timeout};
use crate::error;
use crate::value::value;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_base::{Bytes, Parameters, Random, Span, Time};
use weir_control::Controller;

/// A controller of weir's own, with the hooks of Controller. `name` and parameters are those of labs.
///
/// A controller in Python may follow it: it passes what its hooks take on, and differs where it likes.
#[pyclass(module = "weir", frozen)]
pub(crate) struct BuiltIn(Mutex<(Box<dyn Controller>, Random)>);

impl BuiltIn {
    fn own(&self) -> MutexGuard<'_, (Box<dyn Controller>, Random)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl BuiltIn {
    #[new]
    #[pyo3(signature = (name, start, **parameters))]
    fn new(name: &str, start: &Start, parameters: Option<&Bound<'_, PyDict>>) -> PyResult<BuiltIn> {
        let mut given = Parameters::new();
        for (key, of) in parameters.into_iter().flatten() {
            let of = serde_json::to_value(value(&of)?).map_err(|error| error::failed(error.to_string()))?;
            given.insert(key.extract()?, of);
        }
        let config = weir_control::Config::with_parameters(name, given.into());
        let config =
            config.map_err(|message| error::error(message, "`weir list controllers` shows them all"))?;
        if config.prototype().is_some() {
            return Err(error::error(format!("{name} is not a controller of weir's own"), "use its class"));
        }
        let random = Random::stream(start.0.now.as_nanos(), name);
        Ok(BuiltIn(Mutex::new((config.build(&start.0), random))))
    }

    /// An acknowledgement arrives.
    fn on_ack(&self, ack: &Ack) {
        let (controller, random) = &mut *self.own();
        controller.on_ack(&ack.0.ack, random);
    }

    /// A segment is sent.
    fn on_sent(&self, sent: &Sent) {
        self.own().0.on_sent(&sent.0);
    }

    /// An acknowledgement delivered segments.
    fn on_delivered(&self, delivered: &Delivered) {
        self.own().0.on_delivered(&delivered.0);
    }

    /// Loss recovery begins, or a reduction.
    fn on_enter_recovery(&self, congestion: &Congestion) {
        self.own().0.on_enter_recovery(&congestion.0);
    }

    /// Recovery has ended.
    fn on_exit_recovery(&self, now: u64) {
        self.own().0.on_exit_recovery(at(now));
    }

    /// The last reduction was spurious.
    fn on_undo(&self, now: u64) {
        self.own().0.on_undo(at(now));
    }

    /// The retransmission timer fired.
    fn on_timeout(&self, timeout: &Timeout) {
        self.own().0.on_timeout(&timeout.0);
    }

    /// Sending resumes, or the window was not used.
    fn on_restart(&self, restart: &Restart) {
        self.own().0.on_restart(&restart.0);
    }

    /// The path's rate was measured at the start: `window` in bytes.
    fn open_to(&self, window: u64) {
        self.own().0.open_to(Bytes::new(window));
    }

    /// The payload of a full segment changes, in bytes.
    fn set_mss(&self, mss: u64) {
        self.own().0.set_mss(Bytes::new(mss.max(1)));
    }

    /// How many bytes may be in flight.
    fn window(&self) -> u64 {
        self.own().0.window().get()
    }

    /// The slow-start threshold in bytes; None if it has none.
    fn slow_start_threshold(&self) -> Option<u64> {
        self.own().0.slow_start_threshold().map(Bytes::get)
    }

    /// The rate in bit/s at which segments leave; None if the transport decides.
    fn pacing_rate(&self) -> Option<u64> {
        self.own().0.pacing_rate().map(|rate| rate.bits_per_sec())
    }

    /// Whether it asks for a reduction for a reason of its own.
    fn wants_reduction(&self) -> bool {
        self.own().0.wants_reduction()
    }

    /// Its internal state: names and values.
    fn state(&self) -> BTreeMap<&'static str, f64> {
        let mut state = BTreeMap::new();
        self.own().0.state(&mut |name, value| {
            state.insert(name, value);
        });
        state
    }
}

fn at(now: u64) -> Time {
    Time::ZERO + Span::from_nanos(now)
}
