//! The names of functions, as `Rprof()` prints them: that of the symbol that was called, or `pkg::name`,
//! `object$name` or `object[[name]]`, else `<Anonymous>`. Names that many functions have are followed by the place where
//! the function was defined, if that is known.

use crate::stack::cache::Cache;
use crate::stack::frames::Place;
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::limits::memory::{filled, owned, written};
use profile_core::model::{StringId, Strings};
use profile_core::text::decode;
use profile_runtime::memory::{self, Memory, at, half_at};
use profile_runtime::objects::{
    CAR, CDR, CELL, CHARSXP, DATA, INTSXP, LANGSXP, LENGTH, PRINTNAME, REALSXP, STRSXP, SYMSXP,
    Type,
};

/// Longer than a name of R can be.
const LONGEST_NAME: u64 = 10_000;

/// The names under which functions call those that they were given as an argument.
const COMMON: [&str; 8] = [
    "<Anonymous>",
    "FUN",
    "fun",
    "fn",
    "func",
    ".f",
    ".fn",
    ".fun",
];

/// The names of symbols, by address. R never frees a symbol.
#[derive(Debug, Default)]
pub struct Names {
    symbols: Cache<u64, StringId>,
    /// Names with the places of definitions.
    placed: Cache<(StringId, Place), StringId>,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Name(StringId),
    /// It is not the call of a function.
    Nothing,
    /// The object is invalid, or cannot be read.
    Damaged,
}

impl Names {
    pub fn keep(&mut self) {
        self.symbols.keep();
        self.placed.keep();
    }

    pub fn forget(&mut self) {
        self.symbols.forget();
        self.placed.forget();
    }

    /// The name of the function that is called, given the address of the call.
    pub fn name_of_call<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        call: u64,
        texts: &mut Strings,
    ) -> Result<Found> {
        let Some(cell) = snapshot.object(call)? else {
            return Ok(Found::Damaged);
        };
        if Type::of(at(&cell, 0)) != LANGSXP {
            return Ok(Found::Nothing);
        }
        let head = at(&cell, CAR);
        if let Some(name) = self.symbols.get(head) {
            return Ok(Found::Name(name));
        }
        let Some(object) = snapshot.object(head)? else {
            return Ok(Found::Damaged);
        };
        let name = match Type::of(at(&object, 0)) {
            SYMSXP => return self.symbol(snapshot, head, texts),
            LANGSXP => self.name_of_member(snapshot, &object, texts)?,
            _ => None,
        };
        texts
            .intern(name.as_deref().unwrap_or("<Anonymous>"))
            .map(Found::Name)
    }

    /// Whether functions with this name need a place to be told apart.
    pub fn is_common(name: &str) -> bool {
        COMMON.contains(&name)
    }

    /// The name with the place of the definition, such as `FUN (report.R:12)`.
    pub fn at(&mut self, place: Place, name: StringId, texts: &mut Strings) -> Result<StringId> {
        if let Some(known) = self.placed.get((name, place)) {
            return Ok(known);
        }
        let file = texts
            .get(place.file)
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or_default();
        // Code that was not read from a file has lines as well.
        if file.is_empty() {
            return Ok(name);
        }
        let text = written(format_args!("{} ({file}:{})", texts.get(name), place.line))?;
        let placed = texts.intern(&text)?;
        self.placed.put((name, place), placed)?;
        Ok(placed)
    }

    /// The name of a symbol.
    pub fn symbol(
        &mut self,
        memory: &mut impl Memory,
        address: u64,
        texts: &mut Strings,
    ) -> Result<Found> {
        if let Some(name) = self.symbols.get(address) {
            return Ok(Found::Name(name));
        }
        let Some(object) = memory::array::<CELL>(memory, address) else {
            return Ok(Found::Damaged);
        };
        if Type::of(at(&object, 0)) != SYMSXP {
            return Ok(Found::Damaged);
        }
        let Some(name) = text(memory, at(&object, PRINTNAME))? else {
            return Ok(Found::Damaged);
        };
        let name = texts.intern(&name)?;
        self.symbols.put(address, name)?;
        Ok(Found::Name(name))
    }

    /// The text of a call that returns a function, given its first cell, such as `stats::lm`. `None` if it is none of
    /// the usual ones, which have two arguments.
    fn name_of_member<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        cell: &[u8; CELL],
        texts: &mut Strings,
    ) -> Result<Option<String>> {
        let Some(first) = snapshot.object(at(cell, CDR))? else {
            return Ok(None);
        };
        let Some(second) = snapshot.object(at(&first, CDR))? else {
            return Ok(None);
        };
        let [operator, object, member] = [cell, &first, &second].map(|cell| at(cell, CAR));
        let mut symbol = |address| self.symbol(snapshot, address, texts);
        let (Found::Name(operator), Found::Name(object)) = (symbol(operator)?, symbol(object)?)
        else {
            return Ok(None);
        };
        let has_brackets = match texts.get(operator) {
            "::" | ":::" | "$" => false,
            "[[" => true,
            _ => return Ok(None),
        };
        let name = match self.symbol(snapshot, member, texts)? {
            Found::Name(name) if has_brackets => {
                written(format_args!("{}[[{}]]", texts.get(object), texts.get(name)))?
            }
            Found::Name(name) => {
                let [object, operator, name] = [object, operator, name].map(|id| texts.get(id));
                written(format_args!("{object}{operator}{name}"))?
            }
            _ if has_brackets => {
                let Some(index) = index(snapshot, member)? else {
                    return Ok(None);
                };
                written(format_args!("{}[[{index}]]", texts.get(object)))?
            }
            _ => return Ok(None),
        };
        Ok(Some(name))
    }
}

/// The text of a constant in double brackets.
fn index(memory: &mut impl Memory, address: u64) -> Result<Option<String>> {
    let Some(object) = memory::array::<CELL>(memory, address) else {
        return Ok(None);
    };
    if at(&object, LENGTH) == 0 {
        return Ok(None);
    }
    let first = at(&object, DATA);
    match Type::of(at(&object, 0)) {
        STRSXP => match text(memory, first)? {
            Some(text) => written(format_args!("\"{text}\"")).map(Some),
            None => Ok(None),
        },
        INTSXP => written(format_args!("{}", half_at(&object, DATA) as i32)).map(Some),
        REALSXP => written(format_args!("{:.0}", f64::from_bits(first))).map(Some),
        _ => Ok(None),
    }
}

/// The text of a `CHARSXP`, if it is one.
pub fn text(memory: &mut impl Memory, address: u64) -> Result<Option<String>> {
    let Some(header) = memory::array::<DATA>(memory, address) else {
        return Ok(None);
    };
    let length = at(&header, LENGTH);
    if Type::of(at(&header, 0)) != CHARSXP || length > LONGEST_NAME {
        return Ok(None);
    }
    let mut bytes = filled(length as usize, 0_u8)?;
    if !memory.read(address.wrapping_add(DATA as u64), &mut bytes) {
        return Ok(None);
    }
    owned(&decode(&bytes)?.text).map(Some)
}
