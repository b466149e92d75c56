//! A controller of weir's own for Python: a class may follow it, and differ in one hook.

use super::events::{Ack, Congestion, Delivered, Restart, Sent, Start, Timeout};
use crate::error;
use crate::value::value;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use weir_base::{Bytes, Parameters, Random, Span, Time};
use weir_control::Controller;

/// A controller of weir's own, with the hooks of Controller. `name` and parameters are those of labs.
///
/// A controller in Python may follow it: it passes what its hooks take on, and differs where it likes.
#[pyclass(module = "weir")]
pub(crate) struct BuiltIn {
    controller: Box<dyn Controller>,
    random: Random,
}

// Each object belongs to one connection, and is used by one thread at a time, which the interpreter's lock sees to.
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
        let config = config.map_err(|message| error::error(message, "`weir list controllers` shows them all"))?;
        if config.prototype().is_some() {
            return Err(error::error(format!("{name} is not a controller of weir's own"), "use its class"));
        }
        Ok(BuiltIn { controller: config.build(&start.0), random: Random::stream(start.0.now.as_nanos(), name) })
    }

    /// An acknowledgement arrives.
    fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_ack(&ack.0.ack, &mut self.random);
    }

    /// A segment is sent.
    fn on_sent(&mut self, sent: &Sent) {
        self.controller.on_sent(&sent.0);
    }

    /// An acknowledgement delivered segments.
    fn on_delivered(&mut self, delivered: &Delivered) {
        self.controller.on_delivered(&delivered.0);
    }

    /// Loss recovery begins, or a reduction.
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        self.controller.on_enter_recovery(&congestion.0);
    }

    /// Recovery has ended.
    fn on_exit_recovery(&mut self, now: u64) {
        self.controller.on_exit_recovery(at(now));
    }

    /// The last reduction was spurious.
    fn on_undo(&mut self, now: u64) {
        self.controller.on_undo(at(now));
    }

    /// The retransmission timer fired.
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.controller.on_timeout(&timeout.0);
    }

    /// Sending resumes, or the window was not used.
    fn on_restart(&mut self, restart: &Restart) {
        self.controller.on_restart(&restart.0);
    }

    /// The path's rate was measured at the start: `window` in bytes.
    fn open_to(&mut self, window: u64) {
        self.controller.open_to(Bytes::new(window));
    }

    /// The payload of a full segment changes, in bytes.
    fn set_mss(&mut self, mss: u64) {
        self.controller.set_mss(Bytes::new(mss.max(1)));
    }

    /// How many bytes may be in flight.
    fn window(&self) -> u64 {
        self.controller.window().get()
    }

    /// The slow-start threshold in bytes; None if it has none.
    fn slow_start_threshold(&self) -> Option<u64> {
        self.controller.slow_start_threshold().map(Bytes::get)
    }

    /// The rate in bit/s at which segments leave; None if the transport decides.
    fn pacing_rate(&self) -> Option<u64> {
        self.controller.pacing_rate().map(|rate| rate.bits_per_sec())
    }

    /// Whether it asks for a reduction for a reason of its own.
    fn wants_reduction(&self) -> bool {
        self.controller.wants_reduction()
    }

    /// Its internal state: names and values.
    fn state(&self) -> BTreeMap<&'static str, f64> {
        let mut state = BTreeMap::new();
        self.controller.state(&mut |name, value| drop(state.insert(name, value)));
        state
    }
}

fn at(now: u64) -> Time {
    Time::ZERO + Span::from_nanos(now)
}
