//! Tables in memory: a sink that stores columns, which can be read again. The tests of the modules use them as well
//! (`schema/mod.rs`), to write a model as tables and read it again without R.

use profile_core::error::Result;
use profile_core::schema::{Data, Only, Sink, TableInput, Text, Type};

/// A column of a table in memory.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryColumn {
    Integers(Vec<i32>),
    Logicals(Vec<i32>),
    Doubles(Vec<f64>),
    /// `None` is NA.
    Texts(Vec<Option<String>>),
    /// Each row's ids.
    Stacks(Vec<Vec<i32>>),
}

#[derive(Debug, Clone, Default)]
pub struct MemoryTable {
    pub name: &'static str,
    pub rows: usize,
    pub names: Vec<&'static str>,
    pub columns: Vec<MemoryColumn>,
}

/// The tables that were written.
#[derive(Debug, Clone, Default)]
pub struct MemoryTables {
    pub tables: Vec<MemoryTable>,
}

impl MemoryTables {
    pub fn get(&self, name: &str) -> Option<&MemoryTable> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// References to the tables, which can be read.
    pub fn inputs(&self) -> Vec<&MemoryTable> {
        self.tables.iter().collect()
    }

    /// The tables with their names, as functions that read tables take them.
    pub fn list<'t, 'a>(inputs: &'t [&'a MemoryTable]) -> Vec<(&'a str, &'t dyn TableInput<'a>)> {
        let named = inputs
            .iter()
            .map(|table| (table.name, table as &dyn TableInput));
        named.collect()
    }

    /// The table that is being written.
    fn last(&mut self) -> &mut MemoryTable {
        self.tables.last_mut().unwrap()
    }
}

impl MemoryTable {
    /// Creates a table of columns of the same length.
    pub fn new(
        name: &'static str,
        names: Vec<&'static str>,
        columns: Vec<MemoryColumn>,
    ) -> MemoryTable {
        MemoryTable {
            name,
            rows: columns.first().map_or(0, MemoryColumn::len),
            names,
            columns,
        }
    }

    pub fn column(&self, name: &str) -> Option<&MemoryColumn> {
        let at = self.names.iter().position(|other| *other == name)?;
        self.columns.get(at)
    }

    /// Adds a column, or replaces it.
    pub fn set(&mut self, name: &'static str, column: MemoryColumn) {
        match self.names.iter().position(|other| *other == name) {
            Some(at) => self.columns[at] = column,
            None => {
                self.names.push(name);
                self.columns.push(column);
            }
        }
    }
}

impl Sink for MemoryTables {
    fn start(&mut self, table: &'static str, rows: usize) -> Result<()> {
        self.tables.push(MemoryTable {
            name: table,
            rows,
            ..MemoryTable::default()
        });
        Ok(())
    }

    fn integers(
        &mut self,
        names: &[&'static str],
        fill: &mut dyn FnMut(&mut [&mut [i32]]) -> Result<()>,
    ) -> Result<()> {
        let table = self.last();
        let mut new = vec![vec![0; table.rows]; names.len()];
        fill(&mut new.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
        for (name, column) in names.iter().zip(new) {
            table.set(name, MemoryColumn::Integers(column));
        }
        Ok(())
    }

    fn logicals(
        &mut self,
        name: &'static str,
        fill: &mut dyn FnMut(&mut [i32]) -> Result<()>,
    ) -> Result<()> {
        let table = self.last();
        let mut column = vec![0; table.rows];
        fill(&mut column)?;
        table.set(name, MemoryColumn::Logicals(column));
        Ok(())
    }

    fn doubles(
        &mut self,
        name: &'static str,
        fill: &mut dyn FnMut(&mut [f64]) -> Result<()>,
    ) -> Result<()> {
        let table = self.last();
        let mut column = vec![0.0; table.rows];
        fill(&mut column)?;
        table.set(name, MemoryColumn::Doubles(column));
        Ok(())
    }

    fn texts(&mut self, name: &'static str, texts: &[&str], rows: &[i32]) -> Result<()> {
        let column = rows
            .iter()
            .map(|&row| texts.get(row as usize).map(|text| (*text).to_owned()));
        self.last().set(name, MemoryColumn::Texts(column.collect()));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<'a> TableInput<'a> for &'a MemoryTable {
    fn is_not_a_table(&self) -> Option<&str> {
        None
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn names(&self) -> &[&'a str] {
        &self.names
    }

    fn is_counted(&self, name: &str, each: usize) -> Result<bool> {
        Ok(match MemoryTable::column(self, name) {
            Some(MemoryColumn::Integers(ids)) => {
                let number = |(row, &id): (usize, &i32)| id as usize == row / each + 1;
                ids.len() == self.rows && each > 0 && ids.iter().enumerate().all(number)
            }
            _ => false,
        })
    }

    fn repeated_texts(&self, name: &str, count: usize) -> Result<Option<Vec<&'a str>>> {
        let table: &'a MemoryTable = self;
        let Some(MemoryColumn::Texts(texts)) = MemoryTable::column(table, name) else {
            return Ok(None);
        };
        let is_whole = texts.len() == self.rows && count > 0 && self.rows % count == 0;
        if !is_whole || texts.len() < count || texts[count..] != texts[..texts.len() - count] {
            return Ok(None);
        }
        Ok(texts[..count].iter().map(|text| text.as_deref()).collect())
    }

    fn the_only(&self, name: &str) -> Result<Option<Only>> {
        let Some(column) = MemoryTable::column(self, name) else {
            return Ok(None);
        };
        if column.len() != self.rows {
            return Ok(None);
        }
        Ok(match column {
            MemoryColumn::Integers(values) => the_only(values).copied().map(Only::Integer),
            MemoryColumn::Doubles(values) => {
                let bits: Vec<_> = values.iter().map(|value| value.to_bits()).collect();
                the_only(&bits).map(|&bits| Only::Double(f64::from_bits(bits)))
            }
            _ => None,
        })
    }

    fn column(
        &self,
        _: &'static str,
        name: &'static str,
        wanted: Type,
    ) -> Result<Option<Data<'a>>> {
        let table: &'a MemoryTable = self;
        let Some(column) = MemoryTable::column(table, name) else {
            return Ok(None);
        };
        Ok(Some(match (column, wanted) {
            (MemoryColumn::Integers(values), Type::Integer)
            | (MemoryColumn::Logicals(values), Type::Logical) => Data::Integers(values),
            (MemoryColumn::Doubles(values), Type::Double) => Data::Doubles(values),
            (MemoryColumn::Texts(texts), Type::Text) => Data::Texts(lend(texts)),
            (MemoryColumn::Stacks(stacks), Type::Stacks) => {
                let lists = stacks.iter().map(Vec::as_slice).collect();
                Data::Stacks((0..stacks.len() as u32).collect(), lists)
            }
            (column, _) => Data::Other(column.type_().name().to_owned()),
        }))
    }
}

impl MemoryColumn {
    fn len(&self) -> usize {
        match self {
            MemoryColumn::Integers(values) | MemoryColumn::Logicals(values) => values.len(),
            MemoryColumn::Doubles(values) => values.len(),
            MemoryColumn::Texts(texts) => texts.len(),
            MemoryColumn::Stacks(stacks) => stacks.len(),
        }
    }

    fn type_(&self) -> Type {
        match self {
            MemoryColumn::Integers(_) => Type::Integer,
            MemoryColumn::Logicals(_) => Type::Logical,
            MemoryColumn::Doubles(_) => Type::Double,
            MemoryColumn::Texts(_) => Type::Text,
            MemoryColumn::Stacks(_) => Type::Stacks,
        }
    }
}

fn the_only<T: PartialEq>(values: &[T]) -> Option<&T> {
    let first = values.first()?;
    values.iter().all(|value| value == first).then_some(first)
}

/// Borrows texts without merging equal ones.
fn lend(texts: &[Option<String>]) -> Text<'_> {
    let mut lent = Text::default();
    for text in texts {
        lent.rows.push(match text {
            Some(text) => {
                lent.distinct.push(text.as_str());
                lent.distinct.len() as i32 - 1
            }
            None => -1,
        });
    }
    lent
}
