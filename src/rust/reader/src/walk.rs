//! R's stack, if it can be read directly: the records are followed from the innermost one outwards, twice.
//!
//! This is much faster than copying by the kernel (`ahead.rs`): a record takes a tenth of a microsecond, and its
//! address need not be known in advance. What is the same both times was the same in between, when R's variables were
//! read, so all of it belongs to one moment.

use crate::calls::Order;
use crate::memory::{self, Memory, at};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{BCBODY, BCPC, CALLFLAG, CALLFUN, CLOENV, NEXT, RECORD};
use std::mem;

/// The maximum number of records that are followed. Such deep stacks change less often than they are read.
const MOST: usize = 20_000;
/// The same for records that cannot be read directly, because R runs on another stack than that of the first thread.
const MOST_OTHERS: usize = 100;

/// The stack, and what it was a moment later.
#[derive(Debug, Default)]
pub struct Walk {
    /// Innermost first; sorted by address at the end.
    records: Vec<Twice<RECORD>>,
    /// Variables of functions: positions in their byte code. Sorted as well.
    words: Vec<Twice<8>>,
    /// R's variables in between, with their addresses.
    variables: Vec<Twice<8>>,
}

#[derive(Debug)]
struct Twice<const SIZE: usize> {
    address: u64,
    copies: [[u8; SIZE]; 2],
}

impl<const SIZE: usize> Twice<SIZE> {
    fn read(memory: &mut impl Memory, address: u64) -> Option<Twice<SIZE>> {
        let copy = memory::array(memory, address)?;
        Some(Twice {
            address,
            copies: [copy; 2],
        })
    }

    fn read_again(&mut self, memory: &mut impl Memory) {
        if let Some(copy) = memory::array(memory, self.address) {
            self.copies[1] = copy;
        }
    }
}

impl Walk {
    pub fn clear(&mut self) {
        self.records.clear();
        self.words.clear();
        self.variables.clear();
    }

    /// Follows the records twice, and reads the variables in between. The first variable points to the innermost
    /// record.
    pub fn take(
        &mut self,
        memory: &mut impl Memory,
        order: &Order,
        variables: &[u64],
    ) -> Result<()> {
        self.clear();
        let first = variables
            .first()
            .and_then(|&head| memory::word(memory, head));
        let Some(first) = first else {
            return Ok(());
        };
        self.follow(memory, order, first)?;
        let mut innermost = 0;
        for &variable in variables.iter().rev() {
            let Some(value) = Twice::read(memory, variable) else {
                self.clear();
                return Ok(());
            };
            innermost = at(&value.copies[0], 0);
            self.variables.try_push(value)?;
        }
        if innermost == first {
            self.add_position(memory)?;
            self.read_again(memory);
        } else {
            // A function was called meanwhile, or has returned.
            self.sort();
            let (records, words) = (mem::take(&mut self.records), mem::take(&mut self.words));
            self.follow(memory, order, innermost)?;
            self.add_position(memory)?;
            for record in &mut self.records {
                record.copies[0] =
                    find(&records, record.address).map_or([0; RECORD], |[first, _]| *first);
            }
            for word in &mut self.words {
                word.copies[0] = find(&words, word.address).map_or([0; 8], |[first, _]| *first);
            }
        }
        self.sort();
        Ok(())
    }

    /// Reads the position of the innermost function, whose address is in one of R's variables.
    fn add_position(&mut self, memory: &mut impl Memory) -> Result<()> {
        for number in 0..self.variables.len() {
            let value = at(&self.variables[number].copies[0], 0);
            self.add_word(memory, value)?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.records.sort_unstable_by_key(|record| record.address);
        self.words.sort_unstable_by_key(|word| word.address);
        self.variables
            .sort_unstable_by_key(|variable| variable.address);
    }

    fn follow(&mut self, memory: &mut impl Memory, order: &Order, innermost: u64) -> Result<()> {
        let (mut address, mut order, mut others) = (innermost, order.clone(), 0);
        while self.records.len() < MOST && order.allows(address) {
            // Reading such a record takes a system call.
            others += usize::from(!memory.is_at_hand(address, RECORD));
            if others > MOST_OTHERS {
                break;
            }
            let Some(record) = Twice::<RECORD>::read(memory, address) else {
                break;
            };
            let [bytes, _] = &record.copies;
            let (next, position) = (at(bytes, NEXT as usize), at(bytes, BCPC as usize));
            self.records.try_push(record)?;
            self.add_word(memory, position)?;
            address = next;
        }
        Ok(())
    }

    /// Reads a variable of a function, if it can be read directly.
    fn add_word(&mut self, memory: &mut impl Memory, address: u64) -> Result<()> {
        if !memory.is_at_hand(address, 8) {
            return Ok(());
        }
        match Twice::read(memory, address) {
            Some(word) => self.words.try_push(word),
            None => Ok(()),
        }
    }

    /// Reads everything again, innermost first.
    fn read_again(&mut self, memory: &mut impl Memory) {
        for record in &mut self.records {
            record.read_again(memory);
        }
        for word in &mut self.words {
            word.read_again(memory);
        }
    }

    /// Both copies of a record.
    pub fn record(&self, address: u64) -> Option<[&[u8]; 2]> {
        both(&self.records, address)
    }

    /// The value of a variable of R.
    pub fn variable(&self, address: u64) -> Option<[&[u8]; 2]> {
        both(&self.variables, address)
    }

    /// Both copies of a variable of a function.
    pub fn word(&self, address: u64) -> Option<[&[u8]; 2]> {
        both(&self.words, address)
    }
}

/// Whether both are copies of the same record. Only the fields that do not change while its function runs are
/// compared.
pub fn is_same_record(first: &[u8], second: &[u8]) -> bool {
    let [next, flags, identity, site] =
        [NEXT, CALLFLAG, CALLFUN, BCBODY].map(|field| field as usize);
    [
        next..next + 8,
        flags..flags + 4,
        identity..CLOENV as usize + 8,
        site..BCPC as usize + 8,
    ]
    .into_iter()
    .all(|part| first.get(part.clone()) == second.get(part))
}

fn find<const SIZE: usize>(copies: &[Twice<SIZE>], address: u64) -> Option<&[[u8; SIZE]; 2]> {
    let found = copies.binary_search_by_key(&address, |copy| copy.address);
    Some(&copies.get(found.ok()?)?.copies)
}

fn both<const SIZE: usize>(copies: &[Twice<SIZE>], address: u64) -> Option<[&[u8]; 2]> {
    let [first, second] = find(copies, address)?;
    Some([first, second])
}
