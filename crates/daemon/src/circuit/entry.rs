//! A circuit that is up, and its host's settings for it, which follow from its plan.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use weir_base::{Bytes, Prefix, Rate, Span};
use weir_circuit::{Circuit, Control, Guarantee, Plan, Priority, Refusal, Request, Store, Timers};
use weir_shaper::{Class, Device, Handle, Match, Step};

/// The queueing discipline of a device that has circuits.
pub(crate) const ROOT: Handle = Handle::new(0x7765, 0);
/// Most packets outside circuits that wait at a device: Linux's usual queue length.
const DIRECT: u32 = 1000;
/// Bytes that a class sends in its turn when it borrows, which none does here (the most that the kernel computes by itself).
const QUANTUM: Bytes = Bytes::new(200_000);

/// A circuit that is up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Up {
    /// The number of its reservation in the file that keeps it.
    pub number: u64,
    /// That file.
    pub store: PathBuf,
    /// Number of its class.
    pub class: u16,
    /// Where it leads.
    pub destination: String,
    /// Its rate.
    pub rate_bit_per_s: u64,
    /// Its round trip.
    pub rtt_ns: u64,
    /// When it is over.
    pub until_s: u64,
    /// Largest IP packet in bytes.
    pub mtu: u64,
    /// How late this host may wake the shaper.
    #[serde(default)]
    pub late_ns: u64,
    /// It is admitted by the average use of its links.
    pub semi: bool,
    /// Others come first on a semi-guaranteed circuit.
    pub background: bool,
    /// Whether connections to its destination get a congestion control of weir's.
    pub controlled: bool,
    /// How many connections share its window.
    pub streams: u32,
}

impl Up {
    pub(crate) fn destination(&self) -> Result<Prefix, Failure> {
        self.destination.parse().map_err(|error: weir_base::PrefixError| {
            Failure::failed(format!("a journal is damaged: {error}"))
        })
    }

    /// The plan that its host's settings follow.
    ///
    /// # Errors
    /// No plan has its values.
    pub fn plan(&self) -> Result<Plan, Refusal> {
        let (rate, rtt) = (Rate::from_bits_per_sec(self.rate_bit_per_s), Span::from_nanos(self.rtt_ns));
        let ip = match self.destination.contains(':') {
            true => weir_circuit::Ip::V6,
            false => weir_circuit::Ip::V4,
        };
        Plan::of(&Request {
            guarantee: if self.semi { Guarantee::Semi } else { Guarantee::Full },
            priority: if self.background { Priority::Background } else { Priority::Transfer },
            mtu: Bytes::new(self.mtu),
            ip,
            timers: Timers::Late(Span::from_nanos(self.late_ns)),
            ..Request::new(rate, rtt)
        })
    }

    /// The handle of its class.
    pub fn handle(&self) -> Handle {
        Handle::new(ROOT.major(), self.class)
    }

    /// The steps that make its class and queue, or change them if they exist.
    pub(crate) fn shape(&self, plan: &Plan) -> [Step; 2] {
        let (rate, burst, limit) = (plan.shaper_rate, plan.burst, plan.limit);
        let class = Class {
            handle: self.handle(),
            parent: ROOT,
            rate,
            ceil: rate,
            burst,
            cburst: burst,
            quantum: QUANTUM,
            prio: 0,
        };
        let leaf = Step::Bfifo { handle: Handle::new(self.class, 0), parent: class.handle, limit };
        [Step::Class(class), leaf]
    }

    pub(crate) fn filter(&self) -> Result<Step, Failure> {
        let destination = self.destination()?;
        let matches = Match { address: destination.address(), length: destination.length(), port: None };
        Ok(Step::Filter { parent: ROOT, matches, class: self.handle() })
    }

    /// Its window for the congestion control; `None` if the circuit has no CTCP.
    pub(crate) fn window(&self, plan: &Plan) -> Result<Option<weir_kernel::Circuit>, Failure> {
        if !self.controlled || plan.control != Control::Ctcp {
            return Ok(None);
        }
        let destination = self.destination()?;
        let parameters = serde_json::json!({
            "rate": plan.shaper_rate,
            "rtt": plan.request.rtt,
            "window_percent": (plan.request.window_percent / self.streams.max(1)).max(1),
            "header_bytes": plan.headers.of_frame().get(),
        });
        let ctcp = control(Control::Ctcp)?;
        let config = weir_kernel::configure(ctcp, parameters.as_object().cloned().unwrap_or_default())?;
        Ok(Some(weir_kernel::Circuit {
            address: destination.address(),
            length: destination.length(),
            config,
        }))
    }

    /// Sets class, queue and window to what the reservation says now. Returns a note for the user if the control is no longer
    /// loaded: the window has gone with it.
    pub(crate) fn make_again(&mut self, device: &mut Device) -> Result<Option<String>, Failure> {
        let kept = Store::open_existing(&self.store).and_then(|mut store| store.calendar());
        if let Ok((calendar, _)) = kept
            && let Some((_, circuit)) = calendar.circuits().find(|(number, _)| *number == self.number)
        {
            self.rate_bit_per_s = circuit.rate.bits_per_sec();
        }
        let plan = self.plan()?;
        self.shape(&plan).iter().try_for_each(|step| device.apply(step))?;
        match self.window(&plan)?.map(|window| weir_kernel::set_circuit(&window)) {
            None | Some(Ok(())) => Ok(None),
            Some(Err(problem @ weir_kernel::Problem::NotLoaded(_))) => Ok(Some(format!(
                "{problem}, so circuit {0} is shaped but has no window; `weir circuit down {0}` and `up {0}` set both",
                self.number
            ))),
            Some(Err(problem)) => Err(problem.into()),
        }
    }
}

/// The kernel form of a plan's congestion control.
pub(crate) fn control(of: Control) -> Result<&'static weir_kernel::Control, Failure> {
    let name = match of {
        Control::Ctcp => "ctcp",
        Control::Htcp => "htcp",
    };
    weir_kernel::control(name).ok_or_else(|| weir_kernel::Problem::Unknown(name.to_owned()).into())
}

/// The tree of a device that has circuits. Packets outside circuits are not shaped.
pub(crate) fn tree() -> Step {
    Step::Htb { handle: ROOT, parent: Handle::ROOT, default: 0, direct_limit: DIRECT }
}

/// The entry of a circuit that is to be set up.
pub fn wanted(number: u64, store: &Path, circuit: &Circuit, mtu: u32) -> Up {
    Up {
        number,
        store: store.to_owned(),
        class: 0,
        destination: circuit.destination.to_string(),
        rate_bit_per_s: circuit.rate.bits_per_sec(),
        rtt_ns: circuit.rtt.as_nanos(),
        until_s: circuit.until.as_secs(),
        mtu: mtu.into(),
        late_ns: 0,
        semi: circuit.guarantee == Guarantee::Semi,
        background: false,
        controlled: true,
        streams: 1,
    }
}
