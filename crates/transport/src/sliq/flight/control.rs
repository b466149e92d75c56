//! What says how much of a flight may be under way and how fast packets leave: a congestion controller, or an aggregation point's reports.

use std::ops::{Deref, DerefMut};
use weir_base::{Bytes, Random, Rate};
use weir_control::{Ack, Controller, Recovery};

/// Either of the two.
pub(super) enum Control {
    Own(Box<dyn Controller>),
    Reported(Reported),
}

impl Deref for Control {
    type Target = dyn Controller;

    fn deref(&self) -> &(dyn Controller + 'static) {
        match self {
            Control::Own(controller) => &**controller,
            Control::Reported(reported) => reported,
        }
    }
}

impl DerefMut for Control {
    fn deref_mut(&mut self) -> &mut (dyn Controller + 'static) {
        match self {
            Control::Own(controller) => &mut **controller,
            Control::Reported(reported) => reported,
        }
    }
}

/// What was reported, as a controller says it. Nothing that becomes of packets changes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reported {
    /// In IP packets.
    pub(crate) rate: Rate,
    /// How many bytes may be under way.
    pub(crate) window: Bytes,
}

impl Controller for Reported {
    fn on_ack(&mut self, _: &Ack, _: &mut Random) {}

    fn window(&self) -> Bytes {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn set_mss(&mut self, _: Bytes) {}
}
