//! Controls that outlast the process that loaded them: their links are pinned in a file system for BPF objects, which is mounted
//! for the first and unmounted with the last.

use crate::object::Held;
use crate::running::is_registered;
use crate::{Control, Problem, control};
use libbpf_rs::Link;
use rustix::mount::{MountFlags, UnmountFlags};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where pins are.
const FOLDER: &str = "/run/weir/bpf";
/// Its folder, which is weir's alone.
const PARENT: &str = "/run/weir";
/// `BPF_FS_MAGIC` (include/uapi/linux/magic.h).
const MAGIC: u32 = 0xcafe_4a11;
/// How long the kernel may take to let a control go, which it does in the background.
const PATIENCE: Duration = Duration::from_secs(5);

fn pin_of(control: &Control) -> PathBuf {
    Path::new(FOLDER).join(control.short)
}

fn is_mounted() -> bool {
    rustix::fs::statfs(FOLDER).is_ok_and(|found| found.f_type as u32 == MAGIC)
}

fn mount() -> io::Result<()> {
    if is_mounted() {
        return Ok(());
    }
    fs::create_dir_all(FOLDER)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("weir", FOLDER, "bpf", flags, None::<&std::ffi::CStr>)?)
}

/// Unmounts if nothing is left; what cannot be tidied up is harmless.
fn unmount_if_empty() {
    // The kernel may put two files of its own there, `maps.debug` and `progs.debug` (kernel/bpf/preload).
    let pinned = |entry: fs::DirEntry| entry.path().extension().is_none_or(|extension| extension != "debug");
    let empty = fs::read_dir(FOLDER).is_ok_and(|entries| !entries.flatten().any(pinned));
    if empty && (!is_mounted() || rustix::mount::unmount(FOLDER, UnmountFlags::empty()).is_ok()) {
        let _ = fs::remove_dir(FOLDER);
        let _ = fs::remove_dir(PARENT);
    }
}

/// Whether a control outlasts its loader.
pub(crate) fn is_pinned(control: &Control) -> bool {
    is_mounted() && pin_of(control).exists()
}

impl Held {
    /// Lets it outlast this process, until it is unloaded or the machine restarts.
    ///
    /// # Errors
    /// The file system for BPF objects cannot be mounted, or is not to be written.
    pub fn pin(mut self) -> Result<(), Problem> {
        let what = || format!("cannot pin {} in {FOLDER}", self.control.kernel);
        mount().map_err(Problem::failed(what()))?;
        let pinned = self.link.pin(pin_of(self.control)).map_err(io::Error::other);
        pinned.map_err(|error| {
            unmount_if_empty();
            Problem::failed(what())(error)
        })
    }
}

/// What pins of links that relabel for a control begin with. Their numbers follow; devices have the same in many namespaces.
fn relabelling_of(control: &Control) -> String {
    format!("{}-ect1-", control.short)
}

/// Lets a link that relabels outlast this process.
pub(crate) fn pin_relabelling(control: &Control, link: &mut Link) -> Result<(), Problem> {
    let pinned = link
        .info()
        .and_then(|info| link.pin(Path::new(FOLDER).join(format!("{}{}", relabelling_of(control), info.id))));
    let what = format!("cannot pin what relabels for {} in {FOLDER}", control.kernel);
    pinned.map_err(io::Error::other).map_err(Problem::failed(what))
}

/// Ends all relabelling for a control.
fn unpin_relabelling(control: &Control) -> io::Result<()> {
    for entry in fs::read_dir(FOLDER)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&relabelling_of(control)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Takes a pinned control away, and what relabels for it. Connections that use it keep it until they end.
///
/// # Errors
/// It is not there, or another process holds it.
pub fn unload(name: &str) -> Result<(), Problem> {
    let control = control(name).ok_or_else(|| Problem::Unknown(name.to_owned()))?;
    if !is_pinned(control) {
        let there = is_registered(control);
        return Err(if there {
            Problem::HeldElsewhere(control.kernel)
        } else {
            Problem::NotLoaded(control.kernel)
        });
    }
    unpin_relabelling(control)
        .and_then(|()| fs::remove_file(pin_of(control)))
        .map_err(Problem::failed(format!("cannot unpin {}", control.kernel)))?;
    unmount_if_empty();
    let start = Instant::now();
    while is_registered(control) {
        if start.elapsed() > PATIENCE {
            return Err(Problem::HeldElsewhere(control.kernel));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
