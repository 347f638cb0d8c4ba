//! R's own counts of its objects, from which `gc()` reports the memory that is in use.
//!
//! R does not export these variables, and nothing in memory marks them. They are found by what they do: they grow by
//! exactly what is allocated. R counts an object when it allocates it, and counts anew after a garbage collection.

use super::lists::MOST_VARIABLES;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};
use profile_runtime::memory::{self, Memory, at};
use std::ops::Range;

/// How many times objects are allocated to find the counts.
const ROUNDS: u32 = 3;

/// Objects that were allocated. Sizes are in units of 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocated {
    pub objects: u64,
    /// The data of vectors that have memory of their own, and of those in R's pages.
    pub large: u64,
    pub small: u64,
}

/// The addresses of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    objects: u64,
    large: u64,
    small: u64,
}

/// What R counts as in use. This includes garbage that it has not collected yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    pub objects: u64,
    /// The data of vectors, as in [`Allocated`], but in bytes.
    pub large: u64,
    pub small: u64,
}

impl Counts {
    /// Finds the counts among R's variables. `allocate` allocates objects; the three numbers that it returns must
    /// differ, and differ from round to round. `None` if that does not lead to one variable for each count, for example
    /// because R has collected garbage meanwhile.
    pub fn find(
        memory: &mut impl Memory,
        variables: &[Range<u64>],
        mut allocate: impl FnMut(u32) -> Result<Allocated>,
    ) -> Result<Option<Counts>> {
        let mut found: [Option<Vec<u64>>; 3] = [None, None, None];
        for round in 0..ROUNDS {
            let before = read(memory, variables)?;
            let Allocated {
                objects,
                large,
                small,
            } = allocate(round)?;
            let after = read(memory, variables)?;
            for (found, growth) in found.iter_mut().zip([objects, large, small]) {
                *found = Some(match found.take() {
                    None => grown(variables, &before, &after, growth)?,
                    Some(mut earlier) => {
                        let now = grown(variables, &before, &after, growth)?;
                        earlier.retain(|address| now.binary_search(address).is_ok());
                        earlier
                    }
                });
            }
        }
        let [Some(objects), Some(large), Some(small)] = &found else {
            return Ok(None);
        };
        Ok(match (&objects[..], &large[..], &small[..]) {
            (&[objects], &[large], &[small]) => Some(Counts {
                objects,
                large,
                small,
            }),
            _ => None,
        })
    }

    /// The current counts; `None` if they cannot be read.
    pub fn read(&self, memory: &mut impl Memory) -> Option<InUse> {
        Some(InUse {
            objects: memory::word(memory, self.objects)?,
            large: memory::word(memory, self.large)?.saturating_mul(8),
            small: memory::word(memory, self.small)?.saturating_mul(8),
        })
    }
}

/// The contents of all variables, one after the other. Those that cannot be read are 0.
fn read(memory: &mut impl Memory, variables: &[Range<u64>]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for (start, size) in variables.iter().map(words) {
        let mut bytes = filled(size, 0)?;
        memory.read(start, &mut bytes);
        all.try_extend(&bytes)?;
    }
    Ok(all)
}

/// The start and the size of the whole words in a range.
fn words(range: &Range<u64>) -> (u64, usize) {
    let start = range.start.saturating_add(range.start.wrapping_neg() % 8);
    let size = range.end.saturating_sub(start).min(MOST_VARIABLES);
    (start, (size / 8 * 8) as usize)
}

/// The addresses, in order, of the words that have grown by this number.
fn grown(variables: &[Range<u64>], before: &[u8], after: &[u8], growth: u64) -> Result<Vec<u64>> {
    let (mut found, mut first) = (Vec::new(), 0);
    for (start, size) in variables.iter().map(words) {
        for offset in (0..size).step_by(8) {
            let (old, new) = (at(before, first + offset), at(after, first + offset));
            if old.checked_add(growth) == Some(new) {
                found.try_push(start + offset as u64)?;
            }
        }
        first += size;
    }
    found.sort_unstable();
    Ok(found)
}

/// How much memory R uses, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of objects, and the data of vectors, as `gc()` reports them, but including garbage.
    pub objects: u64,
    pub data: u64,
    /// Both together. For `gc()`, each object takes a cell in addition to its data.
    pub used: u64,
    /// What R has allocated beyond that. It is a little more, since the header of a vector is smaller than a cell.
    pub free: u64,
}

#[cfg(test)]
mod tests;
