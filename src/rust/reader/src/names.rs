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

/// Longer than a name of R can be.
const LONGEST_NAME: u64 = 10_000;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The maximum number of entries. Some processes repeatedly create the calls that they evaluate.
const MOST_CALLS: usize = 1 << 16;

/// The names of symbols, by address. R never frees a symbol.
#[derive(Debug, Default)]
pub struct Names {
    symbols: Map<u64, StringId>,
    /// Symbols that were added since the last `keep()`.
    new: Vec<u64>,
    /// By the address of a call such as `stats::lm(x)`: the objects that `stats::lm` consists of, besides symbols.
    members: Map<u64, [u64; 3]>,
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
    /// Keeps the results that were added since the last call, because nothing changed while they were read.
    pub fn keep(&mut self) {
        self.new.clear();
    }

    /// Discards the results that were added since the last call of `keep()`.
    pub fn forget(&mut self) {
        for symbol in self.new.drain(..) {
            self.symbols.remove(&symbol);
        }
    }

    /// The objects that the name of the called function depended on when this call was last seen.
    pub fn depends_on(&self, call: u64) -> impl Iterator<Item = u64> {
        self.members.get(&call).into_iter().flatten().copied()
    }

    /// The name of the function that is called, given the address of the call and its first cell.
    pub fn of_call(
        &mut self,
        memory: &mut impl Memory,
        address: u64,
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
                let member = Member::read(memory, head, &object);
                let name = match &member {
                    Some(member) => self.of_member(memory, member, texts)?,
                    None => None,
                };
                if let Some(member) = member.filter(|_| name.is_some()) {
                    if self.members.len() >= MOST_CALLS {
                        self.members.clear();
                    }
                    self.members.try_put(address, member.cells)?;
                }
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
        self.symbols.try_put(address, name)?;
        self.new.try_push(address)?;
        Ok(Found::Name(name))
    }

    /// The text of a call that returns a function. `None` if it is none of the usual ones.
    fn of_member(
        &mut self,
        memory: &mut impl Memory,
        member: &Member,
        texts: &mut Strings,
    ) -> Result<Option<String>> {
        let &Member {
            operator,
            object,
            member,
            ..
        } = member;
        let mut symbol = |address| self.symbol(memory, address, texts);
        let (Found::Name(operator), Found::Name(object)) = (symbol(operator)?, symbol(object)?)
        else {
            return Ok(None);
        };
        let has_brackets = match texts.get(operator) {
            "::" | ":::" | "$" => false,
            "[[" => true,
            _ => return Ok(None),
        };
        let name = match self.symbol(memory, member, texts)? {
            Found::Name(name) if has_brackets => {
                written(format_args!("{}[[{}]]", texts.get(object), texts.get(name)))?
            }
            Found::Name(name) => {
                let [object, operator, name] = [object, operator, name].map(|id| texts.get(id));
                written(format_args!("{object}{operator}{name}"))?
            }
            _ if has_brackets => {
                let Some(index) = index(memory, member)? else {
                    return Ok(None);
                };
                written(format_args!("{}[[{index}]]", texts.get(object)))?
            }
            _ => return Ok(None),
        };
        Ok(Some(name))
    }
}

/// The elements of a call with two arguments, such as `stats::lm`.
struct Member {
    operator: u64,
    object: u64,
    member: u64,
    /// The addresses of its cells.
    cells: [u64; 3],
}

impl Member {
    /// `cell` is the first cell of the call.
    fn read(memory: &mut impl Memory, address: u64, cell: &[u8; CELL]) -> Option<Member> {
        let first = at(cell, CDR);
        let object: [u8; CELL] = memory::array(memory, first)?;
        let second = at(&object, CDR);
        let member: [u8; CELL] = memory::array(memory, second)?;
        Some(Member {
            operator: at(cell, CAR),
            object: at(&object, CAR),
            member: at(&member, CAR),
            cells: [address, first, second],
        })
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
