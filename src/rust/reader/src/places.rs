//! Finds places in source files by their `srcref`: an integer vector that begins with the line and has an attribute
//! with the file. For positions in byte code, the compiler keeps a table of such objects.

use crate::byte_code::{Builtin, Code, Positions, length};
use crate::calls::Site;
use crate::memory::{self, Memory, at, half_at};
use crate::names::{Found, Names, text};
use crate::objects::is_same;
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, filled};
use profile_core::model::{StringId, Strings};
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CELL, DATA, ENVSXP, FRAME, HASHTAB, INTSXP, LENGTH, LISTSXP, STRSXP, TAG,
    Type, VECSXP,
};
use std::collections::HashMap;

/// A `srcref` has two or three attributes.
const MOST_ATTRIBUTES: usize = 8;
/// An environment with the variables of a source file has about ten.
const MOST_VARIABLES: usize = 64;
const LARGEST_TABLE: u64 = 4096;
/// The maximum number of entries. Some processes repeatedly compile the code that they evaluate.
const MOST_CODES: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub file: StringId,
    pub line: i32,
}

/// The object that determines the place of a site, which may change or be freed when its function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Nothing,
    Srcref {
        address: u64,
        object: [u8; CELL],
    },
    Code {
        object: u64,
        code: Code,
        position: u64,
    },
}

impl Root {
    pub fn of(memory: &mut impl Memory, target: &Target, site: Site) -> Root {
        let found = match site {
            Site::Unknown => None,
            Site::Srcref(address) if !is_object(address, target) => None,
            Site::Srcref(address) => {
                memory::array(memory, address).map(|object| Root::Srcref { address, object })
            }
            Site::Relative { code, instructions } => {
                Root::of_code(memory, code, |_, _| Some(instructions))
            }
            Site::Absolute { code, variable } => Root::of_code(memory, code, |memory, code| {
                code.position(memory::word(memory, variable)?)
            }),
        };
        found.unwrap_or(Root::Nothing)
    }

    fn of_code<M: Memory>(
        memory: &mut M,
        object: u64,
        position: impl FnOnce(&mut M, Code) -> Option<u64>,
    ) -> Option<Root> {
        let code = Code::read(memory, object)?;
        let position = position(memory, code)?;
        Some(Root::Code {
            object,
            code,
            position,
        })
    }

    /// The address of the object; 0 if there is none.
    pub fn object(&self) -> u64 {
        match *self {
            Root::Nothing => 0,
            Root::Srcref { address, .. } => address,
            Root::Code { object, .. } => object,
        }
    }

    /// The addresses of the objects that [`exists()`](Root::exists) reads.
    pub fn objects(&self) -> impl Iterator<Item = u64> + use<> {
        let objects = match *self {
            Root::Nothing => [None; 2],
            Root::Srcref { address, .. } => [Some(address), None],
            Root::Code { object, code, .. } => [Some(object), Some(code.constants())],
        };
        objects.into_iter().flatten()
    }

    /// Whether the object still exists. The position may have changed.
    pub fn exists(&self, memory: &mut impl Memory) -> bool {
        match *self {
            Root::Nothing => true,
            Root::Srcref { address, object } => {
                memory::array(memory, address).is_some_and(|now| is_same(&now, &object))
            }
            Root::Code { object, code, .. } => Code::read(memory, object) == Some(code),
        }
    }
}

/// Whether it may be the address of a `srcref`.
fn is_object(address: u64, target: &Target) -> bool {
    address != 0 && address != target.values.nil
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Results, cached by address. R may free these objects and reuse their addresses, so each entry contains data that
/// identifies the object. For each sample, this data is read again and compared.
#[derive(Debug, Default)]
pub struct Places {
    srcrefs: Map<u64, Srcref>,
    new_srcrefs: Vec<u64>,
    positions: Positions,
    /// The byte code that was last seen at each address.
    codes: Map<u64, Code>,
}

#[derive(Debug, Clone, Copy)]
struct Srcref {
    line: i32,
    attributes: u64,
    file: Option<StringId>,
}

impl Places {
    /// Keeps the results that were added since the last call, because nothing changed while they were read.
    pub fn keep(&mut self) {
        self.new_srcrefs.clear();
        self.positions.keep();
        if self.codes.len() > MOST_CODES {
            self.codes.clear();
        }
    }

    /// Discards the results that were added since the last call of `keep()`.
    pub fn forget(&mut self) {
        for address in self.new_srcrefs.drain(..) {
            self.srcrefs.remove(&address);
        }
        self.positions.forget();
    }

    /// The objects, besides its own, that the place of this site has depended on before: the constants of the byte
    /// code, and the `srcref` of the position.
    pub fn depends_on(&self, memory: &mut impl Memory, site: Site) -> [Option<u64>; 2] {
        let Some(&code) = self.codes.get(&site.object()) else {
            return [None; 2];
        };
        let position = match site {
            Site::Relative { instructions, .. } => Some(instructions),
            Site::Absolute { variable, .. } => {
                memory::word(memory, variable).and_then(|pc| code.position(pc))
            }
            Site::Srcref(_) | Site::Unknown => None,
        };
        let srcref = position.and_then(|position| self.positions.srcref(code, position));
        [Some(code.constants()), srcref]
    }

    /// The place in a source file, if it is known, and the builtin that is called there.
    pub fn of(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        root: Root,
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<(Option<Place>, Option<Builtin>)> {
        let (address, srcref, builtin) = match root {
            Root::Nothing => return Ok((None, None)),
            Root::Srcref { address, object } => (address, object, None),
            Root::Code {
                object,
                code,
                position,
            } => {
                if self.codes.get(&object) != Some(&code) {
                    self.codes.try_put(object, code)?;
                }
                let found = self.positions.of(memory, code, position, names, texts)?;
                let address = found.srcref.filter(|&address| is_object(address, target));
                let object = |address| Some((address, memory::array(memory, address)?));
                let Some((address, object)) = address.and_then(object) else {
                    return Ok((None, found.builtin));
                };
                (address, object, found.builtin)
            }
        };
        let place = self.of_srcref(memory, target, address, &srcref, names, texts)?;
        Ok((place, builtin))
    }

    fn of_srcref(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        address: u64,
        object: &[u8; CELL],
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<Option<Place>> {
        let object = &object[..];
        if Type::of(at(object, 0)) != INTSXP || at(object, LENGTH) == 0 {
            return Ok(None);
        }
        let line = half_at(object, DATA) as i32;
        let attributes = at(object, ATTRIBUTES);
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
                self.srcrefs.try_put(address, srcref)?;
                self.new_srcrefs.try_push(address)?;
                file
            }
        };
        Ok(file.map(|file| Place { file, line }))
    }
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
    let mut chains = filled(count.min(LARGEST_TABLE) as usize * 8, 0_u8)?;
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
