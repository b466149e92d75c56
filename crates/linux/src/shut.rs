//! Shuts a device's input to the kernel's own stack: a program of two instructions at its ingress hook (tcx, Linux 6.6) drops every
//! packet. Packet sockets see a packet before that hook does (`__netif_receive_skb_core` in net/core/dev.c), so they still receive
//! all of them.
//!
//! The link is held by a file descriptor alone. However the process ends, the kernel takes the program away with it: no file tells
//! what is to be restored, and nothing is left behind.

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;

/// Numbers of linux/bpf.h.
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_INGRESS: u32 = 46;
/// `r0 = TCX_DROP` and `exit`, as `struct bpf_insn` lays them out.
const DROP: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 2, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
/// The program's licence. Kernel helpers would require one; the program calls none.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` reads here.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    device: u32,
    attach_type: u32,
}

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` reads here.
#[repr(C)]
struct Link {
    program: u32,
    device: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    revision: u64,
}

/// Keeps a device's packets from the kernel's stack for as long as it lives.
#[derive(Debug)]
pub struct Shut {
    _link: OwnedFd,
}

impl Shut {
    /// Shuts the device of this index in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's: it is older than 6.6, or the process lacks CAP_BPF and CAP_NET_ADMIN.
    pub fn new(device: u32) -> io::Result<Shut> {
        let mut name = [0; 16];
        name[..9].copy_from_slice(b"weir_shut");
        let load = Load {
            kind: BPF_PROG_TYPE_SCHED_CLS,
            instructions: DROP.len() as u32,
            code: DROP.as_ptr() as u64,
            licence: LICENCE.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name,
            device: 0,
            attach_type: BPF_TCX_INGRESS,
        };
        let program = bpf(BPF_PROG_LOAD, &load)?;
        let link = Link {
            program: program.as_raw_fd() as u32,
            device,
            attach_type: BPF_TCX_INGRESS,
            flags: 0,
            relative: 0,
            padding: 0,
            revision: 0,
        };
        // The link keeps the program.
        Ok(Shut { _link: bpf(BPF_LINK_CREATE, &link)? })
    }
}

/// bpf(2) with a command that makes a descriptor.
fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the pointer names attributes of the given length, with the layout that the command reads; what they point to is constant.
    let made =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both commands return a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(made as i32) })
}
