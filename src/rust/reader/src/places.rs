//! Places in source files: of a `srcref`, an integer vector that begins with the line and has an attribute with
//! the file, and of a position in byte code, for which the compiler keeps a table of such objects.

use crate::calls::Site;
use crate::memory::{self, Memory, at, half_at};
use crate::names::{Found, Names, text};
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, filled};
use profile_core::model::{StringId, Strings};
use profile_runtime::objects::{
    ATTRIBUTES, BCODESXP, CAR, CDR, CELL, CODE, CONSTANTS, DATA, ENVSXP, FRAME, HASHTAB, INTSXP,
    LENGTH, LISTSXP, STRSXP, TAG, Type, VECSXP,
};
use std::collections::HashMap;

const WHAT: &str = "the source files";
/// A `srcref` has two or three attributes.
const MOST_ATTRIBUTES: usize = 8;
/// An environment with the variables of a source file has about ten.
const MOST_VARIABLES: usize = 64;
const LARGEST_TABLE: u64 = 4096;
/// The tables of the compiler are the last constants.
const TABLES: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub file: StringId,
    pub line: i32,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What was found, by addresses. R may free these objects and use their addresses for others, so each entry has
/// what shows that the object is still the same: it is read for each sample and compared.
#[derive(Debug, Default)]
pub struct Places {
    srcrefs: Map<u64, Srcref>,
    /// The table of a function's byte code, by its code and constants; 0 if it has none.
    tables: Map<(u64, u64), u64>,
    new_srcrefs: Vec<u64>,
    new_tables: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Srcref {
    line: i32,
    attributes: u64,
    file: Option<StringId>,
}

impl Places {
    /// Keeps what was found since the last call, because it was read while nothing changed.
    pub fn keep(&mut self) {
        self.new_srcrefs.clear();
        self.new_tables.clear();
    }

    /// Forgets what was found since then.
    pub fn forget(&mut self) {
        for address in self.new_srcrefs.drain(..) {
            self.srcrefs.remove(&address);
        }
        for code in self.new_tables.drain(..) {
            self.tables.remove(&code);
        }
    }

    /// The place in a source file, if it is known.
    pub fn of_site(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        site: Site,
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<Option<Place>> {
        let srcref = match site {
            Site::Unknown => None,
            Site::Srcref(address) => Some(address),
            Site::Relative { code, instructions } => {
                self.in_byte_code(memory, target, code, |_, _| Some(instructions))?
            }
            Site::Absolute { code, variable } => {
                let position = |memory: &mut _, instructions: u64| {
                    let pc = memory::word(memory, variable)?;
                    Some(pc.checked_sub(instructions.checked_add(DATA as u64)?)? / 8)
                };
                self.in_byte_code(memory, target, code, position)?
            }
        };
        match srcref {
            Some(address) if address != target.values.nil && address != 0 => {
                self.of_srcref(memory, target, address, names, texts)
            }
            _ => Ok(None),
        }
    }

    fn of_srcref(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        address: u64,
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<Option<Place>> {
        let Some(object) = memory::array::<CELL>(memory, address) else {
            return Ok(None);
        };
        if Type::of(at(&object, 0)) != INTSXP || at(&object, LENGTH) == 0 {
            return Ok(None);
        }
        let line = half_at(&object, DATA) as i32;
        let attributes = at(&object, ATTRIBUTES);
        let known = self.srcrefs.get(&address);
        let known = known.filter(|known| (known.line, known.attributes) == (line, attributes));
        let file = match known {
            Some(known) => known.file,
            None => {
                let file = file_of(memory, target, attributes, names, texts)?;
                let srcref = Srcref {
                    line,
                    attributes,
                    file,
                };
                self.srcrefs.try_put(address, srcref, WHAT)?;
                self.new_srcrefs.try_push(address, WHAT)?;
                file
            }
        };
        Ok(file.map(|file| Place { file, line }))
    }

    /// The `srcref` of a position in byte code. `position` gets the address of the instructions.
    fn in_byte_code<M: Memory>(
        &mut self,
        memory: &mut M,
        target: &Target,
        code: u64,
        position: impl FnOnce(&mut M, u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        let Some(object) = memory::array::<CELL>(memory, code) else {
            return Ok(None);
        };
        if Type::of(at(&object, 0)) != BCODESXP {
            return Ok(None);
        }
        let [instructions, constants] = [CODE, CONSTANTS].map(|field| at(&object, field));
        let Some(position) = position(memory, instructions) else {
            return Ok(None);
        };
        let table = match self.tables.get(&(instructions, constants)) {
            Some(&table) => table,
            None => {
                let table = srcref_table(memory, constants)?.unwrap_or(0);
                self.tables
                    .try_put((instructions, constants), table, WHAT)?;
                self.new_tables.try_push((instructions, constants), WHAT)?;
                table
            }
        };
        Ok(entry(memory, target, table, constants, position))
    }
}

/// The constant that a table has for a position.
fn entry(
    memory: &mut impl Memory,
    target: &Target,
    table: u64,
    constants: u64,
    position: u64,
) -> Option<u64> {
    let data = |vector: u64, offset: u64| vector.wrapping_add(DATA as u64).wrapping_add(offset);
    if table == 0 || position >= length(memory, table, INTSXP)? {
        return None;
    }
    let number = memory::array(memory, data(table, position * 4)).map(i32::from_le_bytes)?;
    let number = u64::try_from(number).ok()?;
    if number >= length(memory, constants, VECSXP)? {
        return None;
    }
    let srcref = memory::word(memory, data(constants, number * 8))?;
    (srcref != target.values.nil).then_some(srcref)
}

/// The number of elements of a vector of this type.
fn length(memory: &mut impl Memory, vector: u64, of: Type) -> Option<u64> {
    let header = memory::array::<DATA>(memory, vector)?;
    (Type::of(at(&header, 0)) == of).then(|| at(&header, LENGTH))
}

/// The table of places among the constants of byte code: an integer vector of class `srcrefsIndex`.
fn srcref_table(memory: &mut impl Memory, constants: u64) -> Result<Option<u64>> {
    let Some(count) = length(memory, constants, VECSXP) else {
        return Ok(None);
    };
    for number in (count.saturating_sub(TABLES)..count).rev() {
        let element = constants
            .wrapping_add(DATA as u64)
            .wrapping_add(number.wrapping_mul(8));
        let Some(vector) = memory::word(memory, element) else {
            return Ok(None);
        };
        if class_of(memory, vector)?.as_deref() == Some("srcrefsIndex") {
            return Ok(Some(vector));
        }
    }
    Ok(None)
}

/// The first attribute of an integer vector, which is its class if it has no other one.
fn class_of(memory: &mut impl Memory, vector: u64) -> Result<Option<String>> {
    let of = |memory: &mut _, address, kind| {
        let object: [u8; CELL] = memory::array(memory, address)?;
        (Type::of(at(&object, 0)) == kind).then_some(object)
    };
    let Some(vector) = of(memory, vector, INTSXP) else {
        return Ok(None);
    };
    let Some(attribute) = of(memory, at(&vector, ATTRIBUTES), LISTSXP) else {
        return Ok(None);
    };
    let Some(class) = of(memory, at(&attribute, CAR), STRSXP) else {
        return Ok(None);
    };
    text(memory, at(&class, DATA))
}

/// The name of the file in the attribute `srcfile`, an environment with a variable `filename`.
fn file_of(
    memory: &mut impl Memory,
    target: &Target,
    attributes: u64,
    names: &mut Names,
    texts: &mut Strings,
) -> Result<Option<StringId>> {
    let mut cell = attributes;
    for _ in 0..MOST_ATTRIBUTES {
        let Some(object) = memory::array::<CELL>(memory, cell) else {
            return Ok(None);
        };
        if Type::of(at(&object, 0)) != LISTSXP {
            return Ok(None);
        }
        if at(&object, TAG) == target.values.srcfile {
            return filename(memory, target, at(&object, CAR), names, texts);
        }
        cell = at(&object, CDR);
    }
    Ok(None)
}

fn filename(
    memory: &mut impl Memory,
    target: &Target,
    environment: u64,
    names: &mut Names,
    texts: &mut Strings,
) -> Result<Option<StringId>> {
    let Some(object) = memory::array::<CELL>(memory, environment) else {
        return Ok(None);
    };
    if Type::of(at(&object, 0)) != ENVSXP {
        return Ok(None);
    }
    if let Some(name) = in_list(memory, at(&object, FRAME), names, texts)? {
        return Ok(Some(name));
    }
    let table = at(&object, HASHTAB);
    if table == target.values.nil {
        return Ok(None);
    }
    let count = length(memory, table, VECSXP).unwrap_or(0);
    let mut chains = filled(count.min(LARGEST_TABLE) as usize * 8, 0_u8, WHAT)?;
    if !memory.read(table.wrapping_add(DATA as u64), &mut chains) {
        return Ok(None);
    }
    for chain in chains.chunks_exact(8) {
        let chain = at(chain, 0);
        if chain == target.values.nil {
            continue;
        }
        if let Some(name) = in_list(memory, chain, names, texts)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The text of the variable `filename` in a pairlist of variables.
fn in_list(
    memory: &mut impl Memory,
    list: u64,
    names: &mut Names,
    texts: &mut Strings,
) -> Result<Option<StringId>> {
    let mut cell = list;
    for _ in 0..MOST_VARIABLES {
        let Some(object) = memory::array::<CELL>(memory, cell) else {
            return Ok(None);
        };
        if Type::of(at(&object, 0)) != LISTSXP {
            return Ok(None);
        }
        let found = names.symbol(memory, at(&object, TAG), texts)?;
        if matches!(found, Found::Name(name) if texts.get(name) == "filename") {
            let value = memory::array::<CELL>(memory, at(&object, CAR));
            let Some(value) = value.filter(|value| Type::of(at(value, 0)) == STRSXP) else {
                return Ok(None);
            };
            return match text(memory, at(&value, DATA))? {
                Some(name) => texts.intern(&name).map(Some),
                None => Ok(None),
            };
        }
        cell = at(&object, CDR);
    }
    Ok(None)
}
