//! The order of a host's packets. By default Linux processes a packet behind a veth on the processor that sent it. A TCP sends on
//! two processors in turn, in system calls of its application and when acknowledgements arrive, so its packets may overtake each
//! other between two hosts, which no single cable does. Receive packet steering gives all packets of a device to one processor
//! (Documentation/networking/scaling.rst, "RPS").

use crate::namespace::set_sysctl;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::io;

/// The processors of new devices of a namespace (Documentation/admin-guide/sysctl/net.rst). In Linux since 6.3.
pub const ORDER: &str = "core.rps_default_mask";

/// From now on each new device of the calling thread's namespace has its packets processed by one processor. Devices with
/// different numbers take turns among those on which this process may run.
///
/// # Errors
/// The kernel is older than 6.3, or it keeps the processor for other work.
pub fn keep_order(number: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let processors: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let Some(processor) = number.checked_rem(processors.len()).map(|at| processors[at]) else {
        return Ok(());
    };
    set_sysctl(ORDER, &mask_of(processor))
}

/// A set of one processor, as the kernel reads it: hexadecimal words of 32 bits, the highest first.
fn mask_of(processor: usize) -> String {
    let highest = format!("{:x}", 1_u32 << (processor % 32));
    (0..processor / 32).fold(highest, |mask, _| mask + ",00000000")
}

#[cfg(test)]
mod tests {
    use super::mask_of;

    #[test]
    fn a_mask_names_one_processor() {
        assert_eq!(mask_of(0), "1");
        assert_eq!(mask_of(5), "20");
        assert_eq!(mask_of(31), "80000000");
        assert_eq!(mask_of(32), "1,00000000");
        assert_eq!(mask_of(70), "40,00000000,00000000");
    }
}
