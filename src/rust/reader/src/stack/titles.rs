//! The titles of calls, such as the package that `loadNamespace()` loads, see [`profile_core::model::titled`].

use crate::stack::cache::Cache;
use crate::stack::frames::Package;
use crate::stack::names::text;
use crate::stack::snapshot::Snapshot;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::written;
use profile_core::model::titled::{LONGEST_TITLE, TITLED, row_of_call};
use profile_core::model::{StringId, Strings};
use profile_runtime::arguments::{self, Symbols};
use profile_runtime::memory::Memory;
use profile_runtime::objects::CELL;

#[derive(Debug, Default)]
pub struct Titles {
    symbols: Symbols,
    /// The rows of the table for names of functions.
    rows: Cache<StringId, Option<usize>>,
}

impl Titles {
    pub fn keep(&mut self) {
        self.rows.keep();
    }

    pub fn forget(&mut self) {
        self.rows.forget();
    }

    /// The name of a function, and the title of this call, given its environment, if it has one.
    pub fn add_title<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        (name, package): (StringId, Package),
        environment: u64,
        texts: &mut Strings,
    ) -> Result<StringId> {
        let row = match self.rows.get(name) {
            Some(row) => row,
            None => {
                let row = row_of_call(texts.get(name));
                self.rows.put(name, row)?;
                row
            }
        };
        let (Some(row), Package::Named(package)) = (row, package) else {
            return Ok(name);
        };
        let titled = &TITLED[row];
        if texts.get(package) != titled.package {
            return Ok(name);
        }
        let mut objects = Objects {
            snapshot,
            error: None,
        };
        let title = arguments::title(&mut objects, environment, titled, &mut self.symbols);
        if let Some(error) = objects.error {
            return Err(error);
        }
        let title = match title {
            Some(title) => text(snapshot, title)?,
            None => None,
        };
        match title.filter(|title| (1..=LONGEST_TITLE).contains(&title.len())) {
            Some(title) => {
                let name = written(format_args!("{}({title})", texts.get(name)))?;
                texts.intern(&name)
            }
            None => Ok(name),
        }
    }
}

/// The memory of a snapshot, in which objects are copied for the next one as well: a running call keeps its variables.
struct Objects<'s, M> {
    snapshot: &'s mut Snapshot<M>,
    error: Option<Error>,
}

impl<M: Memory> Memory for Objects<'_, M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if into.len() != CELL {
            return self.snapshot.read(address, into);
        }
        match self.snapshot.object(address) {
            Ok(Some(object)) => {
                into.copy_from_slice(&object);
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}
