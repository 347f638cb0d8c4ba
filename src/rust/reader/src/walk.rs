//! R's stack, if it is at hand: the records are followed from the innermost one outwards, twice.
//!
//! This is much faster than copying (`ahead.rs`): a record takes a tenth of a microsecond, and it need not be known where
//! it is. What is the same both times was so in the meantime, when R's variables were read, so all of it belongs to one
//! moment.

use crate::memory::{self, Memory, at};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{BCPC, NEXT, RECORD};

const WHAT: &str = "the records of a process";
/// The most records that are followed. Such deep stacks change less often than they are read.
const MOST: usize = 20_000;
/// The same of records on the node stack, which is not at hand.
const MOST_OTHERS: usize = 100;

/// What the stack was, and a moment later.
#[derive(Debug, Default)]
pub struct Walk {
    /// Innermost first; sorted by address at the end.
    records: Vec<Twice<RECORD>>,
    /// Variables of functions: positions in their byte code. Sorted as well.
    words: Vec<Twice<8>>,
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

    fn copies(&self) -> [&[u8]; 2] {
        let [first, second] = &self.copies;
        [first, second]
    }
}

impl Walk {
    pub fn clear(&mut self) {
        self.records.clear();
        self.words.clear();
    }

    /// Follows the records. `head` is the address of the variable with the innermost one.
    pub fn begin(&mut self, memory: &mut impl Memory, head: u64) -> Result<()> {
        self.clear();
        match memory::word(memory, head) {
            Some(innermost) => self.follow(memory, innermost),
            None => Ok(()),
        }
    }

    /// Whether this is the innermost record, as long as nothing is read again.
    pub fn begins_with(&self, innermost: u64) -> bool {
        self.records
            .first()
            .is_some_and(|record| record.address == innermost)
    }

    fn follow(&mut self, memory: &mut impl Memory, innermost: u64) -> Result<()> {
        let (mut address, mut last, mut others) = (innermost, 0, 0);
        while self.records.len() < MOST {
            // Records of outer calls have higher addresses. What is not at hand takes a system call.
            let is_next = match memory.is_at_hand(address, RECORD) {
                true => address > std::mem::replace(&mut last, address),
                false => {
                    others += 1;
                    others <= MOST_OTHERS
                }
            };
            let record = Twice::<RECORD>::read(memory, address).filter(|_| is_next);
            let Some(record) = record else {
                break;
            };
            let [bytes, _] = record.copies();
            let (next, position) = (at(bytes, NEXT as usize), at(bytes, BCPC as usize));
            self.records.try_push(record, WHAT)?;
            self.add_word(memory, position)?;
            address = next;
        }
        Ok(())
    }

    /// The same for a variable of the innermost function, if it is at hand.
    pub fn add_word(&mut self, memory: &mut impl Memory, address: u64) -> Result<()> {
        if !memory.is_at_hand(address, 8) {
            return Ok(());
        }
        match Twice::read(memory, address) {
            Some(word) => self.words.try_push(word, WHAT),
            None => Ok(()),
        }
    }

    /// Reads all again, the innermost first.
    pub fn end(&mut self, memory: &mut impl Memory) {
        for record in &mut self.records {
            record.read_again(memory);
        }
        for word in &mut self.words {
            word.read_again(memory);
        }
        self.records.sort_unstable_by_key(|record| record.address);
        self.words.sort_unstable_by_key(|word| word.address);
    }

    /// Both copies of a record.
    pub fn record(&self, address: u64) -> Option<[&[u8]; 2]> {
        find(&self.records, address)
    }

    /// Both copies of a variable.
    pub fn word(&self, address: u64) -> Option<[&[u8]; 2]> {
        find(&self.words, address)
    }
}

fn find<const SIZE: usize>(copies: &[Twice<SIZE>], address: u64) -> Option<[&[u8]; 2]> {
    let found = copies.binary_search_by_key(&address, |copy| copy.address);
    Some(copies.get(found.ok()?)?.copies())
}
