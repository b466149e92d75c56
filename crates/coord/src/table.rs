//! The cells that flows write: general-purpose addresses with their aggregates, and report pointers (sections 3.2, 5.2.5).
//!
//! A flow writes its own offset and no other. Aggregates are computed when they are read and kept until a cell of their
//! address is written again. Each function has its own valid bit, so that reading the sum does not hide that the minimum is
//! out of date. The table takes less than the source's 256 KiB, since offsets without a function are not stored.

use crate::aggregate::{ASSIGNED, Cells, FUNCTIONS, Function};
use crate::cell::{Cell, GENERAL, R1};
use crate::header::{FLOWS, Operation, Pointer, VALUE_MAX, WORDS};

/// One general-purpose address.
#[derive(Debug, Clone)]
struct Row {
    cells: Cells,
    results: [u32; FUNCTIONS],
    /// Bit `f` is set while `results[f]` is valid for the cells.
    clean: u16,
    /// The flow that wrote last.
    latest: u8,
}

const EMPTY: Row = Row { cells: [0; FLOWS], results: [0; FUNCTIONS], clean: 0, latest: 0 };

/// The cells of one application that flows write.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Box<[Row]>,
    /// R1 to R4 of each flow, side by side because they are read together.
    pointers: Box<[[u32; WORDS]]>,
}

impl Default for Table {
    fn default() -> Table {
        Table { rows: vec![EMPTY; GENERAL].into(), pointers: vec![[0; WORDS]; FLOWS].into() }
    }
}

impl Table {
    /// Size of a table in bytes.
    pub const SIZE: usize =
        size_of::<Table>() + GENERAL * size_of::<Row>() + FLOWS * size_of::<[u32; WORDS]>();

    /// Writes a flow's cell. A write to a read-only address does nothing.
    #[inline]
    pub fn write(&mut self, flow: u8, operation: Operation) {
        let (address, flow_at) = (usize::from(operation.address), usize::from(flow));
        let value = ASSIGNED | operation.value & VALUE_MAX;
        if flow_at >= FLOWS {
            return;
        }
        if let Some(row) = self.rows.get_mut(address) {
            row.cells[flow_at] = value;
            row.clean = 0;
            row.latest = flow;
        } else if let Some(pointer) = self.pointers[flow_at].get_mut(address - usize::from(R1)) {
            *pointer = value;
        }
    }

    /// The report pointers of a flow; `None` for each pointer that it has not set.
    pub fn pointers(&self, flow: u8) -> [Option<Pointer>; WORDS] {
        let pointers = self.pointers.get(usize::from(flow)).copied().unwrap_or_default();
        pointers.map(|value| (value & ASSIGNED != 0).then(|| Pointer::from_value(value)))
    }

    /// The value of a cell at a general-purpose or report pointer address; zero if nothing was written there.
    #[inline]
    pub fn read(&mut self, cell: Cell) -> u32 {
        let (address, offset) = (usize::from(cell.address), usize::from(cell.offset));
        let Some(row) = self.rows.get_mut(address) else {
            let pointers = self.pointers.get(offset);
            let pointer = pointers.and_then(|pointers| pointers.get(address - usize::from(R1)));
            return pointer.map_or(0, |value| value & VALUE_MAX);
        };
        if let Some(value) = row.cells.get(offset) {
            return value & VALUE_MAX;
        }
        let Some(function) = Function::at(cell.offset) else { return 0 };
        let bit = 1 << function.index();
        if row.clean & bit == 0 {
            row.results[function.index()] = function.over(&row.cells, row.latest);
            row.clean |= bit;
        }
        row.results[function.index()]
    }

    /// Forgets what a flow has written.
    pub fn forget(&mut self, flow: u8) {
        let flow = usize::from(flow);
        for row in &mut self.rows {
            if let Some(cell) = row.cells.get_mut(flow).filter(|cell| **cell != 0) {
                *cell = 0;
                row.clean = 0;
            }
        }
        if let Some(pointers) = self.pointers.get_mut(flow) {
            *pointers = [0; WORDS];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aggregate(function: Function) -> Cell {
        Cell { address: 4, offset: function as u8 }
    }

    #[test]
    fn a_table_takes_140_kib_where_the_source_has_256() {
        // 250 addresses of 128 cells, 13 results and 4 bytes; 128 flows of four pointers; two fat pointers.
        assert_eq!(Table::SIZE, 250 * (4 * (128 + 13) + 4) + 128 * 16 + 32);
    }

    #[test]
    fn reading_one_aggregate_does_not_mark_another_as_current() {
        let mut table = Table::default();
        table.write(1, Operation { address: 4, value: 50 });
        table.write(2, Operation { address: 4, value: 70 });
        assert_eq!((table.read(aggregate(Function::Sum)), table.read(aggregate(Function::Min))), (120, 50));
        table.write(1, Operation { address: 4, value: 20 });
        assert_eq!(table.read(aggregate(Function::Sum)), 90);
        assert_eq!(table.read(aggregate(Function::Min)), 20);
        assert_eq!(table.read(aggregate(Function::Latest)), 1);
    }

    #[test]
    fn aggregates_are_recomputed_only_after_a_write() {
        let mut table = Table::default();
        table.write(1, Operation { address: 4, value: 50 });
        table.read(aggregate(Function::Sum));
        // The stored result is read, not computed: a result changed by hand is returned.
        table.rows[4].results[0] = 1234;
        assert_eq!(table.read(aggregate(Function::Sum)), 1234);
        table.write(1, Operation { address: 5, value: 1 });
        assert_eq!(table.read(aggregate(Function::Sum)), 1234, "another address was written");
        table.write(1, Operation { address: 4, value: 51 });
        assert_eq!(table.read(aggregate(Function::Sum)), 51);
    }

    #[test]
    fn read_only_addresses_and_noop_are_not_written() {
        let mut table = Table::default();
        for address in [254, 255] {
            table.write(3, Operation { address, value: 77 });
            assert_eq!(table.read(Cell { address, offset: 3 }), 0);
        }
        table.write(3, Operation::NOOP);
        assert_eq!(table.pointers(3), [None; 4]);
    }

    #[test]
    fn forgetting_a_flow_removes_its_cells_and_keeps_those_of_others() {
        let mut table = Table::default();
        for flow in [1, 2] {
            table.write(flow, Operation { address: 4, value: 10 * u32::from(flow) });
            table.write(flow, Operation { address: R1, value: 7 });
        }
        assert_eq!(table.read(aggregate(Function::Sum)), 30);
        table.forget(1);
        assert_eq!(table.read(aggregate(Function::Sum)), 20);
        assert_eq!(table.read(aggregate(Function::Assigned)), 1);
        assert_eq!((table.pointers(1)[0], table.pointers(2)[0]), (None, Some(Pointer::from_value(7))));
    }

    proptest! {
        #[test]
        fn no_flow_changes_the_cell_of_another(
            writes in prop::collection::vec((0u8..=255, any::<u8>(), 0..=VALUE_MAX), 1..300),
        ) {
            let mut table = Table::default();
            let mut expected = std::collections::HashMap::new();
            for (flow, address, value) in writes {
                table.write(flow, Operation { address, value });
                if flow < 128 && address < 254 {
                    expected.insert((address, flow), value);
                }
            }
            for address in 0..=255u8 {
                for offset in 0..128u8 {
                    let value = expected.get(&(address, offset)).copied().unwrap_or(0);
                    prop_assert_eq!(table.read(Cell { address, offset }), value);
                }
            }
        }

        #[test]
        fn stored_aggregates_equal_recomputed_ones(
            steps in prop::collection::vec((0u8..128, 0u32..1000, 128u8..141), 1..200),
        ) {
            let mut table = Table::default();
            let mut cells = [0u32; FLOWS];
            for (flow, value, offset) in steps {
                table.write(flow, Operation { address: 0, value });
                cells[usize::from(flow)] = ASSIGNED | value;
                let function = Function::at(offset).unwrap();
                prop_assert_eq!(table.read(Cell { address: 0, offset }), function.over(&cells, flow));
            }
        }
    }
}
