//! Whatever a file with the name of a capture holds, reading it gives packets or an error, and comparing them with themselves finds no
//! difference.

use weir_base::Time;
use weir_engine::segments;
use weir_record::trajectory::packets::{Packets, compare};

/// The port of the first flow.
const PORT: u16 = 23_000;

/// Reads bytes as a capture.
pub(crate) fn check(data: &[u8]) {
    let Ok(found) = segments(data, PORT) else { return };
    if let Some(compared) = compare([&found, &found], [Time::ZERO; 2]) {
        assert!(matches!(compared, Packets::Same { .. }), "{compared:?}");
    }
}
