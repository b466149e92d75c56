//! A queue that is an object of a Python class.

use super::packets::{Decisions, Link, Packet};
use super::{Class, Hook, Stream};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::fmt;
use std::sync::{Arc, PoisonError};
use weir_base::{Parameters, Random, Span, Time};
use weir_queue::{Arrival, Decider, Decision};

/// A queue of this class for a link.
pub(super) fn make(
    class: &Arc<Class>,
    parameters: &Parameters,
    link: &weir_queue::Link,
    mut random: Random,
) -> Box<dyn Decider> {
    let link = Link { link: *link, random: Stream::new(&mut random) };
    let made = Python::attach(|py| -> PyResult<PythonQueue> {
        let object = class.object(py, link, parameters)?;
        let hook = |name| class.hook(&object, name);
        Ok(PythonQueue {
            class: Arc::clone(class),
            enqueue: hook("enqueue")?,
            dequeue: hook("dequeue")?,
            departs: hook("departs")?,
            state: hook("state")?,
            decisions: Decisions::default(),
        })
    });
    Box::new(class.ended(made))
}

/// An object of the class with its hooks; `None` for a hook that the class does not have itself.
struct PythonQueue {
    class: Arc<Class>,
    enqueue: Option<Hook>,
    dequeue: Option<Hook>,
    departs: Option<Hook>,
    state: Option<Hook>,
    /// What its packets were told in the hook that is under way.
    decisions: Decisions,
}

impl fmt::Debug for PythonQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.class.called)
    }
}

impl PythonQueue {
    /// Calls a hook, if there is one, and passes on what it decides.
    fn call<T>(
        &self,
        hook: Option<&Hook>,
        arguments: impl for<'py> PyCallArgs<'py>,
        decide: &mut dyn FnMut(Decision),
        take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Option<T>>,
    ) -> Option<T> {
        let hook = hook?;
        let result = Python::attach(|py| take(&hook.call(py, arguments)?));
        let result = self.class.ended(result);
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(decide);
        result
    }

    /// The number of a packet that is returned to be sent.
    fn sent(&self, returned: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        if returned.is_none() {
            return Ok(None);
        }
        match returned.cast::<Packet>() {
            Ok(packet) => packet.get().send(&self.decisions).map(Some),
            Err(_) => {
                let shown = returned.get_type().name()?;
                Err(PyTypeError::new_err(format!(
                    "dequeue returned an object of type {shown}, expected a packet or None"
                )))
            }
        }
    }
}

impl Decider for PythonQueue {
    fn enqueue(&mut self, packet: &Arrival, now: Time, decide: &mut dyn FnMut(Decision)) {
        let packet = Packet::new(packet, &self.decisions);
        self.call(self.enqueue.as_ref(), (packet, now.as_nanos()), decide, |_| Ok(Some(())));
    }

    fn dequeue(&mut self, now: Time, decide: &mut dyn FnMut(Decision)) -> Option<u64> {
        self.call(self.dequeue.as_ref(), (now.as_nanos(),), decide, |returned| self.sent(returned))
    }

    fn departs(&self, now: Time) -> Option<Time> {
        let hook = self.departs.as_ref()?;
        let at = Python::attach(|py| hook.call(py, (now.as_nanos(),))?.extract::<u64>());
        Some(Time::ZERO + Span::from_nanos(self.class.ended(at)))
    }

    fn is_work_conserving(&self) -> bool {
        self.departs.is_none()
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let Some(hook) = &self.state else { return };
        let state = self.class.ended(Python::attach(|py| hook.state(py)));
        state.iter().for_each(|(name, value)| report(name, *value));
    }
}
