//! `R_GlobalContext`, the variable that points to the innermost record. Usually R exports it. If it was found by its value,
//! other variables of R may point to a record as well: to the outermost one, or to the call of native code from which an
//! error cannot return (`R_ToplevelContext`). These are on the list of the innermost one, so at each moment it is the
//! variable with the longest list. If R runs no function, they are all equal.

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::Walk;
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

    /// The variable that points to the innermost record at this moment: its address, and the address of the record. `None` if
    /// it cannot be read, or is not clear.
    pub fn read(&self, memory: &mut impl Memory) -> Option<(u64, u64)> {
        let (&first, others) = self.0.split_first()?;
        let innermost = (first, memory::word(memory, first)?);
        if others.is_empty() {
            return Some(innermost);
        }
        let mut found = Lists::new(innermost);
        for &address in others {
            found.add((address, memory::word(memory, address)?))?;
        }
        found.longest(memory)
    }
}

/// The lists of records of several variables, which are followed side by side, since all but one are short.
struct Lists(Vec<((u64, u64), Walk)>);

impl Lists {
    fn new(first: (u64, u64)) -> Lists {
        Lists(Vec::from([(first, Walk::new(first.1))]))
    }

    /// Adds the list of a variable, unless another one has the same.
    fn add(&mut self, variable: (u64, u64)) -> Option<()> {
        if self.0.iter().any(|(known, _)| known.1 == variable.1) {
            return Some(());
        }
        self.0.try_push((variable, Walk::new(variable.1))).ok()
    }

    fn longest(mut self, memory: &mut impl Memory) -> Option<(u64, u64)> {
        while self.0.len() > 1 {
            let mut is_damaged = false;
            self.0.retain_mut(|(_, walk)| {
                let next = walk.next_head(memory);
                is_damaged |= next.is_some_and(|(_, head)| !head.is_possible());
                is_damaged |= next.is_none() && !walk.is_whole();
                next.is_some()
            });
            if is_damaged {
                return None;
            }
        }
        Some(self.0.first()?.0)
    }
}
