//! What does not change while R runs.

use super::exports::Exports;
use profile_core::error::Result;
use profile_runtime::memory::{self, Memory};
use profile_runtime::objects::PRINTNAME;
use profile_runtime::variables::{
    BASE, BASE_NAMESPACE, GLOBAL, IN_BYTE_CODE, NIL, OF_CALLS, SRCFILE_SYMBOL,
};

/// The values of variables that do not change while R runs.
#[derive(Debug, Clone, Copy)]
pub struct Constants {
    /// `R_NilValue`.
    pub nil: u64,
    /// `R_InBCInterpreter`, the marker for a position in byte code.
    pub in_byte_code: u64,
    /// `R_SrcfileSymbol`.
    pub srcfile: u64,
    /// `R_BCNodeStackEnd`.
    pub(crate) node_stack_end: u64,
}

impl Constants {
    /// Addresses of words that do not change, and their values: the variables, or, of a variable that R does not export, a
    /// word of the object that it points to.
    pub(super) fn landmarks(
        &self,
        memory: &mut impl Memory,
        found: &Exports<{ OF_CALLS.len() }>,
    ) -> [(u64, u64); 3] {
        let objects = [
            (NIL, self.nil),
            (IN_BYTE_CODE, self.in_byte_code),
            (SRCFILE_SYMBOL, self.srcfile),
        ];
        objects.map(|(name, object)| match found.get(name) {
            Some(address) => (address, object),
            None => {
                let address = object.wrapping_add(PRINTNAME as u64);
                (address, memory::word(memory, address).unwrap_or(0))
            }
        })
    }
}

/// R's own environments.
#[derive(Debug, Clone, Copy)]
pub struct Environments {
    pub global: u64,
    pub base: u64,
    pub base_namespace: u64,
}

impl Environments {
    /// `None` if these modules do not export all of them.
    pub(super) fn find(memory: &mut impl Memory, modules: &[u64]) -> Result<Option<Environments>> {
        let names = [GLOBAL, BASE, BASE_NAMESPACE];
        let exports = Exports::find(memory, modules.iter().copied(), names)?;
        let [global, base, base_namespace] = names.map(|name| {
            let value = memory::word(memory, exports.get(name)?)?;
            Some(value).filter(|value| *value != 0)
        });
        let all = global.zip(base).zip(base_namespace);
        Ok(all.map(|((global, base), base_namespace)| Environments {
            global,
            base,
            base_namespace,
        }))
    }
}
