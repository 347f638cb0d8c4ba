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
    /// The address ranges of all variables of these modules.
    pub variables: Vec<Range<u64>>,
}

impl<const COUNT: usize> Exports<COUNT> {
    pub fn find(
        memory: &mut impl Memory,
        mappings: &[Mapping],
        names: [&'static str; COUNT],
    ) -> Result<Exports<COUNT>> {
        let mut found = Exports {
            names,
            addresses: [None; COUNT],
            variables: Vec::new(),
        };
        for mapping in mappings.iter().filter(|mapping| mapping.starts_file) {
            let Some(module) = Module::at(memory, mapping.addresses.start)? else {
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

    pub fn get(&self, name: &str) -> Option<u64> {
        let number = self.names.iter().position(|known| *known == name)?;
        self.addresses[number]
    }
}
