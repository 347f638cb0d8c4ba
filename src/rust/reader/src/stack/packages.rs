//! The packages of functions, by the environments in which they were defined. The chain of environments that enclose a
//! function leads to the namespace of its package or, if the user has defined it, to the global environment.
//!
//! R frees functions and environments and uses their addresses again, so they are read for each stack, with the other
//! objects that it needs. Only the names of namespaces are cached: R frees these if at all when they are unloaded.

use crate::running_r::RunningR;
use crate::stack::cache::Cache;
use crate::stack::frames::Package;
use crate::stack::names::text;
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_runtime::environments::{BASE_NAME, name_of_namespace};
use profile_runtime::memory::{Memory, at};
use profile_runtime::objects::{
    BUILTINSXP, CELL, CLOSXP, ENCLOSING, ENVIRONMENT, ENVSXP, HASHTAB, SPECIALSXP, Type,
};

/// The maximum number of enclosing environments that are followed. Functions inside functions and methods of R6 have
/// fewer than ten.
const MOST_ENCLOSING: usize = 20;

/// The names of namespaces, by address.
#[derive(Debug, Default)]
pub struct Packages(Cache<u64, StringId>);

impl Packages {
    pub fn keep(&mut self) {
        self.0.keep();
    }

    pub fn forget(&mut self) {
        self.0.forget();
    }

    /// The package of R's builtin functions.
    pub fn of_builtins(texts: &mut Strings) -> Result<Package> {
        texts.intern(BASE_NAME).map(Package::Named)
    }

    /// The package of a function.
    pub fn find<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        r: &RunningR,
        function: u64,
        texts: &mut Strings,
    ) -> Result<Package> {
        let Some(environments) = r.environments else {
            return Ok(Package::Unknown);
        };
        let Some(object) = snapshot.object(function)? else {
            return Ok(Package::Unknown);
        };
        let mut address = match Type::of(at(&object, 0)) {
            CLOSXP => at(&object, ENVIRONMENT),
            // R makes a record for some of them, such as `eval()`.
            BUILTINSXP | SPECIALSXP => return Packages::of_builtins(texts),
            _ => return Ok(Package::Unknown),
        };
        // The last two environments that were passed, and whether all belong to calls, which have no hash tables.
        let mut passed: [Option<(u64, [u8; CELL])>; 2] = [None; 2];
        let mut are_of_calls = true;
        for _ in 0..MOST_ENCLOSING {
            if address == environments.global {
                return Ok(Package::None);
            }
            if let Some(name) = self.0.get(address) {
                return Ok(Package::Named(name));
            }
            if address == environments.base || address == environments.base_namespace {
                // A user may enclose an environment by base's. Its functions do not belong to base.
                return match passed {
                    _ if are_of_calls => Packages::of_builtins(texts),
                    [Some((namespace, object)), Some(_)] => {
                        self.add(snapshot, r, namespace, &object, texts)
                    }
                    _ => Ok(Package::Unknown),
                };
            }
            let object = snapshot.object(address)?;
            let Some(object) = object.filter(|object| Type::of(at(object, 0)) == ENVSXP) else {
                return Ok(Package::Unknown);
            };
            are_of_calls &= at(&object, HASHTAB) == r.values.nil;
            passed = [passed[1], Some((address, object))];
            address = at(&object, ENCLOSING);
        }
        Ok(Package::Unknown)
    }

    /// Adds an environment, if it is a namespace.
    fn add(
        &mut self,
        memory: &mut impl Memory,
        r: &RunningR,
        address: u64,
        object: &[u8; CELL],
        texts: &mut Strings,
    ) -> Result<Package> {
        let Some(name) = name_of_namespace(memory, r.values.nil, object) else {
            return Ok(Package::Unknown);
        };
        let Some(name) = text(memory, name)?.filter(|name| !name.is_empty()) else {
            return Ok(Package::Unknown);
        };
        let name = texts.intern(&name)?;
        self.0.put(address, name)?;
        Ok(Package::Named(name))
    }
}
