//! Builds a list of tables, column by column, in the order in which the core writes them.

use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::schema::{Computed, Sink};

pub struct Tables<'call> {
    arena: Arena<'call>,
    /// Whether columns of samples are computed when their values are needed.
    lazy: bool,
    tables: Vec<(&'static str, RObject<'call>)>,
    /// The current table, until it is finished.
    table: Option<(&'static str, Tibble<'call>)>,
}

impl<'call> Tables<'call> {
    pub fn new(arena: Arena<'call>, lazy: bool) -> Tables<'call> {
        Tables {
            arena,
            lazy,
            tables: Vec::new(),
            table: None,
        }
    }

    /// Adds an element that was created elsewhere.
    pub fn add(&mut self, name: &'static str, table: RObject<'call>) -> Result<()> {
        self.tables.try_push((name, table))
    }

    pub fn finish(self) -> Result<RObject<'call>> {
        self.arena.list(&self.tables)
    }

    fn table(&mut self) -> Option<&mut Tibble<'call>> {
        self.table.as_mut().map(|(_, tibble)| tibble)
    }
}

impl Sink for Tables<'_> {
    fn start(&mut self, table: &'static str, rows: usize) -> Result<()> {
        self.table = Some((table, Tibble::new(self.arena, rows)?));
        Ok(())
    }

    fn integers(
        &mut self,
        names: &[&'static str],
        fill: &mut dyn FnMut(&mut [&mut [i32]]) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = self.table() else {
            return Ok(());
        };
        let columns = names.iter().map(|name| table.integer_slots(name));
        fill(&mut columns.try_vec_of()?)
    }

    fn logicals(
        &mut self,
        name: &'static str,
        fill: &mut dyn FnMut(&mut [i32]) -> Result<()>,
    ) -> Result<()> {
        match self.table() {
            Some(table) => fill(table.logical_slots(name)?),
            None => Ok(()),
        }
    }

    fn doubles(
        &mut self,
        name: &'static str,
        fill: &mut dyn FnMut(&mut [f64]) -> Result<()>,
    ) -> Result<()> {
        match self.table() {
            Some(table) => fill(table.double_slots(name)?),
            None => Ok(()),
        }
    }

    fn computed(&mut self, columns: Computed) -> Result<bool> {
        let Some(table) = self.table.as_mut().filter(|_| self.lazy) else {
            return Ok(false);
        };
        match columns {
            Computed::Counted(name, each) => table.1.counted(name, each)?,
            Computed::Integer(name, value) => table.1.constant(name, value)?,
            Computed::Double(name, value) => table.1.constant_double(name, value)?,
            Computed::Texts(name, texts, order) => table.1.repeated_texts(name, texts, order)?,
            Computed::Frames(names, frames) => table.1.frames(names, frames()?)?,
        }
        Ok(true)
    }

    fn texts(&mut self, name: &'static str, texts: &[&str], rows: &[i32]) -> Result<()> {
        match self.table() {
            Some(table) => table.indexed_texts(name, texts, rows),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        match self.table.take() {
            Some((name, table)) => self.add(name, table.finish()?),
            None => Ok(()),
        }
    }
}
