//! The circuits that are up on this host: each has a class of HTB with a queue and a filter, and a window in the running
//! kernel. A journal, one for each network namespace, records them before anything is changed. [`Host::settle`] brings the
//! kernel into the journal's state, so that the next command undoes what a killed process left half done.

use super::asked::now;
use super::entry::{Up, control, tree};
use super::shaped::{Shaped, is_ours};
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use weir_circuit::{Circuit, Store, Utc};
use weir_linux::namespace::{numbers_in_use, own_number, set_sysctl, sysctl};
use weir_shaper::{Device, Journals};

/// The folder of journals. A restart of the machine clears it, as it does the kernel's state.
const FOLDER: &str = "/run/weir/circuits";
/// Most classes of a device. They are numbered from 1, and their queues' handles have the same numbers.
const MOST_CLASSES: u16 = 0x7000;
/// Least, initial and largest size of a send buffer, in bytes.
const WMEM: &str = "ipv4.tcp_wmem";

/// A reservation that is made together with its circuit, and cancelled if the circuit does not come up.
#[derive(Debug, Serialize, Deserialize)]
struct Reserving {
    store: PathBuf,
    device: String,
    destination: String,
    from_s: u64,
    until_s: u64,
    /// The highest number of an earlier reservation.
    after: u64,
}

/// A sysctl that was changed.
#[derive(Debug, Serialize, Deserialize)]
struct Changed {
    was: String,
    set: String,
}

/// What is up in a network namespace, and what is being changed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    devices: Vec<Shaped>,
    reserving: Option<Reserving>,
    /// Controls that are in the kernel for circuits only.
    controls: Vec<String>,
    wmem: Option<Changed>,
}

impl Journal {
    fn circuits(&self) -> impl Iterator<Item = &Up> {
        self.devices.iter().flat_map(|device| &device.circuits)
    }

    fn is_settled(&self, now: Utc) -> bool {
        let settled = |device: &Shaped| {
            let over = device.circuits.iter().any(|up| up.until_s <= now.as_secs());
            device.doubtful.is_empty() && !device.circuits.is_empty() && !over && device.is_in_place()
        };
        let nothing_up = self.devices.is_empty() && !self.controls.is_empty();
        self.reserving.is_none() && !nothing_up && self.devices.iter().all(settled)
    }
}

impl Journal {
    /// Removes the journals of network namespaces that are gone, and the windows of their circuits. The kernel has removed
    /// everything else except the controls, which this namespace must then unload.
    fn forget_the_dead(&mut self, journals: &Journals, own: &str) -> Result<Vec<String>, Failure> {
        let others: Vec<String> = journals.names()?.into_iter().filter(|name| name != own).collect();
        if others.is_empty() {
            return Ok(vec![]);
        }
        let Some(alive) = numbers_in_use() else { return Ok(vec![]) };
        let is_alive = |name: &str| name.parse().is_ok_and(|number| alive.contains(&number));
        let mut notes = vec![];
        for name in others.into_iter().filter(|name| !is_alive(name)) {
            let mut dead: Journal = journals.read(&name)?.unwrap_or_default();
            dead.devices.iter_mut().try_for_each(Shaped::forget)?;
            self.controls.append(&mut dead.controls);
            journals.write(own, self)?;
            notes.push("the circuits of a removed network namespace were removed with it".to_owned());
            journals.remove(&name)?;
        }
        Ok(notes)
    }
}

/// The circuits of this network namespace. No other process changes them while this value lives.
#[derive(Debug)]
pub struct Host {
    journals: Journals,
    name: String,
    journal: Journal,
}

impl Host {
    /// Waits for other commands, and undoes what a killed one left. Returns notes for the user.
    ///
    /// # Errors
    /// The folder of journals cannot be opened, or what is there cannot be undone.
    pub fn lock() -> Result<(Host, Vec<String>), Failure> {
        let journals = Journals::lock(Path::new(FOLDER))?;
        let number = own_number()
            .map_err(|error| Failure::failed(format!("cannot identify the network namespace: {error}")))?;
        let name = number.to_string();
        let mut journal: Journal = journals.read(&name)?.unwrap_or_default();
        let mut notes = journal.forget_the_dead(&journals, &name)?;
        let mut host = Host { journals, name, journal };
        notes.extend(host.settle()?);
        Ok((host, notes))
    }

    /// The same if circuits may be up; `None` if no circuit was ever set up since the machine started, or this user may not
    /// look.
    ///
    /// # Errors
    /// As [`Host::lock`].
    pub fn look() -> Result<Option<(Host, Vec<String>)>, Failure> {
        if !may_look() || !Path::new(FOLDER).exists() { Ok(None) } else { Host::lock().map(Some) }
    }

    /// The devices with circuits that are up.
    pub fn devices(&self) -> &[Shaped] {
        &self.journal.devices
    }

    /// A circuit and its device; `None` if the circuit is not up.
    pub fn find(&self, number: u64, store: &Path) -> Option<(&Shaped, &Up)> {
        let of = |device: &'_ Shaped| {
            device.circuits.iter().position(|it| it.number == number && it.store == store)
        };
        self.journal.devices.iter().find_map(|device| of(device).map(|at| (device, &device.circuits[at])))
    }

    /// The lowest number of a class that is free at a device.
    pub(crate) fn free_class(&self, device: &str) -> Result<u16, Failure> {
        let taken: Vec<u16> = match self.journal.devices.iter().find(|it| it.name == device) {
            Some(device) => device.circuits.iter().map(|up| up.class).collect(),
            None => vec![],
        };
        let full = || Failure::bad_input(format!("{device} has {MOST_CLASSES} circuits"), "take some down");
        (1..=MOST_CLASSES).find(|class| !taken.contains(class)).ok_or_else(full)
    }

    /// Refuses a destination that has a circuit: the kernel keeps one window for each, whichever device its packets leave by.
    pub(crate) fn check_destination(&self, destination: &str) -> Result<(), Failure> {
        for name in self.journals.names()? {
            let other: Option<Journal>;
            let journal = match name == self.name {
                true => &self.journal,
                false => {
                    other = self.journals.read(&name)?;
                    let Some(other) = &other else { continue };
                    other
                }
            };
            if let Some(up) = journal.circuits().find(|up| up.destination == destination) {
                let message =
                    format!("a circuit to {destination} is up already, for reservation {}", up.number);
                return Err(Failure::bad_input(
                    message,
                    format!("`weir circuit down {}` takes it down", up.number),
                ));
            }
        }
        Ok(())
    }

    /// Whether circuits of this host are up on a device.
    pub(crate) fn has_circuits_on(&self, device: &Device) -> bool {
        self.journal.devices.iter().any(|it| it.name == device.name() && it.index == device.index())
    }

    /// Sets a circuit up: class, queue, filter, control and window. `reserve` is called once the journal is written, and
    /// returns the number of the reservation. If a step fails, all are undone. Returns the circuit and notes for the user.
    pub(crate) fn raise(
        &mut self,
        device: &mut Device,
        up: Up,
        reserving: Option<&Circuit>,
        reserve: impl FnOnce() -> Result<u64, Failure>,
    ) -> Result<(Up, Vec<String>), Failure> {
        let work = || -> Result<(Up, Vec<String>), Failure> {
            self.begin(device, &up, reserving)?;
            let up = Up { number: reserve()?, ..up.clone() };
            let notes = self.make(device, &up)?;
            if let Some(shaped) = self.shaped(device.name()) {
                shaped.doubtful.clear();
                shaped.circuits.push(up.clone());
            }
            self.journal.reserving = None;
            self.write()?;
            Ok((up, notes))
        };
        let done = work();
        if done.is_err() {
            // The first error is reported; the next command tries again to undo what cannot be undone now.
            drop(self.settle());
        }
        done
    }

    fn begin(&mut self, device: &mut Device, up: &Up, reserving: Option<&Circuit>) -> Result<(), Failure> {
        if !self.has_circuits_on(device) {
            let (name, index, before) = (device.name().to_owned(), device.index(), device.snapshot()?);
            self.journal.devices.push(Shaped { name, index, before, circuits: vec![], doubtful: vec![] });
        }
        if let Some(shaped) = self.shaped(device.name()) {
            shaped.doubtful.push(up.doubtful());
        }
        self.journal.reserving = reserving.map(|circuit| Reserving::new(&up.store, circuit)).transpose()?;
        let plan = up.plan()?;
        if up.controlled {
            let control = control(plan.control)?.name;
            let pinned = weir_kernel::running()?.iter().any(|it| it.control.name == control && it.pinned);
            if !pinned && !self.journal.controls.iter().any(|name| name == control) {
                self.journal.controls.push(control.to_owned());
            }
        }
        if let Some(set) = raised(&sysctl(WMEM).unwrap_or_default(), plan.tcp_wmem) {
            let was = self.journal.wmem.take().map(|it| it.was).or_else(|| sysctl(WMEM)).unwrap_or_default();
            self.journal.wmem = Some(Changed { was, set });
        }
        self.write()
    }

    /// Makes the circuit that the journal announces. Returns the notes of the control's loading.
    fn make(&mut self, device: &mut Device, up: &Up) -> Result<Vec<String>, Failure> {
        let plan = up.plan()?;
        let mut notes = vec![];
        if let Some(changed) = &self.journal.wmem {
            set_sysctl(WMEM, &changed.set).map_err(|error| Failure::failed(error.to_string()))?;
        }
        if up.controlled {
            match weir_kernel::load(control(plan.control)?, &serde_json::Map::new(), &[]) {
                Ok(of_loading) => notes.extend(of_loading),
                Err(weir_kernel::Problem::Loaded(_)) => {}
                Err(problem) => return Err(problem.into()),
            }
        }
        if !is_ours(&device.snapshot()?) {
            device.apply(&tree())?;
        }
        up.shape(&plan).iter().chain([&up.filter()?]).try_for_each(|step| device.apply(step))?;
        if let Some(window) = up.window(&plan)? {
            weir_kernel::set_circuit(&window)?;
        }
        Ok(notes)
    }

    /// Changes the rate of a circuit that is up. `change` is called once the journal is written, and changes the reservation.
    /// Returns notes for the user.
    ///
    /// # Errors
    /// The reservation cannot be changed, or the circuit cannot be made as it says now.
    pub fn change(
        &mut self,
        number: u64,
        store: &Path,
        change: impl FnOnce() -> Result<Circuit, Failure>,
    ) -> Result<Vec<String>, Failure> {
        let Some((shaped, up)) = self.find(number, store) else { return change().map(|_| vec![]) };
        let (name, doubtful) = (shaped.name.clone(), up.doubtful());
        if let Some(shaped) = self.shaped(&name) {
            shaped.doubtful.push(doubtful);
        }
        self.write()?;
        let changed = change();
        // The kernel gets the rate of the reservation, whether that was changed or not.
        let settled = self.settle();
        changed?;
        settled
    }

    /// Takes circuits down.
    ///
    /// # Errors
    /// What is there cannot be undone.
    pub fn lower(&mut self, numbers: &[(u64, PathBuf)]) -> Result<Vec<String>, Failure> {
        let is_one =
            |up: &Up| numbers.iter().any(|(number, store)| up.number == *number && up.store == *store);
        for device in &mut self.journal.devices {
            device.give_up(is_one);
        }
        self.write()?;
        self.settle()
    }

    fn shaped(&mut self, device: &str) -> Option<&mut Shaped> {
        self.journal.devices.iter_mut().find(|it| it.name == device)
    }

    fn write(&self) -> Result<(), Failure> {
        Ok(self.journals.write(&self.name, &self.journal)?)
    }

    /// Brings the kernel into the journal's state: a circuit in doubt is removed, or made as its reservation says; a circuit
    /// whose time is over is taken down; a device without circuits, and all that was set for circuits, is restored. Returns
    /// notes for the user.
    fn settle(&mut self) -> Result<Vec<String>, Failure> {
        let now = now();
        let mut notes = vec![];
        if self.journal.is_settled(now) {
            return Ok(notes);
        }
        for device in &mut self.journal.devices {
            device.give_up(|up| up.until_s <= now.as_secs());
        }
        self.write()?;
        for device in &mut self.journal.devices {
            device.settle(&mut notes)?;
        }
        self.journal.devices.retain(|device| !device.circuits.is_empty());
        if let Some(reserving) = &self.journal.reserving {
            reserving.cancel(now);
        }
        self.journal.reserving = None;
        if !self.journal.devices.is_empty() {
            self.write()?;
            return Ok(notes);
        }
        if let Some(Changed { was, set }) = &self.journal.wmem
            && sysctl(WMEM).is_some_and(|is| is == *set)
        {
            set_sysctl(WMEM, was).map_err(|error| Failure::failed(error.to_string()))?;
        }
        self.hand_over_controls(&mut notes)?;
        self.journal = Journal::default();
        self.journals.remove(&self.name)?;
        Ok(notes)
    }

    /// Unloads the controls that are there for circuits only. If another namespace has circuits, the controls become its own
    /// instead.
    fn hand_over_controls(&self, notes: &mut Vec<String>) -> Result<(), Failure> {
        for name in self.journals.names()?.into_iter().filter(|name| *name != self.name) {
            if let Some(mut other) = self.journals.read::<Journal>(&name)? {
                other.controls.extend(self.journal.controls.clone());
                other.controls.sort();
                other.controls.dedup();
                return Ok(self.journals.write(&name, &other)?);
            }
        }
        for control in &self.journal.controls {
            match weir_kernel::unload(control) {
                Ok(told) => notes.extend(told),
                Err(weir_kernel::Problem::NotLoaded(_) | weir_kernel::Problem::HeldElsewhere { .. }) => {}
                Err(problem) => return Err(problem.into()),
            }
        }
        Ok(())
    }
}

impl Reserving {
    fn new(store: &Path, circuit: &Circuit) -> Result<Reserving, Failure> {
        let (calendar, _) = Store::open(store)?.calendar()?;
        Ok(Reserving {
            store: store.to_owned(),
            device: circuit.device.clone(),
            destination: circuit.destination.to_string(),
            from_s: circuit.from.as_secs(),
            until_s: circuit.until.as_secs(),
            after: calendar.circuits().last().map_or(0, |(number, _)| number),
        })
    }

    /// Cancels the reservation if it was made. If that fails, it stays listed, for the user to cancel.
    fn cancel(&self, now: Utc) {
        let Ok(mut store) = Store::open_existing(&self.store) else { return };
        let Ok((calendar, _)) = store.calendar() else { return };
        let is_it = |circuit: &Circuit| {
            circuit.device == self.device
                && circuit.destination.to_string() == self.destination
                && (circuit.from.as_secs(), circuit.until.as_secs()) == (self.from_s, self.until_s)
        };
        if let Some((number, _)) = calendar.circuits().find(|(number, it)| *number > self.after && is_it(it))
        {
            drop(store.cancel(&[number], now));
        }
    }
}

/// `tcp_wmem` raised to a plan's needs, with no value lowered; `None` if it is large enough.
pub(crate) fn raised(is: &str, need: [u64; 3]) -> Option<String> {
    let has: Vec<u64> = is.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [least, first, most] = has[..] else { return None };
    let (first_needed, most_needed) = (first.max(need[1]), most.max(need[2]));
    ((first, most) != (first_needed, most_needed)).then(|| format!("{least} {first_needed} {most_needed}"))
}

fn may_look() -> bool {
    fs::read_dir("/run/weir")
        .map_or_else(|error| error.kind() != std::io::ErrorKind::PermissionDenied, |_| true)
}
