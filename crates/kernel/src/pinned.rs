//! The folder of pins, the names of the pins, and the pins that exist.

use crate::{CIRCUITS, Control};
use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Weir's folder, which is locked while pinned controls are changed.
pub(crate) const LOCKED: &str = "/run/weir";
/// The folder of pins.
pub(crate) const FOLDER: &str = "/run/weir/bpf";
/// `BPF_FS_MAGIC` (include/uapi/linux/magic.h).
const MAGIC: u32 = 0xcafe_4a11;

/// Whether a control is pinned, and so outlasts its loader.
pub(crate) fn is_pinned(control: &Control) -> bool {
    is_pinned_below(Path::new("/"), control)
}

/// Whether a control is pinned in the file systems that a process sees, whose root is `root`.
pub(crate) fn is_pinned_below(root: &Path, control: &Control) -> bool {
    let folder = root.join(FOLDER.trim_start_matches('/'));
    pins_of(control, &folder).iter().any(|pin| stem(pin) == Some(control.short))
}

/// A pin's name without the number that distinguishes it from others.
fn stem(pin: &Path) -> Option<&str> {
    let name = pin.file_name()?.to_str()?;
    let numbered = name.rsplit_once('-').filter(|(_, number)| number.bytes().all(|it| it.is_ascii_digit()));
    Some(numbered.map_or(name, |(stem, _)| stem))
}

/// Name of the pins of a control's relabelling.
pub(crate) fn relabelling_of(control: &Control) -> String {
    beside_of(control, "ect1")
}

/// Name of the pin of an object that stays as long as a control.
pub(crate) fn beside_of(control: &Control, what: &str) -> String {
    format!("{}-{what}", control.short)
}

/// The pins of a control and of the objects that stay with it: its relabelling, the controls beside it, its
/// circuits.
pub(crate) fn pins_of(control: &Control, folder: &Path) -> Vec<PathBuf> {
    let pins = is_mounted(folder).then(|| fs::read_dir(folder)).into_iter().flatten().flatten().flatten();
    let others = control.beside.iter().filter_map(|name| crate::control(name)).map(|other| other.short);
    let stems: Vec<String> = std::iter::once(control.short.to_owned())
        .chain(["ect1", CIRCUITS].into_iter().chain(others).map(|what| beside_of(control, what)))
        .collect();
    let ours = |pin: &PathBuf| stem(pin).is_some_and(|stem| stems.iter().any(|ours| ours == stem));
    pins.filter(is_pin).map(|entry| entry.path()).filter(ours).collect()
}

/// Whether it is an object that root has pinned: no folder, no symbolic link, and of no other owner.
pub(crate) fn is_pin(entry: &DirEntry) -> bool {
    entry.metadata().is_ok_and(|found| found.is_file() && found.uid() == 0)
}

/// Whether the kernel itself has created it: `maps.debug` and `progs.debug` (kernel/bpf/preload).
pub(crate) fn is_kernels(entry: &DirEntry) -> bool {
    entry.path().extension().is_some_and(|extension| extension == "debug")
}

pub(crate) fn is_mounted(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|found| found.f_type as u32 == MAGIC)
}
