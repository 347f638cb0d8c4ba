//! The addresses of R's variables, which R's library or program exports.

use crate::memory::symbols::Module;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::memory::Mapping;
use profile_runtime::memory::Memory;
use std::ops::Range;

/// The addresses of variables with these names.
///
/// A program that contains R has its own copies of the variables that it uses, which are made by the loader and also
/// used by libR. So each variable is taken from the first module that exports it, and the program comes before
/// libraries.
#[derive(Debug)]
pub struct Exports<const COUNT: usize> {
    names: [&'static str; COUNT],
    addresses: [Option<u64>; COUNT],
    /// The modules that export them, by the addresses where they start.
    pub modules: Vec<u64>,
    /// The address ranges of all variables of these modules.
    pub variables: Vec<Range<u64>>,
}

/// Where the modules of a process start.
pub fn modules(mappings: &[Mapping]) -> impl Iterator<Item = u64> {
    let files = mappings.iter().filter(|mapping| mapping.starts_file);
    files.map(|mapping| mapping.addresses.start)
}

impl<const COUNT: usize> Exports<COUNT> {
    /// Searches modules, given the addresses where they start, in this order.
    pub fn find(
        memory: &mut impl Memory,
        modules: impl IntoIterator<Item = u64>,
        names: [&'static str; COUNT],
    ) -> Result<Exports<COUNT>> {
        let mut found = Exports {
            names,
            addresses: [None; COUNT],
            modules: Vec::new(),
            variables: Vec::new(),
        };
        for start in modules {
            let Some(module) = Module::at(memory, start)? else {
                continue;
            };
            let mut has_any = false;
            for (address, name) in found.addresses.iter_mut().zip(names) {
                if address.is_none() {
                    *address = module.find(memory, name);
                    has_any |= address.is_some();
                }
            }
            if has_any {
                found.modules.try_push(start)?;
                found
                    .variables
                    .try_extend_from(module.variables.into_iter())?;
            }
            if found.addresses.iter().all(Option::is_some) {
                break;
            }
        }
        Ok(found)
    }

    /// Adds a module that exports none of them, but has such variables.
    pub fn add_module(&mut self, memory: &mut impl Memory, start: u64) -> Result<()> {
        if let Some(module) = Module::at(memory, start)? {
            self.modules.try_push(start)?;
            self.variables
                .try_extend_from(module.variables.into_iter())?;
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<u64> {
        let number = self.names.iter().position(|known| *known == name)?;
        self.addresses[number]
    }
}
