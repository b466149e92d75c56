//! Whatever flows write, a table never panics, no flow changes the cells of another, and every stored aggregate equals the
//! one computed from the cells.

use weir_coord::cell::{Cell, GENERAL};
use weir_coord::header::Operation;
use weir_coord::{Function, Table};

/// Writes and reads a table; the bytes are the operations.
pub(crate) fn check(bytes: &[u8]) {
    let mut table = Table::default();
    let mut expected = vec![[None::<u32>; 128]; GENERAL];
    for piece in bytes.chunks_exact(7) {
        let (flow, address, offset) = (piece[0], piece[1], piece[6]);
        let value = u32::from_be_bytes([0, piece[2], piece[3], piece[4]]);
        if piece[5] % 16 == 0 {
            table.forget(flow);
            if flow < 128 {
                expected.iter_mut().for_each(|cells| cells[usize::from(flow)] = None);
            }
        } else {
            table.write(flow, Operation { address, value });
            if flow < 128
                && let Some(cells) = expected.get_mut(usize::from(address))
            {
                cells[usize::from(flow)] = Some(value);
            }
        }
        let read = table.read(Cell { address, offset });
        let Some(cells) = expected.get(usize::from(address)) else { continue };
        let assigned = || cells.iter().flatten().copied();
        let at = |wanted: Option<u32>| cells.iter().position(|cell| *cell == wanted).unwrap_or(0) as u32;
        let wanted = match (offset, Function::at(offset)) {
            (0..128, _) => cells[usize::from(offset)].unwrap_or(0),
            (_, None) => 0,
            (_, Some(_)) if assigned().next().is_none() => 0,
            (_, Some(function)) => match function {
                Function::Sum => assigned().map(u64::from).sum::<u64>().min((1 << 24) - 1) as u32,
                Function::Min => assigned().min().unwrap_or(0),
                Function::Max => assigned().max().unwrap_or(0),
                Function::Range => assigned().max().unwrap_or(0) - assigned().min().unwrap_or(0),
                Function::And => assigned().fold((1 << 24) - 1, |all, value| all & value),
                Function::Or => assigned().fold(0, |all, value| all | value),
                Function::Xor => assigned().fold(0, |all, value| all ^ value),
                Function::MinFlow => at(assigned().min()),
                Function::MaxFlow => at(assigned().max()),
                Function::Assigned => assigned().count() as u32,
                // Means and deviations lie within the range; the latest flow may have been forgotten since.
                Function::Mean => {
                    assert!((assigned().min()..=assigned().max()).contains(&Some(read)));
                    read
                }
                Function::Deviation => {
                    assert!(read <= assigned().max().unwrap_or(0));
                    read
                }
                Function::Latest => {
                    assert!(read < 128);
                    read
                }
            },
        };
        assert_eq!(read, wanted);
    }
}
