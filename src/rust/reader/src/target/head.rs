//! `R_GlobalContext`, the variable that points to the innermost record. Usually R exports it. If it was found by its value,
//! other variables of R may point to a record as well: to the outermost one, or to the call of native code from which an
//! error cannot return (`R_ToplevelContext`). These are on the list of the innermost one, so at each moment it is the
//! variable with the longest list. If R runs no function, they are all equal.

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::list;
use profile_runtime::memory::{self, Memory};

/// The addresses of variables, one of which is `R_GlobalContext`.
#[derive(Debug, Clone, Default)]
pub struct Head(Vec<u64>);

impl Head {
    pub fn new(address: u64) -> Result<Head> {
        let mut head = Head::default();
        head.0.try_push(address)?;
        Ok(head)
    }

    pub fn one_of(addresses: Vec<u64>) -> Head {
        Head(addresses)
    }

    pub fn addresses(&self) -> &[u64] {
        &self.0
    }

    /// The variable that points to the innermost record at this moment: its address, and that of the record. `None` if it
    /// cannot be read, or is not clear.
    pub fn read(&self, memory: &mut impl Memory) -> Option<(u64, u64)> {
        let (&first, others) = self.0.split_first()?;
        let found = (first, memory::word(memory, first)?);
        if others.is_empty() {
            return Some(found);
        }
        let mut longest = (found, list(memory, found.1)?.0);
        let mut is_clear = true;
        for &address in others {
            let record = memory::word(memory, address)?;
            let (best, length) = longest;
            if record == best.1 {
                continue;
            }
            let own = list(memory, record)?.0;
            if own > length {
                longest = ((address, record), own);
            }
            is_clear = own != length;
        }
        is_clear.then_some(longest.0)
    }
}
