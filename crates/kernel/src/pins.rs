//! Controls that outlast the process that loaded them: their links are pinned in a file system for BPF objects, which is mounted for the
//! first pin, unmounted after the last, and open to its owner only. Pins there that are not weir's are left alone.

use crate::object::{Held, MOMENT, PATIENCE, find_or_load};
use crate::pinned::{
    FOLDER, LOCKED, beside_of, is_kernels, is_mounted, is_pin, is_pinned, pins_of, relabelling_of,
};
use crate::running::{self, is_registered, parameters_of};
use crate::{
    CIRCUITS, Control, Problem, capability, configure, control, holder, links, relabel::Relabelling,
};
use rustix::mount::{MountFlags, UnmountFlags};
use serde_json::{Map, Value};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;
use weir_linux::lock::{FolderLock, PRIVATE};

/// Loads a control that stays until it is unloaded, or changes parameters of a loaded one. Packets of its connections that leave these
/// devices are relabelled as ECT(1). Returns notes for the user.
///
/// # Errors
/// It is pinned already and nothing is to be changed; its parameters are to be changed while a process uses it; the kernel refuses it;
/// or the file system for BPF objects cannot be mounted or written.
pub fn load(
    control: &'static Control,
    changes: &Map<String, Value>,
    devices: &[String],
) -> Result<Vec<String>, Problem> {
    capability::check()?;
    let _lock = FolderLock::exclusive(Path::new(LOCKED)).map_err(Problem::forbidden)?;
    let mut notes = restrict()?;
    let relabelling = (!devices.is_empty()).then(|| Relabelling::new(control, devices)).transpose()?;
    let wanted = || configure(control, changes.clone());
    let (held, loaded) = find_or_load(control, wanted)?;
    let pinned = is_pinned(control);
    match (loaded, pinned) {
        (true, _) => {}
        (false, false) => running::compare(control, &wanted()?)?,
        (false, true) if !changes.is_empty() => change(control, changes)?,
        (false, true) if relabelling.is_some() => {}
        (false, true) => return Err(Problem::Loaded(control.kernel)),
    }
    if !pinned {
        notes.extend(pin(&held)?);
    }
    if let Some(relabelling) = relabelling {
        relabelling.links().try_for_each(|link| pin_as(&relabelling_of(control), link))?;
    }
    Ok(notes)
}

/// Changes some parameters of a pinned control, unless processes hold it: they have asked for its present parameters.
fn change(control: &'static Control, changes: &Map<String, Value>) -> Result<(), Problem> {
    let mut parameters = parameters_of(control)?;
    parameters.extend(changes.clone());
    let config = configure(control, parameters)?;
    match running::compare(control, &config) {
        Err(Problem::Differs { holders, .. }) if holders.is_empty() => running::set(control, &config),
        Err(Problem::Differs { holders, .. }) => Err(Problem::InUse { control: control.kernel, holders }),
        same_or_refused => same_or_refused,
    }
}

/// Unpins a control and its relabelling. If processes hold it, it stays until the last of them ends. Returns notes for the user.
///
/// # Errors
/// It is not pinned here.
pub fn unload(name: &str) -> Result<Vec<String>, Problem> {
    let control = control(name).ok_or_else(|| Problem::Unknown(name.to_owned()))?;
    let _lock = FolderLock::exclusive(Path::new(LOCKED)).map_err(Problem::forbidden)?;
    let mut notes = restrict()?;
    // A process that was killed while it pinned may have left some of the pins.
    let pins = pins_of(control, Path::new(FOLDER));
    if pins.is_empty() {
        unmount_if_empty();
        return Err(match is_registered(control) {
            true => Problem::HeldElsewhere { control: control.kernel, holders: links::holders(control)? },
            false => Problem::NotLoaded(control.kernel),
        });
    }
    pins.iter()
        .try_for_each(fs::remove_file)
        .map_err(Problem::failed(format!("cannot unpin {}", control.kernel)))?;
    unmount_if_empty();
    let start = Instant::now();
    while is_registered(control) {
        let holders = links::holders(control)?;
        if !holders.is_empty() || start.elapsed() > PATIENCE {
            let holders = holder::names(&holders);
            notes.push(format!(
                "{} stays loaded until the last process that uses it ends: {holders}",
                control.kernel
            ));
            break;
        }
        std::thread::sleep(MOMENT);
    }
    Ok(notes)
}

/// Mounts the file system for pins, unless it is mounted. Returns a note for the user, if there is one.
fn mount() -> io::Result<Option<String>> {
    if !is_mounted(Path::new(FOLDER)) {
        fs::create_dir_all(FOLDER)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let options = std::ffi::CString::new(format!("mode={PRIVATE:o}"))?;
        rustix::mount::mount("weir", FOLDER, "bpf", flags, Some(options.as_c_str()))?;
    }
    let private = !is_seen_by_the_first_process()?;
    Ok(private.then(|| {
        "this mount namespace is private: controls loaded here are unloaded when its last process ends"
            .to_owned()
    }))
}

/// Whether the file system for pins is among the mounts of the first process, and so outlasts this mount namespace. True if those mounts
/// cannot be read.
fn is_seen_by_the_first_process() -> io::Result<bool> {
    let device = fs::metadata(FOLDER)?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // proc_pid_mountinfo(5): the device is the third field.
    let is_ours = |line: &str| line.split(' ').nth(2) == Some(device.as_str());
    Ok(fs::read_to_string("/proc/1/mountinfo").map_or(true, |mounts| mounts.lines().any(is_ours)))
}

/// Closes the file system to all but its owner: earlier versions of weir left it open. Returns notes for the user.
fn restrict() -> Result<Vec<String>, Problem> {
    let failed = || Problem::failed(format!("cannot restrict {FOLDER} to root"));
    if !is_mounted(Path::new(FOLDER)) {
        return Ok(vec![]);
    }
    if fs::metadata(FOLDER).map_err(failed())?.permissions().mode() & 0o7777 == PRIVATE {
        return Ok(vec![]);
    }
    fs::set_permissions(FOLDER, Permissions::from_mode(PRIVATE)).map_err(failed())?;
    let foreign: Vec<String> = fs::read_dir(FOLDER)
        .map_err(failed())?
        .flatten()
        .filter(|entry| !is_pin(entry))
        .map(|entry| format!("{:?}", entry.file_name()))
        .collect();
    Ok(match foreign.is_empty() {
        true => vec![],
        false => {
            let names = foreign.join(", ");
            vec![format!(
                "{FOLDER} was accessible to all users and is now accessible to root only; these entries are not weir's and remain: {names}"
            )]
        }
    })
}

/// Unmounts the file system if no pin is left; a failure is harmless. The lock's folder is removed with the lock.
fn unmount_if_empty() {
    let empty = fs::read_dir(FOLDER).is_ok_and(|entries| entries.flatten().all(|entry| is_kernels(&entry)));
    if empty
        && (!is_mounted(Path::new(FOLDER)) || rustix::mount::unmount(FOLDER, UnmountFlags::empty()).is_ok())
    {
        let _ = fs::remove_dir(FOLDER);
    }
}

/// Pins a control, so that it outlasts this process until it is unloaded or the machine restarts. Returns a note for the user, if there
/// is one.
fn pin(held: &Held) -> Result<Option<String>, Problem> {
    let what = format!("cannot pin {} in {FOLDER}", held.control.kernel);
    let note = mount().map_err(Problem::failed(what))?;
    let all = || {
        for other in &held.beside {
            pin_as(&beside_of(held.control, other.control.short), other.link.as_fd())?;
        }
        if let Ok((_, map)) = running::map_of(held.control, CIRCUITS) {
            pin_as(&beside_of(held.control, CIRCUITS), map.as_fd())?;
        }
        pin_as(held.control.short, held.link.as_fd())
    };
    all().inspect_err(|_| unmount_if_empty())?;
    Ok(note)
}

/// Pins a link under this name, with a number appended if the name is taken.
fn pin_as(name: &str, link: BorrowedFd<'_>) -> Result<(), Problem> {
    let free = |place: &PathBuf| fs::symlink_metadata(place).is_err();
    let numbered = (1..).map(|number: u32| format!("{name}-{number}"));
    let places = std::iter::once(name.to_owned()).chain(numbered).map(|name| Path::new(FOLDER).join(name));
    let Some(place) = places.into_iter().find(free) else { return Ok(()) };
    links::pin(link, &place).map_err(Problem::failed(format!("cannot pin {}", place.display())))
}
