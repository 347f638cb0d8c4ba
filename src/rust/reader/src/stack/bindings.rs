//! The variables of an environment by their values: under which name it has a function.
//!
//! Environments may have thousands of variables, so they are read in few system calls: the lists of a hash table side by
//! side, one variable of each at a time.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};
use profile_runtime::memory::{Memory, Piece, at};
use profile_runtime::objects::{
    CAR, CDR, CELL, DATA, ENVSXP, EXTRA, FRAME, HASHTAB, LENGTH, LISTSXP, PROMSXP, TAG, Type,
    VALUE_OF_PROMISE, VECSXP, object_of,
};

/// The start of a value, up to that of a promise.
const START: usize = VALUE_OF_PROMISE + 8;
/// The maximum number of lists of a hash table.
const MOST_LISTS: u64 = 1 << 14;

/// The variables of environments that are read. The buffers are reused.
#[derive(Debug, Default)]
pub struct Bindings {
    /// The cells that are read next, one of each list.
    cells: Vec<u64>,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    values: Vec<Value>,
    /// Environments that are values of variables.
    pub environments: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    symbol: u64,
    address: u64,
}

impl Bindings {
    /// The symbol to which an environment binds this function, also as an active binding or as the value of a promise.
    /// Reads up to `most` variables, and lowers it by those that it has read.
    pub fn symbol_of<M: Memory>(
        &mut self,
        memory: &mut M,
        nil: u64,
        environment: &[u8; CELL],
        function: u64,
        most: &mut usize,
    ) -> Result<Option<u64>> {
        self.environments.clear();
        self.start(memory, nil, environment)?;
        while !self.cells.is_empty() && self.cells.len() <= *most {
            *most -= self.cells.len();
            if let Some(symbol) = self.step(memory, nil, function)? {
                return Ok(Some(symbol));
            }
            if let Some(symbol) = self.values(memory, function)? {
                return Ok(Some(symbol));
            }
        }
        Ok(None)
    }

    /// The first cell of each list of variables.
    fn start<M: Memory>(
        &mut self,
        memory: &mut M,
        nil: u64,
        environment: &[u8; CELL],
    ) -> Result<()> {
        self.cells.clear();
        let table = at(environment, HASHTAB);
        if table == nil {
            return self.cells.try_push(at(environment, FRAME)).map(|()| {
                self.cells.retain(|cell| *cell != nil);
            });
        }
        let Some(table_object) = object_of(memory, table, VECSXP) else {
            return Ok(());
        };
        let count = at(&table_object, LENGTH);
        if count > MOST_LISTS {
            return Ok(());
        }
        let mut lists = filled(8 * count as usize, 0_u8)?;
        if memory.read(table.wrapping_add(DATA as u64), &mut lists) {
            for list in lists.chunks_exact(8).map(|list| at(list, 0)) {
                if list != nil {
                    self.cells.try_push(list)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the cells and goes on to the next ones. Returns the symbol of the one that has the function.
    fn step<M: Memory>(&mut self, memory: &mut M, nil: u64, function: u64) -> Result<Option<u64>> {
        let count = self.cells.len();
        self.read(memory, CELL, |this, row| this.cells.get(row).copied())?;
        self.cells.clear();
        self.values.clear();
        for cell in self.bytes.chunks_exact(CELL).take(count) {
            let header = at(cell, 0);
            if Type::of(header) != LISTSXP {
                continue;
            }
            // A cell may contain a number in place of a value.
            if (header >> EXTRA) as u16 == 0 {
                let (symbol, address) = (at(cell, TAG), at(cell, CAR));
                if address == function {
                    return Ok(Some(symbol));
                }
                if address != nil {
                    self.values.try_push(Value { symbol, address })?;
                }
            }
            let next = at(cell, CDR);
            if next != nil {
                self.cells.try_push(next)?;
            }
        }
        Ok(None)
    }

    /// Looks for the function in promises, and for environments.
    fn values<M: Memory>(&mut self, memory: &mut M, function: u64) -> Result<Option<u64>> {
        self.read(memory, START, |this, row| {
            this.values.get(row).map(|value| value.address)
        })?;
        for (value, start) in self.values.iter().zip(self.bytes.chunks_exact(START)) {
            let header = at(start, 0);
            match Type::of(header) {
                PROMSXP
                    if (header >> EXTRA) as u16 == 0 && at(start, VALUE_OF_PROMISE) == function =>
                {
                    return Ok(Some(value.symbol));
                }
                ENVSXP => self.environments.try_push(value.address)?,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Reads pieces of this size, as far as they can be read.
    fn read<M: Memory>(
        &mut self,
        memory: &mut M,
        size: usize,
        address: impl Fn(&Bindings, usize) -> Option<u64>,
    ) -> Result<()> {
        self.pieces.clear();
        while let Some(address) = address(self, self.pieces.len()) {
            self.pieces.try_push(Piece { address, size })?;
        }
        self.bytes.clear();
        self.bytes.try_fill(size * self.pieces.len(), 0)?;
        let read = match self.pieces.is_empty() {
            true => 0,
            false => memory.read_pieces(&self.pieces, &mut self.bytes),
        };
        self.bytes.truncate(size * read);
        Ok(())
    }
}
