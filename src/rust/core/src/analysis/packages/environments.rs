//! What R's environments bind, for names of functions that occur in a profile, and how R looks a name up in them.
//!
//! Environments are numbers: the global environment is the first, all others are namespaces. Names are numbers as well.
//! What a name is bound to is the *home* of its function: the environment to which the function belongs, since a
//! namespace also binds functions that it imports. A home is unknown if R cannot tell it without running code.

use crate::error::Result;
use crate::limits::memory::{TryCollect, TryPut, filled};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The number of an environment, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvironmentId(pub u32);

/// The number of a name, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// The global environment, to which the user's functions belong.
pub const GLOBAL: EnvironmentId = EnvironmentId(0);

/// The environment of a function, `None` if it is unknown.
pub type Home = Option<EnvironmentId>;

/// The tables as R passes them. All numbers count from 1; 0 stands for what is unknown or missing.
#[derive(Debug, Default)]
pub struct Tables<'a> {
    pub names: Vec<&'a str>,
    /// The package of each environment; the first is the global environment, without a package.
    pub packages: Vec<&'a str>,
    /// The names that some frames of environments bind to functions, and the homes of these functions.
    pub bindings: Vec<Bindings<'a>>,
    /// For each environment, which of the bindings are its own, its imports, and the methods for S3 generics that are
    /// registered in it.
    pub own: &'a [i32],
    pub imports: &'a [i32],
    pub methods: &'a [i32],
    /// Where R continues: the bindings of base, of the global environment, and of what is attached.
    pub search: &'a [i32],
    /// The environment of the code that called the outermost frames.
    pub start: i32,
    pub code: Vec<CodeTable<'a>>,
    pub generics: Vec<GenericTable<'a>>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Bindings<'a> {
    pub names: &'a [i32],
    pub homes: &'a [i32],
}

/// What the code of a function of an environment contains.
#[derive(Debug, Clone, Copy)]
pub struct CodeTable<'a> {
    pub environment: i32,
    pub name: i32,
    /// Functions that it defines.
    pub locals: &'a [i32],
    /// Its arguments.
    pub arguments: &'a [i32],
    /// Names in it that are bound to several functions.
    pub mentions: &'a [i32],
    /// Whether it may call methods for S3 classes.
    pub dispatches: bool,
}

/// The homes of the methods of an S4 generic that belongs to an environment.
#[derive(Debug, Clone, Copy)]
pub struct GenericTable<'a> {
    pub environment: i32,
    pub name: i32,
    pub homes: &'a [i32],
}

/// The same tables, to look names up.
#[derive(Debug)]
pub struct Environments<'a> {
    names: HashMap<&'a str, NameId, RandomState>,
    packages: Vec<&'a str>,
    by_package: HashMap<&'a str, EnvironmentId, RandomState>,
    bound: HashMap<(u32, NameId), Home, RandomState>,
    own: Vec<u32>,
    imports: Vec<u32>,
    methods: Vec<u32>,
    /// For each name what R finds from base on, and from the global environment on.
    from_base: Vec<Option<Home>>,
    from_global: Vec<Option<Home>>,
    /// For each name whether its bindings have different homes, and whether it has any.
    is_contested: Vec<bool>,
    is_bound: Vec<bool>,
    code: HashMap<(EnvironmentId, NameId), usize, RandomState>,
    code_tables: Vec<CodeTable<'a>>,
    generics: HashMap<(EnvironmentId, NameId), &'a [i32], RandomState>,
    pub start: EnvironmentId,
}

impl<'a> Environments<'a> {
    pub fn new(tables: Tables<'a>) -> Result<Environments<'a>> {
        let count = tables.names.len();
        let mut names = HashMap::default();
        for (id, &name) in (0..).map(NameId).zip(&tables.names) {
            names.try_put(name, id)?;
        }
        let mut by_package = HashMap::default();
        for (id, &package) in (0..).map(EnvironmentId).zip(&tables.packages).skip(1) {
            by_package.try_put(package, id)?;
        }
        let numbers = |all: &[i32]| all.iter().map(|&number| number.max(0) as u32).try_vec();
        let mut found = Environments {
            names,
            by_package,
            bound: HashMap::default(),
            own: numbers(tables.own)?,
            imports: numbers(tables.imports)?,
            methods: numbers(tables.methods)?,
            from_base: filled(count, None)?,
            from_global: filled(count, None)?,
            is_contested: filled(count, false)?,
            is_bound: filled(count, false)?,
            code: HashMap::default(),
            generics: HashMap::default(),
            start: environment(tables.start).unwrap_or(GLOBAL),
            packages: tables.packages,
            code_tables: tables.code,
        };
        found.bind(&tables.bindings)?;
        found.search(tables.search)?;
        for (row, code) in found.code_tables.iter().enumerate() {
            if let Some(key) = key(code.environment, code.name) {
                found.code.try_put(key, row)?;
            }
        }
        for generic in tables.generics {
            if let Some(key) = key(generic.environment, generic.name) {
                found.generics.try_put(key, generic.homes)?;
            }
        }
        Ok(found)
    }

    fn bind(&mut self, bindings: &[Bindings]) -> Result<()> {
        let is_methods = |number: &u32| self.methods.contains(number);
        let is_methods = (1..=bindings.len() as u32)
            .map(|number| is_methods(&number))
            .try_vec()?;
        let mut first: Vec<Option<Home>> = filled(self.is_bound.len(), None)?;
        for ((number, of_methods), bindings) in (1..).zip(is_methods).zip(bindings) {
            for (&name, &home) in bindings.names.iter().zip(bindings.homes) {
                let home = environment(home);
                let Some(name) = self::name(name).filter(|name| name.row() < first.len()) else {
                    continue;
                };
                self.bound.try_put((number, name), home)?;
                if of_methods {
                    continue;
                }
                self.is_bound[name.row()] = true;
                match first[name.row()] {
                    None => first[name.row()] = Some(home),
                    Some(known) => self.is_contested[name.row()] |= known != home,
                }
            }
        }
        Ok(())
    }

    fn search(&mut self, search: &[i32]) -> Result<()> {
        for (position, &number) in search.iter().enumerate() {
            for name in (0..self.from_base.len() as u32).map(NameId) {
                let Some(home) = self.get(number.max(0) as u32, name) else {
                    continue;
                };
                let row = name.row();
                self.from_base[row] = self.from_base[row].or(Some(home));
                if position > 0 {
                    self.from_global[row] = self.from_global[row].or(Some(home));
                }
            }
        }
        Ok(())
    }

    pub fn name(&self, text: &str) -> Option<NameId> {
        self.names.get(text).copied()
    }

    pub fn of_package(&self, package: &str) -> Option<EnvironmentId> {
        self.by_package.get(package).copied()
    }

    /// The package of an environment, `None` for the global environment.
    pub fn package(&self, id: EnvironmentId) -> Option<&'a str> {
        let package = self.packages.get(id.0 as usize).copied();
        package.filter(|_| id != GLOBAL)
    }

    fn get(&self, bindings: u32, name: NameId) -> Option<Home> {
        self.bound.get(&(bindings, name)).copied()
    }

    fn in_table(&self, table: &[u32], id: EnvironmentId, name: NameId) -> Option<Home> {
        self.get(*table.get(id.0 as usize)?, name)
    }

    /// What an environment itself binds a name to.
    pub fn own(&self, id: EnvironmentId, name: NameId) -> Option<Home> {
        self.in_table(&self.own, id, name)
    }

    /// The method with this name that is registered for the S3 generics of an environment.
    pub fn method(&self, id: EnvironmentId, name: NameId) -> Option<Home> {
        self.in_table(&self.methods, id, name)
    }

    /// The methods with this name that are registered for any S3 generic.
    pub fn methods(&self, name: NameId) -> impl Iterator<Item = Home> + '_ {
        let tables = self.methods.iter();
        tables.filter_map(move |&table| self.get(table, name))
    }

    /// What R finds for a name in code of an environment.
    pub fn visible(&self, id: EnvironmentId, name: NameId) -> Option<Home> {
        let from = match id {
            GLOBAL => &self.from_global,
            _ => &self.from_base,
        };
        let own = self.own(id, name);
        own.or_else(|| self.in_table(&self.imports, id, name))
            .or_else(|| *from.get(name.row())?)
    }

    /// Whether a name is bound to different functions.
    pub fn is_contested(&self, name: NameId) -> bool {
        self.is_contested.get(name.row()) == Some(&true)
    }

    /// Whether a name is bound anywhere, methods aside.
    pub fn is_bound(&self, name: NameId) -> bool {
        self.is_bound.get(name.row()) == Some(&true)
    }

    /// The row of the code of a function of an environment, if it is known.
    pub fn code(&self, id: EnvironmentId, name: NameId) -> Option<usize> {
        self.code.get(&(id, name)).copied()
    }

    pub fn code_table(&self, row: usize) -> Option<&CodeTable<'a>> {
        self.code_tables.get(row)
    }

    /// The homes of the methods of an S4 generic; none if it is not one.
    pub fn s4_methods(&self, id: EnvironmentId, name: NameId) -> impl Iterator<Item = Home> + 'a {
        let homes = self.generics.get(&(id, name)).copied();
        homes
            .unwrap_or_default()
            .iter()
            .map(|&home| environment(home))
    }
}

impl NameId {
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

/// Whether a list of `CodeTable` has a name.
pub fn has(list: &[i32], name: NameId) -> bool {
    list.iter().any(|&number| self::name(number) == Some(name))
}

fn environment(number: i32) -> Home {
    let row = u32::try_from(number).ok()?.checked_sub(1)?;
    Some(EnvironmentId(row))
}

fn name(number: i32) -> Option<NameId> {
    let row = u32::try_from(number).ok()?.checked_sub(1)?;
    Some(NameId(row))
}

fn key(home: i32, of: i32) -> Option<(EnvironmentId, NameId)> {
    Some((environment(home)?, name(of)?))
}
