//! A controller that is an object of a Python class.

use super::events::{Ack, Acknowledged, Congestion, Delivered, Restart, Sent, Start, Timeout};
use super::{Class, Hook, Stream};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use weir_base::{Bytes, Parameters, Prototype, Random, Rate, Time};
use weir_control as control;
use weir_control::{Codepoint, Controller, Decision, Feedback, Recovery};

/// What a class chooses once and for all, as the registry keeps it.
#[derive(Clone, Copy)]
pub(super) struct Choices {
    codepoint: Codepoint,
    feedback: Feedback,
    recovery: Recovery,
    keeps_queues_short: bool,
}

impl Choices {
    pub(super) fn of(prototype: &Prototype) -> Choices {
        let property = |name: &str| prototype.properties.get(name);
        Choices {
            codepoint: property("codepoint")
                .and_then(|it| Codepoint::deserialize(it).ok())
                .unwrap_or(Codepoint::Ect0),
            feedback: property("feedback")
                .and_then(|it| Feedback::deserialize(it).ok())
                .unwrap_or(Feedback::Classic),
            recovery: match property("recovery").and_then(|it| it.as_str()) {
                Some("own") => Recovery::Own,
                _ => Recovery::Proportional,
            },
            keeps_queues_short: property("keeps_queues_short").and_then(|it| it.as_bool()).unwrap_or(false),
        }
    }
}

/// A controller of this class for a connection.
pub(super) fn make(
    class: &Arc<Class>,
    choices: &Choices,
    parameters: &Parameters,
    start: &control::Start,
) -> Box<dyn Controller> {
    let made = Python::attach(|py| -> PyResult<PythonController> {
        let object = class.object(py, Start(*start), parameters)?;
        let hook = |name| class.hook(&object, name);
        // The others are read once, when the connection begins.
        let windows_buffered = hook("windows_buffered")?.map(|it| it.number(py, "a number of windows"));
        let windows_buffered =
            windows_buffered.transpose()?.map_or(2, |it| it.try_into().unwrap_or(u32::MAX));
        Ok(PythonController {
            class: Arc::clone(class),
            choices: *choices,
            windows_buffered,
            on_ack: hook("on_ack")?,
            window: hook("window")?,
            slow_start_threshold: hook("slow_start_threshold")?,
            pacing_rate: hook("pacing_rate")?,
            wants_reduction: hook("wants_reduction")?,
            on_enter_recovery: hook("on_enter_recovery")?,
            on_exit_recovery: hook("on_exit_recovery")?,
            on_undo: hook("on_undo")?,
            on_timeout: hook("on_timeout")?,
            on_restart: hook("on_restart")?,
            on_sent: hook("on_sent")?,
            on_delivered: hook("on_delivered")?,
            send_quantum: hook("send_quantum")?,
            holds_back: hook("holds_back")?,
            open_to: hook("open_to")?,
            state: hook("state")?,
            // The class that all derive from keeps the segment size.
            set_mss: Hook { name: "set_mss", call: object.getattr("set_mss")?.unbind() },
            random: None,
        })
    });
    Box::new(class.ended(made))
}

/// An object of the class with its hooks; `None` for a hook that the class does not have itself.
struct PythonController {
    class: Arc<Class>,
    choices: Choices,
    windows_buffered: u32,
    on_ack: Option<Hook>,
    window: Option<Hook>,
    slow_start_threshold: Option<Hook>,
    pacing_rate: Option<Hook>,
    wants_reduction: Option<Hook>,
    on_enter_recovery: Option<Hook>,
    on_exit_recovery: Option<Hook>,
    on_undo: Option<Hook>,
    on_timeout: Option<Hook>,
    on_restart: Option<Hook>,
    on_sent: Option<Hook>,
    on_delivered: Option<Hook>,
    send_quantum: Option<Hook>,
    holds_back: Option<Hook>,
    open_to: Option<Hook>,
    state: Option<Hook>,
    set_mss: Hook,
    /// Made with the first acknowledgement, which brings the connection's random numbers.
    random: Option<Stream>,
}

const BYTES: &str = "a whole number of bytes";

impl PythonController {
    /// Asks a hook; without it the answer is `none`.
    fn ask<T>(&self, hook: Option<&Hook>, none: T, ask: impl FnOnce(Python<'_>, &Hook) -> PyResult<T>) -> T {
        match hook {
            Some(hook) => self.class.ended(Python::attach(|py| ask(py, hook))),
            None => none,
        }
    }

    /// Tells a hook of an event.
    fn tell<A: for<'py> PyCallArgs<'py>>(&self, hook: Option<&Hook>, event: A) {
        self.ask(hook, (), |py, hook| hook.call(py, event).map(drop));
    }

    fn decide(&self, py: Python<'_>) -> PyResult<Decision> {
        let threshold =
            self.slow_start_threshold.as_ref().map(|hook| hook.optional(py, BYTES)).transpose()?;
        let rate = self.pacing_rate.as_ref().map(|hook| hook.optional(py, RATE)).transpose()?;
        Ok(Decision {
            window: self.window.as_ref().map_or(Ok(Bytes::ZERO), |hook| bytes(py, hook))?,
            threshold: threshold.flatten().map(Bytes::new),
            pacing_rate: rate.flatten().map(Rate::from_bits_per_sec),
            wants_reduction: self.wants_reduction.as_ref().map_or(Ok(false), |hook| hook.truth(py))?,
        })
    }

    fn hear(&mut self, py: Python<'_>, ack: &control::Ack, random: &mut Random) -> PyResult<()> {
        let random = self.random.get_or_insert_with(|| Stream::new(random)).clone();
        let ack = Ack(Acknowledged { ack: ack.clone(), random });
        self.on_ack.as_ref().map_or(Ok(()), |hook| hook.call(py, (ack,)).map(drop))
    }
}

const RATE: &str = "a whole number of bits per second or None";

fn bytes(py: Python<'_>, hook: &Hook) -> PyResult<Bytes> {
    hook.number(py, BYTES).map(Bytes::new)
}

impl Controller for PythonController {
    fn on_ack(&mut self, ack: &control::Ack, random: &mut Random) {
        let heard = Python::attach(|py| self.hear(py, ack, random));
        self.class.ended(heard);
    }
    fn respond(&mut self, ack: &control::Ack, random: &mut Random) -> Decision {
        let decision = Python::attach(|py| {
            self.hear(py, ack, random)?;
            self.decide(py)
        });
        self.class.ended(decision)
    }
    fn decision(&self) -> Decision {
        self.class.ended(Python::attach(|py| self.decide(py)))
    }
    fn on_sent(&mut self, sent: &control::Sent) {
        self.tell(self.on_sent.as_ref(), (Sent(*sent),));
    }
    fn wants_sent(&self) -> bool {
        self.on_sent.is_some()
    }
    fn on_delivered(&mut self, delivered: &control::Delivered) {
        self.tell(self.on_delivered.as_ref(), (Delivered(delivered.clone()),));
    }
    fn wants_delivered(&self) -> bool {
        self.on_delivered.is_some()
    }
    fn on_enter_recovery(&mut self, congestion: &control::Congestion) {
        self.tell(self.on_enter_recovery.as_ref(), (Congestion(*congestion),));
    }
    fn wants_reduction(&self) -> bool {
        self.ask(self.wants_reduction.as_ref(), false, |py, hook| hook.truth(py))
    }
    fn on_exit_recovery(&mut self, now: Time) {
        self.tell(self.on_exit_recovery.as_ref(), (now.as_nanos(),));
    }
    fn on_undo(&mut self, now: Time) {
        self.tell(self.on_undo.as_ref(), (now.as_nanos(),));
    }
    fn on_timeout(&mut self, timeout: &control::Timeout) {
        self.tell(self.on_timeout.as_ref(), (Timeout(*timeout),));
    }
    fn on_restart(&mut self, restart: &control::Restart) {
        self.tell(self.on_restart.as_ref(), (Restart(*restart),));
    }
    fn window(&self) -> Bytes {
        self.ask(self.window.as_ref(), Bytes::ZERO, bytes)
    }
    fn slow_start_threshold(&self) -> Option<Bytes> {
        self.ask(self.slow_start_threshold.as_ref(), None, |py, hook| hook.optional(py, BYTES))
            .map(Bytes::new)
    }
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.ask(self.pacing_rate.as_ref(), None, |py, hook| hook.optional(py, RATE));
        rate.map(Rate::from_bits_per_sec)
    }
    fn recovery(&self) -> Recovery {
        self.choices.recovery
    }
    fn codepoint(&self) -> Codepoint {
        self.choices.codepoint
    }
    fn feedback(&self) -> Feedback {
        self.choices.feedback
    }
    fn send_quantum(&self) -> Option<Bytes> {
        self.ask(self.send_quantum.as_ref(), None, |py, hook| hook.optional(py, BYTES)).map(Bytes::new)
    }
    fn windows_buffered(&self) -> u32 {
        self.windows_buffered
    }
    fn holds_back(&self) -> bool {
        self.ask(self.holds_back.as_ref(), false, |py, hook| hook.truth(py))
    }
    fn keeps_queues_short(&self) -> bool {
        self.choices.keeps_queues_short
    }
    fn open_to(&mut self, window: Bytes) {
        self.tell(self.open_to.as_ref(), (window.get(),));
    }
    fn set_mss(&mut self, mss: Bytes) {
        self.tell(Some(&self.set_mss), (mss.get(),));
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let known = |py: Python<'_>, hook: &Hook| {
            let state = hook.state(py)?.into_iter();
            state.map(|(name, value)| Ok((known(name)?, value))).collect::<PyResult<Vec<_>>>()
        };
        let state = self.ask(self.state.as_ref(), Vec::new(), known);
        state.into_iter().for_each(|(name, value)| report(name, value));
    }
}

/// Most names of states that classes report, in a process.
const MOST_NAMES: usize = 1_000;

/// A state's name that lasts as long as the process, as the names of weir's own controllers do.
fn known(name: String) -> PyResult<&'static str> {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(known) = known.get(name.as_str()) {
        return Ok(known);
    }
    if known.len() >= MOST_NAMES {
        return Err(PyValueError::new_err(format!(
            "state returned the name {name:?} after {MOST_NAMES} others"
        )));
    }
    let name: &'static str = name.leak();
    known.insert(name);
    Ok(name)
}
