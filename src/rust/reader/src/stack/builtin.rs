//! Finds the builtin function that byte code calls at a position, see [`call_of_builtin()`].

use crate::stack::names::{Found, Names};
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_runtime::byte_code::{Code, Tables, call_of_builtin, is_replaced};
use profile_runtime::memory::Memory;

/// The call of a builtin function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    pub name: StringId,
    /// The address of the call.
    pub call: u64,
}

/// The builtin that is called at this position, if it is known.
pub fn at_position(
    memory: &mut impl Memory,
    code: Code,
    tables: Tables,
    position: u64,
    names: &mut Names,
    texts: &mut Strings,
) -> Result<Option<Builtin>> {
    let Some((call, symbol)) = call_of_builtin(memory, code, tables, position) else {
        return Ok(None);
    };
    let Found::Name(name) = names.symbol(memory, symbol, texts)? else {
        return Ok(None);
    };
    let is_reported = !is_replaced(texts.get(name));
    Ok(is_reported.then_some(Builtin { name, call }))
}
