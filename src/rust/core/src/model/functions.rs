//! Functions: one row for each distinct function of a file.
//!
//! A function seen in two files is two rows, as in pprof. `system_name` is the
//! linker's name for native code; R has one name only and both are equal.
//! `start_line` 0 means unknown: Rprof does not record where a function starts.

use super::addresses::NativeId;
use super::interner::{Interner, next_row};
use super::strings::{StringId, Strings};
use crate::error::Result;
use crate::limits::memory::TryGrow;

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
    pub start_line: i64,
    pub recorded: Names,
    pub native_id: Option<NativeId>,
}

impl Function {
    /// A function of which a file records these texts: its name, its system name, and
    /// its file. Any of them may be empty.
    pub fn recorded(
        [name, system_name]: [StringId; 2],
        filename: StringId,
        start_line: i64,
        strings: &mut Strings,
    ) -> Result<Function> {
        let is_there = |text| !strings.get(text).is_empty();
        let (name, system_name, recorded) = match (is_there(name), is_there(system_name)) {
            (true, true) => (name, system_name, Names::Both),
            (true, false) => (name, name, Names::Name),
            (false, true) => (system_name, system_name, Names::SystemName),
            (false, false) => {
                let unknown = strings.intern(UNKNOWN)?;
                (unknown, unknown, Names::Neither)
            }
        };
        Ok(Function {
            name,
            system_name,
            filename,
            start_line,
            recorded,
            native_id: None,
        })
    }
}

/// How a function without any name is called.
pub const UNKNOWN: &str = "<unknown>";

/// Which names a profile records. The other one repeats it; where it records
/// neither, both are [`UNKNOWN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    Name,
    SystemName,
    Both,
    Neither,
}

#[derive(Debug, Default, Clone)]
pub struct Functions {
    rows: Vec<Function>,
    index: Interner,
}

impl Functions {
    pub fn intern(&mut self, function: Function) -> Result<FunctionId> {
        let hash = self.index.hash(function);
        if let Some(row) = self
            .index
            .find(hash, |row| self.rows[row as usize] == function)
        {
            return Ok(FunctionId(row));
        }
        let id = self.push(function)?;
        self.index.insert(hash, id.0)?;
        Ok(id)
    }

    /// Adds a row even if an equal one is there, for tables that are to stay as
    /// they are.
    pub fn push(&mut self, function: Function) -> Result<FunctionId> {
        let row = next_row(self.rows.len(), "functions")?;
        self.rows.try_push(function, "functions")?;
        Ok(FunctionId(row))
    }

    pub fn get(&self, id: FunctionId) -> Function {
        self.rows[id.row()]
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Function> + Clone {
        self.rows.iter()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
