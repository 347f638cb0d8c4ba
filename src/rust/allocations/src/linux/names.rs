//! Names of variables, elements and functions, read from R's memory.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};
use profile_core::text::decode;
use profile_runtime::byte_code::length;
use profile_runtime::memory::{self as read, Memory, at};
use profile_runtime::objects::{
    ALTREP, ATTRIBUTES, CAR, CDR, CELL, CHARSXP, DATA, LANGSXP, LENGTH, LISTSXP, PRINTNAME, STRSXP,
    SYMSXP, TAG, object_of,
};

const LONGEST_NAME: u64 = 60;

/// `name$element`, or `name[[2]]`.
pub fn of_element(
    memory: &mut impl Memory,
    list: &[u8; CELL],
    number: u64,
    name: &str,
) -> Result<String> {
    let names = attribute(memory, list, |attribute, _| attribute == "names")?;
    let names = names.map_or(0, |(_, names)| names);
    let has_texts = object_of(memory, names, STRSXP)
        .is_some_and(|names| number < at(&names, LENGTH) && at(&names, 0) & ALTREP == 0);
    let text = if has_texts {
        let text = read::word(memory, names + DATA as u64 + 8 * number);
        text_at(memory, text.unwrap_or(0))?
    } else {
        String::new()
    };
    if text.is_empty() {
        written(format_args!("`{name}[[{}]]`", number + 1))
    } else {
        written(format_args!("`{name}${text}`"))
    }
}

/// The first attribute that is wanted: its name and its value.
pub fn attribute(
    memory: &mut impl Memory,
    object: &[u8; CELL],
    is_wanted: impl Fn(&str, u64) -> bool,
) -> Result<Option<(String, u64)>> {
    let mut cell = at(object, ATTRIBUTES);
    while let Some(attribute) = object_of(memory, cell, LISTSXP) {
        let name = of_symbol(memory, at(&attribute, TAG))?;
        if is_wanted(&name, at(&attribute, CAR)) {
            return Ok(Some((name, at(&attribute, CAR))));
        }
        cell = at(&attribute, CDR);
    }
    Ok(None)
}

/// The name of the function of a call, `FUN` and the like included, without its package.
pub fn of_call(memory: &mut impl Memory, call: u64) -> Result<String> {
    let mut function = object_of(memory, call, LANGSXP).map_or(0, |call| at(&call, CAR));
    if let Some(qualified) = object_of(memory, function, LANGSXP) {
        let operator = of_symbol(memory, at(&qualified, CAR))?;
        if matches!(operator.as_str(), "::" | ":::" | "$") {
            let first = object_of(memory, at(&qualified, CDR), LISTSXP);
            let second = first.map_or(0, |first| at(&first, CDR));
            function = object_of(memory, second, LISTSXP).map_or(0, |last| at(&last, CAR));
        }
    }
    match of_symbol(memory, function)? {
        name if name.is_empty() => owned("<Anonymous>"),
        name => Ok(name),
    }
}

/// Empty if it is no symbol.
pub fn of_symbol(memory: &mut impl Memory, symbol: u64) -> Result<String> {
    match object_of(memory, symbol, SYMSXP) {
        Some(symbol) => text_at(memory, at(&symbol, PRINTNAME)),
        None => Ok(String::new()),
    }
}

fn text_at(memory: &mut impl Memory, address: u64) -> Result<String> {
    let Some(count) = length(memory, address, CHARSXP) else {
        return Ok(String::new());
    };
    let mut bytes = Vec::new();
    bytes.try_fill(count.min(LONGEST_NAME) as usize, 0)?;
    memory.read(address + DATA as u64, &mut bytes);
    owned(&decode(&bytes)?.text)
}
