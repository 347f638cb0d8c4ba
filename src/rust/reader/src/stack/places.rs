//! Finds places in source files by their `srcref`: an integer vector that begins with the line and has an attribute
//! with the file. For positions in byte code, the compiler keeps a table of such objects.

use crate::running_r::RunningR;
use crate::stack::builtin::Builtin;
use crate::stack::cache::Cache;
use crate::stack::frames::{CodeAt, Place, Where};
use crate::stack::names::{Found, Names, text};
use crate::stack::positions::Positions;
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_runtime::byte_code::Code;
use profile_runtime::contexts::Site;
use profile_runtime::environments::text_variable;
use profile_runtime::memory::{self, Memory, at, half_at};
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CELL, CLOSXP, DATA, ENVSXP, INTSXP, LENGTH, LISTSXP, TAG, Type, object_of,
};
use profile_runtime::variables::{FILENAME, SRCREF_NAME};

/// A `srcref` has two or three attributes.
const MOST_ATTRIBUTES: usize = 8;

/// What determines the place of a site, and may change or be freed when its function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Nothing,
    /// The address of a `srcref`.
    Srcref(u64),
    /// A position in byte code.
    Code {
        address: u64,
        code: Code,
        position: u64,
    },
}

impl Root {
    pub fn find<M: Memory>(snapshot: &mut Snapshot<M>, r: &RunningR, site: Site) -> Result<Root> {
        let (object, position) = match site {
            Site::Srcref(address) if !is_object(address, r) => return Ok(Root::Nothing),
            Site::Srcref(address) => return Ok(Root::Srcref(address)),
            Site::Relative { code, words } => (code, Ok(words)),
            Site::Absolute { code, variable } => (code, Err(variable)),
        };
        let Some(code) = Code::read(object, |address| snapshot.object(address))? else {
            return Ok(Root::Nothing);
        };
        let position = match position {
            Ok(instructions) => Some(instructions),
            Err(variable) => {
                let instruction = snapshot.variable(variable)?;
                instruction.and_then(|instruction| code.position(instruction))
            }
        };
        Ok(match position {
            Some(position) => Root::Code {
                address: object,
                code,
                position,
            },
            None => Root::Nothing,
        })
    }
}

/// Whether it may be the address of a `srcref`.
fn is_object(address: u64, r: &RunningR) -> bool {
    address != 0 && address != r.values.nil
}

/// Results, cached by address. R may free these objects and reuse their addresses, so each entry contains data that
/// identifies the object. For each sample, this data is read again and compared.
#[derive(Debug, Default)]
pub struct Places {
    srcrefs: Cache<u64, Srcref>,
    positions: Positions,
}

#[derive(Debug, Clone, Copy)]
struct Srcref {
    line: i32,
    attributes: u64,
    file: Option<StringId>,
}

impl Places {
    pub fn keep(&mut self) {
        self.srcrefs.keep();
        self.positions.keep();
    }

    pub fn forget(&mut self) {
        self.srcrefs.forget();
        self.positions.forget();
    }

    /// The place in a source file, or else the position in byte code, as far as they are known, and the builtin that is called
    /// there.
    pub fn find<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        r: &RunningR,
        root: Root,
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<(Where, Option<Builtin>)> {
        let mut at = Where::default();
        let (address, builtin) = match root {
            Root::Nothing => return Ok((at, None)),
            Root::Srcref(address) => (Some(address), None),
            Root::Code { code, position, .. } => {
                let found = self
                    .positions
                    .find(snapshot, code, position, names, texts)?;
                (found.srcref, found.builtin)
            }
        };
        match (address.filter(|&address| is_object(address, r)), root) {
            (Some(address), _) => at.place = self.find_srcref(snapshot, r, address, texts)?,
            (
                None,
                Root::Code {
                    address,
                    code,
                    position,
                },
            ) => {
                at.code = u32::try_from(position).ok().map(|words| CodeAt {
                    address,
                    code,
                    words,
                });
            }
            (None, _) => {}
        }
        Ok((at, builtin))
    }

    /// Where a closure was defined, if it has a source reference.
    pub fn find_definition<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        r: &RunningR,
        closure: u64,
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<Option<Place>> {
        let (mut address, mut kind, mut next) = (closure, CLOSXP, ATTRIBUTES);
        for _ in 0..MOST_ATTRIBUTES {
            let object = snapshot.object(address)?;
            let Some(object) = object.filter(|object| Type::of(at(object, 0)) == kind) else {
                return Ok(None);
            };
            if kind == LISTSXP {
                let tag = names.symbol(snapshot, at(&object, TAG), texts)?;
                if matches!(tag, Found::Name(tag) if texts.get(tag) == SRCREF_NAME) {
                    return self.find_srcref(snapshot, r, at(&object, CAR), texts);
                }
            }
            (address, kind, next) = (at(&object, next), LISTSXP, CDR);
        }
        Ok(None)
    }

    fn find_srcref<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        r: &RunningR,
        address: u64,
        texts: &mut Strings,
    ) -> Result<Option<Place>> {
        let Some(object) = snapshot.object(address)? else {
            return Ok(None);
        };
        if Type::of(at(&object, 0)) != INTSXP || at(&object, LENGTH) == 0 {
            return Ok(None);
        }
        let line = half_at(&object, DATA) as i32;
        let attributes = at(&object, ATTRIBUTES);
        let known = self.srcrefs.get(address);
        let known = known.filter(|known| (known.line, known.attributes) == (line, attributes));
        let file = match known {
            Some(known) => known.file,
            None => {
                let file = file_of(snapshot, r, attributes, texts)?;
                let srcref = Srcref {
                    line,
                    attributes,
                    file,
                };
                self.srcrefs.put(address, srcref)?;
                file
            }
        };
        Ok(file.map(|file| Place { file, line }))
    }
}

/// The name of the file in the attribute `srcfile`, an environment with a variable `filename`.
fn file_of(
    memory: &mut impl Memory,
    r: &RunningR,
    attributes: u64,
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
        if at(&object, TAG) == r.values.srcfile {
            return filename(memory, r, at(&object, CAR), texts);
        }
        cell = at(&object, CDR);
    }
    Ok(None)
}

fn filename(
    memory: &mut impl Memory,
    r: &RunningR,
    environment: u64,
    texts: &mut Strings,
) -> Result<Option<StringId>> {
    let Some(environment) = object_of(memory, environment, ENVSXP) else {
        return Ok(None);
    };
    let name = text_variable(memory, r.values.nil, &environment, FILENAME);
    let name = match name {
        Some(name) => text(memory, name)?,
        None => None,
    };
    name.map(|name| texts.intern(&name)).transpose()
}
