//! What does not change while R runs.

use super::exports::Exports;
use profile_runtime::environments::{BASE_NAME, variable};
use profile_runtime::memory::{self, Memory, at};
use profile_runtime::objects::{CELL, ENCLOSING, ENVSXP, FRAME, HASHTAB, PRINTNAME, object_of};
use profile_runtime::variables::{IN_BYTE_CODE, NIL, OF_CALLS, SRCFILE_SYMBOL};

/// More packages than are ever attached.
const MOST_ATTACHED: usize = 1000;

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
    /// The environments, given the registry of namespaces, in which `base` is the namespace of base. The global environment
    /// encloses it, and behind the attached packages there is the environment of base. Base has its variables elsewhere, so
    /// these two are empty. `None` if this object is no such registry.
    pub(super) fn find(memory: &mut impl Memory, nil: u64, registry: u64) -> Option<Environments> {
        let registry = object_of(memory, registry, ENVSXP)?;
        let base_namespace = variable(memory, nil, &registry, BASE_NAME)?;
        let is_empty =
            |object: &[u8; CELL]| [FRAME, HASHTAB].map(|field| at(object, field)) == [nil; 2];
        let object = object_of(memory, base_namespace, ENVSXP).filter(is_empty)?;
        let global = at(&object, ENCLOSING);
        let mut base = at(&object_of(memory, global, ENVSXP)?, ENCLOSING);
        for _ in 0..MOST_ATTACHED {
            let object = object_of(memory, base, ENVSXP)?;
            if is_empty(&object) {
                return Some(Environments {
                    global,
                    base,
                    base_namespace,
                });
            }
            base = at(&object, ENCLOSING);
        }
        None
    }
}
