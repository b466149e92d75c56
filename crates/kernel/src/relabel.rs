//! ECT(1) for a control whose packets belong in the L4S queue: a program at the egress of a device (tcx) relabels the packets
//! of connections under that control, since Linux sends ECT(0) whatever the control. `bpf/relabel.c` says how.

use crate::object::load_object;
use crate::{Control, Problem, capability, needs_marks};
use libbpf_rs::{AsRawLibbpf, Link};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

/// Length of a control's name in the kernel (`TCP_CA_NAME_MAX`), and of `relabelled` in `bpf/relabel.c`.
const NAME: usize = 16;

/// Relabels the packets of a control as long as it lives.
#[derive(Debug)]
pub struct Relabelling {
    /// One link for each device.
    links: Vec<Link>,
}

impl Relabelling {
    /// Begins to relabel the control's packets that leave these devices of this network namespace.
    ///
    /// # Errors
    /// The control's congestion signal is not ECN marks, there is no such device, or the kernel has no tcx.
    pub fn new(control: &'static Control, devices: &[String]) -> Result<Relabelling, Problem> {
        if !needs_marks(control) {
            return Err(Problem::NoMarks(control.name));
        }
        capability::check_egress()?;
        let object = load_object("relabel", |_, section| write_name(control, section))?;
        let program = object.progs_mut().next();
        let program = program.ok_or_else(|| io::Error::other("its object has no program"));
        let program = program.map_err(Problem::failed("cannot relabel"))?;
        let attach = |device: &String| {
            let any = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            let index = name_to_index(any, device)?;
            // SAFETY: the program lives until the call returns, and no options are given.
            let link = unsafe {
                libbpf_sys::bpf_program__attach_tcx(
                    program.as_libbpf_object().as_ptr(),
                    index as i32,
                    std::ptr::null(),
                )
            };
            let link = NonNull::new(link).ok_or_else(io::Error::last_os_error)?;
            // SAFETY: libbpf has just made the link, and it has no other owner.
            Ok(unsafe { Link::from_ptr(link) })
        };
        let mut links = vec![];
        for device in devices {
            let what = format!("cannot relabel packets that leave {device}");
            links.push(attach(device).map_err(Problem::failed(what))?);
        }
        Ok(Relabelling { links })
    }

    /// Its references in the kernel.
    pub(crate) fn links(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.links.iter().map(Link::as_fd)
    }
}

/// Fills in `relabelled` of `bpf/relabel.c`.
fn write_name(control: &Control, section: &mut [u8]) -> Result<(), Problem> {
    let place = section.get_mut(..NAME).ok_or_else(|| {
        Problem::failed("cannot name the control")(io::Error::other("bpf/relabel.c has another layout"))
    })?;
    place.fill(0);
    place[..control.kernel.len()].copy_from_slice(control.kernel.as_bytes());
    Ok(())
}
