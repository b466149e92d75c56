//! References to controls in the kernel. A control is registered for as long as its BPF link lives, and the link lives as long as a
//! process has a descriptor of it or it is pinned. The kernel counts the references, so a killed process releases its own.

use crate::holder::Holder;
use crate::pinned::is_pinned_below;
use crate::{Control, Problem};
use libbpf_rs::MapHandle;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// A link of a control, with a reference to it.
#[derive(Debug)]
struct Found {
    id: u32,
    link: OwnedFd,
    /// The map that holds the control (`struct_ops`).
    map: u32,
}

/// All links of controls in the kernel, whether weir's or not.
fn all() -> Result<Vec<Found>, Problem> {
    let (mut found, mut id) = (vec![], 0);
    // SAFETY: it writes the next number into `id` and touches nothing else.
    while unsafe { libbpf_sys::bpf_link_get_next_id(id, &raw mut id) } == 0 {
        // SAFETY: no memory is passed.
        let descriptor = unsafe { libbpf_sys::bpf_link_get_fd_by_id(id) };
        if descriptor < 0 {
            // The link is being released (ENOENT), or is incomplete (EAGAIN).
            continue;
        }
        // SAFETY: the kernel has just made the descriptor, and it has no other owner.
        let link = unsafe { OwnedFd::from_raw_fd(descriptor) };
        if let Some(map) = map_of(&link).map_err(cannot_look)? {
            found.push(Found { id, link, map });
        }
    }
    match io::Error::last_os_error() {
        end if end.kind() == io::ErrorKind::NotFound => Ok(found),
        error => Err(cannot_look(error)),
    }
}

fn cannot_look(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Problem::Forbidden(error),
        _ => Problem::failed("cannot list the BPF links in the kernel")(error),
    }
}

/// The map of a control's link; `None` if it is another kind of link.
fn map_of(link: &OwnedFd) -> io::Result<Option<u32>> {
    // SAFETY: plain data, for which all zeros is a valid value.
    let mut info: libbpf_sys::bpf_link_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the pointers name a value and its length; the kernel writes no more than that.
    let result = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(link.as_raw_fd(), (&raw mut info).cast(), &raw mut length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the type says which member of the union is valid.
    let map = || unsafe { info.__bindgen_anon_1.struct_ops.map_id };
    Ok((info.type_ == libbpf_sys::BPF_LINK_TYPE_STRUCT_OPS).then(map))
}

/// The links of this control that are in the kernel: at most one is registered, another may be about to be released.
fn of(control: &Control) -> Result<Vec<Found>, Problem> {
    let mut found = all()?;
    found.retain(|found| {
        MapHandle::from_map_id(found.map).is_ok_and(|map| {
            use libbpf_rs::MapCore;
            map.name() == control.kernel
        })
    });
    Ok(found)
}

/// A reference to the link of a control that is in the kernel; `None` if it is not there.
///
/// # Errors
/// This process may not read the kernel's BPF objects.
pub(crate) fn find(control: &Control) -> Result<Option<OwnedFd>, Problem> {
    Ok(of(control)?.pop().map(|found| found.link))
}

/// Pins a link under this name in a file system for BPF objects, so that it outlasts this process.
pub(crate) fn pin(link: BorrowedFd<'_>, place: &Path) -> io::Result<()> {
    let place = std::ffi::CString::new(place.as_os_str().as_encoded_bytes())?;
    // SAFETY: the name ends in a zero and lives until the call returns.
    match unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), place.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The other processes that keep a control in the kernel, as far as this process can see them: by a descriptor of their own, or by a
/// pin in another mount namespace.
///
/// # Errors
/// This process may not read the kernel's BPF objects.
pub(crate) fn holders(control: &Control) -> Result<Vec<Holder>, Problem> {
    let ids: Vec<u32> = of(control)?.iter().map(|found| found.id).collect();
    let namespace_of = |process: &str| fs::read_link(Path::new("/proc").join(process).join("ns/mnt")).ok();
    let mut namespaces: BTreeSet<_> = namespace_of("self").into_iter().collect();
    let mut holders = vec![];
    for process in fs::read_dir("/proc").map_err(Problem::failed("cannot list processes"))?.flatten() {
        let name = process.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if number == std::process::id() {
            continue;
        }
        if has_descriptor_of(&process.path(), &ids) {
            holders.push(Holder::new(number, false));
        }
        let elsewhere = namespace_of(&number.to_string()).is_some_and(|it| namespaces.insert(it));
        if elsewhere && is_pinned_below(&process.path().join("root"), control) {
            holders.push(Holder::new(number, true));
        }
    }
    // The tidier of a holder is left out: it holds the control for its parent.
    let processes: Vec<u32> = holders.iter().map(|holder| holder.process).collect();
    holders.retain(|holder| !holder.parent.is_some_and(|parent| processes.contains(&parent)));
    Ok(holders)
}

/// Whether a process has a descriptor of one of these links (proc_pid_fdinfo(5)).
fn has_descriptor_of(process: &Path, ids: &[u32]) -> bool {
    fs::read_dir(process.join("fd")).into_iter().flatten().flatten().any(|descriptor| {
        // `bpf_link` in the process that made the link, `bpf-link` in one that opened it by its number (kernel/bpf/syscall.c).
        let is_link = fs::read_link(descriptor.path()).is_ok_and(|target| {
            ["anon_inode:bpf_link", "anon_inode:bpf-link"].map(Path::new).contains(&target.as_path())
        });
        is_link && {
            let about = fs::read_to_string(process.join("fdinfo").join(descriptor.file_name()));
            let about = about.unwrap_or_default();
            let id = about.lines().find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok());
            id.is_some_and(|id| ids.contains(&id))
        }
    })
}
