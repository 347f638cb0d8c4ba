//! The names of functions, as `Rprof()` prints them: that of the symbol that was called, or `pkg::name`,
//! `object$name` or `object[[name]]`, else `<Anonymous>`.

use crate::memory::{self, Memory, at, half_at};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, filled, owned, written};
use profile_core::model::{StringId, Strings};
use profile_core::text::decode;
use profile_runtime::objects::{
    CAR, CDR, CELL, CHARSXP, DATA, INTSXP, LANGSXP, LENGTH, PRINTNAME, REALSXP, STRSXP, SYMSXP,
    Type,
};
use std::collections::HashMap;

const WHAT: &str = "the names of functions";
/// Longer than a name of R can be.
const LONGEST_NAME: u64 = 10_000;

/// The names of symbols by the addresses of these. R never frees a symbol.
#[derive(Debug, Default)]
pub struct Names {
    symbols: HashMap<u64, StringId, foldhash::fast::RandomState>,
    /// Symbols that were added since the last `keep()`.
    new: Vec<u64>,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Name(StringId),
    /// It is not the call of a function.
    Nothing,
    /// The object is not what it should be, or cannot be read.
    Damaged,
}

impl Names {
    /// Keeps what was found since the last call, because it was read while nothing changed.
    pub fn keep(&mut self) {
        self.new.clear();
    }

    /// Forgets what was found since then.
    pub fn forget(&mut self) {
        for symbol in self.new.drain(..) {
            self.symbols.remove(&symbol);
        }
    }

    /// The name of the function that is called by a call, of which this is the cell.
    pub fn of_call(
        &mut self,
        memory: &mut impl Memory,
        cell: &[u8],
        texts: &mut Strings,
    ) -> Result<Found> {
        if Type::of(at(cell, 0)) != LANGSXP {
            return Ok(Found::Nothing);
        }
        let head = at(cell, CAR);
        if let Some(&name) = self.symbols.get(&head) {
            return Ok(Found::Name(name));
        }
        let Some(object) = memory::array::<CELL>(memory, head) else {
            return Ok(Found::Damaged);
        };
        match Type::of(at(&object, 0)) {
            SYMSXP => self.symbol(memory, head, texts),
            LANGSXP => {
                let name = self.of_member(memory, &object, texts)?;
                let name = match name {
                    Some(name) => texts.intern(&name)?,
                    None => texts.intern("<Anonymous>")?,
                };
                Ok(Found::Name(name))
            }
            _ => Ok(Found::Name(texts.intern("<Anonymous>")?)),
        }
    }

    /// The name of a symbol.
    pub fn symbol(
        &mut self,
        memory: &mut impl Memory,
        address: u64,
        texts: &mut Strings,
    ) -> Result<Found> {
        if let Some(&name) = self.symbols.get(&address) {
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
        self.symbols.try_put(address, name, WHAT)?;
        self.new.try_push(address, WHAT)?;
        Ok(Found::Name(name))
    }

    /// The text of a call with two arguments that finds a function, such as `stats::lm`. `None` if it is another
    /// call.
    fn of_member(
        &mut self,
        memory: &mut impl Memory,
        call: &[u8],
        texts: &mut Strings,
    ) -> Result<Option<String>> {
        let argument = |memory: &mut _, rest: u64| {
            let cell: Option<[u8; CELL]> = memory::array(memory, rest);
            cell.map(|cell| (at(&cell, CAR), at(&cell, CDR)))
        };
        let first = argument(memory, at(call, CDR));
        let Some((object, rest)) = first else {
            return Ok(None);
        };
        let Some((member, _)) = argument(memory, rest) else {
            return Ok(None);
        };
        let mut symbol = |address| self.symbol(memory, address, texts);
        let (Found::Name(operator), Found::Name(object)) =
            (symbol(at(call, CAR))?, symbol(object)?)
        else {
            return Ok(None);
        };
        let has_brackets = match texts.get(operator) {
            "::" | ":::" | "$" => false,
            "[[" => true,
            _ => return Ok(None),
        };
        let name = match self.symbol(memory, member, texts)? {
            Found::Name(name) if has_brackets => written(
                format_args!("{}[[{}]]", texts.get(object), texts.get(name)),
                WHAT,
            )?,
            Found::Name(name) => {
                let [object, operator, name] = [object, operator, name].map(|id| texts.get(id));
                written(format_args!("{object}{operator}{name}"), WHAT)?
            }
            _ if has_brackets => {
                let Some(index) = index(memory, member)? else {
                    return Ok(None);
                };
                written(format_args!("{}[[{index}]]", texts.get(object)), WHAT)?
            }
            _ => return Ok(None),
        };
        Ok(Some(name))
    }
}

/// A constant in double brackets.
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
            Some(text) => written(format_args!("\"{text}\""), WHAT).map(Some),
            None => Ok(None),
        },
        INTSXP => written(format_args!("{}", half_at(&object, DATA) as i32), WHAT).map(Some),
        REALSXP => written(format_args!("{:.0}", f64::from_bits(first)), WHAT).map(Some),
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
    let mut bytes = filled(length as usize, 0_u8, WHAT)?;
    if !memory.read(address.wrapping_add(DATA as u64), &mut bytes) {
        return Ok(None);
    }
    owned(&decode(&bytes)?.text, WHAT).map(Some)
}
