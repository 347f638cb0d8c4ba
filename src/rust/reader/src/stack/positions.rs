//! Finds what belongs to a position in byte code: the place in a source file, and the builtin function that is called
//! there.

use crate::stack::builtin::{self, Builtin};
use crate::stack::names::Names;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::model::Strings;
use profile_runtime::byte_code::{Code, Tables, constant, entry, find_tables};
use profile_runtime::memory::Memory;
use std::collections::HashMap;

/// The maximum number of entries. Some processes repeatedly compile the code that they evaluate.
pub const MOST_POSITIONS: usize = 1 << 16;

/// What is known about a position.
#[derive(Debug, Default, Clone, Copy)]
pub struct Position {
    /// An object that should be a `srcref`.
    pub srcref: Option<u64>,
    pub builtin: Option<Builtin>,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The results, cached by code and position.
#[derive(Debug, Default)]
pub struct Positions {
    tables: Map<Code, Tables>,
    positions: Map<(Code, u64), Position>,
    new_tables: Vec<Code>,
    new_positions: Vec<(Code, u64)>,
}

impl Positions {
    /// Keeps the results that were added since the last call, because nothing changed while they were read.
    pub fn keep(&mut self) {
        self.new_tables.clear();
        self.new_positions.clear();
        if self.positions.len() > MOST_POSITIONS {
            self.tables.clear();
            self.positions.clear();
        }
    }

    /// Discards the results that were added since the last call of `keep()`.
    pub fn forget(&mut self) {
        for code in self.new_tables.drain(..) {
            self.tables.remove(&code);
        }
        for position in self.new_positions.drain(..) {
            self.positions.remove(&position);
        }
    }

    /// What is known about a position, which is given as a number of words of the instructions.
    pub fn find(
        &mut self,
        memory: &mut impl Memory,
        code: Code,
        position: u64,
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<Position> {
        if let Some(&known) = self.positions.get(&(code, position)) {
            return Ok(known);
        }
        let tables = self.tables(memory, code)?;
        let srcref = entry(memory, tables.srcrefs, position)
            .and_then(|number| constant(memory, code, number));
        let builtin = builtin::at_position(memory, code, tables, position, names, texts)?;
        let found = Position { srcref, builtin };
        self.positions.try_put((code, position), found)?;
        self.new_positions.try_push((code, position))?;
        Ok(found)
    }

    fn tables(&mut self, memory: &mut impl Memory, code: Code) -> Result<Tables> {
        if let Some(&tables) = self.tables.get(&code) {
            return Ok(tables);
        }
        let tables = find_tables(memory, code);
        self.tables.try_put(code, tables)?;
        self.new_tables.try_push(code)?;
        Ok(tables)
    }
}
