//! Whatever a host puts on its wire, the live engine reads the frame or leaves it, and marking it keeps its checksum right.

/// Examines a frame.
pub(crate) fn check(data: &[u8]) {
    weir_live::examine_frame(data);
}
