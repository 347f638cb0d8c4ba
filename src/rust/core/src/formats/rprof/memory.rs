//! The memory figures of samples.
//!
//! Rprof writes three levels: the memory of vectors in use on the small and the large heap (in
//! units of 8 bytes) and the memory of nodes in use (in bytes), then the number of duplications
//! since the previous sample. Levels have no meaningful sum, so the memory that was allocated
//! between two samples is derived from them by the rule of `utils::summaryRprof()`: it is the sum
//! of the increases of the three levels.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::Values;
use crate::model::known_types::{ALLOC_SIZE, DEALLOC_SIZE, RPROF_MEMORY};

/// Bytes in a vector cell.
const CELL: u64 = 8;

/// The six columns of a memory profile, filled sample by sample.
#[derive(Debug, Default)]
pub struct MemoryColumns {
    columns: Vec<Values>,
    /// The levels of the previous sample, in bytes.
    before: Option<[f64; 3]>,
}

impl MemoryColumns {
    /// The first sample of a block has no previous one.
    pub fn start_block(&mut self) {
        self.before = None;
    }

    /// Records the numbers of sample `row`. It is not called for samples without numbers.
    pub fn record(&mut self, row: usize, raw: [u64; 4]) -> Result<()> {
        if self.columns.is_empty() {
            for known in RPROF_MEMORY.iter().chain([&ALLOC_SIZE, &DEALLOC_SIZE]) {
                let values = Values::absent_known(known, row)?;
                self.columns.try_push(values)?;
            }
        }
        self.pad(row)?;
        let levels = [
            raw[0].saturating_mul(CELL) as f64,
            raw[1].saturating_mul(CELL) as f64,
            raw[2] as f64,
        ];
        let before = self.before.replace(levels).unwrap_or(levels);
        let mut allocated = 0.0;
        let mut freed = 0.0;
        for (now, before) in levels.iter().zip(before) {
            allocated += (now - before).max(0.0);
            freed += (before - now).max(0.0);
        }
        let values = [
            levels[0],
            levels[1],
            levels[2],
            raw[3] as f64,
            allocated,
            freed,
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.column.try_push(value)?;
        }
        Ok(())
    }

    fn pad(&mut self, row: usize) -> Result<()> {
        for values in &mut self.columns {
            if values.column.len() < row {
                values.column.try_fill(row, f64::NAN)?;
            }
        }
        Ok(())
    }

    /// The columns, as long as the samples.
    pub fn finish(mut self, samples: usize) -> Result<Vec<Values>> {
        self.pad(samples)?;
        Ok(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_and_falls_are_separate() {
        let mut memory = MemoryColumns::default();
        memory.record(1, [10, 100, 1000, 7]).unwrap();
        memory.record(2, [12, 90, 1056, 0]).unwrap();
        let columns = memory.finish(4).unwrap();
        let of = |name: &str| {
            columns
                .iter()
                .find(|v| v.type_.name == name)
                .unwrap()
                .column
                .iter()
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(of("vsize_small")[1..3], [80.0, 96.0]);
        assert_eq!(of("alloc_size")[1..3], [0.0, 16.0 + 56.0]);
        assert_eq!(of("dealloc_size")[1..3], [0.0, 80.0]);
        assert!(of("nodes")[0].is_nan() && of("nodes")[3].is_nan());
    }
}
