//! Finds what belongs to a position in byte code: the place in a source file, and the builtin function that is called
//! there.

use crate::stack::builtin::{self, Builtin};
use crate::stack::cache::Cache;
use crate::stack::names::Names;
use profile_core::error::Result;
use profile_core::model::Strings;
use profile_runtime::byte_code::{Code, Tables, constant, entry, find_tables};
use profile_runtime::memory::Memory;

/// What is known about a position.
#[derive(Debug, Default, Clone, Copy)]
pub struct Position {
    /// An object that should be a `srcref`.
    pub srcref: Option<u64>,
    pub builtin: Option<Builtin>,
}

/// The results, cached by code and position.
#[derive(Debug, Default)]
pub struct Positions {
    tables: Cache<Code, Tables>,
    positions: Cache<(Code, u64), Position>,
}

impl Positions {
    pub fn keep(&mut self) {
        self.tables.keep();
        self.positions.keep();
    }

    pub fn forget(&mut self) {
        self.tables.forget();
        self.positions.forget();
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
        if let Some(known) = self.positions.get((code, position)) {
            return Ok(known);
        }
        let tables = self.tables(memory, code)?;
        let srcref = entry(memory, tables.srcrefs, position)
            .and_then(|number| constant(memory, code, number));
        let builtin = builtin::at_position(memory, code, tables, position, names, texts)?;
        let found = Position { srcref, builtin };
        self.positions.put((code, position), found)?;
        Ok(found)
    }

    fn tables(&mut self, memory: &mut impl Memory, code: Code) -> Result<Tables> {
        if let Some(tables) = self.tables.get(code) {
            return Ok(tables);
        }
        let tables = find_tables(memory, code);
        self.tables.put(code, tables)?;
        Ok(tables)
    }
}
