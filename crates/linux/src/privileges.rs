//! A process that root has started becomes another user's. Of root's rights it keeps CAP_SYS_NICE, by which a thread claims a
//! processor ([`crate::claim_processor`]), and those that it names (setresuid(2), capabilities(7)).

pub use rustix::thread::CapabilitySet;

use rustix::thread::CapabilitySets;
use std::io;
use std::os::unix::net::UnixStream;

/// A user of this machine, and the user's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// The user of this name in /etc/passwd (passwd(5)).
    ///
    /// # Errors
    /// The file cannot be read, or does not have the name.
    pub fn named(name: &str) -> io::Result<User> {
        let users = std::fs::read_to_string("/etc/passwd")?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no user of this name");
        User::among(&users, name).ok_or_else(missing)
    }

    fn among(users: &str, name: &str) -> Option<User> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then_some(())?;
            Some(User { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
        })
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the other end of a connection is root, or the same user as this process.
pub fn is_trusted(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// Makes this process the user's, for good: its threads, and what it executes, cannot become root again. The calling thread keeps the
/// rights `kept`.
///
/// # Errors
/// The kernel's: only root may do it.
pub fn drop_to(user: User, kept: CapabilitySet) -> io::Result<()> {
    let User { uid, gid } = user;
    rustix::thread::set_keep_capabilities(true)?;
    // SAFETY: the pointer names one group, and lives until the call returns. The C library changes all threads of the process.
    check(unsafe { libc::setgroups(1, &raw const gid) })?;
    // SAFETY: numbers alone are passed.
    check(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: numbers alone are passed.
    check(unsafe { libc::setresuid(uid, uid, uid) })?;
    let permitted = rustix::thread::capabilities(None)?.permitted & (CapabilitySet::SYS_NICE | kept);
    let left = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, left)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nweir-x:x:7:8::/:\nweir:x:998:997::/:/usr/sbin/nologin\nbad:x:y\n";
        assert_eq!(User::among(users, "weir"), Some(User { uid: 998, gid: 997 }));
        assert_eq!((User::among(users, "wei"), User::among(users, "bad")), (None, None));
    }
}
