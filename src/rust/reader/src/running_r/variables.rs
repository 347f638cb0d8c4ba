//! R's variables by their names, for what reads R's calls. R exports them or, if it does not, they are found by their values.

use super::constants::{Constants, Environments};
use super::exports::Exports;
use super::head::Head;
use super::search::Hidden;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_runtime::memory::{self, Mapping, Memory};
use profile_runtime::variables::{
    GLOBAL_CONTEXT, IN_BYTE_CODE, NAMESPACES, NIL, OF_CALLS, SRCFILE_SYMBOL, SRCREF,
};
use std::ops::Range;

/// Those of [`OF_CALLS`].
type OfCalls = Exports<{ OF_CALLS.len() }>;

pub struct Variables<'e> {
    exports: &'e OfCalls,
    /// Their values, in the order of [`OF_CALLS`].
    values: [Option<u64>; OF_CALLS.len()],
    /// Empty if R exports all.
    hidden: Hidden<'e>,
    /// The outermost record, if it was searched.
    toplevel: u64,
}

impl<'e> Variables<'e> {
    /// `None` if R is only starting.
    pub fn find(
        memory: &mut impl Memory,
        mappings: &[Mapping],
        exports: &'e OfCalls,
    ) -> Result<Option<Variables<'e>>> {
        let mut values = [None; OF_CALLS.len()];
        for (value, name) in values.iter_mut().zip(OF_CALLS) {
            if let Some(address) = exports.get(name) {
                let word = memory::word(memory, address);
                *value = Some(word.ok_or_else(|| unreadable(&message!("R's variable `{name}`")))?);
            }
        }
        let are_all = values.iter().all(Option::is_some);
        let mut variables = Variables {
            exports,
            values,
            hidden: Hidden::default(),
            toplevel: 0,
        };
        let needed = [NIL, IN_BYTE_CODE, SRCFILE_SYMBOL, GLOBAL_CONTEXT];
        if needed.iter().any(|name| variables.get(name) == Some(0)) {
            return Ok(None);
        }
        if !are_all {
            variables.hidden = Hidden::read(memory, &exports.variables)?;
            let found = variables.hidden.constants(memory, mappings);
            variables.toplevel = found.toplevel;
            for (value, name) in variables.values.iter_mut().zip(OF_CALLS) {
                let known = found.values.iter();
                let known = known.filter(|(known, value)| *known == name && *value != 0);
                *value = value.or(known.map(|(_, value)| *value).next());
            }
        }
        Ok(Some(variables))
    }

    /// The value of a variable that does not change while R runs.
    pub fn get(&self, name: &str) -> Option<u64> {
        let row = OF_CALLS.iter().position(|known| *known == name)?;
        self.values[row]
    }

    /// `R_GlobalContext`. See [`Hidden::heads()`].
    pub fn head(
        &self,
        memory: &mut impl Memory,
        records: &[Range<u64>],
        mappings: &[Mapping],
    ) -> Result<Head> {
        match self.exports.get(GLOBAL_CONTEXT) {
            Some(address) => Head::new(address),
            None => self.hidden.heads(memory, self.toplevel, records, mappings),
        }
    }

    /// The addresses of `R_Srcref`. See [`Hidden::srcrefs()`].
    pub fn srcrefs(&self, memory: &mut impl Memory, values: &Constants) -> Result<Vec<u64>> {
        let Some(address) = self.exports.get(SRCREF) else {
            let marker = self.exports.get(IN_BYTE_CODE);
            return self.hidden.srcrefs(memory, values, marker);
        };
        let mut addresses = Vec::new();
        addresses.try_push(address)?;
        Ok(addresses)
    }

    /// R's own environments, from `R_NamespaceRegistry`.
    pub fn environments(&self, memory: &mut impl Memory, nil: u64) -> Result<Option<Environments>> {
        let modules = self.exports.modules.iter().copied();
        let exports = Exports::find(memory, modules, [NAMESPACES])?;
        Ok(match exports.get(NAMESPACES) {
            Some(address) => memory::word(memory, address)
                .and_then(|registry| Environments::find(memory, nil, registry)),
            None => self.hidden.environments(memory, nil),
        })
    }
}

pub fn unreadable(what: &str) -> Error {
    Error::Process(message!("Its memory cannot be read: {what}."))
}
