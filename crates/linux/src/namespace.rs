//! Network namespaces without names: each is made by a thread of this process, held only by a file descriptor, and mounted
//! nowhere. When the process dies, however it dies, the kernel takes them away with everything inside: devices, addresses,
//! sysctls, sockets. Nothing is left that a later run would have to find.
//!
//! An ordinary user first moves the whole process into a user namespace of its own ([`enter`]), in which it may do the same.

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use weir_base::not_started;

/// What [`enter`] found or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The process may make namespaces as it is.
    Root,
    /// The process now lives in a user namespace of its own, in which it may make namespaces.
    UserNamespace,
}

/// Makes sure that this process may make network namespaces: as root it already may, an ordinary user's process is moved into
/// a user namespace. Must be called while the process has a single thread, so from the beginning of `main`. User and group
/// stay what they are, so files are written as the same user.
///
/// # Errors
/// The system forbids user namespaces, or the process already has several threads.
pub fn enter() -> io::Result<Privilege> {
    if may_make_namespaces() {
        return Ok(Privilege::Root);
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // SAFETY: no file table is unshared, so no descriptor that others hold can lose its meaning.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // user_namespaces(7): without CAP_SETGID outside, a gid map may be written only once setgroups is given up.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// Whether a thread of this process can make a network namespace now. Tries it, on a thread that ends at once.
pub fn may_make_namespaces() -> bool {
    Namespace::new().is_ok()
}

/// A network namespace, held by its descriptor.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// A new and empty namespace, whose loopback device is down.
    ///
    /// # Errors
    /// The process may not make namespaces, or there are too many.
    pub fn new() -> io::Result<Namespace> {
        let made = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("weir-netns".into())
                .spawn_scoped(scope, || -> io::Result<OwnedFd> {
                    // SAFETY: only the network namespace of this thread changes; no descriptor loses its meaning.
                    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
                    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                    Ok(rustix::fs::open("/proc/thread-self/ns/net", flags, Mode::empty())?)
                })
                .map(|thread| {
                    thread.join().unwrap_or_else(|_| {
                        Err(io::Error::other("the thread that makes a namespace panicked"))
                    })
                })
        })
        .map_err(not_started)??;
        Ok(Namespace { fd: made })
    }

    /// Runs `work` inside the namespace, on a thread of its own. Sockets opened there belong to this namespace for good.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the work's own error.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("weir-netns".into())
                .spawn_scoped(scope, || {
                    self.join()?;
                    work()
                })
                .map_err(not_started)?
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("work inside a namespace panicked")))
        })
    }
}

impl Namespace {
    /// Another handle of it.
    ///
    /// # Errors
    /// The process has no more descriptors.
    pub fn try_clone(&self) -> io::Result<Namespace> {
        Ok(Namespace { fd: self.fd.try_clone()? })
    }

    /// Moves the calling thread, and every process that it starts, into the namespace for good.
    ///
    /// # Errors
    /// The kernel's.
    pub fn join(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(rustix::thread::move_into_link_name_space(self.fd.as_fd(), network)?)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The number of the calling thread's network namespace (namespaces(7)). A namespace that is gone may leave its number to another.
///
/// # Errors
/// /proc is not there.
pub fn own_number() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// The numbers of the network namespaces that something holds: a thread that is in it, a descriptor of a process, or a mount, by which it has
/// a name (namespaces(7)). `None` if this process may not look at all processes: root of a user namespace may not.
pub fn numbers_in_use() -> Option<Vec<u64>> {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = vec![];
    for process in entries("/proc".into()).map(|process| process.path()) {
        let of_threads = entries(process.join("task")).map(|thread| thread.path().join("ns/net"));
        let of_descriptors = entries(process.join("fd")).map(|descriptor| descriptor.path());
        for path in of_threads.chain(of_descriptors) {
            match std::fs::read_link(path) {
                Ok(link) => found.extend(link.to_str().and_then(numbered)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
                // It has ended, or was closed, meanwhile.
                Err(_) => {}
            }
        }
    }
    // The fourth field of a mount is what is mounted (proc_pid_mountinfo(5)).
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts.lines().filter_map(|mount| numbered(mount.split(' ').nth(3)?)));
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// The number in the name that the kernel gives a network namespace, `net:[4026531840]`.
fn numbered(name: &str) -> Option<u64> {
    name.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// Sets a sysctl below `/proc/sys/net` of the namespace that the calling thread is in.
///
/// # Errors
/// The kernel does not know the sysctl or refuses the value; the text names both.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(sysctl_path(name), value).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot set net.{name} to \"{value}\": {error}"))
    })
}

/// Reads a sysctl of the namespace that the calling thread is in, with single spaces between its words.
pub fn sysctl(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(sysctl_path(name)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `/proc/sys/net` follows the namespace of the thread that opens it, not of the process.
fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/net/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_namespace_is_in_use_as_long_as_a_descriptor_holds_it() {
        // Without the rights of root there is none to hold.
        let (Ok(namespace), Some(used)) = (Namespace::new(), numbers_in_use()) else { return };
        assert!(used.contains(&own_number().unwrap()));
        let number = namespace.inside(own_number).unwrap();
        assert!(numbers_in_use().unwrap().contains(&number));
        drop(namespace);
        // Another test may have got the number meanwhile.
        let begun = Instant::now();
        while numbers_in_use().unwrap().contains(&number) {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
