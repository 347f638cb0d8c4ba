//! Functions: one row for each distinct (name, system name, file, start line).
//!
//! A function seen in two files is two rows, as in pprof. `system_name` is the
//! linker's name for native code; R has one name only and both are equal.
//! `start_line` 0 means unknown: Rprof does not record where a function starts.

use super::interner::{Interner, next_row};
use super::strings::StringId;
use crate::error::Result;
use crate::memory::TryGrow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub(crate) u32);

impl FunctionId {
    /// The row in its table, counted from 0.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    pub name: StringId,
    pub system_name: StringId,
    pub filename: StringId,
    pub start_line: i32,
}

#[derive(Debug, Default, Clone)]
pub struct Functions {
    pub(crate) name: Vec<StringId>,
    pub(crate) system_name: Vec<StringId>,
    pub(crate) filename: Vec<StringId>,
    pub(crate) start_line: Vec<i32>,
    index: Interner,
}

impl Functions {
    pub fn intern(&mut self, function: Function) -> Result<FunctionId> {
        let hash = self.index.hash(function);
        if let Some(row) = self.index.find(hash, |row| self.row(row) == function) {
            return Ok(FunctionId(row));
        }
        let row = next_row(self.name.len(), "functions")?;
        self.name.try_push(function.name, "functions")?;
        self.system_name
            .try_push(function.system_name, "functions")?;
        self.filename.try_push(function.filename, "functions")?;
        self.start_line.try_push(function.start_line, "functions")?;
        self.index.insert(hash, row)?;
        Ok(FunctionId(row))
    }

    pub fn get(&self, id: FunctionId) -> Function {
        self.row(id.0)
    }

    fn row(&self, row: u32) -> Function {
        let row = row as usize;
        Function {
            name: self.name[row],
            system_name: self.system_name[row],
            filename: self.filename[row],
            start_line: self.start_line[row],
        }
    }

    pub fn len(&self) -> usize {
        self.name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = FunctionId> + use<> {
        (0..self.name.len() as u32).map(FunctionId)
    }
}
