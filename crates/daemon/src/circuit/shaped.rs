//! A device that has circuits: its state before them, the circuits that are up, and those in doubt.

use super::entry::{ROOT, Up};
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use weir_base::Prefix;
use weir_linux::namespace::Namespace;
use weir_shaper::{Device, Handle, Problem, Snapshot, Step};

/// The kernel's name for the queueing discipline of a device that has circuits.
const KIND: &str = "htb";

/// A class that may exist or not, or be half changed, and the destination of its circuit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Doubtful {
    class: u16,
    destination: String,
}

impl Up {
    pub(crate) fn doubtful(&self) -> Doubtful {
        Doubtful { class: self.class, destination: self.destination.clone() }
    }
}

/// A device that has circuits, or is about to.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shaped {
    /// Its name.
    pub name: String,
    /// Its index; a later device of this name has another.
    pub(crate) index: u32,
    /// Its state before the first circuit.
    pub(crate) before: Snapshot,
    /// Those that are up.
    pub circuits: Vec<Up>,
    pub(crate) doubtful: Vec<Doubtful>,
}

impl Shaped {
    /// Moves circuits that are no longer wanted to those in doubt.
    pub(crate) fn give_up(&mut self, unwanted: impl Fn(&Up) -> bool) {
        let gone: Vec<Up> = self.circuits.extract_if(.., |up| unwanted(up)).collect();
        self.doubtful.extend(gone.iter().map(Up::doubtful));
    }

    /// The device, if it is the one that the journal means.
    fn open(&self) -> Option<Device> {
        Device::open(&self.name).ok().filter(|device| device.index() == self.index)
    }

    /// Whether weir's shaper is still there.
    pub(crate) fn is_in_place(&self) -> bool {
        self.open().is_some_and(|mut device| device.snapshot().is_ok_and(|snapshot| is_ours(&snapshot)))
    }

    /// Brings the device into the journal's state.
    pub(crate) fn settle(&mut self, notes: &mut Vec<String>) -> Result<(), Failure> {
        let Some(mut device) = self.open() else {
            notes.push(format!("the device {} was removed, and its circuits with it", self.name));
            return self.forget();
        };
        let is = device.snapshot()?;
        if is_ours(&is) {
            for Doubtful { class, destination } in std::mem::take(&mut self.doubtful) {
                match self.circuits.iter_mut().find(|up| up.class == class) {
                    Some(up) => notes.extend(up.make_again(&mut device)?),
                    None => {
                        forget_window(&destination)?;
                        let handle = Handle::new(ROOT.major(), class);
                        device.apply(&Step::RemoveFilters { parent: ROOT, class: handle })?;
                        device.apply(&Step::RemoveClass { handle })?;
                    }
                }
            }
            if self.circuits.is_empty() {
                device.restore(&self.before)?;
            }
            return Ok(());
        }
        if !self.circuits.is_empty() {
            notes.push(format!(
                "another program has removed the circuits' shaper from {}: they are down",
                self.name
            ));
        }
        // A command was killed between removing weir's discipline and restoring the older one.
        if is.root().is_none() {
            device.restore(&self.before)?;
        }
        self.forget()
    }

    /// Removes the windows of all its circuits.
    pub(crate) fn forget(&mut self) -> Result<(), Failure> {
        self.give_up(|_| true);
        self.doubtful.drain(..).try_for_each(|it| forget_window(&it.destination))
    }
}

/// Whether the root discipline is weir's.
pub(crate) fn is_ours(snapshot: &Snapshot) -> bool {
    snapshot.root().is_some_and(|root| root == (ROOT, KIND))
}

/// Removes the window of a destination, if the control is in the kernel.
fn forget_window(destination: &str) -> Result<(), Failure> {
    let Ok(destination) = destination.parse::<Prefix>() else { return Ok(()) };
    match weir_kernel::remove_circuit(destination.address(), destination.length()) {
        Ok(_) | Err(weir_kernel::Problem::NotLoaded(_) | weir_kernel::Problem::NotBuilt) => Ok(()),
        Err(problem) => Err(problem.into()),
    }
}

/// Checks, in a temporary namespace, that the discipline that somebody else has set at a device can be restored.
pub(crate) fn check_replaceable(device: &mut Device, before: &Snapshot) -> Result<(), Failure> {
    let (mtu, queue) = device.sizes()?;
    let tried = Namespace::new().and_then(|namespace| {
        namespace.inside(|| {
            let scratch = Device::scratch("weir-try", queue, mtu);
            Ok(scratch.and_then(|mut scratch| scratch.can_hold(before)))
        })
    });
    let tried =
        tried.map_err(|error| Failure::failed(format!("cannot test whether it can be restored: {error}")))?;
    let kind = before.root().map_or_else(String::new, |(_, kind)| kind.to_owned());
    if tried? {
        Ok(())
    } else {
        Err(Problem::Irreplaceable { device: device.name().to_owned(), kind }.into())
    }
}
