//! What sets a flight's window and pacing rate: a congestion controller, or an aggregation point's reports.

use std::ops::{Deref, DerefMut};
use weir_base::{Bytes, Random, Rate};
use weir_control::{Ack, Controller, Recovery};

/// A congestion controller or a reported rate.
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

/// A reported rate and window behind the interface of a controller. Acknowledgements and losses do not change them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reported {
    /// The rate of IP packets, headers included.
    pub(crate) rate: Rate,
    /// Bytes that may be in flight.
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
